"""What went wrong, in one line and one exit code: 2 for the input, 130 for Ctrl-C, 1 for anything else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from errno import ENOSPC, EPIPE
from pathlib import Path
from typing import Any

# Arguments of the library and the options that set them.
OPTIONS = {
    "n_neighbors": "--neighbors",
    "n_clusters": "--clusters",
    "n_components": "--n-components",
    "max_iter": "--max-iter",
    "tol": "--tol",
    "gamma1": "--gamma1",
    "gamma2": "--gamma2",
    "feature_shape": "--feature-shape",
    "n_jobs": "--jobs",
    "key": "--key",
    "scale=True": "--scale",
}
# The options of the command that runs; None where no command does.
OFFERED: ContextVar[frozenset[str] | None] = ContextVar("OFFERED", default=None)
# Arguments of read_table, which are common words: named as options only where a value follows.
_READING = re.compile(r"(?<![\w/.-])(columns|drop|id|missing|delimiter|decimal|encoding)=(?=['\"\d])")
# Whole words that are not part of a path.
_ARGUMENT = re.compile(rf"(?<![\w/.-])({'|'.join(OPTIONS)})(?![\w/-]|\.\w)")


# Characters that move the cursor, change colours or titles, or turn text around.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


# What a shell reports of a command that Ctrl-C ended: 128 and the number of the signal.
CTRL_C = 130


def printable(text: str) -> str:
    r"""Return text for a terminal: names that come from a file must not steer it.

    Examples
    --------
    >>> from frpcag.cli.errors import printable
    >>> print(printable("red: " + chr(27) + "[31m"))
    red: \x1b[31m
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class InputError(Exception):
    """Bad input or usage: a file, an option or the output folder."""


class Interrupted(Exception):
    """Ctrl-C where there was no result to save yet."""


def in_option_words(message: str) -> str:
    """Return a message of the library with its arguments named as on the command line, on one line."""
    message = _READING.sub(r"--\1 ", message)
    message = re.sub(
        r"^Found array with (\d) sample\(s\).*? minimum of (\d) is required.*$",
        r"X has \1 row, and rows are compared with each other; pass at least \2.",
        message,
    )
    message = re.sub(r"(?<=pass |heck )delimiter\b", "--delimiter", message)
    offered = OFFERED.get()
    lacking = [name for name in dict.fromkeys(_ARGUMENT.findall(message)) if offered and OPTIONS[name] not in offered]
    message = _ARGUMENT.sub(lambda found: found[1] if found[1] in lacking else OPTIONS[found[1]], message)
    if lacking:
        message += f" This command has no option for {' and '.join(lacking)}; pass it in Python."
    return " ".join(message.split())


@contextmanager
def input_errors(file: Path) -> Iterator[None]:
    """Turn what the library says about its arguments into an InputError."""
    from numpy.linalg import LinAlgError  # late: every command needs this module, and the help no NumPy

    try:
        yield
    except LinAlgError:  # a ValueError too, but no fault of the input
        raise
    except OSError as error:
        if error.strerror is None:  # one of ours, already in clear words
            raise InputError(str(error)) from error
        raise InputError(f"{file} cannot be read ({error.strerror}); check its permissions.") from error
    except (ValueError, ImportError) as error:
        raise InputError(re.sub(r"(?<!')\bX\b(?!\.\w)", lambda _: file.name, in_option_words(str(error)))) from error


def is_usage_error(error: BaseException) -> bool:
    """Say whether Typer raised this about the words on the command line."""
    return hasattr(error, "format_message")


def _with_value(error: Any) -> str:
    """Return what Typer says of the words on the command line, with the value that it refuses."""
    said: str = error.format_message()
    # Typer from 0.29 on checks with pydantic, which says the rule and not the value.
    for found in getattr(error.__cause__, "errors", list)():
        rule, is_rule = re.subn(r"^Input should be (.*?)(, unable to parse.*)?$", r"\1", found["msg"])
        if not is_rule:  # the value is told already
            continue
        rule = rule.replace("a valid integer", "a whole number").replace("greater than or equal to", "at least")
        rule = rule.replace("less than or equal to", "at most")
        said = said.replace(found["msg"], f"{found['input']!r} must be {rule}")
    return said


def exit_code(error: BaseException) -> int:
    """Return 2 for bad input or usage, 130 for Ctrl-C, 1 for the rest."""
    if isinstance(error, Interrupted):
        return CTRL_C
    return 2 if isinstance(error, InputError) or is_usage_error(error) else 1


def error_line(error: BaseException) -> str:
    """Return the one line to show for an error."""
    if is_usage_error(error):
        said = _with_value(error).replace("Value error, ", "")
        context: Any = getattr(error, "ctx", None)
        at = context.command_path if context is not None else "frpcag"
        text = f"{said.rstrip('.')}{'' if said.endswith('?') else '.'} See {at} --help."
    elif isinstance(error, InputError):
        text = str(error)
    elif isinstance(error, Interrupted):
        text = "interrupted before there was a result; nothing was written."
    elif isinstance(error, MemoryError):
        said = str(error).partition(";")[0]  # behind it the library says how to go on, in its own words
        text = f"out of memory ({said}); pass --float32, fewer samples or fewer features."
    elif isinstance(error, OSError) and error.errno in (EPIPE, ENOSPC):
        text = f"standard output cannot be written ({error.strerror}); send it elsewhere. Folders are whole."
    else:
        text = f"unexpected {type(error).__name__}: {error}; run again with --debug to see where, and report it."
    return "error: " + printable(" ".join(text.split()))
