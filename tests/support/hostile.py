"""Random problems that are hard on a certificate, and the judgement of what the library says about them.

A case is drawn from its seed alone: dtype, scale, levels, graphs, weights, missing entries, gammas, loss, when to stop,
backend, and whether `solve` or `FRPCAG` is called. `judge` runs it and compares the gap that is reported with the true
one of what is returned, which `support.exact` computes.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from support.exact import Exact, Real, Term

Array = np.ndarray
BACKENDS = ("numpy", "numba", "torch", "dask")
# The gap may be smaller than the true one by this much: the rounding of the comparison itself.
TOLERANCE = 1e-6


@dataclass
class Case:
    """One problem: arrays, options of the call, and tags to count by."""

    seed: int
    X: Array
    weights: tuple[Array | None, Array | None]
    kinds: tuple[str, str]
    excess: tuple[float, float]
    gammas: tuple[Any, Any]
    loss: str
    delta: float
    backend: str
    call: str
    options: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)


def draw(seed: int, backends: tuple[str, ...] = BACKENDS) -> Case:
    """Return the case of a seed."""
    rng = np.random.default_rng([seed, 15])
    n, p = int(rng.integers(2, 10)), int(rng.integers(1, 8))
    dtype = np.dtype(rng.choice(["f4", "f8"]))
    call = "fit" if rng.random() < 0.3 else "solve"
    graphs = rng.choice(["both", "samples", "features", "none"], p=[0.45, 0.3, 0.2, 0.05])
    weights = (
        _weights(rng, n) if graphs in ("both", "samples") else None,
        _weights(rng, p) if graphs in ("both", "features") and p > 1 else None,
    )
    kind = str(rng.choice(["normalized", "combinatorial"]))
    kinds = (kind, kind if call == "fit" or rng.random() < 0.7 else str(rng.choice(["normalized", "combinatorial"])))
    Z = _data(rng, n, p)
    scale = 10.0 ** rng.uniform(-30, 30) if rng.random() < 0.5 else 1.0
    level, X = _levels(rng, Z, weights, kinds)
    X = _cast(scale * X, dtype)
    missing = rng.random() if rng.random() < 0.35 else 0.0
    X[rng.random(X.shape) < 0.99 * missing] = np.nan
    if np.isnan(X).all():
        X[0, 0] = scale
    loss = str(rng.choice(["l1", "l2", "huber"], p=[0.5, 0.25, 0.25]))
    unit = scale if rng.random() < 0.7 else 1.0
    gammas = tuple(_gamma(rng, unit if loss != "l2" else 1.0, call) for _ in range(2))
    options: dict[str, Any] = {"tol": 10.0 ** rng.uniform(-7, -2), "max_iter": int(rng.choice([1, 3, 30, 1000]))}
    if rng.random() < 0.1:
        options["stop"] = "change"
    if call == "fit":
        options |= {"center": bool(rng.random() < 0.6), "scale": bool(rng.random() < 0.3)}
    elif rng.random() < 0.15:
        options["U0"] = np.nan_to_num(X, nan=scale) * X.dtype.type(1 + rng.normal())
    elif loss == "l2" and not np.isnan(X).any() and rng.random() < 0.2:
        options["solver"] = "tikhonov"
    backend = str(rng.choice(backends))
    form = str(rng.choice(["csr", "dense", "f4", "skew", "nameless"], p=[0.6, 0.1, 0.1, 0.1, 0.1]))
    if call == "fit" or np.isnan(X).any():
        form = "csr"
    if form == "f4":
        weights = tuple(None if W is None else W.astype(np.float32).astype(np.float64) for W in weights)  # type: ignore
    options["form"] = form
    excess = (0.0, 0.0)
    if call == "solve" and form in ("csr", "dense") and rng.random() < 0.2:
        excess = tuple(
            _excess(rng, W) if kind == "combinatorial" else 0.0 for W, kind in zip(weights, kinds, strict=True)
        )  # type: ignore
    return Case(
        seed, X, weights, kinds, excess, gammas, loss, float(10.0 ** rng.uniform(-2, 2) * unit), backend, call, options,  # type: ignore
        {
            "backend": backend, "loss": loss, "dtype": str(dtype), "call": call, "level": level, "graphs": str(graphs),
            "missing": "some" if np.isnan(X).any() else "none", "form": form,
        },
    )  # fmt: skip


def judge(case: Case) -> dict[str, Any]:
    """Run a case; return its tags, the gap reported, the true gap (at least), and how it ended."""
    record: dict[str, Any] = {"seed": case.seed, **case.tags}
    try:
        with warnings.catch_warnings(record=True) as said, np.errstate(all="ignore"):
            warnings.simplefilter("always")
            U, exact, gap, value, status = _run_fit(case) if case.call == "fit" else _run_solve(case)
    except ValueError as error:
        return record | {"end": "refused", "said": str(error)[:200]}
    low, high = exact.relative_gap(U)
    at = exact.value(U)
    return record | {
        "end": status, "gap": float(gap), "true": float(low), "true_at_most": float(high), "objective": float(value),
        "exact_objective": float(at), "warned": sorted({w.category.__name__ for w in said}),
        "proves_too_much": not float(gap) >= float(low) - TOLERANCE,
    }  # fmt: skip


def _run_solve(case: Case) -> tuple[Array, Exact, float, float, str]:
    from frpcag import Problem, solve
    from frpcag.backends import select_backend

    options = dict(case.options)
    form = options.pop("form")
    parts: dict[str, Any] = {}
    for number, W, kind, excess in zip((1, 2), case.weights, case.kinds, case.excess, strict=True):
        if W is None:
            parts[f"L{number}"] = None
            continue
        L, s = _laplacian(W, kind, excess)
        if form == "f4":
            L = L.astype(np.float32).astype(np.float64) if kind == "combinatorial" else L
        elif form == "skew":
            L = L * (1 + 1e-7 * np.triu(np.ones_like(L), 1)) if kind == "combinatorial" else L
        parts[f"L{number}"] = L if form == "dense" else sp.csr_array(L)
        parts[f"null{number}"] = None if form == "nameless" or excess or kind == "combinatorial" else s
    problem = Problem(
        case.X, gamma1=case.gammas[0], gamma2=case.gammas[1], loss=case.loss, huber_delta=case.delta, **parts
    )
    backend: Any = case.backend
    if backend == "triton":
        from frpcag.backends.torch.backend import TorchBackend

        backend = TorchBackend(fused=True)
    else:
        backend = select_backend(backend)
    found = solve(problem, backend=backend, **options)
    weights = case.weights
    if form == "skew":
        weights = tuple(
            None if W is None else W * (1 + 0.5e-7 * (1 - np.eye(len(W)))) if kind == "combinatorial" else W
            for W, kind in zip(weights, case.kinds, strict=True)
        )
    exact = _exact(case, case.X.astype(Real), weights, case.kinds, case.excess, case.gammas)
    return found.U.astype(Real), exact, found.gap, found.objective, found.status


def _run_fit(case: Case) -> tuple[Array, Exact, float, float, str]:
    from frpcag import FRPCAG

    options = {name: value for name, value in case.options.items() if name != "form"}
    graphs = [None if W is None else sp.csr_array(W) for W in case.weights]
    X: Any = case.X
    if case.backend == "dask":
        import dask.array as da

        X = da.from_array(X, chunks=(max(1, len(X) // 2), -1))
    backend = "torch" if case.backend == "triton" else case.backend
    model = FRPCAG(
        1, gamma1=case.gammas[0], gamma2=case.gammas[1], sample_graph=graphs[0], feature_graph=graphs[1],
        laplacian=case.kinds[0], loss=case.loss, huber_delta=case.delta, backend=backend, **options,
    ).fit(X)  # fmt: skip
    center, scale = (np.asarray(v, dtype=Real) for v in (model.center_, model.scale_))
    U = (np.asarray(model.low_rank_).astype(Real) - center) / scale
    exact = _exact(
        case, (case.X.astype(Real) - center) / scale, case.weights, case.kinds, (0, 0), (model.gamma1_, model.gamma2_)
    )  # fmt: skip
    return U, exact, model.duality_gap_, model.objective_, model.status_


def _exact(case: Case, X: Array, weights: Any, kinds: Any, excess: Any, gammas: Any) -> Exact:
    terms = tuple(
        None if W is None else Term.of(W, kind, more) for W, kind, more in zip(weights, kinds, excess, strict=True)
    )
    numbers = tuple(float(gamma) if term is not None else 0.0 for gamma, term in zip(gammas, terms, strict=True))
    return Exact(X, terms, numbers, case.loss, case.delta)  # type: ignore[arg-type]


def _laplacian(W: Array, kind: str, excess: float) -> tuple[Array, Array]:
    """Return a Laplacian and its null vector as a user would write them down."""
    degree = W.sum(axis=1)
    if kind == "combinatorial":
        return np.diag(degree) - W + excess * np.eye(len(W)), np.ones(len(W))
    s = np.sqrt(np.where(degree > 0, degree, 1.0))
    return np.diag((degree > 0).astype(float)) - W / s[:, None] / s, s


def _weights(rng: np.random.Generator, n: int) -> Array:
    """Return symmetric weights: in pieces, with isolated nodes, and down to 1e-12."""
    W = rng.random((n, n)) * (rng.random((n, n)) < rng.choice([0.3, 0.6, 1.0]))
    if rng.random() < 0.4:
        W *= 10.0 ** rng.uniform(-12, 0, size=(n, n))
    if rng.random() < 0.2:
        W *= 10.0 ** rng.uniform(-6, 6)
    if rng.random() < 0.3 and n > 3:
        W[: n // 2, n // 2 :] = 0
    if rng.random() < 0.2:
        W[0] = W[:, 0] = 0
    W = np.triu(W, 1)
    return W + W.T


def _excess(rng: np.random.Generator, W: Array | None) -> float:
    """Return what a user adds to the diagonal, beyond the rounding of its sums."""
    return 0.0 if W is None else float(10.0 ** rng.uniform(-9, 0) * max(W.sum(axis=1).max(), 1e-12))


def _data(rng: np.random.Generator, n: int, p: int) -> Array:
    """Return entries of size one: smooth, heavy-tailed, whole numbers, repeated, constant, or mostly zero."""
    kind = rng.choice(["noise", "low rank", "tails", "whole", "repeats", "constant", "sparse"])
    Z = rng.normal(size=(n, p))
    if kind == "low rank":
        Z = rng.normal(size=(n, 1)) + rng.normal(size=(1, p)) + 0.1 * Z + 5 * (rng.random((n, p)) < 0.1)
    elif kind == "tails":
        Z = np.exp(4 * Z)
    elif kind == "whole":
        Z = np.round(3 * Z)
    elif kind == "repeats":
        Z = Z[rng.integers(0, max(1, n // 2), n)]
    elif kind == "constant":
        Z = np.full((n, p), Z[0, 0])
    elif kind == "sparse":
        Z *= rng.random((n, p)) < 0.2
    return Z


def _levels(rng: np.random.Generator, Z: Array, weights: Any, kinds: Any) -> tuple[str, Array]:
    """Return data at levels of up to 1e10 spreads: common, of columns, of rows, of pieces, along a null vector."""
    kind = str(rng.choice(["none", "common", "columns", "rows", "pieces", "null"], p=[0.3, 0.15, 0.2, 0.15, 0.1, 0.1]))
    size = 10.0 ** rng.uniform(0, 10 if rng.random() < 0.3 else 6)
    n, p = Z.shape
    if kind == "common":
        Z = Z + size * rng.normal()
    elif kind == "columns":
        Z = Z + size * rng.normal(size=p) * 10.0 ** rng.uniform(-3, 0, size=p)
    elif kind == "rows":
        Z = Z + size * rng.normal(size=(n, 1))
    elif kind == "pieces":
        Z = Z + size * (np.arange(n) < n // 2)[:, None]
    elif kind == "null":
        s, t = (
            np.ones(m) if W is None else _laplacian(W, kind, 0.0)[1]
            for W, kind, m in zip(weights, kinds, (n, p), strict=True)
        )
        Z = Z + size * np.outer(s, t)
    return kind, Z


def _gamma(rng: np.random.Generator, unit: float, call: str) -> Any:
    if rng.random() < 0.08:
        return 0.0
    if call == "fit" and rng.random() < 0.3:
        return "auto"
    gamma = 10.0 ** (rng.uniform(-6, 6) if rng.random() < 0.5 else rng.uniform(-2, 1)) / unit
    return float(np.clip(gamma, 1e-36, 1e36))


def _cast(X: Array, dtype: np.dtype) -> Array:
    top = float(np.abs(X).max(initial=0.0))
    limit = 1e37 if dtype == np.float32 else 1e300
    return (X * min(1.0, limit / top if top > 0 else 1.0)).astype(dtype)
