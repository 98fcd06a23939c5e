"""Tables as people have them: numbers beside ids, dates and text, read once and written back in their own format."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from frpcag.runtime.atomic import atomic_file
from frpcag.tables.arrays import WITH_KEY, read_array, source_of
from frpcag.tables.choice import as_names, find_columns
from frpcag.tables.frames import read_cells, read_parquet
from frpcag.tables.kinds import DEFAULT, NumberFormat, advice, counts_rows, is_id
from frpcag.tables.source import Source
from frpcag.tables.text import read_text

Array = np.ndarray

logger = logging.getLogger(__name__)

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
SUFFIXES = (".npy", ".npz", *TEXT_SUFFIXES, ".parquet", ".mat", ".h5", ".hdf5", ".h5ad")
# A column with more decimals was computed, not measured: its numbers are not rounded.
_MOST_DECIMALS = 9


@dataclass(frozen=True)
class Column:
    """One column of a file.

    Parameters
    ----------
    name : str
    index : int or None
        Which column of ``Table.X`` it is; None for a column that is carried along.
    values : sequence or None
        What a carried column holds, as it is in the file.
    content : str
        In a word: ``"numbers"``, ``"ids"``, ``"dates"``, ``"text"``, ...
    """

    name: str
    index: int | None = None
    values: Any = None
    content: str = "numbers"


@dataclass(frozen=True, eq=False)
class Table:
    """A table: its numbers as a matrix, and all else that it needs to be written again.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        float32 or float64; NaN where a value is missing.
    columns : list of Column
        All columns in the order of the file, numbers and carried ones; without those that were dropped.
    names : list of str or None
        Names of the columns of ``X``; None if the file has none.
    ids : ndarray of shape (n_samples,) or None
        What the rows are called.
    id_name : str or None
        The column that ``ids`` come from.
    notices : list of str
        What was done beyond reading numbers, one sentence each.
    source : Source
        The file, which writes itself again.
    fed : list of int
        Which column of the file each column of ``X`` is.
    dropped : set of int
        Columns of the file that are left out when it is written.
    suffix : str
        Of the file that was read, which is that of the files that are written.

    Examples
    --------
    >>> import os, tempfile
    >>> from frpcag.tables import read_table
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "table.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("day;pressure\\n2024-05-01;1,5\\n2024-05-02;?\\n")
    >>> table = read_table(path, missing="?", decimal=",")
    >>> table.X, table.names
    (array([[1.5],
           [nan]]), ['pressure'])
    >>> table.write(path, [[1.5], [2.5]])
    >>> with open(path) as file:
    ...     print(file.read())
    day;pressure
    2024-05-01;1,5
    2024-05-02;2,5
    <BLANKLINE>
    >>> folder.cleanup()
    """

    X: Array
    columns: list[Column]
    names: list[str] | None
    suffix: str
    ids: Array | None
    id_name: str | None
    notices: list[str]
    source: Source = field(repr=False)
    fed: list[int] = field(repr=False)
    dropped: set[int] = field(repr=False)

    @property
    def carried(self) -> list[Column]:
        """The columns that are not in ``X``, in the order of the file."""
        return [column for column in self.columns if column.index is None]

    def column_name(self, j: int) -> str:
        """Return what a message calls the j-th column of ``X``: its name, or its number from 1."""
        return f"column {j + 1}" if self.names is None else f"column {self.names[j]!r}"

    def row_name(self, i: int) -> str:
        """Return what a message calls the i-th row: its number from 1, and its id."""
        return f"row {i + 1}" if self.ids is None else f"row {i + 1} ({self.id_name or 'id'} {str(self.ids[i])!r})"

    def write(self, path: str | os.PathLike, X: Any = None) -> None:
        """Write the table with other numbers, in its own format.

        Parameters
        ----------
        path : path
            Of the suffix of the file that was read. Written whole or not at all. All that is no new number is as it
            was: in text byte for byte, in parquet with its types and its index.
        X : array-like of shape (n_samples, n_features), optional
            The numbers to write; those of the table by default. NaN becomes an empty cell.
        """
        X = self.X if X is None else np.asarray(X)
        if X.shape != self.X.shape:
            raise ValueError(f"X has shape {X.shape} but the table has {self.X.shape}; pass a matrix of that shape.")
        if Path(path).suffix.lower() != self.suffix:
            raise ValueError(f"path={str(path)!r} must end in {self.suffix}, the format of the file that was read.")
        changed = (X != self.X) & ~(np.isnan(X) & np.isnan(self.X))
        with atomic_file(path) as partial:
            new = {j: (X[:, k], changed[:, k]) for k, j in enumerate(self.fed)}
            self.source.write(partial, new, self.dropped)

    def __repr__(self) -> str:
        n, p = self.X.shape
        return "\n  ".join([f"Table of {n} rows, {p} columns of numbers, {len(self.carried)} carried", *self.notices])


def read_table(
    path: str | os.PathLike,
    *,
    columns: str | Sequence[str] | None = None,
    drop: str | Sequence[str] | None = None,
    id: str | None = None,
    missing: str | Sequence[Any] | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    key: str | None = None,
) -> Table:
    """Read a table; feed its numbers, carry its ids, dates and text along.

    Types are looked at once for the whole file. Columns of dates, text, categories and truth values are carried along,
    and so are numbers whose name and values say that they are ids. A column of numbers with other cells among them is
    an error, and one message lists all such columns with what they hold and the argument that helps.

    Parameters
    ----------
    path : path
        csv, tsv, txt, parquet, npy, npz, mat, h5 or h5ad.
    columns : str or sequence of str, optional
        The columns to feed in, by name or by number from 1; a string is split at its commas. The others are carried.
    drop : str or sequence of str, optional
        Columns to leave out, also when the table is written again.
    id : str, optional
        The column that names the rows. By default a column whose name says so, or a first column of text, if its
        values are all different.
    missing : str or sequence, optional
        Words and numbers that stand for "no value", such as ``"?,-999"``, beside the empty cell, NA, NaN and NULL.
    delimiter, decimal, encoding : str, optional
        Of a text file; the delimiter is found by default, the decimal mark is a point and the encoding UTF-8.
    key : str, optional
        Which array of an npz, mat or h5 file that holds several.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        Columns that cannot be used, names that are not there, a file that is no table.

    Examples
    --------
    >>> import os, tempfile
    >>> from frpcag.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "table.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("id,day,a\\n7,monday,1\\n9,tuesday,\\n")
    ...     table = read_table(path)
    >>> table.X.ravel(), table.names, table.ids
    (array([ 1., nan]), ['a'], array(['7', '9'], dtype='<U1'))
    """
    numbers = NumberFormat.of(decimal=decimal, missing=as_names(missing))
    source = _source(path, numbers, delimiter=delimiter, decimal=decimal, encoding=encoding, key=key)
    return _assemble(Path(path), source, numbers, columns, drop, id)


def read_matrix(path: str | os.PathLike, *, key: str | None = None) -> tuple[Array, list[str] | None]:
    """Read one real matrix of shape (n_samples, n_features) from a file of nothing but numbers.

    Parameters
    ----------
    path : path
        csv, tsv, txt, parquet, npy, npz, mat, h5 or h5ad. A text file may start with a line of feature names; its
        empty cells become NaN.
    key : str or None, default=None
        Which array of an npz, mat or h5 file (there a path such as ``"group/X"``); needed only when the
        file holds several.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The matrix, in the dtype of an array; floats from tables.
    feature_names : list of str or None
        Column names of a table.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        When ``path`` is not there, or is a folder.
    ValueError
        When the file is empty, damaged, pickled, of an unknown format, or does not hold one real matrix.
    ImportError
        When the format needs the extra ``frpcag[io]``.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from frpcag.tables import read_matrix
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "table.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("height,width\\n1,2\\n3,\\n")
    ...     read_matrix(path)
    (array([[ 1.,  2.],
            [ 3., nan]]), ['height', 'width'])
    """
    source, path = _source(path, DEFAULT, key=key), Path(path)
    if source.names is None and not source.lines:
        return np.column_stack(source.columns), None
    names = source.names
    wrong = [j for j, kind in enumerate(source.kinds) if kind.word not in ("numbers", "nothing", "codes", "ids")]
    if wrong and source.lines:
        kind = source.kinds[wrong[0]]
        title = f" ({names[wrong[0]]})" if names else ""
        raise ValueError(
            f"{path}, line {source.lines[kind.row]}, column {wrong[0] + 1}{title}: {kind.example} is not a number; "
            "leave the cell empty where the value is missing, or use read_table, which carries text along."
        )
    if wrong and names:
        listed = ", ".join(f"{names[j]} ({source.kinds[j].word})" for j in wrong)
        raise ValueError(
            f"{path} has columns without numbers: {listed}; read it with read_table, which carries them along."
        )
    X: Array = np.column_stack([kind.values for kind in source.kinds])  # type: ignore[misc]
    if names and names[0] == "" and X.shape[1] > 1 and counts_rows(X[:, 0]):
        logger.warning("%s: the first column has no name and counts the rows; it is left out.", path)
        return X[:, 1:].copy(), names[1:]
    return X, names


def rounded_like(given: Array, X: Array) -> Array:
    """Return ``X`` with the numbers that differ from ``given`` rounded to the decimals of their column.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.tables import rounded_like
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


