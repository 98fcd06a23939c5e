"""The absolute loss ``|r|``: errors of any size pull alike, and entries without one stay as they are."""

from __future__ import annotations

from typing import Any

from frpcag.losses.shrinkage import MOST as MOST
from frpcag.losses.shrinkage import dual as dual
from frpcag.losses.shrinkage import prox as prox

DEGREE, STEEPEST, EXACT = 1, 1.0, True


def value(r: Any, delta: float, xp: Any) -> Any:
    """Return the residuals."""
    return r


def numbers(step: Any, delta: float) -> tuple[Any, ...]:
    """Return the soft-thresholding of the paper: ``U == X`` exactly, so S is sparse to the last bit."""
    return 0.0, step, step


def curvature(delta: float) -> float:
    """Return zero: the conjugate is zero up to slopes of one."""
    return 0.0


def conjugate(total: float, slip: float, count: int, top: float, delta: float) -> float:
    """Return zero."""
    return 0.0
