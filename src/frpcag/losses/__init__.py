"""Losses: one module a data term ``phi``, and what steps, certificates and units need of it; nothing else comes in.

Formulas are written once, for NumPy, PyTorch and Numba: ``xp`` is the library, or in kernels
`frpcag.backends.numba.scalars`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from frpcag.losses import huber, l1, l2, logcosh


class Loss(Protocol):
    """What a loss declares, in a module; ``delta`` is `frpcag.Problem.huber_delta`, which some of them take."""

    @property
    def DEGREE(self) -> int:
        """Power of a unit that all data share, and ``delta`` with them, in the loss: 1, or 2 for squares."""

    @property
    def STEEPEST(self) -> float:
        """Largest slope; the conjugate is infinite beyond it."""

    @property
    def MOST(self) -> float:
        """Largest factor ``a`` for which `dual` bounds the conjugate of ``a v``."""

    @property
    def EXACT(self) -> bool:
        """Whether residuals of zero are exact, so that right entries keep their last bit."""

    def value(self, r: Any, delta: float, xp: Any) -> Any:
        """Return ``phi`` of absolute residuals."""

    def numbers(self, step: Any, delta: float) -> tuple[Any, ...]:
        """Return what `prox` takes for a step, in float64; rows may have own steps."""

    def prox(self, z: Any, x: Any, numbers: Any, xp: Any) -> Any:
        """Return the proximal point of ``step * phi(x - .)`` at ``z`` (Shahid et al. 2016, Eq. (4))."""

    def curvature(self, delta: float) -> float:
        """Return half the second derivative of the conjugate at zero."""

    def dual(self, v: Any, xp: Any) -> Any:
        """Return what a certificate adds up of the gradient: bounds of the conjugate of ``a v`` go with ``a**2``."""

    def conjugate(self, total: float, slip: float, count: int, top: float, delta: float) -> float:
        """Return the sum of conjugates of ``count`` slopes up to ``top``, off by ``slip``; ``total`` is of `dual`."""


LOSSES: Mapping[str, Loss] = {"l1": l1, "l2": l2, "huber": huber, "logcosh": logcosh}

__all__ = ["LOSSES", "Loss"]
