"""What a file of unknown origin may not do: fill the memory, read other files, point outside a matrix, run code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from frpcag.runtime.memory import require_memory

Array = np.ndarray


def require_room(path: Path, n_bytes: int) -> None:
    """Raise MemoryError where the matrix that a file says it holds is larger than the memory that is free.

    A compressed file of a megabyte can hold gigabytes, and one without any data can claim any shape.
    """
    require_memory(n_bytes, f"reading the matrix in {path}")


def dense(A: Any, path: Path) -> Array:
    """Return a matrix as an array; a sparse one is checked before its indices say where to write."""
    if not sparse.issparse(A):
        return np.asarray(A)
    require_room(path, int(A.shape[0]) * int(A.shape[1]) * A.dtype.itemsize)
    try:
        if hasattr(A, "check_format"):
            A.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"{path} holds a sparse matrix whose parts do not agree ({error}); write it again.") from error
    return A.toarray()


def refuse_outside(item: Any, path: Path) -> None:
    """Raise ValueError where a data set of an HDF5 file, or any in a group of it, lies in another file.

    Whoever wrote such a file chooses which files of the reader are read.
    """
    import h5py

    def check(name: str, found: Any) -> None:
        if isinstance(found, h5py.Dataset):
            outside = found.is_virtual or bool(found.external)
        else:
            links = (found.get(child, getlink=True) for child in found)
            outside = any(isinstance(link, h5py.ExternalLink) for link in links)
        if outside:
            raise ValueError(
                f"{path} points to other files in {name or '/'} (external storage, a virtual data set or a link), "
                "which are not read; copy the data into one file, such as with h5repack or h5py."
            )

    check(item.name, item)
    if not isinstance(item, h5py.Dataset):
        item.visititems(check)


def refuse_pickled(array: Any, place: str) -> None:
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
