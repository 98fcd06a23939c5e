"""The convex problem of Shahid et al. 2016, Eqs. (1)-(4), in plain NumPy.

Samples are rows, so the paper's ``X`` is our ``X.T``. Every faster kernel is tested against these lines.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from frpcag.losses import LOSSES

Array = np.ndarray

EPS = float(np.finfo(np.float64).eps)
# The smallest positive number: what a product that underflows is off by, at most.
TINY = float(np.finfo(np.float64).smallest_subnormal)
# Connected nodes of a matrix whose eigenvalues are all computed.
_DENSE_NODES = 2000
# A backend adds at most so many rows one number after the other, and then adds these partial sums.
_ROWS_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class Problem:
    """The problem ``min_U sum phi(X - U) + gamma1 tr(U' L1 U) + gamma2 tr(U L2 U')``.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data, float32 or float64.
    L1, L2 : sparse matrices of shape (n_samples, n_samples) and (n_features, n_features), or None
        Laplacians of the sample graph and the feature graph, positive semi-definite; None drops the term.
    gamma1, gamma2 : float
        Weights of the two terms, not negative.
    mask : bool ndarray of shape (n_samples, n_features), optional
        True where ``X`` is observed. Missing entries have no data term.
    loss : {"l1", "l2", "huber", "logcosh"}, default="l1"
        ``phi``: ``|r|``; ``r**2``; Huber's ``r**2 / (2 d)`` up to ``d = huber_delta`` and ``|r| - d / 2`` beyond; or
        the smooth ``d log(cosh(r / d))``.
    huber_delta : float, default=1.0
        Where Huber's function turns linear and the smooth one nearly so, in the units of ``X``.
    null1, null2 : ndarray, optional
        Positive vectors with ``L1 @ null1 == 0`` and ``L2 @ null2 == 0``; the certificate needs them when entries are
        missing. None means a constant, which fits combinatorial Laplacians; for normalised ones pass the square root
        of the degree (``Graph.null_vector``). The edges then define the term; rounding on the diagonal is dropped.
    lmax1, lmax2 : float, optional
        Upper bounds of the largest eigenvalues (``Graph.lmax``), which set the step size; None: the solver estimates.

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
    huber_delta: float = 1.0
    null1: Array | None = None
    null2: Array | None = None
    lmax1: float | None = None
    lmax2: float | None = None

    can_turn: ClassVar[bool] = True  # whether the solver may transpose the problem; row blocks cannot be
    # Effect of a term on a level along its null vector: "free" none, "held" pulls it to zero.
    level1: ClassVar[str] = "free"
    level2: ClassVar[str] = "free"
    keeps_X: ClassVar[bool] = True  # False: a backend that has made its own copy of X drops it

    def __post_init__(self) -> None:
        X = np.asarray(self.X)
        if X.ndim != 2 or 0 in X.shape:
            raise ValueError(f"X has shape {X.shape}; it must be a 2-D array with at least one row and column.")
        if X.dtype not in (np.float32, np.float64):
            if X.dtype.kind not in "biufO":
                raise ValueError(f"X has dtype {X.dtype}; it must hold real numbers, float32 or float64 best.")
            X = X.astype(np.float64)
        check_numbers(self.loss, self.huber_delta, gamma1=self.gamma1, gamma2=self.gamma2)
        mask = self.mask
        if mask is not None:
            mask = np.asarray(mask)
            if mask.shape != X.shape or mask.dtype != np.bool_:
                got = f"mask has shape {mask.shape} and dtype {mask.dtype}"
                raise ValueError(f"{got}; it must be a bool array of the shape of X, {X.shape}, True where observed.")
            # One mark for "missing" in all kernels: NaN in X.
            X = np.where(mask, X, np.array(np.nan, dtype=X.dtype))
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "mask", _observed(X))
        for i, axis in ((1, "n_samples"), (2, "n_features")):
            L = _as_laplacian(getattr(self, f"L{i}"), X.shape[i - 1], f"L{i}", axis)
            null = getattr(self, f"null{i}")
            L, level = (None, "free") if L is None else _with_null_vector(L, null, f"null{i}")
            if level == "unknown" and (null is not None or self.mask is not None):
                what = f"null{i}={'None' if null is None else '...'} is not in the null space of L{i}; with missing "
                raise ValueError(f"{what}entries pass the Graph.null_vector of the graph behind L{i}.")
            object.__setattr__(self, f"L{i}", L)
            object.__setattr__(self, f"level{i}", level)
            object.__setattr__(self, f"gamma{i}", float(getattr(self, f"gamma{i}")) if L is not None else 0.0)

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features."""
        return self.X.shape

    @cached_property
    def reaches(self) -> tuple[Any, Any]:
        """Absolute row sums of ``gamma1 L1`` and ``gamma2 L2``: ``g(D) <= sum (reach1_i + reach2_j) D_ij**2``."""
        terms = zip((self.L1, self.L2), (self.gamma1, self.gamma2), self.shape, strict=True)
        return tuple(np.zeros(n) if L is None else gamma * abs(L).sum(axis=1) for L, gamma, n in terms)  # type: ignore

    @cached_property
    def stiffness(self) -> tuple[float, int]:
        """Bound of ``max |gradient(U)| / max |U|``, and how many numbers one entry of a gradient adds up."""
        longest = (0 if L is None else int(np.diff(L.indptr).max()) for L in (self.L1, self.L2))
        return 2 * float(sum(reach.max() for reach in self.reaches)), sum(longest)

    def transpose(self) -> Problem:
        """Return the same problem for ``X.T``; its solution is the transpose of this one's."""
        names = ("L", "gamma", "null", "lmax")
        swapped = {f"{name}{i}": getattr(self, f"{name}{3 - i}") for name in names for i in (1, 2)}
        return replace(self, X=self.X.T, mask=None, **swapped)  # NaN in X says the same

    def drop_X(self) -> None:
        """Let go of the data, of which a backend has a copy; shape and dtype stay, and every entry reads NaN."""
        object.__setattr__(self, "X", np.broadcast_to(self.X.dtype.type(np.nan), self.shape))

    def start(self, U0: Any) -> Array:
        """Return a warm start as an array of the shape of ``X``."""
        if (U0 := np.asarray(U0)).shape != self.shape or not np.isfinite(U0).all():
            raise ValueError(f"U0 has shape {U0.shape}; it must be finite and of the shape of X, {self.shape}.")
        return U0

    def turn(self, U: Array) -> Array:
        """Return the transpose of a solution, rows in one piece."""
        return np.ascontiguousarray(U.T)


