"""Odd matrices for the fuzzer: every kind a name, what must come of it, and how it is made from a generator."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

Array = np.ndarray
Generator = np.random.Generator


class Kind(NamedTuple):
    """What must come of a fit with valid parameters: "ok", "error", or "either"; and how to make the matrix."""

    expect: str
    make: Callable[[Generator], Any]


def low_rank(rng: Generator, n: int | None = None, p: int | None = None) -> Array:
    """Return a few clusters, noise, and one entry in twenty grossly wrong."""
    n = int(rng.integers(12, 41)) if n is None else n
    p = int(rng.integers(3, 31)) if p is None else p
    X = rng.normal(size=(3, p))[rng.integers(0, 3, n)] + 0.1 * rng.normal(size=(n, p))
    X[rng.random((n, p)) < 0.05] += 5
    return X


def _with_missing(rng: Generator, share: float) -> Array:
    X = low_rank(rng)
    hole = rng.random(X.shape) < share
    hole[np.arange(len(X)), rng.integers(0, X.shape[1], len(X))] = False
    hole[rng.integers(0, len(X), X.shape[1]), np.arange(X.shape[1])] = False
    X[hole] = np.nan
    return X


def _marked(rng: Generator, value: float, where: str) -> Array:
    X = low_rank(rng)
    at = {"entry": (1, 1), "row": 2, "column": (slice(None), 1), "all": slice(None)}[where]
    X[at] = value
    return X


def _read_only(rng: Generator) -> Array:
    X = low_rank(rng)
    X.flags.writeable = False
    return X


def _memory_map(rng: Generator) -> Array:
    X = low_rank(rng)
    with tempfile.TemporaryFile() as file:  # the map lives on without it
        mapped = np.memmap(file, dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    return mapped


def _sparse(rng: Generator, form: str, dtype: Any = np.float64) -> Any:
    X = low_rank(rng)
    X[rng.random(X.shape) < 0.7] = 0
    X = np.rint(X) if np.dtype(dtype).kind == "i" else X
    return getattr(sp, f"{form}_array")(X.astype(dtype))


def _sparse_with(rng: Generator, value: float) -> Any:
    X = _sparse(rng, "csr")
    X.data[: min(3, X.nnz)] = value
    return X


def _frame(rng: Generator, library: str) -> Any:
    X = low_rank(rng)
    names = [f"x{i}" for i in range(X.shape[1])]
    if library == "pandas":
        import pandas

        return pandas.DataFrame(X, columns=names)
    import polars

    return polars.DataFrame(X, schema=names)


def _tensor(rng: Generator, dtype: str) -> Any:
    import torch

    return torch.tensor(low_rank(rng)).to(getattr(torch, dtype))


def _duplicates(rng: Generator) -> Array:
    X = low_rank(rng)
    return X[rng.integers(0, 4, len(X))]


def _all_but_one(rng: Generator) -> Array:
    X = np.repeat(low_rank(rng, 1), int(rng.integers(12, 30)), axis=0)
    X[3] += rng.normal(size=X.shape[1])
    return X


def _one_spike(rng: Generator, size: float) -> Array:
    X = low_rank(rng)
    X[2, 1] = size
    return X


def _objects(rng: Generator, value: Any) -> Array:
    X = low_rank(rng).astype(object)
    if value is not None:
        X[1, 1] = value
    return X


def _scaled(dtype: Any, factor: float) -> Callable[[Generator], Array]:
    return lambda rng: (low_rank(rng) * factor).astype(dtype)


def _cast(dtype: Any) -> Callable[[Generator], Array]:
    def make(rng: Generator) -> Array:
        X = low_rank(rng)
        whole = np.dtype(dtype).kind in "iu"
        return np.clip(np.rint(20 * X + 60), 0, 120).astype(dtype) if whole else X.astype(dtype)

    return make


KINDS: dict[str, Kind] = {
    "plain": Kind("ok", low_rank),
    "float32": Kind("ok", _cast(np.float32)),
    "float16": Kind("ok", _cast(np.float16)),
    "longdouble": Kind("ok", _cast(np.longdouble)),
    "big-endian": Kind("ok", _cast(">f8")),
    "big-endian-32": Kind("ok", _cast(">f4")),
    "int8": Kind("ok", _cast(np.int8)),
    "uint8": Kind("ok", _cast(np.uint8)),
    "int64": Kind("ok", _cast(np.int64)),
    "uint64-large": Kind("ok", lambda rng: np.full((15, 4), 2**64 - 1, np.uint64) - _cast(np.uint64)(rng)[:1, :1]),
    "bool": Kind("ok", lambda rng: low_rank(rng) > 0.5),
    "fortran": Kind("ok", lambda rng: np.asfortranarray(low_rank(rng))),
    "read-only": Kind("ok", _read_only),
    "negative-strides": Kind("ok", lambda rng: low_rank(rng)[::-1, ::-1]),
    "every-other": Kind("ok", lambda rng: low_rank(rng, 40, 20)[::2, ::2]),
    "transposed": Kind("ok", lambda rng: low_rank(rng).T),
    "zero-strides": Kind("ok", lambda rng: np.broadcast_to(low_rank(rng, 20, 1), (20, 6))),
    "memory-map": Kind("ok", _memory_map),
    "unaligned": Kind(
        "ok", lambda rng: np.frombuffer(b"x" + low_rank(rng, 20, 5).tobytes(), np.float64, offset=1).reshape(20, 5)
    ),
    "list": Kind("ok", lambda rng: low_rank(rng).tolist()),
    "masked-array": Kind(
        "either", lambda rng: np.ma.masked_array(low_rank(rng, 20, 5), mask=np.eye(20, 5, dtype=bool))
    ),
    "pandas": Kind("ok", lambda rng: _frame(rng, "pandas")),
    "polars": Kind("ok", lambda rng: _frame(rng, "polars")),
    "objects": Kind("ok", lambda rng: _objects(rng, None)),
    "csr": Kind("ok", lambda rng: _sparse(rng, "csr")),
    "csr-32": Kind("ok", lambda rng: _sparse(rng, "csr", np.float32)),
    "csr-int": Kind("ok", lambda rng: _sparse(rng, "csr", np.int64)),
    "csc": Kind("ok", lambda rng: _sparse(rng, "csc")),
    "coo": Kind("ok", lambda rng: _sparse(rng, "coo")),
    "csr-nan": Kind("either", lambda rng: _sparse_with(rng, np.nan)),
    "csr-empty": Kind("ok", lambda rng: sp.csr_array((20, 6))),
    "tensor-64": Kind("ok", lambda rng: _tensor(rng, "float64")),
    "tensor-32": Kind("ok", lambda rng: _tensor(rng, "float32")),
    "tensor-int": Kind("either", lambda rng: _tensor(rng, "int64")),
    "missing-few": Kind("ok", lambda rng: _with_missing(rng, 0.05)),
    "missing-half": Kind("ok", lambda rng: _with_missing(rng, 0.5)),
    "missing-most": Kind("either", lambda rng: _with_missing(rng, 0.9)),
    "missing-32": Kind("ok", lambda rng: _with_missing(rng, 0.2).astype(np.float32)),
    "one-column": Kind("ok", lambda rng: low_rank(rng, p=1)),
    "two-rows": Kind("ok", lambda rng: low_rank(rng, 2)),
    "two-by-two": Kind("ok", lambda rng: low_rank(rng, 2, 2)),
    "fewer-than-K": Kind("ok", lambda rng: low_rank(rng, int(rng.integers(3, 9)))),
    "wide": Kind("ok", lambda rng: low_rank(rng, int(rng.integers(3, 15)), int(rng.integers(300, 900)))),
    "tall": Kind("ok", lambda rng: low_rank(rng, int(rng.integers(300, 900)), int(rng.integers(1, 6)))),
    "zeros": Kind("ok", lambda rng: np.zeros((int(rng.integers(3, 30)), int(rng.integers(1, 10))))),
    "all-equal": Kind("ok", lambda rng: np.full((int(rng.integers(3, 30)), int(rng.integers(1, 10))), rng.normal())),
    "equal-columns": Kind("ok", lambda rng: np.repeat(low_rank(rng, p=1), 7, axis=1)),
    "duplicates": Kind("ok", _duplicates),
    "all-but-one": Kind("ok", _all_but_one),
    "constant-column": Kind("ok", lambda rng: _marked(rng, 3.7, "column")),
    "offset": Kind("ok", lambda rng: low_rank(rng) + 1e9),
    "offset-32": Kind("ok", lambda rng: (low_rank(rng) + 1e5).astype(np.float32)),
    "negative-zero": Kind("ok", lambda rng: np.where(low_rank(rng) < 0, -0.0, 0.0)),
    "spike": Kind("ok", lambda rng: _one_spike(rng, 1e8)),
    "1e30": Kind("ok", _scaled(np.float64, 1e30)),
    "1e-30": Kind("ok", _scaled(np.float64, 1e-30)),
    "1e30-32": Kind("either", _scaled(np.float32, 1e30)),
    "1e-30-32": Kind("either", _scaled(np.float32, 1e-30)),
    "spike-1e30": Kind("either", lambda rng: _one_spike(rng, 1e30)),
    "spike-1e30-32": Kind("either", lambda rng: _one_spike(rng, 1e30).astype(np.float32)),
    "1e300": Kind("either", _scaled(np.float64, 1e300)),
    "largest": Kind("either", lambda rng: np.where(low_rank(rng) > 0, 1, -1) * np.finfo(np.float64).max),
    "largest-32": Kind(
        "either", lambda rng: (np.where(low_rank(rng) > 0, 1, -1) * np.finfo(np.float32).max).astype(np.float32)
    ),
    "subnormal": Kind("either", _scaled(np.float64, 1e-310)),
    "subnormal-32": Kind("either", _scaled(np.float32, 1e-40)),
    "one-row": Kind("error", lambda rng: low_rank(rng, 1)),
    "no-rows": Kind("error", lambda rng: np.empty((0, 5))),
    "no-columns": Kind("error", lambda rng: np.empty((5, 0))),
    "nothing": Kind("error", lambda rng: np.empty((0, 0))),
    "vector": Kind("error", lambda rng: low_rank(rng)[0]),
    "cube": Kind("error", lambda rng: low_rank(rng, 20, 6).reshape(5, 4, 6)),
    "scalar": Kind("error", lambda rng: np.float64(3.0)),
    "None": Kind("error", lambda rng: None),
    "text": Kind("error", lambda rng: "data.npy"),
    "words": Kind("error", lambda rng: np.array([["a", "b"]] * 12)),
    "objects-word": Kind("error", lambda rng: _objects(rng, "seven")),
    "objects-None": Kind("either", lambda rng: _objects(rng, float("nan"))),
    "complex": Kind("error", lambda rng: low_rank(rng) + 1j),
    "dates": Kind("either", lambda rng: np.full((12, 3), np.datetime64("2020-01-01"))),
    "ragged": Kind("error", lambda rng: [[1.0, 2.0], [3.0]]),
    "infinite": Kind("error", lambda rng: _marked(rng, np.inf, "entry")),
    "minus-infinite": Kind("error", lambda rng: _marked(rng, -np.inf, "entry")),
    "csr-infinite": Kind("error", lambda rng: _sparse_with(rng, np.inf)),
    "missing-row": Kind("error", lambda rng: _marked(rng, np.nan, "row")),
    "missing-column": Kind("error", lambda rng: _marked(rng, np.nan, "column")),
    "missing-all": Kind("error", lambda rng: _marked(rng, np.nan, "all")),
}


def make(rng: Generator, kind: str) -> Any:
    """Return a matrix of a kind; a plain one where the library it needs is not installed."""
    try:
        return KINDS[kind].make(rng)
    except ImportError:
        return low_rank(rng)


def dense(X: Any) -> Array:
    """Return a matrix that a fit took as a NumPy array."""
    if sp.issparse(X):
        X = X.toarray()
    if type(X).__module__.partition(".")[0] == "torch":
        X = X.cpu().numpy()
    if isinstance(X, np.ma.MaskedArray):  # what the mask hides is missing
        X = np.where(np.ma.getmaskarray(X), np.nan, X.data)
    X = np.asarray(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def fingerprint(X: Any) -> Any:
    """Return what must not change about an input: values, layout, flags."""
    if sp.issparse(X):
        return type(X), *(
            fingerprint(getattr(X, name))
            for name in ("data", "indices", "indptr", "row", "col")
            if isinstance(getattr(X, name, None), np.ndarray)
        )
    if isinstance(X, np.ma.MaskedArray):
        return fingerprint(X.data), fingerprint(X.mask)
    if isinstance(X, np.ndarray):
        held = repr(X.tolist()) if X.dtype.hasobject else X.tobytes()
        return X.shape, X.dtype.str, X.strides, X.flags.writeable, held
    if hasattr(X, "to_numpy"):
        return type(X), tuple(map(str, X.columns)), X.to_numpy().tobytes()
    if type(X).__module__.partition(".")[0] == "torch":
        return str(X.dtype), X.cpu().numpy().tobytes()
    return repr(X)
