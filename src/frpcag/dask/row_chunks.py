"""Matrices larger than memory: Dask arrays, zarr and HDF5 stores and .npy files as chunks of rows."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np

from frpcag.runtime.arrays import is_dask

# Bytes of a chunk where the source does not say.
_CHUNK_BYTES = 1 << 26


def as_row_chunks(X: Any, *, chunk_rows: int | None = None) -> Any:
    """Return a matrix as a Dask array of row chunks; nothing is read but the header.

    Parameters
    ----------
    X : Dask array, zarr.Array, h5py.Dataset, memory map, ndarray or path
        Real numbers in two dimensions. A Dask array keeps its chunks: rows only, of known sizes. A path ends in
        ``.npy`` or ``.zarr``, and every worker must reach it, as the file behind a memory map or an HDF5 data set.
    chunk_rows : int, optional
        Rows per chunk for what is not a Dask array; 64 MiB by default.

    Returns
    -------
    dask.array.Array of shape (n_samples, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> as_row_chunks(np.zeros((5, 2)), chunk_rows=2).chunks
    ((2, 2, 1), (2,))
    """
    import dask.array as da

    if isinstance(X, (str, Path)):
        X = _open_path(str(X))
    if is_dask(X):
        return _checked(X)
    shape, dtype = getattr(X, "shape", None), getattr(X, "dtype", None)
    if shape is None or dtype is None:
        raise ValueError(
            f"X is a {type(X).__name__}; backend='dask' takes a Dask array, a zarr array, an HDF5 data set, a memory "
            "map or a path that ends in .npy or .zarr."
        )
    _check_kind(tuple(shape), np.dtype(dtype))
    library = type(X).__module__.partition(".")[0]
    if library == "zarr":
        _refuse_pickled(X, "X")
    if chunk_rows is None:
        chunk_rows = max(1, _CHUNK_BYTES // max(1, shape[1] * np.dtype(dtype).itemsize))
    if library == "h5py":
        return _from_reads(_read_hdf5, (str(X.file.filename), X.name), shape, dtype, chunk_rows)
    if isinstance(X, np.memmap) and isinstance(X.base, mmap.mmap) and X.flags.c_contiguous:
        place = (str(X.filename), np.dtype(dtype).str, int(X.offset), tuple(shape))
        return _from_reads(_read_map, place, shape, dtype, chunk_rows)
    return da.from_array(X, chunks=(chunk_rows, -1))


def _open_path(path: str) -> Any:
    if path.endswith(".npy"):
        return np.load(path, mmap_mode="r")
    if path.rstrip("/").endswith(".zarr"):
        import zarr

        return zarr.open_array(path, mode="r")
    raise ValueError(
        f"X={path!r} is not the path of a matrix; pass one that ends in .npy or .zarr, or open the data set, such "
        "as h5py.File(path)['name']."
    )


def _checked(X: Any) -> Any:
    if not hasattr(X, "chunks"):
        raise ValueError(f"X is a {type(X).__name__}; pass a Dask array, such as frame.to_dask_array(lengths=True).")
    if any(np.isnan(size) for sizes in X.chunks for size in sizes):
        raise ValueError(
            "X has chunks of unknown sizes; call X.compute_chunk_sizes(), or to_dask_array(lengths=True) on a frame."
        )
    _check_kind(X.shape, X.dtype)
    if X.numblocks[1] != 1:
        raise ValueError(
            f"X has {X.numblocks[1]} chunks along its features but rows must be whole; pass X.rechunk({{1: -1}})."
        )
    return X if 0 not in X.chunks[0] else X.rechunk((tuple(size for size in X.chunks[0] if size), -1))


def _check_kind(shape: tuple[int, ...], dtype: np.dtype) -> None:
    if dtype.kind not in "biuf":
        raise ValueError(f"X has dtype {dtype} but must hold real numbers; convert it, such as by X.astype('float32').")
    if len(shape) != 2 or shape[0] < 2 or shape[1] < 1:
        raise ValueError(f"X has shape {shape}; it must have two dimensions, at least 2 rows and 1 column.")


def _from_reads(read: Any, place: tuple, shape: tuple[int, ...], dtype: Any, chunk_rows: int) -> Any:
    """Return the Dask array whose chunks the workers read for themselves: the data never pass the client."""
    import dask.array as da

    import dask

    task = dask.delayed(read)
    parts = []
    for start in range(0, shape[0], chunk_rows):
        stop = min(start + chunk_rows, shape[0])
        parts.append(da.from_delayed(task(*place, start, stop), (stop - start, shape[1]), dtype=dtype))
    return da.concatenate(parts)


def _read_hdf5(path: str, name: str, start: int, stop: int) -> np.ndarray:
    import h5py

    with h5py.File(path, "r") as file:
        return file[name][start:stop]


def _read_map(path: str, dtype: str, offset: int, shape: tuple[int, ...], start: int, stop: int) -> np.ndarray:
    return np.array(np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape)[start:stop])


def _refuse_pickled(array: Any, place: str) -> None:
    """Raise ValueError where the chunks of a zarr array are pickles, which run code when they are read."""
    codecs = [getattr(array, name, None) or () for name in ("filters", "compressors", "serializer")]
    codecs += [getattr(array, "compressor", None) or ()] if not hasattr(array, "compressors") else []
    for found in codecs:
        for codec in found if isinstance(found, list | tuple) else [found]:
            name = str(getattr(codec, "codec_id", type(codec).__name__)).lower()
            if "pickle" in name or "pickle" in type(codec).__name__.lower():
                raise ValueError(
                    f"{place} holds pickled Python objects, which are never loaded, because a pickle can run code; "
                    "save it without that filter."
                )