class Sums(NamedTuple):
    """Sums over the entries of ``U`` and of the gradient ``V`` there, in float64; a certificate needs no more.

    Where ``X`` is missing, an end of the solution's box takes its place: in ``VR`` the end with the smaller product,
    in ``reach`` the farther end.
    """

    data: float  # data term
    VU: float  # <V, U>
    VR: float  # <V, X - U>
    dual: float  # sum of `frpcag.losses.Loss.dual` over the observed entries of V
    reach: float  # sum |X - U|
    size: float  # sum |U|
    Vmax: float  # max |V| over the observed entries
    Vtop: float  # max |V|
    Umax: float  # max |U|


class Certificate(NamedTuple):
    """What is proved about ``U``: no matrix has an objective smaller by more than ``excess``, rounding included."""

    data: float  # data term
    smooth: float  # the two graph terms
    excess: float = 0.0  # objective minus dual bound, at most
    smooth_error: float = 0.0  # rounding of the graph terms
    dual_scale: float = 0.0  # how much the optimum may change for a change of one in the data
    gradient_error: float = 0.0  # rounding of an entry of the gradient
    size: float = 0.0  # sum |U| + sum |X - U|, what rounding of both goes by

    @property
    def objective(self) -> float:
        """Value of Shahid et al. 2016, Eq. (1)."""
        return self.data + (self.smooth if not self.smooth < 0 else 0.0)  # a graph term below zero is rounding

    @property
    def gap(self) -> float:
        """Relative duality gap: the optimum is smaller by at most this share; 1 where nothing can be proved."""
        if self.excess <= 0:
            return 0.0
        least = self.data + max(self.smooth - self.smooth_error, 0.0)
        return min(self.excess / least, 1.0) if least > 0 and self.excess < np.inf else 1.0

    @property
    def bound(self) -> float:
        """Lower bound of the optimum."""
        return self.objective * (1 - self.gap) if self.excess < np.inf else -np.inf


