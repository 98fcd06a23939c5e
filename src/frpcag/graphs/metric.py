"""Distances between rows that are robust to gross errors, and a choice between them without labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Truncation of a difference, in mean absolute deviations.
CUT = 2.0
# Deviations beyond this many mean ones count as that many in the mean: one entry of 1e9 must not lift the truncation.
_STANDS_OUT = 6.0
# Rows that the truncation and the choice of a metric are taken from.
SAMPLE = 2000


class Metric(NamedTuple):
    """A distance of rows: Euclidean, or the sum of ``min(|difference|, cut)``, ``cut`` in units of the rows."""

    name: str
    cut: float = np.inf

    @property
    def euclidean(self) -> bool:
        """Whether distances are Euclidean."""
        return self.name == "euclidean"

    def lengths(self, row: NDArray, others: NDArray) -> NDArray[np.float64]:
        """Return the distances of a complete row to others, in plain NumPy.

        Examples
        --------
        >>> from frpcag.graphs.metric import Metric
        >>> Metric("truncated", 1.0).lengths(np.zeros(2), np.array([[0.5, 9.0]]))
        array([1.5])
        """
        differences = np.abs(others.astype(np.float64) - row)
        if self.euclidean:
            return np.linalg.norm(differences, axis=1)
        return np.minimum(differences, self.cut).sum(axis=1)


EUCLIDEAN = Metric("euclidean")

# From a sample of rows to the distance. Every engine gives the same sample, so they all find the same.
METRICS: dict[str, Callable[[NDArray], Metric]] = {
    "euclidean": lambda sample: EUCLIDEAN,
    "l1": lambda sample: Metric("l1"),
    "truncated": lambda sample: Metric("truncated", CUT * mean_deviation(sample)),
}


def check_metric(metric: Any) -> None:
    """Raise ValueError unless ``metric`` is one of `METRICS` or "auto"."""
    known = (*METRICS, "auto")
    if not (isinstance(metric, str) and metric in known):
        raise ValueError(f"metric={metric!r} is unknown; pass one of {', '.join(map(repr, known))}.")


def sampled_rows(n: int) -> NDArray[np.int64]:
    """Return the rows that a metric is chosen from: all, or 2000 that are spread evenly."""
    return np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64))


def mean_deviation(rows: NDArray) -> float:
    """Return the mean absolute deviation from the medians of the columns; 1 where nothing deviates.

    Deviations beyond six mean ones count as six. NaN is missing.
    """
    rows = np.asarray(rows, dtype=np.float64)
    rows = rows[:, ~np.isnan(rows).all(axis=0)]
    largest = float(np.nanmax(np.abs(rows), initial=0.0)) or 1.0
    rows = rows / largest
    sizes = np.abs(rows - np.nanmedian(rows, axis=0))
    mean = float(np.nanmean(sizes))
    for _ in range(50):
        smaller = float(np.nanmean(np.minimum(sizes, _STANDS_OUT * mean)))
        if smaller >= (1 - 1e-6) * mean:
            break
        mean = smaller
    return mean * largest or 1.0
