"""A file of the user's comes in as a table; every command that takes one reads it here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from frpcag.cli import options
from frpcag.cli.errors import InputError, input_errors
from frpcag.tables import Table, read_table


def read_input(
    file: Path, how: dict[str, Any], *, float32: bool = False, feature_shape: tuple[int, int] | None = None
) -> Table:
    """Return the table in a file, once it is known to be fit for the model.

    Parameters
    ----------
    file : Path
    how : dict
        ``key``, ``columns``, ``drop``, ``id``, ``missing``, ``delimiter``, ``decimal`` and ``encoding``, as in
        `frpcag.tables.read_table`.
    float32 : bool
        Turn the numbers into float32.
    feature_shape : (int, int) or None
        Height and width of the image behind a row.

    Raises
    ------
    InputError
        In one line that names the file, the column and the option that helps.
    """
    with input_errors(file):
        table = read_table(file, **how)
    if float32:
        with np.errstate(over="ignore"):
            table = replace(table, X=table.X.astype(np.float32))
    X = table.X
    if (bad := np.argwhere(np.isinf(X))).size:
        row, column = bad[0]
        raise InputError(
            f"{file}: {len(bad)} of {X.size} entries are infinite{' in float32' if float32 else ''}, the first in "
            f"{table.row_name(row)}, {table.column_name(column)}; drop them or mark them as missing (--missing inf)."
        )
    if (lost := np.flatnonzero(np.isnan(X).all(axis=1))).size:
        raise InputError(
            f"{file}: {len(lost)} of {len(X)} rows hold no number, the first is {table.row_name(lost[0])}; delete them."
        )
    options.check_feature_shape(feature_shape, X.shape[1], file)
    return table


def describe_table(table: Table, file: Path, *, float32: bool = False) -> dict[str, Any]:
    """Return the parts of run.json that come from the file; names and ids are None where there are none."""
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
