"""Random problems that are hard on a certificate, and the judgement of what the library says about them.

A case is drawn from its seed alone: dtype, scale, levels, graphs, weights, missing entries, gammas, loss, when to stop,
backend, and what is called: `solve`, `FRPCAG`, `regularization_path`, or `FRPCAGClustering`. `judge` runs it and
compares every gap that is shown, those of the history too, with the true one of what is returned, which `support.exact`
computes; the only room left is the rounding of the oracle itself. Matrices that are no Laplacians must be refused, or
have a gap of 1.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from support.exact import Exact, Real, Term

Array = np.ndarray
# "indefinite", "far" and "grounded" have a negative eigenvalue, the last of the size of float32 rounding.
PLANTED = ("indefinite", "far", "grounded")
FORMS = ("csr", "dense", "f4", "skew", "nameless", *PLANTED)
TINY = float(np.finfo(np.float64).smallest_subnormal)
BACKENDS = ("numpy", "numba", "torch", "dask")
CALLS = ("solve", "fit", "path", "cluster")
# What the oracle's sums may be off by, in units of what they add up.
ORACLE = 1e2 * float(np.finfo(Real).eps)
# What sums in float64 may be off by.
DOUBLE = 1e3 * float(np.finfo(np.float64).eps)


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
    call = str(rng.choice(CALLS, p=[0.65, 0.25, 0.06, 0.04]))
    graphs = rng.choice(["both", "samples", "features", "none"], p=[0.45, 0.3, 0.2, 0.05])
    weights = (
        _weights(rng, n) if graphs in ("both", "samples") else None,
        _weights(rng, p) if graphs in ("both", "features") and p > 1 else None,
    )
    kind = str(rng.choice(["normalized", "combinatorial"]))
    kinds = (kind, kind if call != "solve" or rng.random() < 0.7 else str(rng.choice(["normalized", "combinatorial"])))
    Z = _data(rng, n, p)
    size = str(rng.choice(["one", "any", "small", "large"], p=[0.5, 0.35, 0.1, 0.05]))
    ends = (
        {"small": (-42, -36), "large": (30, 37)}
        if dtype == np.float32
        else {"small": (-170, -145), "large": (130, 160)}
    )
    scale = 1.0 if size == "one" else 10.0 ** rng.uniform(*ends.get(size, (-30, 30)))
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
    if rng.random() < 0.4:  # as near as the dtype comes: what is left of the gap is rounding
        options = {"tol": 1e-14, "max_iter": 3000}
    if rng.random() < 0.1:
        options["stop"] = "change"
    if call != "solve":
        options |= {"center": bool(rng.random() < 0.6), "scale": bool(rng.random() < 0.3)}
    elif rng.random() < 0.15:
        options["U0"] = np.nan_to_num(X, nan=scale) * X.dtype.type(1 + rng.normal())
    backend = str(rng.choice(backends))
    form = str(rng.choice(FORMS, p=[0.45, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05]))
    if call != "solve" or np.isnan(X).any() or (form in PLANTED and weights[0] is None):
        form = "csr"
    if form == "f4":
        weights = tuple(None if W is None else W.astype(np.float32).astype(np.float64) for W in weights)  # type: ignore
    options["form"] = form
    if form in PLANTED:
        kinds = ("combinatorial", kinds[1])
    if form == "far":  # more nodes than all eigenvalues are computed of at once
        n = int(rng.integers(310, 400))
        weights = _sparse_weights(rng, n), None
        X = _cast(rng.normal(size=(n, 2)), dtype)
    excess = (0.0, 0.0)
    if call == "solve" and form in ("csr", "dense") and rng.random() < 0.2:
        excess = tuple(
            _excess(rng, W) if kind == "combinatorial" else 0.0 for W, kind in zip(weights, kinds, strict=True)
        )  # type: ignore
    return Case(
        seed, X, weights, kinds, excess, gammas, loss, float(10.0 ** rng.uniform(-2, 2) * unit), backend, call, options,  # type: ignore
        {
            "backend": backend, "loss": loss, "dtype": str(dtype), "call": call, "level": level, "graphs": str(graphs),
            "missing": "some" if np.isnan(X).any() else "none", "form": form, "size": size,
            "tolerance": "1e-14" if options["tol"] == 1e-14 else "1e-7 to 1e-2",
        },
    )  # fmt: skip


def judge(case: Case) -> dict[str, Any]:
    """Run a case; return its tags, the gap shown, the true gap (at least), and how it ended.

    ``wrong`` names what is false: the gap, a bound of the history, the objective shown, that of `certificate` and
    `objective`, or a proof where there is no minimum.
    """
    record: dict[str, Any] = {"seed": case.seed, **case.tags}
    try:
        with warnings.catch_warnings(record=True) as said, np.errstate(all="ignore"):
            warnings.simplefilter("always")
            shown = _run_solve(case) if case.call == "solve" else _run_fit(case)
    except ValueError as error:
        return record | {"end": "refused", "said": str(error)[:200]}
    record |= {"end": shown.status, "gap": shown.gap, "warned": sorted({w.category.__name__ for w in said})}
    if shown.exact is None:  # no minimum, so nothing is true but a gap of 1
        none = {"true": 1.0, "true_at_most": 1.0, "objective": 0.0, "exact_objective": 0.0}
        return record | none | {"wrong": ["no minimum"] if shown.gap < 1 else []}
    exact, U = shown.exact, shown.U
    low, high = exact.relative_gap(U)
    at, added = exact.value(U), exact.added_up(U)
    best = at * (1 - low)
    bounds = [o * (1 - g) for o, g in zip(shown.history["objective"], shown.history["gap"], strict=True) if g < 1]
    # The solver's own units round the data to their dtype, and so do centre and scale.
    rounding = 10 * np.finfo(case.X.dtype).eps * (added + exact.level_added(U, shown.level))
    underflow = 4 * U.size * TINY * (1 + 1 / case.delta)
    wrong = {
        "gap": not Real(shown.gap) * at >= low * at - ORACLE * added,
        "history": shown.history["gap"][-1] != shown.gap or any(b > best + rounding + underflow for b in bounds),
        "objective": abs(shown.objectives[0] - at) > rounding + underflow,
        "certificate": any(abs(value - at) > DOUBLE * added + underflow for value in shown.objectives[1:]),
    }
    return record | {
        "true": float(low), "true_at_most": float(high), "objective": float(shown.objectives[0]),
        "exact_objective": float(at), "wrong": [name for name, is_wrong in wrong.items() if is_wrong],
    }  # fmt: skip


@dataclass
class Shown:
    """What a run shows; without ``exact`` the problem has no minimum."""

    U: Array
    exact: Exact | None
    gap: float
    objectives: list[float]
    status: str
    history: dict[str, Array]
    level: Any = 0.0  # subtracted from the data before


def _run_solve(case: Case) -> Shown:
    from frpcag import Problem, certificate, solve
    from frpcag.backends import select_backend
    from frpcag.problem import objective

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
        elif form in PLANTED and number == 1:
            L = _planted(np.random.default_rng([case.seed, 16]), L, form)
        elif form == "skew":
            L = L * (1 + 1e-7 * np.triu(np.ones_like(L), 1)) if kind == "combinatorial" else L
        parts[f"L{number}"] = L if form == "dense" else sp.csr_array(L)
        parts[f"null{number}"] = None if form == "nameless" or excess or kind == "combinatorial" else s
    gammas = (max(case.gammas[0], 1e-3), case.gammas[1]) if form in PLANTED else case.gammas
    problem = Problem(case.X, gamma1=gammas[0], gamma2=gammas[1], loss=case.loss, huber_delta=case.delta, **parts)
    backend: Any = case.backend
    if backend == "triton":
        from frpcag.backends.torch.backend import TorchBackend

        backend = TorchBackend(fused=True)
    else:
        backend = select_backend(backend)
    proof = certificate(problem, np.nan_to_num(case.X))
    if proof.gap < 1 and _is_indefinite(problem):
        return Shown(case.X, None, proof.gap, [], "certificate", {})
    found = solve(problem, backend=backend, **options)
    if _is_indefinite(problem):
        return Shown(found.U, None, found.gap, [], found.status, {})
    weights, more = case.weights, case.excess
    if form == "grounded":
        L = problem.L1.toarray().astype(Real)
        weights, more = (-np.triu(L, 1) - np.triu(L, 1).T, weights[1]), (L.sum(axis=1), more[1])  # type: ignore
    if form == "skew":
        weights = tuple(
            None if W is None else W * (1 + 0.5e-7 * (1 - np.eye(len(W)))) if kind == "combinatorial" else W
            for W, kind in zip(weights, case.kinds, strict=True)
        )
    exact = _exact(case, case.X.astype(Real), weights, case.kinds, more, gammas)
    values = [found.objective, certificate(problem, found.U).objective, objective(problem, found.U)]
    return Shown(found.U.astype(Real), exact, found.gap, values, found.status, found.history)


def _run_fit(case: Case) -> Shown:
    from frpcag import FRPCAG, FRPCAGClustering, regularization_path

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
    )  # fmt: skip
    if case.call == "cluster":
        model = FRPCAGClustering(2, model, assign="kmeans", n_init=1, random_state=0).fit(X).estimator_
    else:
        model.fit(X)
    shown = model.duality_gap_, model.objective_, model.status_, model.history_
    low_rank = np.asarray(model.low_rank_)
    if case.call == "path":
        gammas = [model.gamma1_], [model.gamma2_]
        found = next(regularization_path(case.X, *gammas, estimator=model.set_params(backend="auto"))).solution
        shown, low_rank = (found.gap, found.objective, found.status, found.history), found.U
    center, scale = (np.asarray(v, dtype=Real) for v in (model.center_, model.scale_))
    U = (low_rank.astype(Real) - center) / scale
    exact = _exact(
        case, (case.X.astype(Real) - center) / scale, case.weights, case.kinds, (0, 0), (model.gamma1_, model.gamma2_)
    )  # fmt: skip
    gap, value, status, history = shown
    return Shown(U, exact, gap, [value], status, history, np.abs(center / scale))


def _planted(rng: np.random.Generator, L: Array, form: str) -> Array:
    """Return a matrix with a negative eigenvalue; "grounded": one of float32 rounding, beside a piece held to zero."""
    n = len(L)
    if form == "grounded":  # as a user has it who subtracts degrees in float32
        half = max(n // 2, 1)
        L[:half, half:] = L[half:, :half] = 0
        W = -(L - np.diag(np.diag(L)))
        degree = W.sum(axis=1) * (1 - 2.0**-23 * rng.random(n))
        degree[:half] += rng.random() + 0.1
        return (np.diag(degree) - W).astype(np.float32).astype(np.float64)
    at = rng.choice(n, 2, replace=False)
    size = max(np.abs(L).max(), 1e-12)
    if form == "far":  # a node of its own, which steps from a random start miss
        L[at[0], :] = L[:, at[0]] = 0
        L[at[0], at[0]] = -1e-3 * size
        L[at[1], at[1]] += size
        return L
    L[at[0], at[0]] -= 10.0 ** rng.uniform(-3, 0) * size + L[at[0], at[0]] * (rng.random() < 0.5)
    L[at[0], at[1]] = L[at[1], at[0]] = rng.choice([-1, 1]) * size
    return L


def _is_indefinite(problem: Any) -> bool:
    """Say whether a matrix of the problem, as it holds it, has a negative eigenvalue beyond rounding."""
    for L, gamma in ((problem.L1, problem.gamma1), (problem.L2, problem.gamma2)):
        if L is not None and gamma > 0:
            A = L.toarray()
            A = (A + A.T) / 2
            if np.linalg.eigvalsh(A)[0] < -1e-11 * np.abs(A).max():
                return True
    return False


def _sparse_weights(rng: np.random.Generator, n: int) -> Array:
    W = rng.random((n, n)) * (rng.random((n, n)) < 0.02)
    return np.triu(W, 1) + np.triu(W, 1).T


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
    if call in ("fit", "cluster") and rng.random() < 0.3:
        return "auto"
    gamma = 10.0 ** (rng.uniform(-6, 6) if rng.random() < 0.5 else rng.uniform(-2, 1)) / unit
    return float(np.clip(gamma, 1e-280, 1e280))


def _cast(X: Array, dtype: np.dtype) -> Array:
    top = float(np.abs(X).max(initial=0.0))
    limit = 1e37 if dtype == np.float32 else 1e300
    return (X * min(1.0, limit / top if top > 0 else 1.0)).astype(dtype)