def smooth_part(problem: Problem, U: Array) -> float:
    """Return ``g(U)``, the two graph terms of Shahid et al. 2016, Eq. (1)."""
    U = np.asarray(U, dtype=np.float64)
    return 0.5 * float(np.sum(gradient(problem, U) * U))


def data_term(problem: Problem, U: Array) -> float:
    """Return ``h(U) = sum phi(X - U)`` over the observed entries, summed in float64."""
    R = np.abs(np.nan_to_num(problem.X - np.asarray(U, dtype=np.float64), nan=0.0))
    return float(np.sum(LOSSES[problem.loss].value(R, problem.huber_delta, np)))


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


def prox(problem: Problem, Z: Array, step: float | Array) -> Array:
    """Return the proximal point of ``step * h`` at ``Z`` (Shahid et al. 2016, Eq. (4)); rows may have own steps."""
    loss = LOSSES[problem.loss]
    numbers = tuple(np.asarray(number, dtype=Z.dtype) for number in loss.numbers(step, problem.huber_delta))
    U = loss.prox(Z, problem.X, numbers, np)
    # Entries that are not observed (X is NaN there) have no data term: they do not move.
    return U if problem.mask is None else np.where(problem.mask, U, Z)


def certified(problem: Any, sums: Sums) -> Certificate:
    """Return what the sums of a point prove, with the rounding of float64 on the safe side.

    For every ``a`` for which ``|a V|`` is no steeper than the loss the value ``a <V, X> - sum phi*(a V) - a**2 g``
    bounds the optimum from below. Its distance to the objective, ``h - a <V, X - U> + sum phi*(a V) + (1 - a)**2 g``,
    is a parabola in ``a`` with an explicit minimum, and no large numbers cancel in it, whatever the level of ``X``.
    """
    loss, delta = LOSSES[problem.loss], problem.huber_delta
    curvature = loss.curvature(delta)
    (n, p), (stiffness, terms) = problem.shape, problem.stiffness
    # The rounding error of an entry of V is at most this; sums over entries are charged as if V were off by it.
    gradient_error = EPS * ((terms + 4) * stiffness * sums.Umax + _ROWS_AT_ONCE * (p + 1) * sums.Vtop)
    g, smooth_error = sums.VU / 2, gradient_error * sums.size / 2
    squares = loss.conjugate(sums.dual, gradient_error, n * p, sums.Vmax, delta)
    limit, bend = sums.Vmax + gradient_error, g + squares
    a = (sums.VR + sums.VU) / (2 * bend) if bend > 0 else 1.0
    a = max(min(a, loss.STEEPEST / limit if limit > 0 else np.inf, loss.MOST), 0.0)
    excess = (
        sums.data - a * (sums.VR - gradient_error * sums.reach) + a * a * squares + (1 - a) ** 2 * (g + smooth_error)
    )
    excess += EPS * _ROWS_AT_ONCE * (p + 1) * sums.data
    if sums.reach > 0 or (curvature and sums.Vtop > 0):  # squares of numbers below 1e-162, and the like
        excess += n * p * TINY * (1 + a * a) * (4 + (curvature + 1 / curvature if curvature else 0))
    # A term that is negative beyond rounding belongs to no Laplacian: nothing is proved.
    excess = excess if g + smooth_error >= 0 else np.inf
    return Certificate(sums.data, g, excess, smooth_error, a * limit, gradient_error, sums.size + sums.reach)


def certificate(problem: Problem, U: Array) -> Certificate:
    """Return what is proved about ``U``, at the cost of one gradient in float64.

    Parameters
    ----------
    problem : Problem
        What ``U`` is to solve.
    U : ndarray of shape (n_samples, n_features)
        Any matrix; it need not come from our solver.

    Returns
    -------
    Certificate
        With a gap of 1 and no bound where a Laplacian is not proved to be positive semi-definite.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from frpcag import Problem, certificate
    >>> path = sp.csr_array(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    >>> problem = Problem(np.array([[0.0], [4.0]]), path, None, gamma1=1.0, gamma2=0.0)
    >>> proof = certificate(problem, np.array([[1.75], [2.25]]))  # the solution: nothing is below 3.75
    >>> round(proof.objective, 9), round(proof.bound, 9)
    (3.75, 3.75)
    """
    at = certified(problem, sums_at(problem, U))
    return at._replace(excess=np.inf) if indefinite(problem) else at