def _source(path, numbers: NumberFormat, *, delimiter=None, decimal=None, encoding=None, key=None) -> Source:
    """Open a file by its suffix."""
    path = Path(path)
    suffix = path.suffix.lower()
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; pass the path of a file in it.")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}; check the path (working folder: {Path.cwd()}).")
    if suffix not in SUFFIXES:
        raise ValueError(
            f"{path} has the suffix {suffix!r}, which is not one of {', '.join(SUFFIXES)}; convert the file, "
            "for example with numpy.save."
        )
    if path.is_file() and path.stat().st_size == 0:
        raise ValueError(f"{path} is empty; check that it was saved completely.")
    if key is not None and suffix not in WITH_KEY:
        raise ValueError(f"key={key!r} does not apply to {path}: a {suffix} file holds one matrix; drop key.")
    if suffix in TEXT_SUFFIXES:
        return read_text(path, delimiter=delimiter, encoding=encoding, numbers=numbers)
    for name, value in (("delimiter", delimiter), ("decimal", decimal), ("encoding", encoding)):
        if value is not None:
            raise ValueError(f"{name}={value!r} does not apply to {path}; it is for csv, tsv and txt files.")
    if suffix == ".h5ad":
        return read_cells(path, numbers=numbers)
    if suffix == ".parquet":
        return read_parquet(path, numbers=numbers)
    return source_of(read_array(path, key=key), key=key, numbers=numbers)


