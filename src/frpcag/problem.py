"""The convex problem of Shahid et al. 2016, Eqs. (1)-(4), in plain NumPy.

Samples are rows, so the paper's ``X`` is our ``X.T``. Every faster kernel is tested against these lines.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from frpcag.spectrum import largest_eigenvalue

Array = np.ndarray

LOSSES = ("l1", "l2", "huber")


@dataclass(frozen=True, eq=False)
class Problem:
    """The problem ``min_U sum phi(X - U) + gamma1 tr(U' L1 U) + gamma2 tr(U L2 U')``.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data, float32 or float64.
    L1 : sparse matrix of shape (n_samples, n_samples) or None
        Laplacian of the sample graph; None drops the term.
    L2 : sparse matrix of shape (n_features, n_features) or None
        Laplacian of the feature graph; None drops the term.
    gamma1, gamma2 : float
        Weights of the two terms, not negative.
    mask : bool ndarray of shape (n_samples, n_features), optional
        True where ``X`` is observed. Entries that are not observed leave the data term.
    loss : {"l1", "l2", "huber"}, default="l1"
        ``phi``: ``|r|``, ``r**2``, or Huber's function ``r**2 / (2 delta)`` up to ``delta`` and
        ``|r| - delta / 2`` beyond.
    delta : float, default=1.0
        Where Huber's function turns linear, in the units of ``X``.
    null1, null2 : ndarray, optional
        Positive vectors with ``L1 @ null1 == 0`` and ``L2 @ null2 == 0``, which certify solutions with missing
        entries. None stands for a constant, right for combinatorial Laplacians; normalised ones have the square root
        of the degree (``Graph.null_vector``).

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> path = sp.csr_array(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    >>> problem = Problem(np.array([[0.0], [4.0]]), path, None, gamma1=1.0, gamma2=0.0)
    >>> float(objective(problem, problem.X))
    16.0
    """

    X: Array
    L1: sp.csr_array | None
    L2: sp.csr_array | None
    gamma1: float
    gamma2: float
    mask: Array | None = None
    loss: str = "l1"
    delta: float = 1.0
    null1: Array | None = None
    null2: Array | None = None

    def __post_init__(self) -> None:
        X = np.asarray(self.X)
        if X.ndim != 2 or 0 in X.shape:
            raise ValueError(f"X has shape {X.shape}; it must be a 2-D array with at least one row and column.")
        if X.dtype not in (np.float32, np.float64):
            if X.dtype.kind not in "biufO":
                raise ValueError(f"X has dtype {X.dtype}; it must hold real numbers, float32 or float64 best.")
            X = X.astype(np.float64)
        self._check_numbers()
        mask = self.mask
        if mask is not None:
            mask = np.asarray(mask)
            if mask.shape != X.shape or mask.dtype != np.bool_:
                raise ValueError(
                    f"mask has shape {mask.shape} and dtype {mask.dtype}; it must be a bool array of the shape "
                    f"of X, {X.shape}, True where X is observed."
                )
            # One mark for "missing" in all kernels: NaN in X.
            X = np.where(mask, X, np.array(np.nan, dtype=X.dtype))
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "mask", _observed(X))
        object.__setattr__(self, "L1", _as_laplacian(self.L1, X.shape[0], "L1", "n_samples"))
        object.__setattr__(self, "L2", _as_laplacian(self.L2, X.shape[1], "L2", "n_features"))
        if self.mask is not None:
            for name, L in (("null1", self.L1), ("null2", self.L2)):
                _check_null_vector(L, getattr(self, name), name)
        object.__setattr__(self, "gamma1", float(self.gamma1) if self.L1 is not None else 0.0)
        object.__setattr__(self, "gamma2", float(self.gamma2) if self.L2 is not None else 0.0)

    def _check_numbers(self) -> None:
        if self.loss not in LOSSES:
            raise ValueError(f"loss={self.loss!r} is unknown; choose one of {', '.join(map(repr, LOSSES))}.")
        if not (isinstance(self.delta, Real) and np.isfinite(self.delta) and self.delta > 0):
            raise ValueError(f"delta={self.delta!r} must be a positive number.")
        for name, gamma in (("gamma1", self.gamma1), ("gamma2", self.gamma2)):
            if not (isinstance(gamma, Real) and np.isfinite(gamma) and gamma >= 0) or isinstance(gamma, bool):
                raise ValueError(f"{name}={gamma!r} must be a finite number >= 0; pass 0 to drop the term.")

    def transpose(self) -> Problem:
        """Return the same problem for ``X.T``; its solution is the transpose of this one's."""
        return replace(
            self,
            X=self.X.T,
            L1=self.L2,
            L2=self.L1,
            gamma1=self.gamma2,
            gamma2=self.gamma1,
            mask=None,  # NaN in X says the same
            null1=self.null2,
            null2=self.null1,
        )


class Certificate(NamedTuple):
    """What is proved about a point ``U``: the optimum lies in ``[bound, objective]``."""

    objective: float
    bound: float

    @property
    def gap(self) -> float:
        """Relative duality gap, ``(objective - bound) / objective``."""
        return max(self.objective - self.bound, 0.0) / self.objective if self.objective > 0 else 0.0


def smooth_part(problem: Problem, U: Array) -> float:
    """Return ``g(U)``, the two graph terms of Shahid et al. 2016, Eq. (1)."""
    return 0.5 * float(np.sum(gradient(problem, U) * U, dtype=np.float64))


def data_term(problem: Problem, U: Array) -> float:
    """Return ``h(U) = sum phi(X - U)`` over the observed entries, summed in float64."""
    R = np.abs(np.nan_to_num(problem.X - U, nan=0.0))
    if problem.loss == "l2":
        R = R * R
    elif problem.loss == "huber":
        R = np.where(problem.delta < R, R - problem.delta / 2, R * R / (2 * problem.delta))
    return float(np.sum(R, dtype=np.float64))


def objective(problem: Problem, U: Array) -> float:
    """Return the value of Shahid et al. 2016, Eq. (1), at ``U``."""
    return data_term(problem, U) + smooth_part(problem, U)


def gradient(problem: Problem, U: Array) -> Array:
    """Return the gradient of the smooth part at ``U`` (Shahid et al. 2016, Eq. (3), samples in rows)."""
    V = np.zeros_like(U)
    if problem.L1 is not None:
        V += 2 * problem.gamma1 * (problem.L1 @ U)
    if problem.L2 is not None:
        V += 2 * problem.gamma2 * (problem.L2 @ U.T).T
    return V


def shrinkage(problem: Problem, step: Any) -> tuple[Any, Any, Any]:
    """Return ``(keep, edge, limit)``, the prox of ``step * phi``: with ``D = Z - X``,

    ``prox(Z) = X + keep * D`` where ``|D| <= edge``, and ``Z - sign(D) * limit`` beyond.

    All three losses have this form, so one kernel serves them. The l1 loss gives ``(0, step, step)``, the
    soft-thresholding of Shahid et al. 2016, Eq. (4), and ``U == X`` exactly where it should: S is sparse to the
    last bit.
    """
    if problem.loss == "l2":
        return 1 / (1 + 2 * step), np.inf, 0.0
    if problem.loss == "huber":
        return problem.delta / (problem.delta + step), problem.delta + step, step
    return 0.0, step, step


def prox(problem: Problem, Z: Array, step: float) -> Array:
    """Return the proximal point of ``step * h`` at ``Z`` (Shahid et al. 2016, Eq. (4))."""
    keep, edge, limit = shrinkage(problem, step)
    D = Z - problem.X
    U = np.where(np.abs(D) <= edge, problem.X + Z.dtype.type(keep) * D, Z - np.sign(D) * Z.dtype.type(limit))
    # Entries that are not observed (X is NaN there) have no data term: they do not move.
    return U if problem.mask is None else np.where(problem.mask, U, Z)


def lipschitz(problem: Problem, *, bound: str = "lanczos") -> float:
    """Return ``beta' = 2 gamma1 lmax(L1) + 2 gamma2 lmax(L2)``, a Lipschitz constant of the gradient.

    ``bound="lanczos"`` estimates the largest eigenvalues from a few Lanczos steps, from above;
    ``bound="paper"`` takes 2, which holds for normalised Laplacians (Shahid et al. 2016, Sec. III).
    """
    # Matrices on a device bring their own Lanczos run.
    lanczos = lambda L: L.lmax if hasattr(L, "lmax") else largest_eigenvalue(L)  # noqa: E731
    lmax = {"lanczos": lanczos, "paper": lambda L: 2.0}[bound]
    terms = ((problem.gamma1, problem.L1), (problem.gamma2, problem.L2))
    return sum(2 * gamma * lmax(L) for gamma, L in terms if L is not None and gamma > 0)


def scale_free_gamma(L: sp.csr_array | None, X: Array, *, axis: int) -> float:
    """Return ``1 / mean |2 L X|``, the gamma at which the typical entry of the gradient at ``X`` is one.

    Parameters
    ----------
    L : sparse matrix or None
        Laplacian along ``axis``; None gives 0.
    X : ndarray or tensor of shape (n_samples, n_features)
        The data; NaN is missing. With a tensor ``L`` is a matrix on its device.
    axis : {0, 1}
        0 for the sample graph, 1 for the feature graph.

    Notes
    -----
    ``U = X`` is optimal while ``max |gradient(X)| <= 1``; the mean acts on the typical entry. Data times ``c`` gives
    gamma over ``c``, as the solution asks for. (The median would be zero on sparse images.) At most 2000 samples are
    looked at, evenly spaced. Where neighbours agree, as duplicates do, the term has nothing to do, and gamma is 0.
    """
    if L is None:
        return 0.0
    if not isinstance(X, np.ndarray):
        from frpcag.torch_sparse import mean_pull

        some: Any = X[:: max(1, len(X) // 2000)].double()
        size, spread = (float(A.abs().nanmean()) for A in (some, some - some.nanmean()))
        return _one_over(2 * mean_pull(L, X, axis=axis), size, spread, np.dtype(str(X.dtype).removeprefix("torch.")))
    rows = np.unique(np.linspace(0, len(X) - 1, min(len(X), 2000)).astype(int))
    pull = _pull(L, X, rows) if axis == 0 else _pull(L, X[rows].T, np.arange(X.shape[1])).T
    at = ~np.isnan(X[rows])
    if not at.any():
        return 0.0
    with np.errstate(over="ignore"):  # an infinite mean is refused below
        typical = float(np.mean(np.abs(2 * pull[at]), dtype=np.float64))
        values = X[rows][at].astype(np.float64)
        size, spread = (float(np.mean(np.abs(A))) for A in (values, values - np.mean(values)))
    return _one_over(typical, size, spread, X.dtype)


def _one_over(typical: float, size: float, spread: float, dtype: np.dtype) -> float:
    """Return one over the typical pull; 0 where it is the rounding of the entries, or of edges that weigh nothing."""
    # Among duplicates only the edges to far points pull, at weights down to 1e-12.
    if typical <= max(4 * float(np.finfo(dtype).eps) * size, 1e-6 * spread):
        return 0.0
    if not (np.isfinite(typical) and np.isfinite(1.0 / typical)):
        raise ValueError(
            f"the entries of X, {size:.3g} in the mean, are too {'small' if typical < 1 else 'large'} for "
            f"gamma='auto': one over their differences leaves the range of {dtype}; multiply X by a constant."
        )
    return 1.0 / typical


def _pull(L: sp.csr_array, X: Array, rows: Array) -> Array:
    """Return ``L[rows] @ X``; missing neighbours count as the average of those observed."""
    if not np.isnan(X).any():
        return L[rows] @ X
    diagonal = L.diagonal()
    W = (sp.diags_array(diagonal) - L).tocsr()[rows]
    seen = (~np.isnan(X)).astype(X.dtype)
    there = W @ seen
    mean = np.divide(W @ np.nan_to_num(X, nan=0.0), there, out=np.zeros(there.shape), where=there > 0)
    return np.nan_to_num(diagonal[rows, None] * X[rows] - np.asarray(W.sum(axis=1)).reshape(-1, 1) * mean, nan=0.0)


def conjugate(problem: Problem) -> tuple[float, float]:
    """Return ``(curvature, box)`` with ``phi*(v) = curvature * v**2`` for ``|v| <= box``, infinite beyond."""
    if problem.loss == "l2":
        return 0.25, np.inf
    return (problem.delta / 2, 1.0) if problem.loss == "huber" else (0.0, 1.0)


def dual_bound(problem: Problem, *, VX: float, VV: float, g: float, Vmax: float) -> float:
    """Return the best lower bound of the optimum along the ray ``a V``, ``V`` a gradient of the smooth part.

    For every ``a`` with ``|a V| <= box`` the value ``a <V, X> - sum phi*(a V) - a**2 g`` bounds the optimum
    from below; it is a parabola in ``a``, so its maximum is explicit.

    Parameters
    ----------
    VX : float
        ``<V, X>``; missing entries enter with ``min(V lo, V hi)`` for a box ``[lo, hi]`` that holds a solution.
    VV, Vmax : float
        ``sum V**2`` and ``max |V|`` over the observed entries.
    g : float
        Smooth part at the point where ``V`` was taken.
    """
    curvature, box = conjugate(problem)
    bend = g + curvature * VV
    if not VX > 0:
        return 0.0
    a = box / Vmax if Vmax > 0 else np.inf
    a = min(a, VX / (2 * bend)) if bend > 0 else a
    # V = 0 observed and no bend: U is optimal for the smooth part, and VX > 0 cannot happen.
    return a * VX - a * a * bend if np.isfinite(a) else 0.0


def certificate(problem: Problem, U: Array) -> Certificate:
    """Return objective and dual bound at ``U``; sums are taken in float64. Costs one gradient."""
    V = gradient(problem, U)
    g = 0.5 * float(np.sum(V * U, dtype=np.float64))
    VX = V.astype(np.float64) * problem.X
    if problem.mask is not None:
        lo, hi, rows, columns = solution_box(problem)
        least = np.minimum(V * lo, V * hi) * np.outer(rows, columns)
        VX = np.where(problem.mask, VX, least)
        V = V[problem.mask]
    bound = dual_bound(
        problem,
        VX=float(VX.sum()),
        VV=float(np.sum(np.square(V, dtype=np.float64))),
        g=g,
        Vmax=float(np.abs(V).max()),
    )
    return Certificate(data_term(problem, U) + g, bound)


def solution_box(problem: Problem) -> tuple[float, float, Array, Array]:
    """Return ``(lo, hi, rows, columns)``: a solution has ``lo <= U[i, j] / (rows[i] columns[j]) <= hi`` everywhere.

    With ``rows`` and ``columns`` the null vectors of the Laplacians and ``Z = U / (rows columns')``, both graph terms
    are sums of squared differences of ``Z`` along edges. Clipping ``Z`` to the range that the observed entries of
    ``X`` have in these units shortens every difference and brings every entry nearer to its datum, so it lowers the
    objective.
    """
    n, p = problem.X.shape
    rows = np.ones(n) if problem.null1 is None else np.asarray(problem.null1, dtype=np.float64)
    columns = np.ones(p) if problem.null2 is None else np.asarray(problem.null2, dtype=np.float64)
    if problem.mask is None:
        return 0.0, 0.0, rows, columns
    Z = problem.X
    if problem.null1 is not None or problem.null2 is not None:
        Z = Z / rows[:, None] / columns
    return float(np.nanmin(Z)), float(np.nanmax(Z)), rows, columns


def common_level(problem: Problem) -> float:
    """Return a level that all entries share and no term sees, where it would cost digits; else 0.

    Combinatorial Laplacians take constants to zero, so ``X - c`` has the solution ``U - c`` and the same objective. But
    ``<L U, U>`` loses its digits where the level is large against the spread: its square, times the rounding of the
    numbers, is then of the size of what is left.
    """
    if not all(_ignores_levels(*term) for term in ((problem.L1, problem.null1), (problem.L2, problem.null2))):
        return 0.0
    X: Any = problem.X
    some = X[:: max(1, len(X) // 2000)]
    some = np.asarray(some if isinstance(some, np.ndarray) else some.cpu(), dtype=np.float64)
    some = some[~np.isnan(some)]
    if not some.size:
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):  # sums at the end of the range
        level = float(some.mean())
        spread = float(np.abs(some - level).mean())
    eps = float(np.finfo(str(X.dtype).removeprefix("torch.")).eps)
    return level if np.isfinite(level) and abs(level) > np.sqrt(1e-5 / eps) * spread else 0.0


def _ignores_levels(L: Any, null: Any) -> bool:
    """Say whether a Laplacian takes constants to zero; without a null vector it is tried."""
    if L is None:
        return True
    if null is not None:
        return bool((null == null[0]).all())
    return sp.issparse(L) and float(np.abs(L.sum(axis=1)).max()) <= 1e-6 * float(np.abs(L.data).max(initial=0.0))


def _observed(X: Array) -> Array | None:
    """Return where ``X`` is observed, None for everywhere."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum()):  # one pass, no array of flags: the usual case
            return None
    missing = np.isnan(X)
    if np.isinf(X).any():
        raise ValueError("X has infinite entries; replace them or mark them as missing with `mask`.")
    if missing.all():
        raise ValueError("X has no observed entry; there is nothing to fit.")
    return ~missing if missing.any() else None


def _as_laplacian(L, n: int, name: str, axis: str):
    if L is None:
        return None
    if not sp.issparse(L) and np.ndim(L) != 2:
        raise ValueError(f"{name}={L!r} must be None or a sparse or dense matrix, the Laplacian of a graph.")
    L = sp.csr_array(L)
    if L.shape != (n, n):
        raise ValueError(f"{name} has shape {L.shape}; it must be ({n}, {n}), {axis} of X in both directions.")
    if not np.isfinite(L.data).all():
        raise ValueError(f"{name} has entries that are not finite; rebuild the graph.")
    scale = np.abs(L.data).max(initial=0.0)
    if np.abs((L - L.T).data).max(initial=0.0) > 1e-6 * scale:
        raise ValueError(f"{name} is not symmetric; use (A + A.T) / 2 of the adjacency before the Laplacian.")
    return L


def _check_null_vector(L: sp.csr_array | None, null: Array | None, name: str) -> None:
    """Raise unless the graph term of ``L`` is a sum over edges of squared differences of ``u / null``."""
    if L is None:
        return
    s = np.ones(L.shape[0]) if null is None else np.asarray(null)
    if s.shape != (L.shape[0],) or not (s > 0).all():
        raise ValueError(f"{name} must be a vector of {L.shape[0]} positive numbers, one per node.")
    scale = float(np.abs(L.diagonal()).max(initial=0.0)) * float(s.max())
    if float(np.abs(L @ s).max()) > 1e-6 * scale or (L - sp.diags_array(L.diagonal())).max() > 1e-9 * scale:
        raise ValueError(
            f"{name}={'None' if null is None else '...'} is not in the null space of {name.replace('null', 'L')}; with "
            "missing entries pass the square root of the degrees for a normalised Laplacian (Graph.null_vector)."
        )
