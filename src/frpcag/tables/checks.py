"""What a file of unknown origin may not do: fill the memory, read other files, point outside a matrix."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from frpcag.runtime.memory import require_memory

Array = np.ndarray

# Types of the elements of a mat file; SciPy takes any other for an index of its tables and reads behind them.
_MATRIX, _COMPRESSED = 14, 15
_SPARSE, _NUMBERS = 5, range(5, 16)
_KNOWN = {*range(1, 8), 9, 12, 13, _MATRIX, _COMPRESSED, 16, 17, 18}


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what a parser raises on damaged bytes, which can be nearly anything, into one clear error."""
    try:
        yield
    except (MemoryError, ImportError):
        raise
    except Exception as error:
        if isinstance(error, ValueError) and str(error).startswith(str(path)):  # one of ours, already in clear words
            raise
        raise damaged(path, str(error)) from error


def damaged(path: Path, reason: str) -> ValueError:
    """Return the error for a file that no parser takes."""
    return ValueError(
        f"{path} is damaged, truncated, or not a {path.suffix} file ({reason}); write it or copy it again."
    )


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
            if (np.diff(A.indptr) < 0).any():  # which SciPy looks at only where the last one is positive
                raise ValueError("index pointers fall")
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


def check_elements(path: Path) -> None:
    """Raise ValueError where an element of a mat file has no type that exists or ends behind what holds it."""
    with path.open("rb") as file:
        order = {b"IM": "<", b"MI": ">"}.get(file.read(128)[126:])
        if order is not None:  # a file of version 4 has no elements
            _check_elements(file.read, path, order, path.stat().st_size - 128)


def _check_elements(read: Callable[[int], bytes], path: Path, order: str, size: float) -> tuple[list[int], int]:
    """Return the types of some elements and the word in the first of them, which says what a matrix holds."""
    kinds: list[int] = []
    flags = 0
    while size > 0 and (tag := read(8)):
        kind, n = struct.unpack(f"{order}II", tag)
        small, kind = divmod(kind, 1 << 16)  # of a small element the four bytes stand in the tag
        n = 0 if small else n
        if kind not in _KNOWN or small > 4 or n > size - 8:
            raise damaged(path, f"an element has type {kind} and {small or n} bytes")
        if kind == _COMPRESSED:
            _check_elements(_unpacked(read(n)), path, order, float("inf"))
        elif kind == _MATRIX:
            parts, told = _check_elements(read, path, order, n)
            least = {_SPARSE: 6}.get(told & 255, 4) + (told >> 11 & 1)  # the last one is the imaginary part
            if told & 255 in _NUMBERS and (len(parts) < least or {_MATRIX, _COMPRESSED} & set(parts)):
                raise damaged(path, f"a matrix has {len(parts)} parts")
        else:
            n = left = -(-n // 8) * 8
            while left > 0 and (found := read(min(left, 1 << 20))):
                left -= len(found)
                flags = flags if kinds else int.from_bytes(found[:4], "little" if order == "<" else "big")
        kinds.append(kind)
        size -= 8 + n
    return kinds, flags


def _unpacked(packed: bytes) -> Callable[[int], bytes]:
    """Return what reads the content of a compressed element, unpacked no further than it is read."""
    stream = zlib.decompressobj()

    def read(n: int) -> bytes:
        nonlocal packed
        found = stream.decompress(packed, n)
        packed = stream.unconsumed_tail
        return found

    return read
