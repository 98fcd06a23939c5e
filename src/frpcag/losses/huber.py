"""Huber's loss: ``r**2 / (2 delta)`` up to ``delta`` and ``|r| - delta / 2`` beyond; noise, and gross errors on top."""

from __future__ import annotations

from typing import Any

from frpcag.losses.shrinkage import MOST as MOST
from frpcag.losses.shrinkage import dual as dual
from frpcag.losses.shrinkage import prox as prox
from frpcag.losses.shrinkage import widened

DEGREE, STEEPEST, EXACT = 1, 1.0, False


def value(r: Any, delta: float, xp: Any) -> Any:
    """Return Huber's function; the quotient first, since squares of the extremes leave the range."""
    return xp.where(delta < r, r - delta / 2, r * (r / (2 * delta)))


def numbers(step: Any, delta: float) -> tuple[Any, ...]:
    """Return what shrinks small residuals by a factor and large ones by the step."""
    return delta / (delta + step), delta + step, step


def curvature(delta: float) -> float:
    """Return that of ``delta * v**2 / 2``."""
    return delta / 2


def conjugate(total: float, slip: float, count: int, top: float, delta: float) -> float:
    """Return the sum of ``delta * v**2 / 2``."""
    return delta / 2 * widened(total, slip, count)
