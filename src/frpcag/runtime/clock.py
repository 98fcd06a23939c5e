"""Seconds per stage of a fit."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter


class Clock:
    """Seconds per stage, added up over refinements."""

    def __init__(self, wait: Callable[[], object] | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self.listener: Callable[[str, float], object] | None = None  # told of each stage that is done
        self._wait = wait  # for a device that is still computing
        self._last = perf_counter()

    def lap(self, stage: str) -> None:
        """Add the seconds since the last call to a stage."""
        if self._wait is not None:
            self._wait()
        now = perf_counter()
        spent, self._last = now - self._last, now
        self.seconds[stage] = self.seconds.get(stage, 0.0) + spent
        if self.listener is not None:
            self.listener(stage, spent)
