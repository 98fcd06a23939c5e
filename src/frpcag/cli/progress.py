"""What a person sees while they wait, on stderr: stages, and the gap on its way to the tolerance."""

from __future__ import annotations

from math import isfinite, log
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

if TYPE_CHECKING:
    from frpcag.solvers import Progress


class Bar:
    """One bar; a callback of the solver, which fills it as the gap falls to the tolerance."""

    def __init__(self, *, shown: bool) -> None:
        console = Console(stderr=True)
        self._bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            TaskProgressColumn(),
            TextColumn("{task.fields[detail]}"),
            TimeElapsedColumn(),
            TextColumn("<"),
            TimeRemainingColumn(compact=True),
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            disable=not (shown and console.is_terminal),
        )
        self._task = self._bars.add_task("", total=None, detail="")
        self._first_gap = float("nan")

    def __enter__(self) -> Bar:
        self._bars.start()
        return self

    def __exit__(self, *exc_info) -> None:
        if not self._bars.disable:  # Rich before 14.3 ends a line that was never begun
            self._bars.stop()

    def stage(self, name: str) -> None:
        """Name a stage whose length is not known."""
        self._bars.tasks[0].total = None  # update() takes None for "as it was"
        self._bars.update(self._task, description=name, completed=0, detail="")

    def advance(self, name: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` pieces are finished, the next being ``name``."""
        self._bars.update(self._task, description=name, total=total, completed=done)

    def __call__(self, at: Progress) -> None:
        """Show one solver step."""
        if not isfinite(self._first_gap):
            self._first_gap = at.gap
        self._bars.update(
            self._task,
            description="solving",
            total=1.0,
            completed=share_done(self._first_gap, at.gap, at.tol),
            detail=f"step {at.n_iter}, gap {at.gap:.1e} -> {at.tol:.0e}",
        )


def share_done(first: float, gap: float, tol: float) -> float:
    """Return how far the gap has come from the first one to the tolerance, on a logarithmic scale.

    Examples
    --------
    >>> from frpcag.cli.progress import share_done
    >>> round(share_done(1.0, 0.1, 0.01), 3)
    0.5
    """
    if not (isfinite(first) and isfinite(gap)) or tol <= 0 or first <= tol or gap <= 0:
        return 0.0
    return min(max(log(first / gap) / log(first / tol), 0.0), 1.0)
