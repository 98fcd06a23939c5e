"""Arrays from an npz file of unknown origin: every size is checked before a byte of an array is read."""

from __future__ import annotations

import io
import os
import stat
import zipfile
from typing import Any, BinaryIO, Self

import numpy as np

Array = np.ndarray

# The list of members, and any other piece that zipfile reads at once. Large enough for 10,000 arrays.
_MOST_AT_ONCE = 2 * 2**20
# The header of an array of format 1.0 has a length of two bytes, after ten bytes of other things.
_MOST_HEADER = 10 + 2**16
_CHUNK = 2**20
_UTF8_NAME = 0x800  # the one flag of a member that changes nothing
# Booleans, integers, floats and text. Objects would be unpickled, and structures are not arrays of numbers.
_KINDS = "biufU"


class StoredArrays:
    """An npz file as ``numpy.savez`` writes it, opened to read.

    Opening reads the list of members and refuses what could grow: compressed or encrypted members, sizes that differ
    or that add up to more than the file, names that come twice. No piece is larger than 2 MiB until :meth:`read`
    knows what the whole array takes.

    Parameters
    ----------
    path : path
        A regular file.

    Raises
    ------
    ValueError
        The file is not such an archive. The message gives only the reason; callers add the name of the file.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would make the reader wait for ever
            raise ValueError("it is not a regular file")
        self._file = open(path, "rb")  # noqa: SIM115 - closed by __exit__
        try:
            size = os.fstat(self._file.fileno()).st_size
            self._zip = zipfile.ZipFile(_Bounded(self._file, size))
            self._members = _checked_members(self._zip.infolist(), size)
        except BaseException as error:
            self._file.close()
            if isinstance(error, OSError | MemoryError) or not isinstance(error, Exception):
                raise
            raise ValueError(str(error) or "it is not a zip archive") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self._file.close()

    @property
    def names(self) -> list[str]:
        """The names of the arrays."""
        return list(self._members)

    def check_sums(self) -> None:
        """Raise ValueError unless every member has its checksum; reads all of it, 1 MiB at a time."""
        for name, info in self._members.items():
            try:
                with self._zip.open(info) as member:
                    while member.read(_CHUNK):
                        pass
            except Exception as error:  # whatever damage makes zipfile raise
                raise ValueError(f"member {name} is damaged") from error

    def read(self, name: str, *, most: int | None = None) -> Array:
        """Return an array.

        Parameters
        ----------
        name : str
            One of :attr:`names`.
        most : int, optional
            Bytes that it may take; a larger one is refused unread.

        Returns
        -------
        ndarray
            In the memory order in which it was saved.
        """
        dtype, shape, fortran, start = self._header(name)
        n_bytes = self._members[name].file_size - start
        if most is not None and n_bytes > most:
            raise ValueError(f"member {name} has {n_bytes} bytes, more than {most}")
        out = np.empty(shape, dtype, order="F" if fortran else "C")
        flat = out.reshape(-1, order="F" if fortran else "C").view(np.uint8) if n_bytes else np.empty(0, np.uint8)
        try:
            with self._zip.open(self._members[name]) as member:
                member.read(start)
                at = 0
                while chunk := member.read(_CHUNK):
                    flat[at : at + len(chunk)] = np.frombuffer(chunk, np.uint8)
                    at += len(chunk)
        except Exception as error:
            raise ValueError(f"member {name} is damaged") from error
        if at != n_bytes:
            raise ValueError(f"member {name} is cut short")
        return out

    def _header(self, name: str) -> tuple[np.dtype, tuple[int, ...], bool, int]:
        """Return dtype, shape, memory order and length of the header, once they agree with the size of the member."""
        if name not in self._members:
            raise ValueError(f"there is no member {name}")
        size = self._members[name].file_size
        try:
            with self._zip.open(self._members[name]) as member:
                head = io.BytesIO(member.read(min(size, _MOST_HEADER)))
            if np.lib.format.read_magic(head) != (1, 0):
                raise ValueError("not of format 1.0")
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(head)
        except Exception as error:  # whatever a forged header makes zipfile, ast or NumPy raise
            raise ValueError(f"member {name} is not an array") from error
        plain = dtype.kind in _KINDS and dtype.isnative and dtype.names is None and dtype.subdtype is None
        if not plain or dtype.itemsize == 0:
            raise ValueError(f"member {name} has dtype {dtype}, which a saved array cannot have")
        n_bytes = dtype.itemsize
        for length in shape:
            if type(length) is not int or length < 0:
                raise ValueError(f"member {name} has shape {shape}")
            n_bytes *= length
        if len(shape) > 8 or n_bytes != size - head.tell():
            raise ValueError(f"member {name} says shape {shape} and {dtype}, but has {size - head.tell()} bytes")
        return dtype, shape, fortran, head.tell()


class _Bounded(io.RawIOBase):
    """A file for zipfile, which reads the whole list of members at once, however long it claims to be."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size = file, size

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            size = max(self._size - self._file.tell(), 0)
        if size > _MOST_AT_ONCE:
            raise ValueError("its list of members is too long")
        return self._file.read(size)


def _checked_members(members: list[zipfile.ZipInfo], size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members of an archive by the names of their arrays."""
    found: dict[str, zipfile.ZipInfo] = {}
    total = 0
    for info in members:
        name = info.orig_filename.removesuffix(".npy")
        if not (info.orig_filename.endswith(".npy") and name.isidentifier() and name.isascii()):
            raise ValueError(f"member {info.orig_filename[:80]!r} is not an array")
        if name in found:
            raise ValueError(f"member {name} occurs twice")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise ValueError(f"member {name} is compressed; members of a saved model are not")
        if info.flag_bits & ~_UTF8_NAME or stat.S_ISLNK(info.external_attr >> 16):
            raise ValueError(f"member {name} is encrypted, a link or split")
        total += info.file_size
        found[name] = info
    if total > size:
        raise ValueError(f"its members have {total} bytes, more than the file itself")
    return found
