"""One matrix out of a file: npy, npz, csv, parquet, mat, h5; nothing in a file is ever unpickled."""

from __future__ import annotations

import logging
import math
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from frpcag.data.column_kinds import DEFAULT, Kind, counts_rows, kind_of_cells
from frpcag.data.delimited import read_delimited
from frpcag.data.file_checks import dense, refuse_outside, require_room
from frpcag.data.inputs import column_content

Array = np.ndarray

logger = logging.getLogger(__name__)

# Bytes of an entry of a mat file, where they are not eight.
_MAT_BYTES = {"int8": 1, "uint8": 1, "logical": 1, "int16": 2, "uint16": 2, "single": 4, "int32": 4, "uint32": 4}
_WITH_KEY = (".npz", ".mat", ".h5", ".hdf5")
_PICKLED = (
    "holds pickled Python objects, which are never loaded, because a pickle can run code; save numbers "
    "instead, with numpy.save(file, X.astype(float))."
)


def read_matrix(path: str | os.PathLike, *, key: str | None = None) -> tuple[Array, list[str] | None]:
    """Read one real matrix of shape (n_samples, n_features) from a file.

    Parameters
    ----------
    path : path
        A file whose suffix names its format: ``.npy``, ``.npz``, ``.csv`` (or ``.tsv``), ``.parquet``,
        ``.mat``, ``.h5`` or ``.hdf5``. A csv file may start with a line of feature names; its empty cells
        become NaN.
    key : str or None, default=None
        Which array of an npz, mat or h5 file (there a path such as ``"group/X"``); needed only when the
        file holds several.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The matrix, in the dtype of the file; float64 from csv.
    feature_names : list of str or None
        Column names of a csv or parquet file.

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
    >>> from frpcag.data import read_matrix
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "table.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("height,width\\n1,2\\n3,\\n")
    ...     read_matrix(path)
    (array([[ 1.,  2.],
            [ 3., nan]]), ['height', 'width'])
    """
    path = Path(path)
    suffix = path.suffix.lower()
    check_path(path)
    check_key(path, key)
    X, names = _READERS[suffix](path, key)
    return _check_matrix(X, path), names


def check_key(path: Path, key: str | None) -> None:
    """Refuse a key for a file that holds one matrix."""
    suffix = path.suffix.lower()
    if key is not None and suffix not in _WITH_KEY:
        raise ValueError(f"key={key!r} does not apply to {path}: a {suffix} file holds one matrix; drop key.")


def check_path(path: Path, more: tuple[str, ...] = ()) -> None:
    """Raise an error in clear words unless a path is a file of a known format, ``more`` suffixes included."""
    suffix, known = path.suffix.lower(), list(dict.fromkeys([*_READERS, *more]))
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; pass the path of a file in it.")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}; check the path (working folder: {Path.cwd()}).")
    if suffix not in known:
        raise ValueError(
            f"{path} has the suffix {suffix!r}, which is not one of {', '.join(known)}; convert the file, "
            "for example with numpy.save."
        )
    if path.is_file() and path.stat().st_size == 0:
        raise ValueError(f"{path} is empty; check that it was saved completely.")


def _check_kind(dtype: np.dtype, path: Path) -> None:
    if dtype.kind == "c":
        raise ValueError(f"{path} holds complex numbers ({dtype}); a real matrix is needed; save X.real or abs(X).")
    if dtype.kind not in "biuf":
        raise ValueError(
            f"{path} holds values of dtype {dtype} (text, cells, structures) instead of numbers; save a numeric matrix."
        )


def _check_matrix(X: Array, path: Path) -> Array:
    _check_kind(X.dtype, path)
    if X.ndim != 2:
        raise ValueError(
            f"{path} holds an array of shape {X.shape}; a matrix (n_samples, n_features) is needed; save "
            "X.reshape(n_samples, -1)."
        )
    if X.size == 0:
        raise ValueError(
            f"{path} holds a matrix of shape {X.shape}, without entries; check that it was saved completely."
        )
    return X


