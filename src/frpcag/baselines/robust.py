"""The models with a nuclear norm: robust PCA, robust PCA on graphs."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning

from frpcag.baselines.base import Array, BasisBaseline, GraphBaseline, check_weight
from frpcag.linalg.factorize import gram_svd
from frpcag.runtime.warn import warn_user

# Rows per block of the Gram sum: bounds the float64 copy of a float32 block.
_BLOCK = 4096
# The penalty grows by at most this factor (Lin, Chen and Ma 2010).
_GROWTH = 1e7


class Decomposition(NamedTuple):
    """The result of the augmented Lagrangian method."""

    U: Array
    S: Array
    rank: int
    n_iter: int
    converged: bool


class RPCA(BasisBaseline):
    """Robust PCA (Candes et al. 2011) by the inexact augmented Lagrangian method (Lin, Chen and Ma 2010).

    Minimises ``||U||_* + lam ||S||_1`` subject to ``X = U + S``.

    Parameters
    ----------
    lam : "auto" or float, default="auto"
        Weight of the sparse part; "auto" is ``1 / sqrt(max(n_samples, n_features))``.
    rho : float, default=1.5
        Factor of the penalty per step, above 1. A smaller factor takes more steps and ends nearer to the optimum.
    max_iter : int, default=1000
        Most steps.
    tol : float, default=1e-7
        Stop at ``||X - U - S||_F < tol ||X||_F``.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, rank)
        The rows of ``U`` in its singular directions; distances between them are those of ``U``.
    components_ : ndarray of shape (n_components, n_features)
        Right singular vectors of ``U``, onto which ``transform`` projects.
    low_rank_, sparse_ : ndarray of shape (n_samples, n_features)
        ``U`` and ``S``.
    singular_values_ : ndarray of shape (rank,)
        Of ``U``, descending.
    objective_, residual_ : float
        ``||U||_* + lam ||S||_1`` and ``||X - U - S||_F / ||X||_F``.
    n_iter_, converged_ : int and bool
        Steps taken, and whether ``tol`` was reached.

    Notes
    -----
    Singular values are shrunk through the Gram matrix of the smaller side, summed and decomposed in float64:
    ``O(n p min(n, p))`` a step. Everything else is done in the dtype of ``X``. With a growing penalty the limit need
    not be the exact optimum. On USPS (3500 x 256, float64, standardised) the ``rho = 1.5`` of Lin, Chen and Ma takes
    37 steps and ends 1e-3 above the objective that ``rho = 1.05`` reaches in 243; ``rho = 1.2`` takes 76 and ends 4e-5
    above it.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.baselines import RPCA
    >>> clean = np.outer(np.arange(1.0, 31.0), np.ones(20))
    >>> X = clean.copy()
    >>> X[3, 4] += 50
    >>> model = RPCA().fit(X)
    >>> model.embedding_.shape, bool(abs(model.low_rank_ - clean).max() < 1e-3)
    ((30, 1), True)
    """

    preprocess = "standardize"

    def __init__(self, lam: str | float = "auto", *, rho: float = 1.5, max_iter: int = 1000, tol: float = 1e-7):
        self.lam = lam
        self.rho = rho
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X, y=None):
        """Fit to ``X``, array-like of shape (n_samples, n_features)."""
        X = self._validate(X)
        return self._separate(X, None, 0.0)

    def _separate(self, X: Array, L: sp.csr_array | None, gamma: float):
        """Split ``X`` and name the results."""
        lam = self._resolve_lam(X)
        if not (isinstance(self.max_iter, Integral) and self.max_iter >= 1):
            raise ValueError(f"max_iter={self.max_iter!r} must be an integer >= 1.")
        if not 1 < self.rho < np.inf:
            raise ValueError(f"rho={self.rho!r} must be a number above 1, such as 1.2.")
        filters = None if L is None or gamma == 0 else _graph_filter(L, gamma)
        U, S, rank, self.n_iter_, self.converged_ = augmented_lagrangian(
            X, lam, filters, rho=self.rho, max_iter=self.max_iter, tol=self.tol
        )
        W, Sigma, V = gram_svd(U, max(rank, 1), random_state=0)
        self.low_rank_, self.sparse_, self.singular_values_, self.embedding_ = U, S, Sigma, W * Sigma
        self.components_ = V.T
        self.residual_ = _norm(X - U - S) / (_norm(X) or 1.0)
        self.objective_ = float(Sigma.sum(dtype=np.float64) + lam * np.abs(S).sum(dtype=np.float64))
        if filters is not None:
            self.objective_ += gamma * float(np.sum(U * (L @ U), dtype=np.float64))
        if not self.converged_:
            warn_user(
                f"{type(self).__name__} made max_iter={self.max_iter} steps and has a residual of "
                f"{self.residual_:.2g} > tol={self.tol}; raise max_iter or tol.",
                ConvergenceWarning,
            )
        return self

    def _resolve_lam(self, X: Array) -> float:
        if isinstance(self.lam, str) and self.lam == "auto":
            return 1 / np.sqrt(max(X.shape))
        lam = check_weight("lam", self.lam) if not isinstance(self.lam, str) else 0.0
        if lam == 0:
            raise ValueError(f"lam={self.lam!r} must be 'auto' or a number above 0.")
        return lam


class RPCAG(RPCA, GraphBaseline):
    """Robust PCA on graphs (Shahid et al. 2015).

    Minimises ``||U||_* + lam ||S||_1 + gamma tr(U' L U)`` subject to ``X = U + S``.

    Parameters
    ----------
    lam, rho, max_iter, tol
        As in :class:`RPCA`; the residual of the copy ``Z`` of ``U`` counts as well.
    gamma : float, default=1.0
        Weight of the graph term; 0 is :class:`RPCA`.
    n_neighbors, sample_graph, random_state
        As in :class:`~frpcag.baselines.NCut`.

    Attributes
    ----------
    embedding_, low_rank_, sparse_, singular_values_, objective_, residual_, n_iter_, converged_
        As in :class:`RPCA`.
    sample_graph_ : Graph
        The graph.

    Notes
    -----
    The graph term acts on a copy ``Z = U``, as in Shahid et al. 2015, so that each part has a closed form; ``Z`` solves
    a linear system by a dense Cholesky factorisation, ``O(n_samples^3 / 3)`` a step.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.baselines import RPCAG
    >>> X = np.outer(np.arange(1.0, 31.0), np.ones(20))
    >>> X[3, 4] += 50
    >>> RPCAG(gamma=0.01).fit(X).converged_
    True
    """

    def __init__(
        self,
        lam: str | float = "auto",
        *,
        gamma: float = 1.0,
        n_neighbors: int = 10,
        sample_graph="auto",
        rho: float = 1.5,
        max_iter: int = 1000,
        tol: float = 1e-7,
        random_state=None,
    ):
        super().__init__(lam, rho=rho, max_iter=max_iter, tol=tol)
        self.gamma = gamma
        self.n_neighbors = n_neighbors
        self.sample_graph = sample_graph
        self.random_state = random_state

    def fit(self, X, y=None):
        """Fit to ``X``, array-like of shape (n_samples, n_features)."""
        X = self._validate(X)
        gamma = check_weight("gamma", self.gamma)
        return self._separate(X, self._fit_graph(X).laplacian, gamma)


def augmented_lagrangian(
    X: Array, lam: float, filters: Callable[[Array, float], Array] | None, *, rho: float, max_iter: int, tol: float
) -> Decomposition:
    """Split ``X = U + S`` (Lin, Chen and Ma 2010, Algorithm 5), with a graph term on ``Z = U`` where there is one.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    lam : float
        Weight of the sparse part.
    filters : function (B, mu) -> Z, optional
        Minimiser of the graph term plus ``mu / 2 ||Z - B||_F^2``.
    rho, max_iter, tol
        As in :class:`RPCA`.
    """
    norm = _norm(X)
    if norm == 0:
        return Decomposition(np.zeros_like(X), np.zeros_like(X), 0, 0, True)
    spectral = np.sqrt(_gram_eigh(X)[0][-1])
    mu = 1.25 / spectral
    most = _GROWTH * mu
    # Multipliers over mu: Y1 of X = U + S, and Y2 of Z = U.
    Y1 = X / X.dtype.type(mu * max(spectral, np.abs(X).max() / lam))
    S, Z, Y2 = np.zeros_like(X), X, np.zeros_like(X)
    n_iter, converged = 0, False
    while n_iter < max_iter and not converged:
        n_iter += 1
        A = X - S
        A += Y1
        if filters is None:
            U, rank = _shrink_singular_values(A, 1 / mu)
        else:
            A += Z
            A += Y2
            A /= 2
            U, rank = _shrink_singular_values(A, 0.5 / mu)
        T = np.subtract(X, U, out=A)
        T += Y1
        clipped = np.clip(T, -lam / mu, lam / mu)  # the new multiplier; the rest of T is S
        S = np.subtract(T, clipped, out=T)
        residual = _norm(np.subtract(clipped, Y1, out=Y1))
        if filters is not None:
            Z = filters(U - Y2, mu)
            residual = np.hypot(residual, _norm(Z - U))
            Y2 += Z - U
        converged = bool(residual < tol * norm)
        grown = min(rho * mu, most)
        Y1 = clipped
        Y1 *= X.dtype.type(mu / grown)
        Y2 *= X.dtype.type(mu / grown)
        mu = grown
    return Decomposition(U, S, rank, n_iter, converged)


def _shrink_singular_values(A: Array, threshold: float) -> tuple[Array, int]:
    """Return ``A`` with its singular values lowered by ``threshold``, and the rank that is left."""
    values, vectors = _gram_eigh(A)
    sigma = np.sqrt(np.maximum(values, 0))
    kept = sigma > threshold
    Q = vectors[:, kept]
    damped = (Q * (1 - threshold / sigma[kept])).astype(A.dtype)
    Q = Q.astype(A.dtype)
    U = (A @ Q) @ damped.T if A.shape[1] <= A.shape[0] else damped @ (Q.T @ A)
    return U, int(kept.sum())


def _gram_eigh(A: Array) -> tuple[Array, Array]:
    """Eigenpairs of the Gram matrix of the smaller side, ascending, in float64."""
    B = A if A.shape[1] <= A.shape[0] else A.T
    gram = np.zeros((B.shape[1], B.shape[1]))
    for start in range(0, len(B), _BLOCK):
        block = B[start : start + _BLOCK].astype(np.float64, copy=False)
        gram += block.T @ block
    return np.linalg.eigh(gram)


def _graph_filter(L: sp.csr_array, gamma: float) -> Callable[[Array, float], Array]:
    """Return the function ``(B, mu) -> (I + (2 gamma / mu) L)^-1 B``."""
    dense = L.toarray()

    def apply(B: Array, mu: float) -> Array:
        M = dense * (2 * gamma / mu)
        M[np.diag_indices(len(M))] += 1
        factor = cho_factor(M, lower=True, overwrite_a=True, check_finite=False)
        return cho_solve(factor, B, check_finite=False).astype(B.dtype, copy=False)

    return apply


def _norm(A: Array) -> float:
    return float(np.sqrt(np.einsum("ij,ij->", A, A, dtype=np.float64)))
