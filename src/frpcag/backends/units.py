"""A matrix and its clean part in other units, and what the rounding on the way there and back has moved."""

from __future__ import annotations

from math import fsum, sqrt
from typing import Any, NamedTuple

import numpy as np

from frpcag.losses import LOSSES
from frpcag.runtime.arrays import BLOCK_ENTRIES, row_blocks

EPS = float(np.finfo(np.float64).eps)


class Units(NamedTuple):
    """``X = inner * unit + outer(left, right)``: a level of rank one, and a unit of all entries or of each column."""

    left: Any  # (n,)
    right: Any  # (p,)
    unit: Any  # a power of two, or (p,)
    blur: float = 0.0  # how far, relative to it, the level may lie off the one that no term sees


class Moves(NamedTuple):
    """What rounding has moved, in the inner units."""

    data: float  # data term of the rounded point for the rounded data
    shift: float  # bound of the graph terms of the change of the point
    drift: float  # sum of the absolute changes of the data
    walk: float  # sum of the absolute changes of the point
    cross: float  # product of the gradient with the change of the point, at most; NaN where it is not known

    def __add__(self, other: tuple) -> Moves:
        return Moves(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Terms(NamedTuple):
    """What `restore_rows` must know of the problem in the inner units."""

    reach1: Any  # (n,) or a number, `Problem.reaches`
    reach2: Any  # (p,)
    loss: str
    delta: float


NOTHING = Moves(0.0, 0.0, 0.0, 0.0, 0.0)


def frame_rows(X: Any, units: Units, xp: Any = np) -> Any:
    """Return rows in the inner units, in the dtype of ``X``; computed in float64."""
    return _like((_wide(X, xp) - units.left[:, None] * units.right) / units.unit, X, xp)


@np.errstate(over="ignore", invalid="ignore")  # what leaves the range proves nothing, and says so by the gap
def restore_rows(X: Any, inner: Any, U: Any, V: Any, units: Units, terms: Terms, xp: Any = np) -> tuple[Any, Moves]:
    """Return rows of the clean part in the units of ``X``, and what rounding has moved.

    Parameters
    ----------
    X, inner : array of shape (n, p)
        The data as given, and in the inner units, rounded.
    U : array of shape (n, p)
        The clean part in the inner units. Where it equals ``inner``, the result is ``X`` to the last bit.
    V : array of shape (n, p) or None
        The gradient of the graph terms at ``U``, rounded to the dtype of ``U``, where it is known.
    units : Units
        Those of the rows.
    terms : Terms
    xp : module
        ``numpy`` or ``torch``.
    """
    left, right, unit, blur = units
    level = left[:, None] * right
    u = _wide(U, xp)
    out = xp.where(inner == U, X, _like(u * unit + level, X, xp))
    at = _wide(out, xp)
    slip = blur * abs(level / unit)
    # Quotients are rounded, unless they are by a power of two.
    divided = EPS * (unit != 1) if hasattr(unit, "shape") else 0.0
    move, lost = _distance(at, level, unit, u)
    lost = lost + divided * abs(u) + slip
    moved = abs(move) + lost
    x, there = _wide(X, xp), _wide(inner, xp)
    missing = xp.isnan(x)
    off, rest = _distance(x, level, unit, there)
    drift = xp.where(missing, 0.0, abs(off) + rest + divided * abs(there) + slip)
    # The root first: the square of a rounding of large entries leaves the range.
    shift = (xp.sqrt(_column(terms.reach1) + terms.reach2) * moved) ** 2
    R = xp.where(missing, 0.0, abs((x - at) / unit))
    cross = np.nan
    if V is not None:
        v = _wide(V, xp)
        cross = (v * move + abs(v) * (lost + float(np.finfo(str(V.dtype).removeprefix("torch.")).eps) * moved)).sum()
    data = LOSSES[terms.loss].value(R, terms.delta, xp)
    return out, Moves(*map(float, (data.sum(), shift.sum(), drift.sum(), moved.sum(), cross)))


def graph_terms(U: np.ndarray, units: Units, terms: tuple, reaches: tuple) -> tuple[float, float]:
    """Return the graph terms at a point given in the outer units, and how far they may be off; in float64, by blocks.

    ``terms`` are both Laplacians, or None, and their gammas; ``reaches`` are those of `Problem.reaches`.
    """
    n, p = U.shape
    unit, (reach1, reach2) = np.broadcast_to(units.unit, p), reaches
    sums: list[tuple[float, float, float]] = []
    longest = 0
    with np.errstate(over="ignore", invalid="ignore"):
        for (L, gamma), turned in zip(terms, (True, False), strict=True):
            if L is None or gamma == 0:
                continue
            longest = max(longest, int(np.diff(L.indptr).max()))
            for some in row_blocks((p, n) if turned else (n, p), 16 * BLOCK_ENTRIES):
                rows, columns = (slice(None), some) if turned else (some, slice(None))
                level = units.left[rows, None] * units.right[columns]
                at, lost = _distance(U[rows, columns].astype(np.float64), level, unit[columns], 0.0)
                lost += units.blur * abs(level / unit[columns])
                reach = reach1[:, None] if turned else reach2
                product = at * (L @ at if turned else (L @ at.T).T)
                sums.append((gamma * product.sum(), (reach * at * at).sum(), (reach * lost * lost).sum()))
    value, size, spread = (fsum(column) for column in zip(*sums, strict=True)) if sums else (0.0, 0.0, 0.0)
    # A sum of a block adds up to so many numbers one after the other; the root of a graph term is a seminorm.
    room = EPS * (longest + 64) * size
    return value, room + 2 * sqrt(max(value + room, 0.0) * spread) + spread


def _distance(A: Any, level: Any, unit: Any, inner: Any) -> tuple[Any, Any]:
    """Return ``(A - level) / unit - inner``, and how far it may be off: by Knuth's two-sum, but for the quotient."""
    difference = A - level
    back = difference - A
    lost = (A - (difference - back)) - (level + back)
    distance = difference / unit - inner
    return distance, abs(lost) / unit + EPS * abs(distance)


def _column(reach: Any) -> Any:
    return reach[:, None] if hasattr(reach, "shape") and reach.shape else reach


def _wide(A: Any, xp: Any) -> Any:
    return A.astype(np.float64) if xp is np else A.double()


def _like(A: Any, X: Any, xp: Any) -> Any:
    return A.astype(X.dtype) if xp is np else A.to(X.dtype)


def levels_of(Z: np.ndarray, ratio: float) -> np.ndarray:
    """Return the level of each column where it is larger than ``ratio`` times the spread about it, else 0.

    A level is a median: a wild entry does not move it, and it is one of the entries, so that taking it off those near
    it rounds nothing.
    """
    Z = np.where(np.isnan(Z).all(axis=0), 0.0, Z)
    levels = _median(Z)
    away = np.abs(Z - levels)
    spread = _median(away)
    counts = np.maximum((~np.isnan(away)).sum(axis=0), 1)  # entries at the end of the range may leave no difference
    spread = np.where(spread > 0, spread, np.nansum(away, axis=0) / counts)
    return np.where(np.abs(levels) > ratio * spread, levels, 0.0)


def _median(Z: np.ndarray) -> np.ndarray:
    """Return the lower median of the observed entries of each column."""
    middle = ((~np.isnan(Z)).sum(axis=0) - 1) // 2
    if (middle == middle[0]).all():
        return np.partition(Z, middle[0], axis=0)[middle[0]]
    return np.take_along_axis(np.sort(Z, axis=0), middle[None], axis=0)[0]