def _choose(path: Path, key: str | None, names: list[str]) -> str:
    """Return the name of the array to read: ``key``, or the only one there is."""
    listed = ", ".join(names)
    if key is not None:
        if key not in names:
            raise ValueError(f"key={key!r} is not in {path}; pass one of {listed or '(it holds no array)'}.")
        return key
    if not names:
        raise ValueError(f"{path} holds no array; check that it was saved completely.")
    if len(names) > 1:
        raise ValueError(f"{path} holds several arrays; pass key, one of {listed}.")
    return names[0]


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what a parser raises on damaged bytes, which can be nearly anything, into one clear error."""
    try:
        yield
    except Exception as error:
        if "allow_pickle" in str(error):
            raise ValueError(f"{path} {_PICKLED}") from None
        raise _damaged(path, str(error)) from error


def _damaged(path: Path, reason: str) -> ValueError:
    return ValueError(
        f"{path} is damaged, truncated, or not a {path.suffix} file ({reason}); write it or copy it again."
    )


def _read_numpy(path: Path, key: str | None) -> tuple[Array, None]:
    with path.open("rb") as file:
        magic = file.read(6)
        if magic[:1] == b"\x80":
            raise ValueError(f"{path} {_PICKLED}")
        # numpy.load takes any other bytes for a pickle and says so, which would mislead.
        if magic != b"\x93NUMPY" and magic[:2] != b"PK":
            raise _damaged(path, "it does not start like one")
        file.seek(0)
        with _reading(path):
            loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded, None
        name = _choose(path, key, loaded.files)
        require_room(path, sum(info.file_size for info in loaded.zip.infolist() if info.filename == f"{name}.npy"))
        with _reading(path):
            return np.asarray(loaded[name]), None


def _read_csv(path: Path, key: str | None) -> tuple[Array, list[str] | None]:
    """Read a table of nothing but numbers; a first column without a name that counts the rows is left out."""
    text = read_delimited(path)
    columns: list[Any] = []
    for j, cells in enumerate(text.columns):
        kind = kind_of_cells(cells, DEFAULT) if isinstance(cells, list) else Kind("numbers", cells)
        if kind.word not in ("numbers", "nothing"):
            title = f" ({text.names[j]})" if text.names else ""
            raise ValueError(
                f"{path}, line {text.lines[kind.row]}, column {j + 1}{title}: {kind.example} is not a number; leave "
                "the cell empty where the value is missing, or read the file with read_table, which carries text along."
            )
        columns.append(kind.values)
    X = np.column_stack(columns)
    if text.names and text.names[0] == "" and X.shape[1] > 1 and counts_rows(X[:, 0]):
        logger.warning("%s: the first column has no name and counts the rows; it is left out.", path)
        return X[:, 1:].copy(), text.names[1:]
    return X, text.names


def _read_parquet(path: Path, key: str | None) -> tuple[Array, list[str]]:
    names, columns, contents = read_frame(path)
    wrong = [f"{name} ({content})" for name, content in zip(names, contents, strict=True) if content is not None]
    if wrong:
        raise ValueError(
            f"{path} has columns without numbers: {', '.join(wrong)}; read it with read_table, which carries them "
            "along."
        )
    return np.column_stack(columns), names


def read_frame(path: Path) -> tuple[list[str], list[Any], list[str | None]]:
    """Return names, columns and what they hold, of a parquet file; None for numbers, which come as NumPy arrays."""
    try:
        import pandas
        import pyarrow.parquet  # pandas reads parquet through it
    except ImportError as error:
        raise ImportError(f"reading {path} needs pandas and pyarrow; install frpcag[io].") from error
    with _reading(path):
        told = pyarrow.parquet.read_metadata(path)
    require_room(path, told.num_rows * told.num_columns * 8)
    with _reading(path):
        frame = pandas.read_parquet(path, engine="pyarrow")
    columns: list[Any] = []
    contents = []
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j]
        content = column_content(column)
        if content is not None:
            columns.append(column)
        elif isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
            columns.append(column.to_numpy())
        else:
            columns.append(column.to_numpy(dtype=np.float64, na_value=np.nan))
        contents.append(content)
    return [str(name) for name in frame.columns], columns, contents


def read_cells(path: Path) -> tuple[list[str], Array, dict[str, Any], Array]:
    """Return names of the genes, counts, annotation of the cells by name, and names of the cells, of an h5ad file."""
    try:
        import anndata
        import h5py  # anndata reads through it
    except ImportError as error:
        raise ImportError(f"reading {path} needs anndata; install frpcag[anndata].") from error
    with _reading(path):
        file = h5py.File(path, "r")
    with file:
        refuse_outside(file, path)
        if isinstance(file.get("X"), h5py.Dataset):
            require_room(path, file["X"].nbytes)
    with _reading(path):
        adata = anndata.read_h5ad(path)
    X = dense(adata.X, path)
    annotation = {str(name): adata.obs[name] for name in adata.obs}
    return (
        [str(name) for name in adata.var_names],
        _check_matrix(X, path),
        annotation,
        np.array(adata.obs_names, dtype=str),
    )


def _read_mat(path: Path, key: str | None) -> tuple[Array, None]:
    with path.open("rb") as file:
        if file.read(10) == b"MATLAB 7.3":
            # Such a file is HDF5, with the rows of MATLAB stored as columns.
            X, _ = _read_h5(path, key)
            return X.T, None
    with _reading(path):
        told = {name: (shape, kind) for name, shape, kind in scipy.io.whosmat(str(path), appendmat=False)}
    name = _choose(path, key, list(told))
    shape, kind = told[name]
    if kind != "sparse":  # a sparse one is small until it is made dense
        require_room(path, math.prod(shape) * _MAT_BYTES.get(kind, 8))
    with _reading(path), warnings.catch_warnings():
        # SciPy 1.18 announces sparse arrays in place of matrices; either is made dense here.
        warnings.simplefilter("ignore", DeprecationWarning)
        X = scipy.io.loadmat(str(path), variable_names=[name], appendmat=False)[name]
    return dense(X, path), None


def _read_h5(path: Path, key: str | None) -> tuple[Array, None]:
    try:
        import h5py
    except ImportError as error:
        raise ImportError(f"reading {path} needs h5py; install frpcag[io].") from error
    names: list[str] = []

    def note(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset) and not name.startswith("#refs#"):
            names.append(name)

    with _reading(path):
        file = h5py.File(path, "r")
    with file:
        with _reading(path):
            file.visititems(note)
        name = _choose(path, key if key is None else key.strip("/"), names)
        data = file[name]
        refuse_outside(data, path)
        _check_kind(data.dtype, path)
        require_room(path, data.nbytes)
        with _reading(path):
            return np.asarray(data[()]), None


_READERS: dict[str, Callable[[Path, str | None], tuple[Array, list[str] | None]]] = {
    ".npy": _read_numpy,
    ".npz": _read_numpy,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
    ".mat": _read_mat,
    ".h5": _read_h5,
    ".hdf5": _read_h5,
}
