"""Arrays in an uncompressed npz file of unknown origin: nothing is read that is larger than the file itself."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import zipfile
from typing import IO

import numpy as np

Array = np.ndarray

# Bytes of the header in NumPy's text. JSON of this length takes up to 250 MB to read, however it is nested.
MOST_TEXT = 32 * 2**20
# Booleans, integers, floats and text. Objects would be unpickled.
_KINDS = "biufU"
_NOT_STORED = "is compressed, encrypted or a link; members of a saved model are not"
# The list of members, and any other piece that zipfile reads at once. Large enough for 10,000 arrays.
_MOST_AT_ONCE, _CHUNK = 2 * 2**20, 2**20


def write_archive(file: IO[bytes], text: str, arrays: dict[str, Array]) -> None:
    """Write a header and arrays, with a digest of both."""
    np.savez(file, header=text, digest=_digest(text, arrays), **arrays)  # type: ignore[arg-type]


def read_archive(path: str | os.PathLike) -> tuple[str, dict[str, Array]]:
    """Return the header and the arrays of a file; raise ValueError where it is no archive of ours, or damaged."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would make the reader wait for ever
        raise ValueError("it is not a regular file")
    with _File(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                members = _checked_members(archive, os.fstat(file.fileno()).st_size)
                found = {name: _read_member(archive, info) for name, info in members.items()}
            text, digest = str(found.pop("header")), str(found.pop("digest"))
        except MemoryError:
            raise
        except KeyError as error:
            raise ValueError(f"it has no {error.args[0]}") from error
        except Exception as error:  # whatever damage makes zipfile or NumPy raise
            raise ValueError(str(error) or "it is not an archive") from error
    if digest != _digest(text, found):
        raise ValueError("it was changed or damaged after it was saved")
    return text, found


def _digest(text: str, arrays: dict[str, Array]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].shape} {arrays[name].dtype}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()


class _File(io.FileIO):
    """A file for zipfile, which reads the whole list of members at once, however long it claims to be."""

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            size = max(os.fstat(self.fileno()).st_size - self.tell(), 0)
        if size > _MOST_AT_ONCE:
            raise ValueError("its list of members is too long")
        return super().read(size)


def _checked_members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    found: dict[str, zipfile.ZipInfo] = {}
    total = 0
    for info in archive.infolist():
        name = info.orig_filename.removesuffix(".npy")
        if not (info.orig_filename.endswith(".npy") and name.isidentifier() and name.isascii()):
            raise ValueError(f"member {info.orig_filename[:80]!r} is not an array")
        if name in found:
            raise ValueError(f"member {name} occurs twice")
        # The one flag that changes nothing says that the name is UTF-8.
        plain = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
        if not plain or info.flag_bits & ~0x800 or stat.S_ISLNK(info.external_attr >> 16):
            raise ValueError(f"member {name} {_NOT_STORED}")
        total += info.file_size
        found[name] = info
    if total > size:
        raise ValueError(f"its members have {total} bytes, more than the file itself")
    names = {"header", "digest", *(f"array_{i}" for i in range(len(found) - 2))}
    if set(found) != names:
        raise ValueError("its members do not have the names of a model")
    if found["header"].file_size > MOST_TEXT:
        raise ValueError("its header is too long")
    return found


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Array:
    """Return an array once what its header says agrees with the bytes that are there."""
    with archive.open(info) as member:
        if np.lib.format.read_magic(member) != (1, 0):
            raise ValueError(f"member {info.filename} is not an array of format 1.0")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(member)
        if dtype.kind not in _KINDS or not dtype.isnative or dtype.subdtype is not None:
            raise ValueError(f"member {info.filename} has dtype {dtype}, which a saved array cannot have")
        data = bytearray()
        while chunk := member.read(_CHUNK):
            data += chunk
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
