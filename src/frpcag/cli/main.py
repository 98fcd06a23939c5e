"""frpcag: the commands, and what they all do when something goes wrong.

Exit codes: 0 fine; 1 an unexpected error; 2 bad input or usage; 130 Ctrl-C, after the result so far was written, if
there is one; 143, 129 and 131 SIGTERM, SIGHUP and SIGQUIT, which leave nothing behind.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import frpcag
from frpcag.cli.errors import OFFERED, Interrupted, error_line, exit_code
from frpcag.runtime.signals import end_on_signals

# Each command is the function of this name in the module of this name. Here stands the first sentence of its help, so
# that the list of commands needs none of them.
COMMANDS = {
    "clean": "Find wrong cells of a table, repair them, and leave everything else as it is, to the last byte.",
    "demo": "Repair wrong cells, find clusters and fill in missing values, and compare with the usual tools.",
    "fit": "Clean a corrupted matrix, find its components and, if asked, its clusters.",
    "info": "Show versions, cores, backends, the cache of compiled code and extras.",
    "video": "Separate the background of a fixed camera from what moves: background, foreground and mask videos.",
}
DEBUG = "--debug"


class PlainFlags:
    """A command whose flags are listed without a type: Typer from 0.29 on calls each of them ``<bool>``."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments."""
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for one in found:
            if getattr(one, "is_flag", False):
                one.metavar = ""
        return found


class Command(PlainFlags, TyperCommand):
    """One command; messages name the options that it has."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        OFFERED.set(frozenset(word for one in self.params for word in one.opts))
        return super().invoke(ctx)


class Commands(PlainFlags, TyperGroup):
    """Commands that are imported when they are called; errors are one line on stderr, with ``--debug`` a traceback."""

    def resolve_command(self, ctx, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command that is called, imported now."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else load_command(name), rest

    def invoke(self, ctx) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted from error

    def main(self, args: Sequence[str] | None = None, *more: Any, **extra: Any) -> Any:
        """Parse, run, and turn any error into its line and its exit code."""
        standalone = extra.pop("standalone_mode", True)
        words = list(sys.argv[1:] if args is None else args)
        try:
            # Where an error is shown is decided before the words are parsed, so --debug may stand anywhere.
            parsed = [word for word in words if word != DEBUG]
            code = super().main(parsed, *more, **{**extra, "standalone_mode": False})
            sys.stdout.flush()
        except Exception as error:
            if isinstance(error, OSError) and error.errno in (errno.EPIPE, errno.ENOSPC):
                # Only standard output gets here; what it still holds must not fail again at the end of the process.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if DEBUG in words:
                traceback.print_exc()
            print(error_line(error), file=sys.stderr)
            code = exit_code(error)
        if standalone:
            sys.exit(code or 0)
        return code


def load_command(name: str) -> Any:
    """Return a command with all its options."""
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    alone.command(name, cls=Command)(getattr(import_module(f"frpcag.cli.{name}"), name))
    return typer.main.get_command(alone)


app = typer.Typer(cls=Commands, add_completion=False, rich_markup_mode="rich")


def _print_version(asked: bool) -> None:
    if asked:
        print(f"frpcag {frpcag.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option(DEBUG, help="Show the traceback of an error; with any command, anywhere on the line.")
    ] = False,
) -> None:
    """Robust PCA and clustering on graphs: clean data from corrupted matrices, with a proof of optimality."""
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


def _not_loaded() -> None:
    """Hold the place of a command in the list."""


for _name, _help in COMMANDS.items():
    app.command(_name, help=_help)(_not_loaded)


def main() -> None:
    """Run the command line; signals end it as an exception does, so that no half-written folder stays behind."""
    end_on_signals()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    app(prog_name="frpcag")


if __name__ == "__main__":
    main()
