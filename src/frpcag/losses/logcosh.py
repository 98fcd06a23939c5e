"""The smooth loss ``delta * log(cosh(r / delta))``: like Huber's, without its bend."""

from __future__ import annotations

from math import log
from typing import Any

DEGREE, STEEPEST, EXACT = 1, 1.0, False
MOST = 1.0  # conjugate(v) / v**2 grows with v
_LOG2 = log(2.0)
_NEWTON_STEPS = 60


def value(r: Any, delta: float, xp: Any) -> Any:
    """Return the loss; near zero by a formula in which nothing cancels."""
    y = r / delta
    small = xp.where(y < 1, y, 0.0)
    return xp.where(y < 1, delta * xp.log1p(xp.sinh(small) ** 2) / 2, r + delta * (xp.log1p(xp.exp(-2 * y)) - _LOG2))


def numbers(step: Any, delta: float) -> tuple[Any, ...]:
    """Return the step and ``delta``."""
    return step, delta + 0 * step


def prox(z: Any, x: Any, numbers: Any, xp: Any) -> Any:
    """Return the proximal point: the root ``w`` of ``w + step * tanh(w / delta) = d``, by Newton steps from below.

    The left side is concave for positive ``w``, so the steps never go down, until rounding ends them.
    """
    step, delta = numbers[0], numbers[1]
    d = abs(z - x)
    near, far = d / (1 + step / delta), d - step
    w = xp.where(near > far, near, far)
    for _ in range(_NEWTON_STEPS):
        t = xp.tanh(w / delta)
        following = w + (d - w - step * t) / (1 + step / delta * (1 - t * t))
        if not xp.any(following > w):
            break
        w = xp.where(following > w, following, w)
    return xp.where(z > x, x + w, x - w)


def curvature(delta: float) -> float:
    """Return that of the conjugate at zero, ``delta * v**2 / 2``."""
    return delta / 2


def dual(v: Any, xp: Any) -> Any:
    """Return the conjugate of ``log(cosh)``, ``((1 + v) log(1 + v) + (1 - v) log(1 - v)) / 2``, beyond one as ``v**2``.

    It grows at least like ``v**2``, so that ``a**2`` times it bounds the conjugate of ``a v`` for ``a`` up to one.
    """
    size = abs(v)
    inside = size < 1
    low, a = xp.where(inside, size, 0.0), xp.where(inside, size, 1.0)
    return ((1 + a) * xp.log1p(a) + (1 - a) * xp.log1p(-low)) / 2 * xp.where(inside, 1.0, size * size)


def conjugate(total: float, slip: float, count: int, top: float, delta: float) -> float:
    """Return the sum of conjugates; they change most in the last ``slip`` below one, by `dual`'s formula there."""
    if slip == 0:
        return delta * total
    most = slip / 2 * (1 + _LOG2 + max(-log(slip), 0.0)) + _LOG2 * slip * (2 * max(top, 1.0) + slip)
    return delta * (total + count * most)
