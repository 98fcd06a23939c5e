"""frpcag clean: write a copy of a table with its wrong cells repaired, and a list of these cells."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from frpcag import FRPCAG, RobustGraphCleaner
from frpcag.cli import options
from frpcag.cli.errors import CTRL_C, input_errors, printable
from frpcag.cli.pictures import save_cell_map
from frpcag.cli.progress import Bar, collected_warnings, print_notices, print_warnings
from frpcag.cli.runs import (
    INTERRUPTED,
    PAGE,
    Timer,
    check_output,
    fit_or_partial,
    library_versions,
    print_json,
    run_folder,
    seconds_in_words,
    write_run,
)
from frpcag.cli.tables import describe_table, read_input
from frpcag.report import Fit, write_report
from frpcag.report.cells import Cells, percent, sentences, worst
from frpcag.tables import Table as DataTable
from frpcag.tables import rounded_like

# Files of a run, beside run.json; the tables get the suffix of the file that was read.
CLEANED, PROBABILITY, WRONG, MAP = "cleaned", "probability", "wrong_cells.csv", "cell_map.png"
# Characters of a decision that the bar shows.
_MOST_TOLD = 60


def clean(
    file: options.File,
    key: options.Key = None,
    columns: options.Columns = None,
    drop: options.Drop = None,
    id: options.Id = None,
    missing: options.Missing = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    float32: Annotated[
        bool, typer.Option("--float32", help="Compute in float32: half the memory.", rich_help_panel=options.DATA)
    ] = False,
    feature_shape: Annotated[
        Any,
        typer.Option(
            parser=options.parse_feature_shape,
            metavar="HxW",
            help="Rows are images of this size; found by default.",
            rich_help_panel=options.DATA,
        ),
    ] = None,
    fill: Annotated[
        bool, typer.Option("--fill", help="Also fill in missing cells.", rich_help_panel=options.MODEL)
    ] = False,
    seed: Annotated[Any, options.seed_option("Seed of the held-out cells.")] = 0,
    jobs: options.Jobs = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder to write; frpcag-clean-<name of the input> by default.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    save_model: Annotated[
        bool,
        typer.Option(
            "--save-model",
            help="Also write model.npz, which frpcag.load reads: it cleans new rows.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = False,
    no_plots: Annotated[
        bool, typer.Option("--no-plots", help="Write no cell map and no report.", rich_help_panel=options.OUTPUT)
    ] = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Find wrong cells of a table, repair them, and leave everything else as it is, to the last byte.

    Writes the cleaned table, the probability that each cell is wrong, a list of wrong cells, a map and a report.

    Rows that are wrong as a whole are listed, not repaired.
    """
    target = output if output is not None else Path(f"frpcag-clean-{file.stem}")
    check_output(target, overwrite=overwrite)
    with Bar(shown=not (as_json or quiet)) as bar:
        timer = Timer()
        bar.stage(f"reading {file.name}")
        how = {"key": key, "columns": columns, "drop": drop, "id": id, "missing": missing}
        how |= {"delimiter": delimiter, "decimal": decimal, "encoding": encoding}
        table = read_input(file, how, float32=float32, feature_shape=feature_shape)
        timer.lap("read")
        bar.stage("judging the cells")
        # A function, because a copied estimator copies its parameters, and a bar has only one screen.
        model = FRPCAG(
            feature_shape=feature_shape, random_state=seed, n_jobs=jobs, callback=lambda progress: bar(progress)
        )
        cleaner = RobustGraphCleaner(model, random_state=seed, n_jobs=jobs)
        cleaner._tell = lambda decision: bar.stage(f"judging the cells: {shorten(decision, _MOST_TOLD)}")
        with input_errors(file), collected_warnings(table.column_name) as notes:
            inner = fit_or_partial(cleaner, table.X)
        timer.lap("clean")
        cells = Cells.of_model(cleaner)
        cleaned = rounded_like(table.X, cleaner.cleaned_)
        if not fill:
            cells = replace(cells, n_filled=0)
            cleaned[np.isnan(table.X)] = np.nan
        record = _record(
            table, cleaner, cells, about=describe_table(table, file, float32=float32), seed=seed, notes=notes, jobs=jobs
        )
        bar.stage(f"writing {target}")
        with run_folder(target, overwrite=overwrite) as folder:
            _write(folder, table, cleaner, cleaned)
            if save_model:
                cleaner.save(folder / "model.npz")
            if not no_plots:
                names = {"feature_names": table.names, "sample_names": _row_names(table)}
                save_cell_map(folder / MAP, cells, **names)
                about = {
                    "title": file.name,
                    "timings": timer.seconds,
                    "versions": record["versions"],
                    "warnings": notes,
                }
                write_report(folder / PAGE, Fit.of_cleaner(cleaner, cells=cells, **about, **names))
            timer.lap("write")
            record["timings"] = timer.seconds
            record["files"] = sorted(path.name for path in folder.iterdir())
            write_run(folder, record)
    if as_json:
        print_json(record)
    else:
        print_warnings(notes)
        if not quiet:
            print_notices(table.notices)
            _print_summary(record, cells, table, target)
    if inner.status_ == INTERRUPTED:
        raise typer.Exit(CTRL_C)


