"""frpcag clean: write a copy of a table with its wrong cells repaired, and a list of these cells."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from frpcag import FRPCAG, RobustGraphCleaner
from frpcag.cli.models import parameters, with_settings
from frpcag.cli.runs import Result, Rows, Run
from frpcag.cli.tables import data_row, read_input
from frpcag.plots import plot_cell_map
from frpcag.report import Fit
from frpcag.report.cells import Cells, sentences, worst
from frpcag.report.figures import png_of
from frpcag.tables import Table, rounded_like

# Files of a run, beside run.json; the tables get the suffix of the file that was read.
CLEANED, PROBABILITY, WRONG, MAP = "cleaned", "probability", "wrong_cells.csv", "cell_map.png"
# Characters of a decision that the bar shows, and dots per inch of the map.
_MOST_TOLD, _DPI = 60, 200


def work(run: Run) -> Result:
    """Judge the cells of a table, and repair the wrong ones."""
    asked, table = run.asked, read_input(run)
    run.bar.stage("judging the cells")
    common = {"random_state": asked.seed, "n_jobs": asked.jobs}
    # A function, because a copied estimator copies its parameters, and a bar has only one screen.
    model = FRPCAG(feature_shape=asked.feature_shape, callback=lambda progress: run.bar(progress), **common)
    cleaner = with_settings(RobustGraphCleaner(model, **common), asked.set)
    cleaner._tell = lambda decision: run.bar.stage(f"judging the cells: {shorten(decision, _MOST_TOLD)}")
    run.fit(cleaner, table.X)
    run.lap("clean")
    cells, cleaned = Cells.of_model(cleaner), rounded_like(table.X, cleaner.cleaned_)
    if not asked.fill:
        cells = replace(cells, n_filled=0)
        cleaned[np.isnan(table.X)] = np.nan
    by_feature = cells.repaired.sum(axis=0)
    rows = [_row_name(table, i) for i in range(len(table.X))]
    run.record |= {
        "parameters": {**parameters(cleaner), "feature_shape": cleaner.feature_shape_},
        "seed": asked.seed,
        "cells": {
            "wrong": int(cells.repaired.sum()),
            "share": float(cells.repaired.mean()),
            "filled": cells.n_filled,
            "by_feature": {_column_name(table, j): int(by_feature[j]) for j in np.flatnonzero(by_feature).tolist()},
            "wrong_rows": [rows[i] for i in cells.wrong_rows.tolist()],
        },
        "decisions": list(cleaner.notes_),
    }
    names: dict[str, Any] = {"feature_names": table.names, "sample_names": rows}

    def write(folder: Path) -> None:
        _write(folder, table, cleaner, cleaned)
        if asked.save_model:
            cleaner.save(folder / "model.npz")
        if not asked.no_plots:
            draw = partial(plot_cell_map, cells.deviation, cells.probability, scale=cells.scale, **names)
            (folder / MAP).write_bytes(png_of(draw, dpi=_DPI))

    return Result(
        write=write,
        page=partial(Fit.of_cleaner, cleaner, cells=cells, **names),
        rows=lambda record: [data_row(record["data"]), *_rows(cells, table)],
    )


def _write(folder: Path, table: Table, cleaner: RobustGraphCleaner, cleaned: np.ndarray) -> None:
    """Write the table, the probabilities, and the wrong cells one by one."""
    suffix = table.suffix
    table.write(folder / f"{CLEANED}{suffix}", cleaned)
    post = cleaner.outlier_probability_
    # Text with more digits than a probability has would be larger than the data.
    text = suffix in (".csv", ".tsv", ".txt")
    table.write(folder / f"{PROBABILITY}{suffix}", np.round(post.astype(np.float64), 4) if text else post)
    with (folder / WRONG).open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        ids = [] if table.ids is None else [table.id_name or "id"]
        rows.writerow(["row", *ids, "column", "value", "repaired", "probability"])
        for i, j in np.argwhere(cleaner.outliers_):
            name = [str(table.ids[i])] if table.ids is not None else []
            values = (str(table.X[i, j]), str(cleaned[i, j]), f"{post[i, j]:.4f}")
            rows.writerow([i + 1, *name, _column_name(table, j), *values])


def _column_name(table: Table, j: int) -> str:
    return str(j + 1) if table.names is None else table.names[j]


def _row_name(table: Table, i: int) -> str:
    return str(i + 1) if table.ids is None else str(table.ids[i])


def _rows(cells: Cells, table: Table) -> Rows:
    names = partial(_row_name, table), partial(_column_name, table)
    first, *rest = sentences(cells, *names)
    rows = [("wrong cells", first.partition(": ")[2])]
    if cells.repaired.any():
        rows.append(("most of them", worst(cells, *names)))
        rest = rest[1:]
    return rows + [("", line) for line in rest]
