"""Tables as people have them: numbers beside ids, dates and text, read once and written back in their own format."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from frpcag.data.column_choice import as_names, find_columns
from frpcag.data.column_kinds import Kind, NumberFormat, is_id, kind_of_cells
from frpcag.data.delimited import read_delimited
from frpcag.data.files import check_key, check_path, read_cells, read_frame, read_matrix
from frpcag.data.table_files import Format, write_columns

Array = np.ndarray

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")


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
    format : Format
        How the file is written.

    Examples
    --------
    >>> import os, tempfile
    >>> from frpcag.data import read_table
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
    format: Format
    ids: Array | None = None
    id_name: str | None = None
    notices: list[str] = field(default_factory=list)

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
        """Write the table with other numbers, in the format that the suffix of ``path`` names.

        Parameters
        ----------
        path : path
            Carried columns stand where they stood; npy, npz, mat and h5 hold the numbers only. A csv file gets the
            delimiter, the decimal mark and the encoding of the file that was read. Written whole or not at all.
        X : array-like of shape (n_samples, n_features), optional
            The numbers to write; those of the table by default. NaN becomes an empty cell.
        """
        X = self.X if X is None else np.asarray(X)
        if X.shape != self.X.shape:
            raise ValueError(f"X has shape {X.shape} but the table has {self.X.shape}; pass a matrix of that shape.")
        names = [column.name for column in self.columns] if self.names is not None else None
        columns = [column.values if column.index is None else X[:, column.index] for column in self.columns]
        write_columns(Path(path), X, columns, names, self.format, ids=self.ids)

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
    >>> from frpcag.data import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "table.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("id,day,a\\n7,monday,1\\n9,tuesday,\\n")
    ...     table = read_table(path)
    >>> table.X.ravel(), table.names, table.ids
    (array([ 1., nan]), ['a'], array(['7', '9'], dtype='<U1'))
    """
    path = Path(path)
    suffix = path.suffix.lower()
    check_path(path, (*TEXT_SUFFIXES, ".h5ad"))
    check_key(path, key)
    numbers = NumberFormat.of(decimal=decimal, missing=as_names(missing))
    if suffix in TEXT_SUFFIXES:
        if delimiter is not None and len(delimiter) != 1:
            raise ValueError(f"delimiter={delimiter!r} must be one character; ' ' stands for any white space.")
        text = read_delimited(path, delimiter=delimiter, encoding=encoding, numbers=numbers)
        kinds = [_numeric(c, numbers) if isinstance(c, np.ndarray) else kind_of_cells(c, numbers) for c in text.columns]
        form = Format(suffix, delimiter=text.delimiter, decimal=numbers.decimal, encoding=text.encoding)
        return _assemble(path, text.names, text.columns, kinds, form, text.lines, columns, drop, id)
    for name, value in (("delimiter", delimiter), ("decimal", decimal), ("encoding", encoding)):
        if value is not None:
            raise ValueError(f"{name}={value!r} does not apply to {path}; it is for csv, tsv and txt files.")
    if suffix == ".h5ad":
        return _from_cells(path, numbers, columns, drop, id)
    if suffix == ".parquet":
        names, values, words = read_frame(path)
        kinds = [
            _numeric(v, numbers) if word is None else Kind(word, example=_example(v))
            for v, word in zip(values, words, strict=True)
        ]
        return _assemble(path, names, values, kinds, Format(suffix), [], columns, drop, id)
    X, _ = read_matrix(path, key=key)
    form = Format(suffix, key=key)
    if columns is None and drop is None and id is None:
        return Table(_floats(X, numbers), [Column(str(j + 1), j) for j in range(X.shape[1])], None, form)
    kinds = [_numeric(column, numbers) for column in X.T]
    return _assemble(path, None, list(X.T), kinds, form, [], columns, drop, id)


def _from_cells(path: Path, numbers: NumberFormat, columns, drop, id) -> Table:
    """Return the genes of an AnnData file as columns, with the annotation of its cells carried along."""
    names, X, annotation, ids = read_cells(path)
    table = _assemble(
        path,
        [*annotation, *names],
        [*annotation.values(), *X.T],
        [*(Kind("annotation") for _ in annotation), *(_numeric(column, numbers) for column in X.T)],
        Format(".h5ad"),
        [],
        columns,
        drop,
        id,
    )
    return table if id is not None else replace(table, ids=ids, id_name=None)