def _assemble(path: Path, source: Source, numbers: NumberFormat, columns, drop, id) -> Table:
    """Choose the columns to feed in, and gather the others."""
    notices: list[str] = []
    names, values, kinds = source.names, source.columns, source.kinds
    titles = _unique(names, notices) if names is not None else [str(j + 1) for j in range(len(values))]
    wanted = None if columns is None else find_columns(path, "columns", as_names(columns), titles)
    dropped = set(find_columns(path, "drop", as_names(drop), titles))
    id_column = None if id is None else find_columns(path, "id", [id], titles)[0]
    fed: list[int] = []
    words = [kind.word for kind in kinds]
    blank = {j for j, word in enumerate(words) if names is not None and names[j] == "" and word == "nothing"}
    left = [j for j in range(len(values)) if j not in dropped | blank]  # blank is what a delimiter at line ends leaves
    for j in left:
        if j == id_column or (wanted is not None and j not in wanted):
            continue
        if wanted is None and words[j] == "numbers" and names is not None and is_id(names[j], kinds[j].values):
            words[j] = "ids"
        elif words[j] in ("numbers", "mixed") or (wanted is not None and words[j] != "nothing"):
            fed.append(j)
    _check_usable(path, titles, source, fed, numbers, asked=wanted is not None)
    if not fed:
        held = ", ".join(f"{titles[j]!r} ({words[j]})" for j in left)
        raise ValueError(
            f"{path} has no column of numbers to use: {held or 'all are dropped'}; check delimiter, or see {_RECIPE}."
        )
    if id_column is None and source.ids is None:
        id_column = _natural_id(values, words, left, fed)
    order = {j: k for k, j in enumerate(fed)}
    laid = [Column(titles[j], order[j]) if j in order else Column(titles[j], None, values[j], words[j]) for j in left]
    notices += [f"{titles[j]!r} is read with {kinds[j].mark!r} between the thousands." for j in fed if kinds[j].mark]
    notices += _about_carried(titles, kinds, words, [j for j in left if j not in order])
    return Table(
        X=np.column_stack([kinds[j].values for j in fed]),  # type: ignore[misc]
        columns=laid,
        names=None if names is None else [titles[j] for j in fed],
        suffix=path.suffix.lower(),
        ids=source.ids if id_column is None else _as_ids(values[id_column]),
        id_name=None if id_column is None or names is None else titles[id_column],
        notices=notices,
        source=source,
        fed=fed,
        dropped=dropped,
    )


