"""The squared loss ``r**2``: Gaussian noise in every entry, and no bound to what a gross error pulls."""

from __future__ import annotations

from math import inf
from typing import Any

from frpcag.losses.shrinkage import MOST as MOST
from frpcag.losses.shrinkage import dual as dual
from frpcag.losses.shrinkage import prox as prox
from frpcag.losses.shrinkage import widened

DEGREE, STEEPEST, EXACT = 2, inf, False


def value(r: Any, delta: float, xp: Any) -> Any:
    """Return the squares."""
    return r * r


def numbers(step: Any, delta: float) -> tuple[Any, ...]:
    """Return what shrinks every residual alike."""
    return 1 / (1 + 2 * step), inf, 0.0


def curvature(delta: float) -> float:
    """Return that of ``v**2 / 4``."""
    return 0.25


def conjugate(total: float, slip: float, count: int, top: float, delta: float) -> float:
    """Return the sum of ``v**2 / 4``."""
    return 0.25 * widened(total, slip, count)