def sums_at(problem: Problem, U: Array) -> Sums:
    """Return what a certificate of ``U`` needs."""
    U = np.asarray(U, dtype=np.float64)
    V, R = gradient(problem, U), problem.X - U
    VR, reach, observed = V * R, np.abs(R), V
    if problem.mask is not None:
        lo, hi, rows, columns = solution_box(problem)
        below, above = (end * np.outer(rows, columns) - U for end in (lo, hi))
        VR = np.where(problem.mask, VR, np.minimum(V * below, V * above))
        reach = np.where(problem.mask, reach, np.maximum(np.abs(below), np.abs(above)))
        observed = V[problem.mask]
    sums = map(np.sum, (V * U, VR, LOSSES[problem.loss].dual(observed, np), reach, np.abs(U)))
    tops = (np.abs(array).max() for array in (observed, V, U))
    return Sums(data_term(problem, U), *map(float, (*sums, *tops)))


def solution_box(problem: Problem) -> tuple[float, float, Array, Array]:
    """Return ``(lo, hi, rows, columns)``: a solution has ``lo <= U[i, j] / (rows[i] columns[j]) <= hi`` everywhere.

    Let ``rows`` and ``columns`` be the null vectors of the Laplacians and ``Z = U / (rows columns')``. Both graph terms
    are sums of squared differences of ``Z`` along edges. Clipping ``Z`` to the range of the observed entries in these
    units enlarges neither a difference nor a residual (docs/maths.md). Terms that hold levels need zero in the range.
    """
    nulls = zip((problem.null1, problem.null2), problem.shape, strict=True)
    rows, columns = (np.ones(n) if null is None else np.asarray(null, dtype=np.float64) for null, n in nulls)
    if problem.mask is None:
        return 0.0, 0.0, rows, columns
    ones = problem.null1 is None and problem.null2 is None
    Z = problem.X if ones else problem.X / rows[:, None] / columns
    held = "held" in (problem.level1, problem.level2)
    return *widened(float(np.nanmin(Z)), float(np.nanmax(Z)), problem.X.dtype, held=held), rows, columns


def widened(lo: float, hi: float, dtype: Any, *, held: bool = False) -> tuple[float, float]:
    """Return a box with room for the rounding of its ends and of the data; with ``held`` it contains zero."""
    room = (8 * EPS + float(np.finfo(str(dtype).removeprefix("torch.")).eps)) * max(abs(lo), abs(hi))
    return (min(lo, 0.0) if held else lo) - room, (max(hi, 0.0) if held else hi) + room


def check_numbers(loss: Any, huber_delta: Any, **gammas: Any) -> None:
    """Raise ValueError for an unknown loss, a bad ``huber_delta`` or a bad gamma."""
    if not (isinstance(loss, str) and loss in LOSSES):
        raise ValueError(f"loss={loss!r} is unknown; choose one of {', '.join(map(repr, LOSSES))}.")
    if not (isinstance(huber_delta, Real) and 0 < float(huber_delta) < np.inf):
        raise ValueError(f"huber_delta={huber_delta!r} must be a positive number.")
    for name, gamma in gammas.items():
        if not isinstance(gamma, Real) or isinstance(gamma, bool) or not 0 <= float(gamma) < np.inf:
            raise ValueError(f"{name}={gamma!r} must be a finite number >= 0; pass 0 to drop the term.")


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


def _as_laplacian(L, n: int, name: str, axis: str) -> sp.csr_array | None:
    """Return a Laplacian as float64, symmetric to the last bit."""
    if L is None:
        return None
    if not sp.issparse(L) and np.ndim(L) != 2:
        raise ValueError(f"{name}={L!r} must be None or a sparse or dense matrix, the Laplacian of a graph.")
    L = sp.csr_array(L, dtype=np.float64)
    if L.shape != (n, n):
        raise ValueError(f"{name} has shape {L.shape}; it must be ({n}, {n}), {axis} of X in both directions.")
    if not np.isfinite(L.data).all():
        raise ValueError(f"{name} has entries that are not finite; rebuild the graph.")
    if not L.has_canonical_format:
        (L := L.copy()).sum_duplicates()
    skew = np.abs((L - L.T).data).max(initial=0.0)
    if skew > 1e-6 * np.abs(L.data).max(initial=0.0):
        raise ValueError(f"{name} is not symmetric; use (A + A.T) / 2 of the adjacency before the Laplacian.")
    return L if skew == 0 else sp.csr_array(L / 2 + L.T / 2)  # tr(U' L U) sees no more of it


