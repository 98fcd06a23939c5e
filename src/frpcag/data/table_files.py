"""Tables go out: csv, parquet, npy, npz, mat and h5, each written whole or not at all."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from frpcag.runtime.atomic import atomic_file

Array = np.ndarray


@dataclass(frozen=True)
class Format:
    """How a file is written.

    Parameters
    ----------
    suffix : str
    delimiter, decimal, encoding : str
        Of a text file.
    key : str or None
        Name of the array in an npz, mat or h5 file.
    """

    suffix: str = ".csv"
    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    key: str | None = None


# A column with more decimals was computed, not measured: its numbers are not rounded.
_MOST_DECIMALS = 9


def write_columns(
    path: Path,
    X: Array,
    columns: Sequence[Any],
    names: Sequence[str] | None,
    form: Format = Format(),  # noqa: B008
    *,
    ids: Array | None = None,
) -> None:
    """Write a table in the format that the suffix of a path names.

    Parameters
    ----------
    path : Path
    X : ndarray of shape (n_samples, n_features)
        The numbers alone, for the formats that hold nothing else.
    columns : sequence of sequences
        Numbers and other columns in their order, for csv and parquet.
    names : sequence of str or None
        Of ``columns``.
    form : Format
        Of the file that the table came from.
    ids : ndarray of shape (n_samples,) or None
        Names of the rows, for the formats that have a place for them.
    """
    suffix = path.suffix.lower()
    if suffix == ".h5ad":
        with atomic_file(path) as partial:
            _write_cells(partial, columns, names, ids)
        return
    if suffix not in _WRITERS:
        raise ValueError(f"{path} has the suffix {suffix!r}, which is not one of {', '.join(_WRITERS)}; rename it.")
    if suffix == ".tsv" != form.suffix:
        form = Format(suffix, delimiter="\t", decimal=form.decimal, encoding=form.encoding)
    with atomic_file(path) as partial:
        _WRITERS[suffix](partial, X, columns, names, form)


def rounded_like(given: Array, X: Array) -> Array:
    """Return ``X`` with the numbers that differ from ``given`` rounded to the decimals of their column.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.data.table_files import rounded_like
    >>> rounded_like(np.array([[1.5, 3], [9.0, 4]]), np.array([[1.5, 3], [1.4667, 3.2]])).tolist()
    [[1.5, 3.0], [1.5, 3.0]]
    """
    out = X.copy()
    for j in range(X.shape[1]):
        seen = given[np.isfinite(given[:, j]), j]
        changed = X[:, j] != given[:, j]
        decimals = next((d for d in range(_MOST_DECIMALS + 1) if (np.round(seen, d) == seen).all()), None)
        if decimals is not None and changed.any():
            out[changed, j] = np.round(X[changed, j], decimals)
    return out


def _write_text(path: Path, X: Array, columns: Sequence[Any], names: Sequence[str] | None, form: Format) -> None:
    cells = [_as_cells(column, form.decimal) for column in columns]
    with path.open("w", encoding=form.encoding, newline="") as file:
        writer = csv.writer(file, delimiter=form.delimiter, lineterminator="\n")
        if names is not None:
            writer.writerow(names)
        writer.writerows(zip(*cells, strict=True))


def _as_cells(column: Any, decimal: str) -> list[str]:
    """Return a column as text: numbers to the last digit, whole ones without a point, NaN as an empty cell."""
    if not (isinstance(column, np.ndarray) and column.dtype.kind == "f"):
        return ["" if value is None else str(value) for value in column]
    cells = ["" if np.isnan(value) else str(value).removesuffix(".0") for value in column]
    return cells if decimal == "." else [cell.replace(".", decimal) for cell in cells]


def _write_parquet(path: Path, X: Array, columns: Sequence[Any], names: Sequence[str] | None, form: Format) -> None:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f"writing {path} needs pandas and pyarrow; install frpcag[io].") from error
    titles = names if names is not None else [str(j + 1) for j in range(len(columns))]
    pandas.DataFrame(dict(zip(titles, columns, strict=True))).to_parquet(path, index=False, engine="pyarrow")


def _write_cells(path: Path, columns: Sequence[Any], names: Sequence[str] | None, ids: Array | None) -> None:
    """Write numbers as genes and everything else as annotation of the cells."""
    try:
        import pandas
        from anndata import AnnData
    except ImportError as error:
        raise ImportError(f"writing {path} needs anndata; install frpcag[anndata].") from error
    titles = names if names is not None else [str(j + 1) for j in range(len(columns))]
    genes = [j for j, column in enumerate(columns) if isinstance(column, np.ndarray) and column.dtype.kind == "f"]
    cells = pandas.Index([str(i) for i in (range(len(columns[0])) if ids is None else ids)])
    annotation = {titles[j]: np.asarray(columns[j]) for j in range(len(columns)) if j not in set(genes)}
    AnnData(
        X=np.column_stack([columns[j] for j in genes]),
        obs=pandas.DataFrame(annotation, index=cells),
        var=pandas.DataFrame(index=pandas.Index([titles[j] for j in genes])),
    ).write_h5ad(path)


def _write_npz(path: Path, X: Array, columns: Sequence[Any], names: Sequence[str] | None, form: Format) -> None:
    arrays: dict[str, Any] = {form.key or "X": X}
    np.savez(path, **arrays)


def _write_h5(path: Path, X: Array, columns: Sequence[Any], names: Sequence[str] | None, form: Format) -> None:
    try:
        import h5py
    except ImportError as error:
        raise ImportError(f"writing {path} needs h5py; install frpcag[io].") from error
    with h5py.File(path, "w") as file:
        file[form.key or "X"] = X


_WRITERS: dict[str, Callable[[Path, Array, Sequence[Any], Sequence[str] | None, Format], None]] = {
    ".csv": _write_text,
    ".tsv": _write_text,
    ".txt": _write_text,
    ".parquet": _write_parquet,
    ".npy": lambda path, X, columns, names, form: np.save(path, X),
    ".npz": _write_npz,
    ".mat": lambda path, X, columns, names, form: scipy.io.savemat(str(path), {form.key or "X": X}),
    ".h5": _write_h5,
    ".hdf5": _write_h5,
}