_RECIPE = "the page on tables for columns of categories"


def _unique(names: list[str], notices: list[str]) -> list[str]:
    """Return names that all differ: the second ``a`` becomes ``a_2``."""
    taken, out, changed = set(names), [], []
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        new = name
        while seen[name] > 1 and (new == name or new in taken):
            new = f"{name}_{seen[name]}" if new == name else f"{new}_"
        if new != name:
            taken.add(new)
            changed.append(repr(new))
        out.append(new)
    if changed:
        notices.append(f"names that come more than once got a suffix: {', '.join(changed)}.")
    return out


def _check_usable(path, titles, source: Source, fed, numbers, *, asked: bool) -> None:
    """Raise one ValueError that lists all columns that are asked for and hold more than numbers."""
    kinds = source.kinds
    bad = [j for j in fed if kinds[j].values is None]
    if not bad:
        return
    good = [source.columns[j] for j in fed if kinds[j].values is not None]
    told = []
    for j in bad:
        line = f", line {source.lines[kinds[j].row]}" if source.lines else ""
        help = advice(source.columns[j], good, numbers) if source.lines else ""
        told.append(
            f"{titles[j]!r} holds {kinds[j].example}{line}{f': pass {help}' if help else f' ({kinds[j].word})'}"
        )
    out = "leave these out of columns" if asked else f"leave them out with drop={','.join(titles[j] for j in bad)!r}"
    raise ValueError(f"{path} has columns that are not all numbers: {'; '.join(told)}; or {out}.")


def _natural_id(values, words, left, fed) -> int | None:
    """Return the column that names the rows: ids first, else a first column of text whose values all differ."""
    ids = [j for j in left if words[j] == "ids"]
    if ids:
        return ids[0]
    first = left[0]
    named = first not in fed and words[first] in ("text", "dates", "codes")
    return first if named and len(set(values[first])) == len(values[first]) else None


def _as_ids(values: Any) -> Array:
    if isinstance(values, np.ndarray) and values.dtype.kind == "f" and (values == np.round(values)).all():
        values = values.astype(np.int64)
    return np.array([str(value).strip() for value in values])


def _about_carried(titles, kinds, words, carried) -> list[str]:
    if not carried:
        return []
    parts = [
        f"{titles[j]!r} ({words[j]}{f', such as {kinds[j].example}' if kinds[j].example else ''})" for j in carried
    ]
    recipe = "; categories can go in as columns of 0 and 1 (ColumnTransformer; see the page on tables)"
    has_categories = any(words[j] == "categories" for j in carried)
    return [f"not used but carried along: {', '.join(parts)}{recipe if has_categories else ''}."]
