"""The engines a fit runs on, and the fits on which they must agree; a new engine joins by one entry of ``ENGINES``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsTransformer

from frpcag import FRPCAG, build_graph
from frpcag.graphs import METRICS

Array = np.ndarray

# The engine that all others are compared with.
REFERENCE = "numpy"
N, P = 30, 8


@dataclass(frozen=True)
class Engine:
    """How a matrix reaches one engine: the ``backend`` argument, and the type that its user holds.

    Parameters
    ----------
    backend : str
        The ``backend`` argument of the estimators.
    load : callable
        From a NumPy array to what the engine's user passes.
    library : str, optional
        What must be installed.
    large, small : str
        Library of the fitted arrays of the size of ``X``, and of the others.
    kinds : str
        Kinds of NumPy dtypes that ``load`` can hold at all.
    """

    backend: str
    load: Callable[[Array], Any]
    library: str | None = None
    large: str = "numpy"
    small: str = "numpy"
    kinds: str = "biufcOU"

    def takes(self, X: Array) -> bool:
        """Say whether a matrix of this dtype can be handed to the engine."""
        return X.dtype.kind in self.kinds


def _same(X: Array) -> Array:
    return X


def _tensor(X: Array) -> Any:
    import torch

    return torch.from_numpy(np.array(X))


def _chunks(X: Array) -> Any:
    """Return a Dask array in three uneven chunks of rows, or in one where there are too few rows."""
    import dask.array as da

    n = len(X)
    rows = (n // 6, n // 2, n - n // 6 - n // 2) if n >= 6 else (n,)
    return da.from_array(X, chunks=(rows, *((size,) for size in X.shape[1:])))


ENGINES = {
    "numpy": Engine("numpy", _same),
    "numba": Engine("numba", _same, "numba"),
    "torch": Engine("torch", _same, "torch"),
    "tensor": Engine("auto", _tensor, "torch", large="torch", small="torch", kinds="biufc"),
    "dask": Engine("auto", _chunks, "distributed", large="dask"),
}
OTHERS = [name for name in ENGINES if name != REFERENCE]
# One engine for each type of matrix: estimators that take no ``backend`` know the engine by the matrix.
BY_INPUT = ["numpy", *(name for name, engine in ENGINES.items() if engine.backend == "auto")]


def needs(engine: str) -> list:
    """Return the mark that skips a test where the library of the engine is not installed."""
    library = ENGINES[engine].library
    missing = library is not None and find_spec(library) is None
    return [pytest.mark.skip(reason=f"{library} is not installed")] if missing else []


def over(engines: Iterable[str], *keys: str, holes: Iterable[tuple[str, ...]] = ()) -> list:
    """Return engines as parameters of a test, with their skips and known holes."""
    return [pytest.param(name, marks=[*needs(name), *known(holes, name, *keys)], id=name) for name in engines]


def known(holes: Iterable[tuple[str, ...]], *keys: str) -> list:
    """Return a strict xfail if a hole, regular expressions for the keys and then the cause, matches these keys.

    Strict, so that whoever closes the hole must take its entry out.
    """
    for *patterns, cause in holes:
        if all(re.fullmatch(pattern, key) for pattern, key in zip(patterns, keys, strict=True)):
            return [pytest.mark.xfail(strict=True, reason=cause)]
    return []


def fit(engine: str, X: Array, model: type = FRPCAG, **params: Any) -> Any:
    """Return a model fitted on this engine."""
    how = ENGINES[engine]
    return model(**{"backend": how.backend, **params}).fit(how.load(X))


def on_host(value: Any) -> Any:
    """Return an array of any engine as a NumPy array; anything else as it is."""
    if hasattr(value, "detach"):
        return value.detach().cpu().numpy()
    return value.compute() if hasattr(value, "compute") else value


def graph_on_host(graph: Any) -> Any:
    """Return a graph with SciPy's matrices."""
    return graph.to_host() if hasattr(graph, "to_host") else graph