def _with_null_vector(L: sp.csr_array, null: Array | None, name: str) -> tuple[sp.csr_array, str]:
    """Return the Laplacian and its effect on a level along the null vector (a constant, if None).

    "free": the term is a sum of squared differences of ``u / null`` over edges; "held": squares of ``u`` are added.
    Both are semi-definite, because no entry off the diagonal is positive. "unknown": nothing is proved.
    """
    s = np.ones(L.shape[0]) if null is None else np.asarray(null, dtype=np.float64)
    if s.shape != (L.shape[0],) or not ((s > 0) & np.isfinite(s)).all():
        raise ValueError(f"{name} must be a vector of {L.shape[0]} positive numbers, one per node.")
    rows = np.repeat(np.arange(len(s)), np.diff(L.indptr))
    beside = rows != L.indices
    if L.data[beside].max(initial=0.0) > 0:
        return L, "unknown"
    sums, sizes, counts = L @ s, abs(L) @ s, np.diff(L.indptr)
    # Sums of numbers that were rounded to float32 are off by its rounding.
    single = null is None and bool((L.data == L.data.astype(np.float32)).all())
    slack = (counts + 8) * (float(np.finfo(np.float32).eps) if single else EPS) * sizes
    held = null is None and bool((sums >= -slack).all() and (sums > slack).any())
    # A diagonal that differs from the sum of its edges by so little was rounded: the edges define the Laplacian.
    off = np.minimum(sums, 0) if held else sums
    if (np.abs(off) > np.maximum(slack, 1e-6 * sizes)).any():
        return L, "unknown"
    if (np.abs(off) > (counts + 8) * EPS * sizes).any():
        L = L.copy()
        L.data[~beside] -= (off / s)[rows[~beside]]
    return L, "held" if held else "free"


def indefinite(problem: Problem) -> str | None:
    """Return what to say of a Laplacian that is not proved to have no negative eigenvalue, up to rounding.

    Entries beside the diagonal that are not positive and a null vector prove it, and so does a diagonal that outweighs
    the rest of its row. Of other matrices, the lowest eigenvalue of each connected piece is computed.
    """
    for i, L, level in ((1, problem.L1, problem.level1), (2, problem.L2, problem.level2)):
        if level != "unknown" or L is None:
            continue
        counts, sizes = np.diff(L.indptr), abs(L).sum(axis=1)
        outweighed = 2 * L.diagonal() - sizes < -(counts + 8) * EPS * sizes
        _, piece = connected_components(L, directed=False)
        for each in np.unique(piece[outweighed]):
            at = np.flatnonzero(piece == each)
            bound, lowest = _lowest_eigenvalue(L[at][:, at])
            room = len(at) * EPS * sizes[at].max()
            if lowest < -room:
                return (
                    f"L{i} has a negative eigenvalue, {lowest:.3g} or lower, so it is no Laplacian, and the "
                    "problem has no minimum; pass D - A or its normalised form for non-negative weights A."
                )
            if bound < -room:
                return (
                    f"L{i} cannot be proved to have no negative eigenvalue: it has positive entries beside the "
                    f"diagonal, or no known null vector, and {len(at)} connected nodes; pass D - A for non-negative "
                    f"weights A, or its normalised form with null{i}, the Graph.null_vector."
                )
    return None


def _lowest_eigenvalue(L: sp.csr_array) -> tuple[float, float]:
    """Return bounds of the lowest eigenvalue of a connected matrix, from below and above."""
    if L.shape[0] <= _DENSE_NODES:
        lowest = float(np.linalg.eigvalsh(L.toarray())[0])
        return lowest, lowest
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    try:
        v = eigsh(L, k=1, which="SA", v0=np.ones(L.shape[0]), tol=0)[1][:, 0]
    except ArpackNoConvergence:
        return -np.inf, np.inf
    s = np.abs(v)
    # Without positive entries beside the diagonal, L s >= b s for a positive vector s bounds the eigenvalues by b.
    positive = (s > 0).all() and (L - sp.diags_array(L.diagonal())).max() <= 0
    return float((L @ s / s).min()) if positive else -np.inf, float(v @ (L @ v))
