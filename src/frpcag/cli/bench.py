"""frpcag bench: this library beside its peers, on the same data, in one run."""

from __future__ import annotations

from math import isfinite, nan
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from frpcag.bench.measure import run_task
from frpcag.bench.peer_tables import render_peers, table
from frpcag.bench.peers import TASKS
from frpcag.bench.run import cell_key, machine, read_records
from frpcag.cli import options
from frpcag.cli.errors import InputError
from frpcag.cli.progress import Bar
from frpcag.cli.runs import print_json
from frpcag.threads import count_threads


def parse_limit(text: str | float) -> float:
    """Return a finite number of seconds above 0."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = nan
    if not (isfinite(seconds) and seconds > 0):
        raise typer.BadParameter(f"{str(text)!r} must be a number of seconds above 0, such as 60")
    return seconds


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TASK]...", help=f"Any of {', '.join(TASKS)}; all of them by default."),
    ] = None,
    output: Annotated[
        Path, typer.Option(help="Folder of records, tables and figures; a run resumes where it stopped.")
    ] = Path("frpcag-bench"),
    quick: Annotated[bool, typer.Option("--quick", help="A small version on data that come along.")] = False,
    limit: Annotated[
        float, typer.Option(parser=parse_limit, help="Seconds after which a contender is stopped.", metavar="SECONDS")
    ] = 60.0,
    threads: Annotated[
        int | None,
        typer.Option(parser=options.parse_jobs, help="Threads of every contender; all cores by default.", metavar="N"),
    ] = None,
    render_only: Annotated[
        bool, typer.Option("--render", help="Draw tables and figures from the records there are; run nothing.")
    ] = False,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Compare time, memory and quality with TensorLy, pyunlocbox, scikit-learn and UMAP (extra "peers").

    Larger data sets join in when FRPCAG_DATA points at their folder.
    """
    chosen = names or list(TASKS)
    for name in chosen:
        if name not in TASKS:
            raise InputError(f"TASK={name} is unknown; choose among {', '.join(TASKS)}.")
    if render_only and not read_records(output):
        raise InputError(f"--output={output} holds no records to draw; run without --render first.")
    _check_folder(output)
    failed: list[str] = []
    interrupted = False
    if not render_only:
        try:
            for name in chosen:
                failed += _run(
                    name, output, quick=quick, limit=limit, threads=count_threads(threads), shown=not as_json
                )
        except KeyboardInterrupt:
            interrupted = True
    render_peers(output, chosen)
    records = [one for one in read_records(output).values() if one["cell"]["task"] in chosen]
    if as_json:
        print_json(
            {
                "command": "bench",
                "output": str(output),
                "records": records,
                "failed": failed,
                "interrupted": interrupted,
                **machine(),
            }
        )
    else:
        _print(chosen, records, failed, output, interrupted=interrupted)
    if failed or interrupted:
        raise typer.Exit(1)


def _check_folder(output: Path) -> None:
    """Raise unless records can be written to a folder there."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        with (output / "records.jsonl").open("a"):
            pass
    except OSError as error:
        raise InputError(
            f"--output={output} cannot be written ({error.strerror}); pass a folder that you may write to."
        ) from error


def _run(name: str, output: Path, *, quick: bool, limit: float, threads: int, shown: bool) -> list[str]:
    """Measure the missing cells of a task and return what failed."""
    task = TASKS[name]
    cells, known = task.cells(quick), read_records(output)
    done = sum(cell_key(cell) in known for cell in cells)
    failed = []
    with Bar(shown=shown) as bar:
        bar.advance(name, done, len(cells))
        for record in run_task(task, output, quick=quick, limit=limit, threads=threads):
            done += 1
            what = ", ".join(str(value) for value in record["cell"].values())
            if "error" in record:
                failed.append(f"{what}: {record['error']}")
            bar.advance(what, min(done, len(cells)), len(cells))
    return failed


def _print(names: list[str], records: list[dict], failed: list[str], output: Path, *, interrupted: bool) -> None:
    console = Console(highlight=False, markup=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = 100  # a file has no width, and a cut figure is no figure
    for name in names:
        head, rows = table(TASKS[name], records, mark=lambda text: f"{text} *")
        if not rows:
            continue
        shown = Table(title=TASKS[name].title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for number, column in enumerate(head):
            shown.add_column(column, justify="left" if number < 2 else "right", no_wrap=True)
        for above, row in zip([None, *rows], rows, strict=False):
            shown.add_row(*(["", *row[1:]] if above and above[0] == row[0] else row))
        console.print()
        console.print(shown)
        console.print(TASKS[name].note)
    if any(one.get("status") == "not installed" for one in records):
        console.print("Some contenders are not installed: pip install 'frpcag[peers]', then run again.", style="yellow")
    for line in failed:
        console.print(f"failed: {line}; run the same command again to retry", style="red")
    if interrupted:
        console.print(
            "Interrupted; what was measured is kept, and the same command goes on from there.", style="yellow"
        )
    console.print(
        f"\n* the smallest error, the shortest time. ratio: seconds over ours. MB: peak memory beyond the data.\n"
        f"Records, tables and figures are in {output}."
    )
