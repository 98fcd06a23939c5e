"""Progress of a long fit: its stage, the gap compared with the tolerance, the seconds so far."""

from __future__ import annotations

from math import isfinite
from typing import Any

# What a stage is called for people, and what comes after it.
_WORDS = {
    "preprocess": "reading and centring",
    "sample_graph": "neighbours of the samples",
    "feature_graph": "neighbours of the features",
    "gammas": "gammas",
    "solve": "solve",
    "refine": "neighbours of the clean samples",
    "restore": "back to the units of X",
    "factorize": "factors",
    "prepare": "search of the sample prepared",
    "carry": "rows carried over",
    "judge": "wrong cells",
}
_NEXT = {
    "": "preprocess",
    "preprocess": "sample_graph",
    "sample_graph": "feature_graph",
    "feature_graph": "gammas",
    "gammas": "solve",
    "refine": "sample_graph",
    "solve": "restore",
    "restore": "factorize",
    "units": "judge",
}


class StageReport:
    """Lines about the stages of a fit, on a terminal with a moving line for the stage at work.

    Parameters
    ----------
    verbose : int
        0 shows nothing.
    """

    def __init__(self, verbose: int) -> None:
        self._console: Any = None
        self._status: Any = None
        self._tenth = 0
        if verbose:
            from rich.console import Console

            self._console = Console(highlight=False, markup=False)

    def __enter__(self) -> StageReport:
        if self._console is not None and self._console.is_terminal and not self._console.is_jupyter:
            self._status = self._console.status("")
            self._status.start()
            self.begin("preprocess")
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._status is not None:
            self._status.stop()

    def begin(self, stage: str) -> None:
        """Name the stage at work."""
        if self._status is not None:
            self._status.update(f"{_WORDS.get(stage, stage)} ...")

    def count(self, words: str, done: int, total: int) -> None:
        """Say how far the stage at work is: always on a terminal, at every tenth elsewhere."""
        line, tenth = f"{words}: {done:,} of {total:,} rows", 10 * done // total
        if self._status is not None:
            self._status.update(line)
        elif self._console is not None and tenth > self._tenth:
            self._console.print(line)
        self._tenth = tenth

    def note(self, words: str) -> None:
        """Say what was decided in the stage at work."""
        if self._console is not None:
            self._console.print(f"  {words}")

    def step(self, at: Any) -> None:
        """Show how far the solve is."""
        if self._status is not None and isfinite(at.gap):
            self._status.update(f"solve: step {at.n_iter}, gap {at.gap:.1e} on its way to {at.tol:.0e}")

    def lap(self, stage: str, seconds: float, more: str = "") -> None:
        """Note that a stage is done."""
        if self._console is None:
            return
        self._console.print(f"{_WORDS.get(stage, stage)}: {seconds:.2f} s{more}")
        self.begin(_NEXT.get(stage, ""))


SILENT = StageReport(0)
