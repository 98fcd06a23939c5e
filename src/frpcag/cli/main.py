"""frpcag: the commands, and what they all do when something goes wrong.

Exit codes: 0 fine; 1 an unexpected error, or an interrupt before there was a result; 2 bad input or usage.
"""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import frpcag
from frpcag.cli import options
from frpcag.cli.bench import bench
from frpcag.cli.demo import demo
from frpcag.cli.errors import Interrupted, error_line, exit_code
from frpcag.cli.explore import explore
from frpcag.cli.fit import fit
from frpcag.cli.info import info
from frpcag.cli.report import report
from frpcag.cli.reproduce import reproduce
from frpcag.cli.video import video


class OneLineErrors(TyperGroup):
    """Commands whose errors are one line on stderr; the traceback comes with ``--debug``."""

    def invoke(self, ctx) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted from error

    def main(self, args: Sequence[str] | None = None, *more: Any, **extra: Any) -> Any:
        """Parse, run, and turn any error into its line and its exit code."""
        standalone = extra.pop("standalone_mode", True)
        args = sys.argv[1:] if args is None else list(args)
        try:
            code = super().main(args, *more, **{**extra, "standalone_mode": False})
        except Exception as error:
            if "--debug" in args:
                traceback.print_exc()
            print(error_line(error), file=sys.stderr)
            code = exit_code(error)
        if standalone:
            sys.exit(code or 0)
        return code


app = typer.Typer(cls=OneLineErrors, add_completion=False, rich_markup_mode="rich")


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
    debug: options.Debug = False,
) -> None:
    """Robust PCA and clustering on graphs: clean data from corrupted matrices, with a proof of optimality."""
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


app.command()(bench)
app.command()(demo)
app.command()(explore)
app.command()(fit)
app.command()(info)
app.command()(report)
app.command()(reproduce)
app.command()(video)


def main() -> None:
    """Run the command line; SIGTERM ends it as an exception does, so that no half-written folder stays behind."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    app(prog_name="frpcag")


if __name__ == "__main__":
    main()
