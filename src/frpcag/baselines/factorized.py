"""The models with factors on a sample graph: GLPCA, MMF, GNMF."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.decomposition import non_negative_factorization
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from frpcag.baselines.base import Array, BasisBaseline, GraphBaseline, check_weight
from frpcag.linalg.eigenpairs import low_eigenpairs
from frpcag.linalg.factorize import fix_signs, gram_svd
from frpcag.runtime.warn import warn_user

# From this many samples on, few eigenvectors are found faster by Lanczos than by a dense eigendecomposition.
_LANCZOS_NODES = 1000


class GLPCA(GraphBaseline):
    """Graph-Laplacian PCA (Jiang et al. 2013), in closed form.

    ``W`` minimises ``tr(W' G W)`` over ``W' W = I``, with samples in rows

        G = (1 - beta) (I - X X' / lambda_n) + beta L / xi_n

    where ``lambda_n`` and ``xi_n`` are the largest eigenvalues of ``X X'`` and ``L``. So ``beta = 0`` is PCA of centred
    data and ``beta = 1`` the spectral embedding of the graph.

    Parameters
    ----------
    n_components : int, default=2
        Columns of ``W``, at most ``n_samples``. Embeddings are nested: one eigendecomposition serves a sweep, see
        ``first_components``.
    beta : float, default=0.5
        Weight of the graph, from 0 to 1.
    n_neighbors, sample_graph, random_state
        As in :class:`~frpcag.baselines.NCut`.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        ``W``, orthonormal columns.
    eigenvalues_ : ndarray of shape (n_components,)
        Of ``G``, ascending.
    sample_graph_ : Graph
        The graph.

    Notes
    -----
    ``X`` is used as it is; centre it first. A dense eigendecomposition of ``G`` costs ``O(n_samples^3)``; up to
    ``n_samples / 20`` components are found by Lanczos instead, to a relative 1e-10.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.baselines import GLPCA
    >>> X = np.random.default_rng(0).normal(size=(40, 5))
    >>> GLPCA(3, beta=0.3).fit(X - X.mean(axis=0)).embedding_.shape
    (40, 3)
    """

    preprocess = "standardize"
    nested = True

    def __init__(
        self,
        n_components: int = 2,
        *,
        beta: float = 0.5,
        n_neighbors: int = 10,
        sample_graph="auto",
        random_state=None,
    ):
        self.n_components = n_components
        self.beta = beta
        self.n_neighbors = n_neighbors
        self.sample_graph = sample_graph
        self.random_state = random_state

    def fit(self, X, y=None):
        """Fit to ``X``, array-like of shape (n_samples, n_features)."""
        X = self._validate(X)
        self._check_n_components(X, len(X))
        beta = check_weight("beta", self.beta, most=1)
        L = self._fit_graph(X).laplacian
        if beta == 1:  # the null space of a graph of several parts is beyond a single Lanczos run
            values, vectors = low_eigenpairs(L, self.n_components, random_state=self.random_state)
            values /= _largest(L) or 1.0
        else:
            values, vectors = _glpca_eigenpairs(X.astype(np.float64), L, beta, self.n_components)
        self.eigenvalues_, self.embedding_ = values, fix_signs(vectors)[0].astype(X.dtype)
        return self


def _glpca_eigenpairs(X: Array, L: sp.csr_array, beta: float, k: int) -> tuple[Array, Array]:
    """Return the ``k`` lowest eigenpairs of ``G``."""
    n = len(X)
    data = (1 - beta) / (_largest(X) or 1.0)
    graph = beta / (_largest(L) or 1.0)
    if n >= _LANCZOS_NODES and 20 * k <= n:
        # (1 - beta) I only shifts the spectrum; the flipped operator's top is the bottom of G.
        flipped = LinearOperator(
            (n, n), matvec=lambda v: data * (X @ (X.T @ v)) - graph * (L @ v) + graph * v, dtype=np.float64
        )
        start = np.random.RandomState(0).standard_normal(n)
        values, vectors = eigsh(flipped, k, which="LA", v0=start, ncv=min(n, max(64, 3 * k)), tol=1e-10)
        order = np.argsort(-values, kind="stable")
        return 1 - beta + graph - values[order], vectors[:, order]
    G = X @ X.T
    G *= -data
    G += (graph * L).toarray()
    G[np.diag_indices(n)] += 1 - beta
    return eigh(G, subset_by_index=[0, k - 1], overwrite_a=True, check_finite=False)


def _largest(A) -> float:
    """Return the largest eigenvalue of a Laplacian, or of ``A A'`` of a dense matrix, to rounding."""
    if not sp.issparse(A):
        gram = A.T @ A if A.shape[1] <= A.shape[0] else A @ A.T
        top = len(gram) - 1
        return float(eigh(gram, eigvals_only=True, subset_by_index=[top, top], check_finite=False)[0])
    if A.shape[0] < _LANCZOS_NODES:
        return float(np.linalg.eigvalsh(A.toarray())[-1])
    start = np.random.RandomState(0).standard_normal(A.shape[0])
    return float(eigsh(A, 1, which="LA", v0=start, return_eigenvectors=False)[0])


class MMF(BasisBaseline, GraphBaseline):
    """Matrix factorisation with manifold regularisation (Zhang and Zhao 2013), in closed form.

    ``W`` and ``V`` minimise ``||X - W V'||_F^2 + gamma tr(W' L W)`` over ``V' V = I``: the columns of ``V`` are the top
    eigenvectors of ``X' (I + gamma L)^-1 X``, and ``W = (I + gamma L)^-1 X V``.

    Parameters
    ----------
    n_components : int, default=2
        Columns of ``W``, at most ``min(n_samples, n_features)``. Embeddings are nested, see ``first_components``.
    gamma : float, default=1.0
        Weight of the graph term; 0 is PCA of centred data.
    n_neighbors, sample_graph, random_state
        As in :class:`~frpcag.baselines.NCut`.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        ``W``.
    components_ : ndarray of shape (n_components, n_features)
        ``V'``.
    objective_ : float
        The minimum.
    sample_graph_ : Graph
        The graph.

    Notes
    -----
    With the Cholesky factor ``C C' = I + gamma L`` and the SVD ``C^-1 X = P Sigma V'`` we have ``W = C^-T P Sigma``.
    The factor is dense: ``O(n_samples^3 / 3 + n_samples^2 n_features)``, well below the cost of sparse solvers on k-NN
    graphs of a few thousand nodes, whose factors fill in.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.baselines import MMF
    >>> X = np.random.default_rng(0).normal(size=(40, 5))
    >>> MMF(3, gamma=2.0).fit(X - X.mean(axis=0)).embedding_.shape
    (40, 3)
    """

    preprocess = "standardize+unit"
    nested = True

    def __init__(
        self,
        n_components: int = 2,
        *,
        gamma: float = 1.0,
        n_neighbors: int = 10,
        sample_graph="auto",
        random_state=None,
    ):
        self.n_components = n_components
        self.gamma = gamma
        self.n_neighbors = n_neighbors
        self.sample_graph = sample_graph
        self.random_state = random_state

    def fit(self, X, y=None):
        """Fit to ``X``, array-like of shape (n_samples, n_features)."""
        X = self._validate(X)
        self._check_n_components(X, min(X.shape))
        gamma = check_weight("gamma", self.gamma)
        M = (gamma * self._fit_graph(X).laplacian).toarray()
        M[np.diag_indices(len(X))] += 1
        C = cholesky(M, lower=True, overwrite_a=True, check_finite=False)
        B = solve_triangular(C, X.astype(np.float64), lower=True, check_finite=False)
        P, Sigma, V = gram_svd(B, self.n_components, random_state=0)
        W = solve_triangular(C, P * Sigma, lower=True, trans="T", check_finite=False)
        self.embedding_, self.components_ = W.astype(X.dtype), V.T.astype(X.dtype)
        self.objective_ = float(np.sum(np.square(X, dtype=np.float64)) - np.sum(np.square(Sigma)))
        return self


class GNMF(BasisBaseline, GraphBaseline):
    """Graph-regularised non-negative matrix factorisation (Cai et al. 2011), by multiplicative updates.

    From a random start, every update lowers ``||X - W H||_F^2 + gamma tr(W' (D - A) W)`` over ``W, H >= 0``.

    Parameters
    ----------
    n_components : int, default=2
        Columns of ``W``.
    gamma : float, default=1.0
        Weight of the graph term; 0 is the NMF of Lee and Seung.
    n_neighbors : int, default=10
        Neighbours of each sample in the graph.
    sample_graph : str, sparse array, neighbour transformer or Graph, default="auto"
        As ``method`` of :func:`~frpcag.build_graph`. Its weights are used; the updates need the combinatorial
        Laplacian ``D - A``, whose two parts are non-negative.
    max_iter : int, default=200
        Most updates.
    tol : float, default=1e-4
        Stop when ten updates lower the square root of the objective by less than this share of its first value, the
        rule of scikit-learn's NMF.
    random_state : int, RandomState or None, default=None
        Seed of the start and of the graph search.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        ``W``, scaled such that the rows of ``H`` have unit length (Cai et al. 2011, Sec. 3.2).
    components_ : ndarray of shape (n_components, n_features)
        ``H``, rows of unit length.
    objective_ : float
        Value reached, before the scaling.
    n_iter_ : int
        Updates made.
    sample_graph_ : Graph
        The graph.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.baselines import GNMF
    >>> X = np.random.default_rng(0).random((40, 5))
    >>> model = GNMF(2, max_iter=500, random_state=0).fit(X)
    >>> bool(model.embedding_.min() >= 0)
    True
    """

    preprocess = "unit"
    nonnegative = True

    def __init__(
        self,
        n_components: int = 2,
        *,
        gamma: float = 1.0,
        n_neighbors: int = 10,
        sample_graph="auto",
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state=None,
    ):
        self.n_components = n_components
        self.gamma = gamma
        self.n_neighbors = n_neighbors
        self.sample_graph = sample_graph
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X, y=None):
        """Fit to ``X``, non-negative array-like of shape (n_samples, n_features)."""
        X = self._validate(X)
        self._check_n_components(X, min(X.shape))
        gamma = check_weight("gamma", self.gamma)
        A = (gamma * self._fit_graph(X).weights).astype(X.dtype)
        D = np.asarray(A.sum(axis=1)).reshape(-1, 1)
        W, H = _random_start(X, self.n_components, self.random_state)
        first = last = np.sqrt(_gnmf_objective(X, W, H, A, D))
        converged = False
        for n_iter in range(1, self.max_iter + 1):
            W *= _ratio(X @ H.T + A @ W, W @ (H @ H.T) + D * W)
            H *= _ratio(W.T @ X, (W.T @ W) @ H)
            if n_iter % 10 == 0:
                value = np.sqrt(_gnmf_objective(X, W, H, A, D))
                if converged := bool(last - value <= self.tol * first):
                    break
                last = value
        if not converged and self.tol > 0:
            warn_user(
                f"GNMF made max_iter={self.max_iter} updates before the objective settled to tol={self.tol}; raise "
                "max_iter or tol.",
                ConvergenceWarning,
            )
        self.objective_, self.n_iter_ = _gnmf_objective(X, W, H, A, D), n_iter
        lengths = np.linalg.norm(H, axis=1)
        self.components_ = H / np.where(lengths > 0, lengths, 1)[:, None]
        self.embedding_ = W * lengths
        return self

    def _coordinates(self, X: Array) -> Array:
        return non_negative_factorization(X, H=self.components_, update_H=False, max_iter=self.max_iter)[0]


def _random_start(X: Array, c: int, random_state) -> tuple[Array, Array]:
    """Return non-negative factors of the scale of ``X``, drawn as scikit-learn's NMF draws them."""
    rng = check_random_state(random_state)
    scale = np.sqrt(X.mean() / c)
    H = scale * rng.standard_normal(size=(c, X.shape[1]))
    W = scale * rng.standard_normal(size=(X.shape[0], c))
    return np.abs(W).astype(X.dtype), np.abs(H).astype(X.dtype)


def _ratio(numerator: Array, denominator: Array) -> Array:
    denominator[denominator == 0] = np.finfo(np.float32).eps
    return np.divide(numerator, denominator, out=numerator)


def _gnmf_objective(X: Array, W: Array, H: Array, A: sp.csr_array, D: Array) -> float:
    """Return ``||X - W H||_F^2 + tr(W' (D - A) W)``, the weight of the graph being in ``A`` and ``D``."""
    fit = np.sum(np.square(X - W @ H), dtype=np.float64)
    return float(fit + np.sum(W * (D * W - A @ W), dtype=np.float64))
