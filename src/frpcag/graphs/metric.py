"""Distances between rows, in one registry: a new one takes a line of `METRICS`, and the map of rows it measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from frpcag.runtime.arrays import is_tensor

# Truncation of a difference, in mean absolute deviations.
CUT = 2.0
# Deviations beyond this many mean ones count as that many in the mean: one entry of 1e9 must not lift the truncation.
_STANDS_OUT = 6.0
# Rows that the truncation and the choice of a metric are taken from.
SAMPLE = 2000


@dataclass(frozen=True)
class Metric:
    """A distance of rows: the Euclidean one, or the sum of ``min(|difference|, cut)``, of the rows or a map of them.

    Parameters
    ----------
    name : str
    euclidean : bool, default=True
        Whether squares of differences are summed, not absolute differences.
    rows : callable, optional
        The map: from float64 rows (NaN is missing), and NumPy or PyTorch as their library, to rows that are measured.
    cut : float
        In units of the rows.
    bound : callable, optional
        From a sample of rows to ``cut``, for a metric that scales with the data.
    eligible : bool, default=True
        Whether "auto" may choose it, and the cleaner, which compares what wrong cells do to metrics.
    engines : tuple of str
        What can search by it.
    """

    name: str
    euclidean: bool = True
    rows: Callable[[Any, Any], Any] | None = None
    cut: float = np.inf
    bound: Callable[[NDArray], float] | None = None
    eligible: bool = True
    engines: tuple[str, ...] = ("host", "torch", "dask")

    def fitted(self, sample: NDArray) -> Metric:
        """Return the metric with the bound that a sample of rows gives."""
        return self if self.bound is None else replace(self, cut=self.bound(sample))

    @property
    def of_clean_rows(self) -> Metric:
        """What rows without gross errors are linked by."""
        return self if self.euclidean else EUCLIDEAN

    def lengths(self, row: NDArray, others: NDArray) -> NDArray[np.float64]:
        """Return the distances of a complete row to others, in plain NumPy.

        Examples
        --------
        >>> from frpcag.graphs.metric import METRICS
        >>> METRICS["l1"].lengths(np.zeros(2), np.array([[0.5, 9.0]]))
        array([9.5])
        """
        rows = np.vstack([row, others]).astype(np.float64)
        rows = rows if self.rows is None else self.rows(rows, np)
        differences = np.abs(rows[1:] - rows[0])
        if self.euclidean:
            return np.linalg.norm(differences, axis=1)
        return np.minimum(differences, self.cut).sum(axis=1)


def find_metric(metric: str, X: Any, *, n_jobs: int | None = None) -> Metric:
    """Return the distance that ``metric`` stands for on the rows of a matrix.

    Parameters
    ----------
    metric : str
        A key of `METRICS`, or "auto".
    X : ndarray, csr_array or tensor of shape (n, p)
        At most 2000 of its rows are looked at, spread evenly. NaN is missing.
    n_jobs : int, optional

    Returns
    -------
    Metric
    """
    check_metric(metric)
    if metric != "auto" and METRICS[metric].bound is None:
        return METRICS[metric]
    rows = X[sampled_rows(X.shape[0])]
    # On the host for every engine: the choice must not depend on where the rows are.
    sample = rows.toarray() if sp.issparse(rows) else rows.cpu().numpy() if is_tensor(rows) else np.asarray(rows)
    if metric != "auto":
        return METRICS[metric].fitted(sample)
    from frpcag.graphs.metric_choice import prediction_errors

    errors = prediction_errors(sample, n_jobs=n_jobs)
    return min(errors, key=lambda one: errors[one])


def check_metric(metric: Any, *, engine: str = "host") -> None:
    """Raise ValueError unless ``metric`` is one of `METRICS` that the engine searches by, or "auto"."""
    known = (*METRICS, "auto")
    if not (isinstance(metric, str) and metric in known):
        raise ValueError(f"metric={metric!r} is unknown; pass one of {', '.join(map(repr, known))}.")
    able = [name for name, one in METRICS.items() if engine in one.engines]
    if metric not in (*able, "auto"):
        raise ValueError(
            f"metric={metric!r} is not done by backend={engine!r}; pass one of {', '.join(map(repr, able))} or 'auto'."
        )


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


def unit_rows(rows: Any, xp: Any) -> Any:
    """Return rows divided by their lengths, those of incomplete rows scaled up to all features; zeros stay zeros."""
    largest = xp.amax(xp.nan_to_num(xp.abs(rows)), 1)[:, None]
    rows = rows / (largest + (largest == 0))  # squares of 1e200 leave the range of float64
    n_seen = (~xp.isnan(rows)).sum(1)[:, None]
    length = (xp.nansum(rows * rows, 1)[:, None] * (rows.shape[1] / (n_seen + (n_seen == 0)))) ** 0.5
    return rows / (length + (length == 0))


def _truncation(sample: NDArray) -> float:
    return CUT * mean_deviation(sample)


METRICS = {
    metric.name: metric
    for metric in (
        Metric("euclidean"),
        Metric("l1", euclidean=False),
        Metric("truncated", euclidean=False, bound=_truncation),
        # Row blocks on Dask are ordered as they are, not as the map has them.
        Metric("cosine", rows=unit_rows, eligible=False, engines=("host", "torch")),
    )
}
EUCLIDEAN = METRICS["euclidean"]
ELIGIBLE = tuple(name for name, metric in METRICS.items() if metric.eligible)
