"""Seconds per stage of a fit."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

_Told = Callable[[str, float, str], object]


class Clock:
    """Seconds per stage, added up over refinements.

    Parameters
    ----------
    tell : callable, optional
        Told each stage that is done, its seconds, and what else there is to say of it.
    wait : callable, optional
        Returns when a device has done what it was given.
    """

    def __init__(self, tell: _Told | None = None, wait: Callable[[], Any] | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._tell, self._wait = tell, wait
        self._last = perf_counter()

    def lap(self, stage: str, more: str = "") -> None:
        """Add the seconds since the last call to a stage."""
        if self._wait is not None:
            self._wait()
        now = perf_counter()
        spent, self._last = now - self._last, now
        self.seconds[stage] = self.seconds.get(stage, 0.0) + spent
        if self._tell is not None:
            self._tell(stage, spent, more)
