"""How far an accelerated step runs ahead: Nesterov's rule with restart."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt


@dataclass
class Momentum:
    """The sequence ``t`` of FISTA (Shahid et al. 2016, Algorithm 1).

    Parameters
    ----------
    t : float, default=1.0
        Where the sequence stands.
    restart : bool, default=True
        Begin again at 1 when the momentum points uphill (O'Donoghue and Candes 2015). The paper does not.

    Examples
    --------
    >>> momentum = Momentum()
    >>> momentum.update(-1.0)
    >>> round(momentum.weight, 3)
    0.282
    """

    t: float = 1.0
    restart: bool = True

    @property
    def weight(self) -> float:
        """The share of the last move that the next step adds."""
        return (self.t - 1) / self._next

    def update(self, uphill: float) -> None:
        """Move on by one step; ``uphill`` is ``<Y - U_next, U_next - U>`` of it."""
        self.t = 1.0 if self.restart and uphill > 0 else self._next

    @property
    def _next(self) -> float:
        return (1 + sqrt(1 + 4 * self.t * self.t)) / 2
