"""Files for the fuzzer of the command line: matrices in every format, whole, cut, foreign, pickled."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from support import fuzz_arrays

Generator = np.random.Generator

FORMATS = ("npy", "npz", "csv", "tsv", "parquet", "h5", "mat")
# What is done to a whole file; all but the first must be refused.
DAMAGES = ("none", "cut", "empty", "foreign", "pickled", "flipped", "renamed", "absent", "folder")


def write(rng: Generator, folder: Path, suffix: str, X: Any) -> Path:
    """Write a dense matrix to a file of a format."""
    path = folder / f"data.{suffix}"
    X = np.asarray(X)
    if suffix == "npy":
        np.save(path, X, allow_pickle=X.dtype.hasobject)
    elif suffix == "npz":
        np.savez(path, X=X)
    elif suffix in ("csv", "tsv"):
        _write_text(path, X, "," if suffix == "csv" else "\t", header=bool(rng.integers(2)))
    elif suffix == "parquet":
        import pandas

        pandas.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).to_parquet(path)
    elif suffix == "h5":
        import h5py

        with h5py.File(path, "w") as file:
            file["X"] = X
    else:
        scipy.io.savemat(path, {"X": X})
    return path


def _write_text(path: Path, X: np.ndarray, separator: str, *, header: bool) -> None:
    rows = [separator.join("" if value != value else repr(value) for value in row) for row in X.tolist()]
    names = [separator.join(f"x{i}" for i in range(X.shape[1]))] if header else []
    path.write_text("\n".join(names + rows) + "\n", encoding="utf-8")


def damage(rng: Generator, path: Path, how: str) -> Path:
    """Return a file that is no longer what its name says."""
    whole = path.read_bytes()
    if how == "cut":
        path.write_bytes(whole[: int(len(whole) * rng.uniform(0.02, 0.9))])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "foreign":
        path.write_bytes(rng.bytes(int(rng.integers(1, 4000))))
    elif how == "pickled":
        path.write_bytes(pickle.dumps({"X": [[1.0, 2.0], [3.0, 4.0]]}))
    elif how == "flipped":
        flipped = bytearray(whole)
        for at in rng.integers(0, len(whole), 20):
            flipped[at] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(flipped))
    elif how == "renamed":
        others = [suffix for suffix in ("npy", "parquet", "h5", "mat", "npz", "txt") if suffix != path.suffix[1:]]
        path = path.rename(path.with_suffix(f".{rng.choice(others)}"))
    elif how == "absent":
        path.unlink()
    elif how == "folder":
        path.unlink()
        path.mkdir()
    return path


# Kinds of matrices that a file can hold.
KINDS = tuple(
    name
    for name, kind in fuzz_arrays.KINDS.items()
    if not name.startswith(("csr", "csc", "coo", "tensor", "pandas", "polars"))
    and name not in ("None", "text", "ragged", "scalar", "longdouble", "dates", "masked-array")
)
