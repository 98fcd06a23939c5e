"""frpcag reproduce: the paper's tables and figures on real data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from frpcag.cli import options
from frpcag.cli.errors import InputError
from frpcag.cli.progress import Bar
from frpcag.cli.runs import print_json
from frpcag.data import list_datasets
from frpcag.paper import EXPERIMENTS, read_records, render, run_cells, write_results
from frpcag.paper.run import cell_key, machine
from frpcag.runtime.threads import count_threads

RESULTS_PAGE = "RESULTS.md"


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help=f"Any of {', '.join(EXPERIMENTS)}; all of them by default."),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Folder of records, tables and figures; a run resumes where it stopped."),
    ] = Path("frpcag-reproduce"),
    jobs: Annotated[
        int | None, typer.Option(parser=options.parse_jobs, help="Processes; all cores by default.", metavar="N")
    ] = None,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="A small version on data that come with scikit-learn.")
    ] = False,
    render_only: Annotated[
        bool, typer.Option("--render", help="Draw tables and figures from the records there are; run nothing.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Run the paper's experiments and compare our figures with the printed ones."""
    chosen = names or list(EXPERIMENTS)
    for name in chosen:
        if name not in EXPERIMENTS:
            raise InputError(f"NAME={name} is unknown; choose among {', '.join(EXPERIMENTS)}.")
    if not (smoke or render_only) and len(list_datasets()) == 1:
        raise InputError(
            "the experiments need the data sets; set FRPCAG_DATA to their folder, fetch those that are public with "
            "python -m frpcag.data.fetch FOLDER, or pass --smoke to see them run on small data."
        )
    n_jobs = count_threads(jobs)
    failed: list[str] = []
    tables: dict[str, str] = {}
    for name in chosen:
        if not render_only:
            failed += _run(name, output, smoke=smoke, n_jobs=n_jobs, shown=not as_json)
        if table := render(EXPERIMENTS[name], output / EXPERIMENTS[name].records, smoke=smoke):
            tables[name] = table
    if (output / RESULTS_PAGE).is_file():
        write_results(output / RESULTS_PAGE, tables)
    if as_json:
        print_json({"command": "reproduce", "output": str(output), "tables": tables, "failed": failed, **machine()})
    else:
        _print(tables, failed, output)
    if failed:
        raise typer.Exit(1)


def _run(name: str, output: Path, *, smoke: bool, n_jobs: int, shown: bool) -> list[str]:
    """Run the missing cells of an experiment and return what failed."""
    experiment = EXPERIMENTS[name]
    folder = output / experiment.records
    cells, known = experiment.cells(smoke), read_records(folder)
    done = sum(cell_key(cell) in known for cell in cells)
    failed = []
    with Bar(shown=shown) as bar:
        bar.advance(name, done, len(cells))
        for record in run_cells(experiment, folder, smoke=smoke, n_jobs=n_jobs):
            done += 1
            what = ", ".join(str(value) for value in record["cell"].values())
            if "error" in record:
                failed.append(f"{name} ({what}): {record['error']}")
            bar.advance(f"{name} ({what})", done, len(cells))
    return failed


def _print(tables: dict[str, str], failed: list[str], output: Path) -> None:
    console = Console(highlight=False, markup=False, soft_wrap=True)
    for name, table in tables.items():
        console.print(f"\n{EXPERIMENTS[name].title}\n\n{table}")
    for line in failed:
        console.print(f"failed: {line}; run the same command again to retry", style="red")
    console.print(f"Records, tables and figures are in {output}.")
