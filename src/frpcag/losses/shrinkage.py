"""The prox of a piecewise quadratic loss, and its conjugate: ``curvature * v**2`` up to the steepest slope."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

MOST = inf


def prox(z: Any, x: Any, numbers: Any, xp: Any) -> Any:
    """Return ``x + keep * d`` for ``d = z - x`` within ``edge``, else ``z`` less ``limit`` towards ``x``."""
    keep, edge, limit = numbers[0], numbers[1], numbers[2]
    d = z - x
    new = x + keep * d
    new = xp.where(d > edge, z - limit, new)
    return xp.where(d < -edge, z + limit, new)


def dual(v: Any, xp: Any) -> Any:
    """Return the square."""
    return v * v


def widened(total: float, slip: float, count: int) -> float:
    """Return a sum of squares where each root may be larger by ``slip``."""
    return (sqrt(total) + slip * sqrt(count)) ** 2
