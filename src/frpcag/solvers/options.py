"""How a problem is solved, checked once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from frpcag.backends import Backend
from frpcag.solvers.fista import BOUNDS
from frpcag.solvers.stopping import STOPS, Progress


@dataclass(frozen=True)
class SolveOptions:
    """Options of `solve`, which says what they are; unknown words and numbers out of their range raise ValueError."""

    tol: float = 1e-3
    max_iter: int = 500
    stop: str = "gap"
    backend: str | Backend = "auto"
    n_jobs: int | None = None
    callback: Callable[[Progress], object] | None = None
    restart: bool = True
    step: str = "lanczos"

    @classmethod
    def of(cls, model: Any) -> SolveOptions:
        """Return those of an estimator's parameters."""
        names = ("tol", "max_iter", "stop", "backend", "n_jobs", "callback")
        return cls(**{name: getattr(model, name) for name in names})

    def __post_init__(self) -> None:
        known: tuple[tuple[str, Any], ...] = (("stop", STOPS), ("step", BOUNDS))
        for name, words in known:
            value: Any = getattr(self, name)
            if not (isinstance(value, str) and value in words):
                raise ValueError(f"{name}={value!r} is unknown; choose one of {', '.join(map(repr, words))}.")
        if not _is_number(self.tol) or self.tol < 0:
            raise ValueError(f"tol={self.tol!r} must be a finite number >= 0.")
        if not _is_number(self.max_iter) or int(self.max_iter) != self.max_iter or self.max_iter < 1:
            raise ValueError(f"max_iter={self.max_iter!r} must be an integer >= 1.")
        if not (isinstance(self.backend, str) or hasattr(self.backend, "load")):
            raise ValueError(f"backend={self.backend!r} is unknown; pass 'auto', the name of a backend, or a Backend.")
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback={self.callback!r} must be None or a function of one argument, a Progress.")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))