def _floats(X: Array, numbers: NumberFormat) -> Array:
    """Return numbers as floats, NaN where a number stands for "no value"."""
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    if numbers.sentinels:
        X = np.where(np.isin(X, np.array(list(numbers.sentinels), X.dtype)), X.dtype.type(np.nan), X)
    return X


def _numeric(values: Array, numbers: NumberFormat) -> Kind:
    if values.dtype == bool:
        return Kind("truth values", values.astype(np.float64), example=str(bool(values[0])))
    values = _floats(values, numbers)
    return Kind("nothing" if np.isnan(values).all() else "numbers", values)


def _example(values: Any) -> str:
    return repr(str(next((value for value in values if value is not None and value == value), "")))


def _assemble(path, names, values, kinds, form: Format, lines, columns, drop, id) -> Table:
    """Choose the columns to feed in, and gather the others."""
    notices: list[str] = []
    titles = _unique(names, notices) if names is not None else [str(j + 1) for j in range(len(values))]
    wanted = None if columns is None else find_columns(path, "columns", as_names(columns), titles)
    dropped = set(find_columns(path, "drop", as_names(drop), titles))
    id_column = None if id is None else find_columns(path, "id", [id], titles)[0]
    fed: list[int] = []
    words = [kind.word for kind in kinds]
    for j, kind in enumerate(kinds):
        if j in dropped or j == id_column or (wanted is not None and j not in wanted):
            continue
        if names is not None and names[j] == "" and kind.word == "nothing":
            dropped.add(j)  # what a delimiter at the end of each line leaves
        elif wanted is None and kind.word == "numbers" and names is not None and is_id(names[j], kind.values):
            words[j] = "ids"
        elif kind.word in ("numbers", "mixed") or (wanted is not None and kind.word != "nothing"):
            fed.append(j)
    _check_usable(path, titles, kinds, fed, lines, asked=wanted is not None)
    if not fed:
        held = ", ".join(f"{titles[j]!r} ({words[j]})" for j in range(len(kinds)) if j not in dropped)
        raise ValueError(
            f"{path} has no column of numbers to use: {held or 'all are dropped'}; check delimiter, or see {_RECIPE}."
        )
    if id_column is None:
        id_column = _natural_id(values, words, dropped, fed)
    order = {j: k for k, j in enumerate(fed)}
    X = np.column_stack([kinds[j].values for j in fed])
    laid = [
        Column(titles[j], order[j]) if j in order else Column(titles[j], None, values[j], words[j])
        for j in range(len(values))
        if j not in dropped
    ]
    notices += _about_carried(
        titles, kinds, words, [j for j in range(len(values)) if j not in dropped and j not in order]
    )
    ids = None if id_column is None else _as_ids(values[id_column])
    id_name = None if id_column is None or names is None else titles[id_column]
    return Table(X, laid, None if names is None else [titles[j] for j in fed], form, ids, id_name, notices)


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


def _check_usable(path, titles, kinds, fed, lines, *, asked: bool) -> None:
    """Raise one ValueError that lists all columns that are asked for and hold more than numbers."""
    bad = []
    for j in fed:
        kind = kinds[j]
        if kind.values is None:
            line = f", line {lines[kind.row]}" if lines else ""
            help = f": pass {kind.advice}" if kind.advice else f" ({kind.word})"
            bad.append(f"{titles[j]!r} holds {kind.example}{line}{help}")
    if bad:
        out = (
            "leave these out of columns"
            if asked
            else f"leave them out with drop={','.join(_bare(titles, kinds, fed))!r}"
        )
        raise ValueError(f"{path} has columns that are not all numbers: {'; '.join(bad)}; or {out}.")


def _bare(titles, kinds, fed) -> list[str]:
    return [titles[j] for j in fed if kinds[j].values is None]


def _natural_id(values, words, dropped, fed) -> int | None:
    """Return the column that names the rows: ids first, else a first column of text whose values all differ."""
    left = [j for j in range(len(values)) if j not in dropped]
    ids = [j for j in left if words[j] == "ids"]
    if ids:
        return ids[0]
    first = left[0]
    named = first not in fed and words[first] in ("text", "dates") and len(set(values[first])) == len(values[first])
    return first if named else None


def _as_ids(values: Any) -> Array:
    if isinstance(values, np.ndarray) and values.dtype.kind == "f" and np.isfinite(values).all():
        whole = values.astype(np.int64)
        return np.array([str(value) for value in (whole if (whole == values).all() else values)])
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
