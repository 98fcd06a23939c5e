"""Constructor arguments for the fuzzer: values that are right for a matrix of a shape, and values that never are."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import KNeighborsTransformer

Generator = np.random.Generator
NAN, INF = float("nan"), float("inf")


def stop_at_three(progress: Any) -> bool:
    """Stop the solver after three steps."""
    return progress.n_iter >= 3


def ring(n: int) -> sp.csr_array:
    """Return the adjacency of a ring of ``n`` nodes, the last one isolated."""
    A = sp.lil_array((n, n))
    for i in range(n - 2):
        A[i, i + 1] = A[i + 1, i] = 1.0
    return sp.csr_array(A)


def valid(rng: Generator, n: int, p: int) -> dict[str, list[Any]]:
    """Return values of the arguments of FRPCAG that a matrix of ``n`` rows and ``p`` columns allows."""
    heights = [h for h in range(1, p + 1) if p % h == 0]
    height = int(rng.choice(heights))
    return {
        "n_components": [None, 1, min(n, p), np.int64(1), 0.5, 0.99],
        "gamma1": ["auto", 0.0, 1e-3, 1.0, 100.0, 1e6, np.float32(0.5), 3],
        "gamma2": ["auto", 0.0, 1e-3, 1.0, 100.0, 1e6, np.float64(0.5), 3],
        "n_neighbors": [1, 2, 5, np.int64(3), 1000],
        "sample_graph": ["auto", "exact", "approximate", None, ring(n), ring(n).toarray(), _transformer(n)],
        "feature_graph": ["auto", "exact", "approximate", None, ring(p)] if p > 1 else ["auto", None],
        "sigma": ["auto", 1e-3, 1.0, 1000, np.float32(2)],
        "laplacian": ["normalized", "combinatorial"],
        "loss": ["l1", "l2", "huber"],
        "huber_delta": [1e-3, 1, 100.0],
        "center": [True, False, np.True_],
        "scale": [True, False],
        "n_refine": [0, 1, 2, "auto"],
        "tol": [0.1, 1e-2, 1e-5, 0, 0.0],
        "max_iter": [1, 5, 50, np.int64(20), 100.0],
        "stop": ["gap", "change"],
        "backend": ["auto", "numpy", "numba", "numba", "torch"],
        "feature_shape": [None, (height, p // height)],
        "random_state": [None, 0, np.random.RandomState(0)],
        "n_jobs": [None, 1, 2, -1],
        "callback": [None, stop_at_three],
    }


def _transformer(n: int) -> KNeighborsTransformer:
    return KNeighborsTransformer(n_neighbors=min(3, n - 1), mode="distance")


# Values that are wrong for every matrix; each must be refused by an error that names the argument.
INVALID: dict[str, list[Any]] = {
    "n_components": [0, -1, 1.5, "two", True, NAN, 0.0, 10**6, [2]],
    "gamma1": [-1.0, NAN, INF, "big", None, True, [1.0], 1j],
    "gamma2": [-1.0, NAN, INF, "big", None, True, [1.0], 1j],
    "n_neighbors": [0, -3, 2.5, "ten", None, True, NAN, INF],
    "sample_graph": ["best", 3, object(), np.ones((2, 5)), ring(7), np.triu(np.ones((16, 16))), -np.ones((16, 16))],
    "feature_graph": ["best", 3, object(), np.ones((2, 5)), ring(7), "grid", np.full((8, 8), np.nan)],
    "sigma": [0, -1.0, NAN, INF, "wide", None, True],
    "laplacian": ["random", None, 1, ["normalized"]],
    "loss": ["l3", None, 0, ["l1"]],
    "huber_delta": [0, -1.0, NAN, INF, "one", None],
    "center": ["no", None, 2, [True]],
    "scale": ["no", None, 2, [True]],
    "n_refine": [-1, 1.5, "often", None, True],
    "tol": [-1e-3, NAN, INF, "small", None, [1e-3]],
    "max_iter": [0, -5, 2.5, "many", None, NAN, INF, [10]],
    "stop": ["never", None, 1, ["gap"]],
    "backend": ["cuda", None, 3, ["numpy"]],
    "n_jobs": [0, 1.5, "all", True, NAN],
    "callback": [3, "print"],
    # of the other estimators
    "n_clusters": [0, -2, 2.5, "three", None, 10**6, NAN],
    "assign": ["best", None, 1],
    "n_init": [0, -1, 1.5, "ten", None],
    "holdout": [0.0, 1.0, -0.5, NAN, "tenth", None],
    "multiples1": [[], [-1.0], [NAN], ["one"], None, 1.0],
    "search": ["random", None, 1],
    "gammas1": [[-1.0], [NAN], ["one"], None, 1.0],
    "threshold": [-1.0, NAN, INF, "high", None, True],
    "axis": [2, -1, "rows", None, 0.5],
    "weights": ["cosine", None, 1],
    "method": ["best", 3, np.ones((2, 5)), "grid"],
}

# How a message may speak of an argument other than by its name.
SYNONYMS = {
    "huber_delta": ("delta",),
    "multiples1": ("gamma1",),
    "gammas1": ("gamma1",),
}


def draw(rng: Generator, n: int, p: int, names: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a few arguments with valid values, drawn at random."""
    values = valid(rng, n, p)
    names = names if names else tuple(values)
    chosen = rng.choice(names, size=min(int(rng.integers(0, 6)), len(names)), replace=False)
    params = {str(name): values[str(name)][int(rng.integers(len(values[str(name)])))] for name in chosen}
    if "feature_shape" in params and params["feature_shape"] is not None and rng.random() < 0.7:
        params["feature_graph"] = "grid"
    return params
