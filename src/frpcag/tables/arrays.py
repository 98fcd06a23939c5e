"""One matrix out of a file, and into it again: npy, npz, mat and h5; nothing in a file is ever unpickled."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from frpcag.tables.checks import check_elements, damaged, dense, reading, refuse_outside, require_room
from frpcag.tables.kinds import Kind, NumberFormat
from frpcag.tables.source import New, Source

Array = np.ndarray

# Bytes of an entry of a mat file, where they are not eight.
_MAT_BYTES = {"int8": 1, "uint8": 1, "logical": 1, "int16": 2, "uint16": 2, "single": 4, "int32": 4, "uint32": 4}
WITH_KEY = (".npz", ".mat", ".h5", ".hdf5")
_PICKLED = (
    "holds pickled Python objects, which are never loaded, because a pickle can run code; save numbers "
    "instead, with numpy.save(file, X.astype(float))."
)


def read_array(path: Path, *, key: str | None) -> Array:
    """Return the matrix in a file, as it is there."""
    X = {".npy": _read_numpy, ".npz": _read_numpy, ".mat": _read_mat}.get(path.suffix.lower(), _read_h5)(path, key)
    return check_matrix(X, path)


def source_of(X: Array, *, key: str | None, numbers: NumberFormat) -> Source:
    """Return a matrix as columns; it is written in its dtype where that holds the new numbers."""

    def write(path: Path, new: New, dropped: set[int]) -> None:
        columns = [_replaced(X[:, j], *new[j]) if j in new else X[:, j] for j in range(X.shape[1]) if j not in dropped]
        _write(path, np.column_stack(columns), key or "X")

    return Source(None, list(X.T), [Kind("numbers", column) for column in numbers.floats(X).T], write)


def _replaced(column: Array, values: Array, changed: Array) -> Array:
    """Return a column with some new values, in its dtype where that holds them."""
    with np.errstate(invalid="ignore"):
        fresh = values.astype(column.dtype)
    same = np.array_equal(fresh[changed], values[changed], equal_nan=values.dtype.kind == "f")
    return np.where(changed, fresh, column) if same else np.where(changed, values, column)


def _write(path: Path, X: Array, key: str) -> None:
    suffix = path.suffix.lower()
    if suffix == ".npy":
        np.save(path, X)
    elif suffix == ".npz":
        arrays: dict[str, Any] = {key: X}
        np.savez(path, **arrays)
    elif suffix == ".mat":
        scipy.io.savemat(str(path), {key: X})
    else:
        import h5py

        with h5py.File(path, "w") as file:
            file[key] = X


def check_kind(dtype: np.dtype, path: Path) -> None:
    """Refuse all but real numbers."""
    if dtype.kind == "c":
        raise ValueError(f"{path} holds complex numbers ({dtype}); a real matrix is needed; save X.real or abs(X).")
    if dtype.kind not in "biuf":
        raise ValueError(
            f"{path} holds values of dtype {dtype} (text, cells, structures) instead of numbers; save a numeric matrix."
        )


def check_matrix(X: Array, path: Path) -> Array:
    """Refuse all but a matrix of real numbers with entries."""
    check_kind(X.dtype, path)
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


def _read_numpy(path: Path, key: str | None) -> Array:
    with path.open("rb") as file:
        magic = file.read(6)
        if magic[:1] == b"\x80":
            raise ValueError(f"{path} {_PICKLED}")
        # numpy.load takes any other bytes for a pickle and says so, which would mislead.
        if magic != b"\x93NUMPY" and magic[:2] != b"PK":
            raise damaged(path, "it does not start like one")
        file.seek(0)
        try:
            with reading(path):
                loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            name = _choose(path, key, loaded.files)
            require_room(path, sum(info.file_size for info in loaded.zip.infolist() if info.filename == f"{name}.npy"))
            with reading(path):
                return np.asarray(loaded[name])
        except ValueError as error:
            if "allow_pickle" in str(error):
                raise ValueError(f"{path} {_PICKLED}") from None
            raise


def _read_mat(path: Path, key: str | None) -> Array:
    with path.open("rb") as file:
        if file.read(10) == b"MATLAB 7.3":
            # Such a file is HDF5, with the rows of MATLAB stored as columns.
            return _read_h5(path, key).T
    with reading(path):
        check_elements(path)
        told = {name: (shape, kind) for name, shape, kind in scipy.io.whosmat(str(path), appendmat=False)}
    name = _choose(path, key, list(told))
    shape, kind = told[name]
    if kind != "sparse":  # a sparse one is small until it is made dense
        require_room(path, math.prod(shape) * _MAT_BYTES.get(kind, 8))
    with reading(path), warnings.catch_warnings():
        # SciPy 1.18 announces sparse arrays in place of matrices; either is made dense here.
        warnings.simplefilter("ignore", DeprecationWarning)
        X = scipy.io.loadmat(str(path), variable_names=[name], appendmat=False)[name]
    return dense(X, path)


def _read_h5(path: Path, key: str | None) -> Array:
    try:
        import h5py
    except ImportError as error:
        raise ImportError(f"reading {path} needs h5py; install frpcag[io].") from error
    names: list[str] = []

    def note(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset) and not name.startswith("#refs#"):
            names.append(name)

    with reading(path):
        file = h5py.File(path, "r")
    with file:
        with reading(path):
            file.visititems(note)
        name = _choose(path, key if key is None else key.strip("/"), names)
        with reading(path):
            data = file[name]
            told = data.dtype, data.nbytes
        refuse_outside(data, path)
        check_kind(told[0], path)
        require_room(path, told[1])
        with reading(path):
            return np.asarray(data[()])
