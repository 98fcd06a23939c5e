"""Answers from outside the code under test: dense linear algebra, CVXPY, the optimality condition."""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components

from frpcag.problem import Problem, gradient, prox


def tolerance(dtype) -> dict[str, float]:
    """Return assert_allclose's tolerances for results of this dtype."""
    return {"rtol": 2e-4, "atol": 2e-4} if np.dtype(dtype) == np.float32 else {"rtol": 1e-9, "atol": 1e-9}


def random_sparse(n: int, density: float, seed: int) -> sp.csr_array:
    """Return a square matrix of numbers in (0, 1) and zeros; sp.random_array names its seed differently by version."""
    rng = np.random.default_rng(seed)
    return sp.csr_array(rng.random((n, n)) * (rng.random((n, n)) < density))


def random_weights(n: int, density: float, seed: int) -> sp.csr_array:
    """Return symmetric weights with an empty diagonal; nodes may be isolated."""
    A = random_sparse(n, density, seed)
    A = A + A.T
    A.setdiag(0)
    A.eliminate_zeros()
    return sp.csr_array(A)


def ring(n: int) -> sp.csr_array:
    """Return the weights of a ring, all of them 1."""
    nodes = np.arange(n)
    A = sp.csr_array((np.ones(n), (nodes, (nodes + 1) % n)), shape=(n, n))
    return sp.csr_array(A + A.T)


def random_laplacian(rng, n: int, kind: str = "normalized", *, density: float = 0.5) -> sp.csr_array:
    """Return the Laplacian of a random weighted graph, by dense arithmetic; nodes may be isolated."""
    A = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 1)
    A = A + A.T
    degree = A.sum(axis=1)
    L = np.diag(degree) - A
    if kind == "normalized":
        scale = np.where(degree > 0, 1 / np.sqrt(np.where(degree > 0, degree, 1)), 0.0)
        L = scale[:, None] * L * scale[None, :]
    return sp.csr_array(L)


def random_problem(seed: int, *, n=12, p=8, kind="normalized", loss="l1", graphs="both", dtype=np.float64, mask=None):
    """Return a small problem whose solution is neither X nor constant."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, 1)) + rng.normal(size=(1, p)) + 0.3 * rng.normal(size=(n, p))).astype(dtype)
    X[rng.random((n, p)) < 0.1] += 5
    L1 = random_laplacian(rng, n, kind) if graphs in ("both", "samples") else None
    L2 = random_laplacian(rng, p, kind) if graphs in ("both", "features") else None
    gamma1, gamma2 = np.exp(rng.uniform(np.log(0.05), np.log(3), size=2))
    if mask is None:
        return Problem(X, L1, L2, gamma1, gamma2, loss=loss, huber_delta=0.5)
    nulls = {"null1": null_vector(L1), "null2": null_vector(L2)}
    return Problem(X, L1, L2, gamma1, gamma2, mask=rng.random((n, p)) >= mask, loss=loss, huber_delta=0.5, **nulls)


def null_vector(L) -> np.ndarray | None:
    """Return a positive null vector of a Laplacian, by a dense eigendecomposition, component by component."""
    if L is None:
        return None
    s = np.ones(L.shape[0])
    _, component = connected_components(L != 0)
    for c in np.unique(component):
        at = np.flatnonzero(component == c)
        s[at] = np.abs(np.linalg.eigh(L.toarray()[np.ix_(at, at)])[1][:, 0])
    return s


@cache
def random_optimum(seed: int, **options) -> float:
    """Return the optimal value of ``random_problem(seed, **options)``; CVXPY solves each problem once a process."""
    problem = random_problem(seed, **options)
    return smooth_optimum(problem) if problem.loss == "logcosh" else cvxpy_optimum(problem)


def smooth_optimum(problem: Problem) -> float:
    """Return the optimal value for the log-cosh loss, by Newton's method on all entries at once."""
    (n, p), d = problem.X.shape, problem.huber_delta
    x = problem.X.astype(np.float64).ravel()
    seen, x = np.isfinite(x), np.nan_to_num(x)
    L1, L2 = (np.zeros((k, k)) if L is None else L.toarray() for L, k in ((problem.L1, n), (problem.L2, p)))
    H = 2 * problem.gamma1 * np.kron(L1, np.eye(p)) + 2 * problem.gamma2 * np.kron(np.eye(n), L2)

    def value(u):
        r = seen * (u - x) / d
        return d * (np.logaddexp(r, -r) - np.log(2)).sum() + u @ H @ u / 2

    def slope(u):
        return seen * np.tanh((u - x) / d) + H @ u

    def bend(u):
        return np.diag(seen / np.cosh((u - x) / d) ** 2 / d) + H

    return float(minimize(value, x, jac=slope, hess=bend, method="trust-exact", options={"gtol": 1e-9}).fun)


def cvxpy_optimum(problem: Problem) -> float:
    """Return the optimal value of the problem, by an interior-point solver."""
    import cvxpy as cp

    X, (n, p) = np.asarray(problem.X, dtype=np.float64), problem.X.shape
    U = cp.Variable((n, p))
    seen = np.isfinite(X)
    R = cp.multiply(seen.astype(float), U - np.where(seen, X, 0.0))
    if problem.loss == "l1":
        data = cp.sum(cp.abs(R))
    elif problem.loss == "l2":
        data = cp.sum_squares(R)
    else:  # cp.huber(r, M) is r^2 up to M and 2 M |r| - M^2 beyond
        data = cp.sum(cp.huber(R, problem.huber_delta)) / (2 * problem.huber_delta)
    terms = [data]
    if problem.L1 is not None:
        terms.append(problem.gamma1 * cp.sum_squares(_root(problem.L1) @ U))
    if problem.L2 is not None:
        terms.append(problem.gamma2 * cp.sum_squares(_root(problem.L2) @ U.T))
    model = cp.Problem(cp.Minimize(sum(terms)))
    model.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return float(model.value)


def _root(L) -> np.ndarray:
    values, vectors = np.linalg.eigh(L.toarray())
    return np.sqrt(np.maximum(values, 0))[:, None] * vectors.T


def optimality_residual(problem: Problem, U: np.ndarray) -> float:
    """Return max |U - prox(U - gradient(U))|: zero exactly at a minimiser."""
    return float(np.abs(U - prox(problem, U - gradient(problem, U), 1.0)).max())
