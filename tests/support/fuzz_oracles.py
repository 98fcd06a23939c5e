"""What is right for the fuzzer: results against the problem itself, errors against the rules for errors."""

from __future__ import annotations

import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import reproduction
import sklearn
from sklearn.exceptions import ConvergenceWarning

import frpcag
from frpcag.engines.base import UnitsWarning
from frpcag.problem import Problem, certificate, gradient, objective
from support.fuzz_arrays import Array, dense

OURS = tuple(str(Path(module.__file__).resolve().parent) for module in (frpcag, reproduction, sklearn))
# sklearn.exceptions.NotFittedError is a ValueError. ImportError names an extra, MemoryError the bytes, and
# NotImplementedError what a model of Dask arrays cannot do.
CLEAR = (ValueError, TypeError, ImportError, MemoryError, NotImplementedError)


class Wrong(Exception):
    """An answer that is not right."""


def require(condition: Any, what: str) -> None:
    """Raise Wrong unless the condition holds."""
    if not bool(condition):
        raise Wrong(what)


def judge_error(error: BaseException) -> str | None:
    """Return what is wrong with an error as an answer to a user, None for nothing."""
    if not isinstance(error, CLEAR):
        return f"{type(error).__name__} is not an error for users"
    if len(str(error)) < 20:
        return "the message says too little"
    where = traceback.extract_tb(error.__traceback__)[-1].filename
    # Of two errors the first is what a library said; the last frame is where it was raised or turned into words.
    if not str(Path(where).resolve()).startswith(OURS):
        return f"raised in {Path(where).name}, not in our words"
    return None


def judge_warnings(caught: list[warnings.WarningMessage]) -> str | None:
    """Return the first warning that is not one of those documented."""
    for warning in caught:
        text = str(warning.message)
        if issubclass(warning.category, (ConvergenceWarning, UnitsWarning)):
            continue
        if issubclass(warning.category, UserWarning) and text.startswith(("n_neighbors=", "the smallest of")):
            continue
        return f"{warning.category.__name__}: {text[:100]} ({Path(warning.filename).name}:{warning.lineno})"
    return None


def host(A: Any) -> Array:
    """Return an array or a tensor as an array."""
    return A.cpu().numpy() if hasattr(A, "cpu") else np.asarray(A)


def check_model(model: Any, X: Any) -> None:
    """Raise Wrong unless a fitted FRPCAG keeps its promises about ``X``."""
    X = dense(X)
    U, S, embedding, components = (
        host(getattr(model, name)) for name in ("low_rank_", "sparse_", "embedding_", "components_")
    )
    sizes = host(model.singular_values_)
    c = len(sizes)
    for name, A, shape in (
        ("low_rank_", U, X.shape),
        ("sparse_", S, X.shape),
        ("embedding_", embedding, (len(X), c)),
        ("components_", components, (c, X.shape[1])),
    ):
        require(A.shape == shape, f"{name} has shape {A.shape}, not {shape}")
        require(A.dtype == X.dtype.newbyteorder("="), f"{name} has dtype {A.dtype} for X of {X.dtype}")
    numbers = ("low_rank_", "sparse_", "embedding_", "components_", "singular_values_", "mean_", "center_", "scale_")
    for name in (*numbers, "gamma1_", "gamma2_", "duality_gap_", "objective_"):
        require(np.isfinite(host(getattr(model, name))).all(), f"{name} is not finite")
    seen = ~np.isnan(X)
    eps = float(np.finfo(X.dtype).eps)
    with np.errstate(over="ignore"):
        size = float(np.abs(X[seen]).max())
    rounding = 8 * eps * max(size, float(np.abs(U).max()))
    with np.errstate(over="ignore", invalid="ignore"):
        require((np.abs(X - U - S)[seen] <= rounding).all(), "X is not low_rank_ + sparse_")
    require((S[~seen] == 0).all(), "sparse_ is not zero where X is missing")
    check_gap(model.duality_gap_, model.converged_, model.stop, model.tol)
    require(model.n_iter_ <= model.max_iter, "more steps than max_iter")
    if 1e-100 < size < 1e100:
        check_certificate(model, X, U, rounding)


def check_gap(gap: float, converged: bool, stop: str, tol: float) -> None:
    """Raise Wrong unless the gap is one and keeps the tolerance where it is said to."""
    require(-1e-12 <= gap <= 1 + 1e-9, f"gap {gap}")
    require(not (converged and stop == "gap") or gap <= tol, f"converged at gap {gap} with tol {tol}")


