"""The closed-form graph filter ``U = (I + gamma1 L1)^-1 X (I + gamma2 L2)^-1``."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from frpcag.backends import Backend
from frpcag.problem import Array, Problem, certificate
from frpcag.solvers.stopping import Solution, Stop

# A k-NN graph has no small separators: beyond this many nodes the fill-in of a factorisation costs more than CG.
_DIRECT_NODES = 3000


def tikhonov(problem: Problem, backend: Backend, *, stop: Stop, U0: Array | None = None, **_: object) -> Solution:
    """Apply the two graph filters one after the other (Shahid et al. 2016, Sec. V-A).

    Each filter is the exact minimiser for its own graph and ``loss="l2"``; with one graph the result solves the
    problem. With two graphs their product differs from the joint minimiser by the term
    ``gamma1 gamma2 L1 U L2``, and the certificate says by how much. Every singular direction that is also a pair
    of graph eigenvectors is damped by ``1 / ((1 + gamma1 lambda_i) (1 + gamma2 omega_j))``.

    Small graphs are factorised, large ones solved by conjugate gradients to rounding.
    """
    if problem.loss != "l2" or problem.mask is not None:
        raise ValueError(
            f"solver='tikhonov' needs loss='l2' and no missing entries, got loss={problem.loss!r}"
            f"{' and a mask' if problem.mask is not None else ''}; use solver='fista'."
        )
    U = _filter(problem.L1, problem.gamma1, problem.X)
    U = np.ascontiguousarray(_filter(problem.L2, problem.gamma2, U.T).T)
    return stop.finish(certificate(problem, U), U=U, n_iter=1, status="converged", backend="numpy")


def _filter(L: sp.csr_array | None, gamma: float, B: Array) -> Array:
    if L is None or gamma == 0:
        return B.copy()
    A = sp.eye_array(L.shape[0], format="csc") + gamma * L
    if L.shape[0] <= _DIRECT_NODES:
        return splu(sp.csc_matrix(A)).solve(np.asarray(B, dtype=np.float64)).astype(B.dtype)
    return conjugate_gradients(A.tocsr(), B)


def conjugate_gradients(A: sp.csr_array, B: Array, *, tol: float | None = None, max_iter: int = 1000) -> Array:
    """Solve ``A Z = B`` for all columns of ``B`` at once, each with its own step lengths."""
    tol = (1e-12 if B.dtype == np.float64 else 1e-6) if tol is None else tol
    Z, R = np.zeros_like(B), B.copy()
    P, rr = R.copy(), np.einsum("ij,ij->j", R, R, dtype=np.float64)
    goal = tol**2 * rr
    for _ in range(max_iter):
        if (rr <= goal).all():
            break
        AP = (A @ P).astype(B.dtype, copy=False)
        pAp = np.einsum("ij,ij->j", P, AP, dtype=np.float64)
        alpha = np.divide(rr, pAp, out=np.zeros_like(rr), where=pAp > 0).astype(B.dtype)
        Z += alpha * P
        R -= alpha * AP
        rr_next = np.einsum("ij,ij->j", R, R, dtype=np.float64)
        P *= np.divide(rr_next, rr, out=np.zeros_like(rr), where=rr > 0).astype(B.dtype)
        P += R
        rr = rr_next
    return Z