def _record(table: DataTable, cleaner, cells: Cells, *, about, seed: int, notes: list[str], jobs) -> dict[str, Any]:
    """Return everything about a run but its timings and the names of its files."""
    shape = cleaner.feature_shape_
    by_feature = cells.repaired.sum(axis=0)
    return {
        "command": "clean",
        **about,
        "parameters": {"feature_shape": shape, "n_jobs": jobs},
        "seed": seed,
        "cells": {
            "wrong": int(cells.repaired.sum()),
            "share": float(cells.repaired.mean()),
            "filled": cells.n_filled,
            "by_feature": {_column_name(table, j): int(by_feature[j]) for j in np.flatnonzero(by_feature).tolist()},
            "wrong_rows": [_row_name(table, i) for i in cells.wrong_rows.tolist()],
        },
        "decisions": list(cleaner.notes_),
        "warnings": notes,
        "versions": library_versions(),
    }


def _write(folder: Path, table: DataTable, cleaner, cleaned: np.ndarray) -> None:
    """Write the table, the probabilities, and the wrong cells one by one."""
    suffix = table.suffix
    table.write(folder / f"{CLEANED}{suffix}", cleaned)
    post = cleaner.outlier_probability_
    # Text with more digits than a probability has would be larger than the data.
    text = suffix in (".csv", ".tsv", ".txt")
    table.write(folder / f"{PROBABILITY}{suffix}", np.round(post.astype(np.float64), 4) if text else post)
    with (folder / WRONG).open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        ids = table.ids is not None
        rows.writerow(["row", *([table.id_name or "id"] if ids else []), "column", "value", "repaired", "probability"])
        for i, j in np.argwhere(cleaner.outliers_):
            name = [str(table.ids[i])] if table.ids is not None else []
            values = (table.X[i, j], cleaned[i, j])
            rows.writerow(
                [i + 1, *name, _column_name(table, j), *(str(value) for value in values), f"{post[i, j]:.4f}"]
            )


def _column_name(table: DataTable, j: int) -> str:
    return str(j + 1) if table.names is None else table.names[j]


def _row_name(table: DataTable, i: int) -> str:
    return str(i + 1) if table.ids is None else str(table.ids[i])


def _row_names(table: DataTable) -> list[str]:
    return [_row_name(table, i) for i in range(len(table.X))]


def _print_summary(record: dict[str, Any], cells: Cells, table: DataTable, target: Path) -> None:
    console = Console(highlight=False, markup=False)
    data = record["data"]
    shown = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    shown.add_column(style="bold", no_wrap=True)
    shown.add_column(overflow="fold")
    missing = f", {percent(data['missing'])} missing" if data["missing"] else ""
    shown.add_row(
        "data", f"{printable(data['file'])}: {data['n_samples']} rows x {data['n_features']} columns{missing}"
    )
    names = (lambda i: printable(_row_name(table, i))), (lambda j: printable(_column_name(table, j)))
    first, *rest = sentences(cells, *names)
    shown.add_row("wrong cells", first.partition(": ")[2])
    if cells.repaired.any():
        shown.add_row("most of them", worst(cells, *names))
        rest = rest[1:]
    for line in rest:
        shown.add_row("", line)
    shown.add_row("time", seconds_in_words(record["timings"]))
    shown.add_row("written to", f"{target}{'/' if not str(target).endswith('/') else ''}")
    shown.add_row("", ", ".join([*record["files"], "run.json"]))
    console.print(shown)