def check_certificate(model: Any, X: Array, U: Array, rounding: float) -> None:
    """Raise Wrong unless objective and gap hold for the problem that the model says it solved, in float64."""
    graphs = [
        g if g is None or hasattr(g.weights, "indptr") else None for g in (model.sample_graph_, model.feature_graph_)
    ]
    if any(g is None for g in graphs) and (model.gamma1_ > 0 or model.gamma2_ > 0) and model.backend_ == "torch":
        return  # graphs on the device; their parity is tested elsewhere
    center, scale = (host(getattr(model, name)).astype(np.float64) for name in ("center_", "scale_"))
    problem = Problem(
        (X.astype(np.float64) - center) / scale,
        *(None if g is None else g.laplacian for g in graphs),
        model.gamma1_,
        model.gamma2_,
        loss=model.loss,
        huber_delta=model.huber_delta,
        null1=None if graphs[0] is None else graphs[0].null_vector,
        null2=None if graphs[1] is None else graphs[1].null_vector,
    )
    Z = (U.astype(np.float64) - center) / scale
    with np.errstate(over="ignore", invalid="ignore"):
        value = objective(problem, Z)
        slope = float(np.abs(gradient(problem, Z)).sum()) + 2 * float(np.nansum(np.abs(problem.X - Z))) + Z.size
        curve = (model.gamma1_ * 4 + model.gamma2_ * 4) * Z.size * max(4.0, _lmax(graphs))
        eps = float(np.finfo(X.dtype).eps)
        e = 4 * rounding / float(scale.min())
        slack = (
            e * slope
            + e * e * curve
            + 50 * eps * curve * float(np.square(Z).max())
            + 1e-3 * abs(value) * (X.dtype == np.float32)
            + 1e-7 * abs(value)
        )
    if not np.isfinite(slack):
        return
    off = abs(value - model.objective_)
    require(off <= slack, f"objective_ {model.objective_:.6g} is {value:.6g} at low_rank_ (slack {slack:.2g})")
    bound = certificate(problem, Z).bound
    # The optimum is at least ``bound`` and the claim at most ``objective_ (1 - gap)``: the two must be able to agree.
    claimed = model.objective_ * (1 - model.duality_gap_)
    require(claimed <= value + slack, f"lower bound {claimed:.6g} above the objective {value:.6g}")
    require(bound <= model.objective_ + slack, "a bound above the objective")


def _lmax(graphs: list[Any]) -> float:
    return max((float(abs(g.laplacian).sum(axis=1).max()) for g in graphs if g is not None), default=0.0)


def check_solution(problem: Any, solution: Any, stop: str, tol: float) -> None:
    """Raise Wrong unless a solution of ``solve`` carries a true certificate."""
    U = solution.U
    require(U.shape == problem.X.shape and U.dtype == problem.X.dtype, f"U is {U.dtype} {U.shape}")
    require(np.isfinite(U).all(), "U is not finite")
    require(np.isfinite([solution.gap, solution.objective]).all(), "gap or objective is not finite")
    check_gap(solution.gap, solution.converged, stop, tol)
    size = float(np.nanmax(np.abs(problem.X)))
    if 1e-100 < size < 1e100 and problem.X.dtype == np.float64:
        value = objective(problem, U)
        lmax = max((float(abs(L).sum(axis=1).max()) for L in (problem.L1, problem.L2) if L is not None), default=0.0)
        slack = 1e-14 * U.size * (problem.gamma1 + problem.gamma2) * lmax * float(np.square(U).max())
        off = abs(value - solution.objective)
        require(off <= 1e-7 * abs(value) + 1e-9 * size + slack, "objective is not that of U")


def check_graph(graph: Any, n: int) -> None:
    """Raise Wrong unless a graph is symmetric, loop-free, and its Laplacian positive semi-definite."""
    A, L = graph.weights, graph.laplacian
    if not hasattr(A, "indptr"):
        return  # on a device
    require(A.shape == L.shape == (n, n), f"graph of {A.shape} for {n} nodes")
    require(np.isfinite(A.data).all() and np.isfinite(L.data).all(), "weights are not finite")
    require((A.data >= 0).all() and A.diagonal().max(initial=0) == 0, "negative weights or loops")
    require((A != A.T).nnz == 0, "weights are not symmetric")
    if n <= 60:
        values = np.linalg.eigvalsh(L.toarray())
        top = 2.0 if graph.normalized else 2 * float(A.sum(axis=1).max())
        require(values[0] >= -1e-9 * max(top, 1) and values[-1] <= top * (1 + 1e-9) + 1e-300, "spectrum out of range")