def clusters(n: int = N, p: int = P, *, missing: float = 0.0, dtype: Any = np.float64) -> Array:
    """Return three clusters with noise and gross errors, so that no two distances are equal and the rank is clear."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(3, p)), -(-n // 3), axis=0)[:n] + 0.3 * rng.normal(size=(n, p))
    X[rng.random((n, p)) < 0.1] += 4
    X[rng.random((n, p)) < missing] = np.nan
    return X.astype(dtype)


def row_apart(n: int, p: int, *, at: int = 20) -> Array:
    """Return a matrix with a row that alone has the first feature, and no other."""
    X = clusters(n, p)
    X[np.arange(n) != at, 0] = np.nan
    X[at, 1:] = np.nan
    return X


def adjacency(n: int = N) -> sparse.csr_array:
    """Return weights of a graph by dense arithmetic: Gaussian, of the three nearest rows, symmetric."""
    D = cdist(clusters(n), clusters(n))
    near = np.sort(D, axis=1)[:, 3:4] >= D
    np.fill_diagonal(near, False)
    return sparse.csr_array(np.where(near | near.T, np.exp(-np.square(D) / 4), 0.0))


@dataclass(frozen=True)
class Case:
    """One fit: a matrix, made anew by every call of ``X``, and arguments of `FRPCAG`."""

    X: Callable[[], Array]
    params: dict[str, Any] = field(default_factory=dict)


# Fewer neighbours than nodes, so that no graph is complete; a seed, which says how Dask arranges its rows; and one
# thread, since starting more takes longer than these fits.
BASE = {"n_neighbors": 4, "max_iter": 5000, "random_state": 0, "n_jobs": 1}

# Each on full data in float64 and float32, and on incomplete data.
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {"laplacian": "normalized"},
    "sample-graph-only": {"feature_graph": None},
    "feature-graph-only": {"sample_graph": None},
    "combinatorial": {"laplacian": "combinatorial"},
    "l2": {"loss": "l2"},
    "huber": {"loss": "huber", "huber_delta": 0.5},
    "logcosh": {"loss": "logcosh", "huber_delta": 0.5},
    **{f"{name}-metric": {"metric": name} for name in METRICS if name != "euclidean"},
    "uncentred": {"center": False},
    "scaled": {"scale": True},
    "refined": {"n_refine": 1},
    "given-adjacency": {"sample_graph": adjacency()},
    "grid": {"feature_graph": "grid", "feature_shape": (2, 4)},
}
# On full data in float64 only.
MORE_OPTIONS: dict[str, dict[str, Any]] = {
    "two-components": {"n_components": 2},
    "share-of-components": {"n_components": 0.8},
    "given-gammas": {"gamma1": 0.5, "gamma2": 0.2},
    "gamma1-zero": {"gamma1": 0.0},
    "no-graph": {"sample_graph": None, "feature_graph": None},
    "given-sigma": {"sigma": 1.5},
    "given-graph": {"sample_graph": build_graph(clusters(), n_neighbors=3)},
    "given-transformer": {"sample_graph": KNeighborsTransformer(n_neighbors=3)},
    "grid-combinatorial": {"feature_graph": "grid", "feature_shape": (2, 4), "laplacian": "combinatorial"},
    "uncentred-combinatorial": {"center": False, "laplacian": "combinatorial"},
    "uncentred-scaled": {"center": False, "scale": True},
    "l2-combinatorial": {"loss": "l2", "laplacian": "combinatorial"},
    "refined-auto": {"n_refine": "auto"},
    "auto-metric": {"metric": "auto"},
    "stop-on-change": {"stop": "change"},
}
# Matrices of their own, with the default options.
MATRICES: dict[str, Callable[[], Array]] = {
    "wide": lambda: clusters(9, 20),
    "wide-missing": lambda: clusters(9, 20, missing=0.15),
    "one-feature": lambda: clusters(N, 1),
    "row-apart": lambda: row_apart(N, P),
    "integers": lambda: (1000 * clusters()).astype(np.int64),
    "float16": lambda: clusters(dtype=np.float16),
    "objects": lambda: clusters().astype(object),
    "tiny": lambda: 1e-200 * clusters(),
    "huge": lambda: 1e200 * clusters(),
    "huge-float32": lambda: (1e30 * clusters()).astype(np.float32),
}

CASES: dict[str, Case] = {
    f"{data}-{np.dtype(dtype)}-{option}": Case(partial(clusters, missing=missing, dtype=dtype), params)
    for data, missing, dtype in (("plain", 0.0, np.float64), ("plain", 0.0, np.float32), ("missing", 0.15, np.float64))
    for option, params in OPTIONS.items()
}
CASES |= {
    f"missing-float32-{option}": Case(partial(clusters, missing=0.15, dtype=np.float32), OPTIONS[option])
    for option in ("default", "combinatorial", "l2", "huber")
}
CASES |= {option: Case(clusters, params) for option, params in MORE_OPTIONS.items()}
CASES |= {name: Case(X) for name, X in MATRICES.items()}
# All distances are equal, so the graphs are given.
CASES["zeros"] = Case(lambda: np.zeros((N, P)), OPTIONS["given-adjacency"] | OPTIONS["grid"])

# What an engine does not do, and says so: (engine, case) as regular expressions, and its words.
REFUSES = [
    *(
        ("dask", f".*-{name}-metric", f"metric='{name}' is not done by backend='dask'; ")
        for name, metric in METRICS.items()
        if "dask" not in metric.engines
    ),
    ("dask", "given-transformer", r"sample_graph=KNeighborsTransformer\(.*\) is not done by backend='dask'; "),
    ("dask", "objects", r"X has dtype object but must hold real numbers; convert it, "),
    ("dask", ".*-refined", r"n_refine=1 is not done by backend='dask', which builds its graphs once; pass n_refine=0"),
]


def refusal(engine: str, case: str) -> str | None:
    """Return the words in which an engine refuses a case that is not for it, None for the others."""
    for engines, cases, words in REFUSES:
        if re.fullmatch(engines, engine) and re.fullmatch(cases, case):
            return words
    return None


def tol_of(X: Array) -> float:
    """Return the duality gap to ask for: small, so that two fits differ by rounding, and in reach of the dtype."""
    return 1e-4 if X.dtype == np.float32 else 1e-8


@cache  # a fit serves all tests of the grid, which only read it
def fitted(engine: str, case: str) -> Any:
    """Return the fit of a case on an engine."""
    X = CASES[case].X()
    return fit(engine, X, **{**BASE, "tol": tol_of(X), **CASES[case].params})


@cache
def results(engine: str, case: str) -> dict[str, Array]:
    """Return the fitted arrays of a case as NumPy arrays."""
    model = fitted(engine, case)
    return {name: on_host(value) for name, value in vars(model).items() if hasattr(value, "dtype")}
