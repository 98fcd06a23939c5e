"""frpcag: the commands, and what they all do when something goes wrong.

Exit codes: 0 fine; 1 an unexpected error; 2 bad input or usage; 130 Ctrl-C, after the result so far was written, if
there is one; 143, 129 and 131 SIGTERM, SIGHUP and SIGQUIT, which leave nothing behind.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module

import frpcag
from frpcag.cli.errors import InputError, error_line, exit_code, fails_to_print
from frpcag.cli.options import COMMANDS, parse
from frpcag.runtime.signals import end_on_signals

DEBUG = "--debug"
_LEAD = """usage: frpcag COMMAND [options]

Robust PCA and clustering on graphs: clean data from corrupted matrices, with a proof of optimality.

commands:
"""
_OPTIONS = """
options:
  --version  print the version
  --debug    show the traceback of an error; with any command, anywhere on the line
  --help     show this message; with a command, its options and an example
"""


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; an error is one line on stderr, with ``--debug`` a traceback.

    Without words those of the process are taken, and signals end it as an exception does, so that no half-written
    folder stays behind.
    """
    if words is None:
        end_on_signals()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # a terminal may not have all characters of a name
        words = sys.argv[1:]
    try:
        code = _run([word for word in words if word != DEBUG])
        sys.stdout.flush()
        return code
    except SystemExit as end:
        return int(end.code or 0)
    except (Exception, KeyboardInterrupt) as error:
        if fails_to_print(error):  # what it still holds must not fail again at the end of the process
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if DEBUG in words:
            traceback.print_exc()
        print(error_line(error), file=sys.stderr)
        return exit_code(error)


def _run(words: list[str]) -> int:
    if not words or words[0] in ("--help", "-h"):
        print(
            _LEAD + "\n".join(f"  {name:8} {command['help']}" for name, command in COMMANDS.items()) + "\n" + _OPTIONS,
            end="",
        )
        return 0
    name, *rest = words
    if name == "--version":
        print(f"frpcag {frpcag.__version__}")
        return 0
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, 1)
        raise InputError(f"no such command: {name}{f'; did you mean {near[0]}?' if near else '.'} See frpcag --help.")
    asked = parse(name, rest)
    command = import_module(f"frpcag.cli.{name}")
    if name == "info":
        command.show(asked)
        return 0
    from frpcag.cli.runs import carry_out  # late: it loads the report

    return carry_out(command.work, asked)


if __name__ == "__main__":
    sys.exit(main())
