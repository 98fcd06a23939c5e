"""A file of the user's comes in as a table; every command that takes one reads it here."""

from __future__ import annotations

import csv
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from frpcag.cli.errors import InputError
from frpcag.cli.runs import Run
from frpcag.report.cells import percent
from frpcag.tables import Table, read_table

_HOW = ("key", "columns", "drop", "id", "missing", "delimiter", "decimal", "encoding")


def read_input(run: Run) -> Table:
    """Return the table in the file of a run, once it is known to be fit for the model; note what it holds.

    Raises
    ------
    InputError
        In one line that names the file, the column and the option that helps.
    """
    asked, file = run.asked, run.file
    run.bar.stage(f"reading {file.name}")
    table = read_table(file, **{name: getattr(asked, name) for name in _HOW})
    if asked.float32:
        with np.errstate(over="ignore"):
            table = replace(table, X=table.X.astype(np.float32))
    X = table.X
    if (bad := np.argwhere(np.isinf(X))).size:
        row, column = bad[0]
        raise InputError(
            f"{file}: {len(bad)} of {X.size} entries are infinite{' in float32' if asked.float32 else ''}, the first "
            f"in {table.row_name(row)}, {table.column_name(column)}; drop them or mark them as missing (--missing inf)."
        )
    if (lost := np.flatnonzero(np.isnan(X).all(axis=1))).size:
        raise InputError(
            f"{file}: {len(lost)} of {len(X)} rows hold no number, the first is {table.row_name(lost[0])}; delete them."
        )
    shape = getattr(asked, "feature_shape", None)
    if shape is not None and (not isinstance(shape, tuple) or prod(shape) != X.shape[1]):
        said = "x".join(map(str, shape)) if isinstance(shape, tuple) else shape
        raise InputError(
            f"--feature-shape={said} must be HEIGHTxWIDTH of the image behind a row, such as 28x28; {file} has "
            f"{X.shape[1]} features."
        )
    run.column_name, run.notices = table.column_name, table.notices
    run.record |= _described(table, file, float32=asked.float32)
    run.lap("read")
    return table


def _described(table: Table, file: Path, *, float32: bool) -> dict[str, Any]:
    n, p = table.X.shape
    return {
        "data": {
            "file": file.name,
            "n_samples": n,
            "n_features": p,
            "dtype": str(table.X.dtype),
            "float32": float32,
            "missing": float(np.isnan(table.X).mean()),
            "id_column": table.id_name,
            "carried": {column.name: column.content for column in table.carried},
        },
        "feature_names": table.names,
        "sample_ids": None if table.ids is None else [str(name) for name in table.ids],
        "notices": table.notices,
    }


def data_row(data: dict[str, Any]) -> tuple[str, str]:
    """Return what was read, in words."""
    missing = f", {percent(data['missing'])} missing" if data["missing"] else ""
    size = f"{data['n_samples']} samples x {data['n_features']} features"
    return "data", f"{data['file']}: {size}, {data['dtype']}{missing}"


def write_labels(folder: Path, table: Table, labels: np.ndarray) -> None:
    """Write the cluster of each row, as an array and beside its id."""
    np.save(folder / "labels.npy", labels)
    names = range(len(labels)) if table.ids is None else table.ids
    with (folder / "labels.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([table.id_name or "sample", "label"])
        rows.writerows(zip(names, labels, strict=True))


def clusters_row(labels: np.ndarray) -> tuple[str, str]:
    """Return how many clusters there are, and their sizes, in words."""
    sizes = np.bincount(labels)
    low, high = sizes.min(), sizes.max()
    return "clusters", f"{len(sizes)}, of {low if low == high else f'{low} to {high}'} samples"
