"""How much of a matrix a compressive fit keeps, and what it refuses."""

from __future__ import annotations

from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from frpcag.data.preprocess import check_flags
from frpcag.data.row_source import block_rows
from frpcag.engines.memory import needed_bytes
from frpcag.estimators.decomposition import FRPCAG

# What "auto" keeps: so many entries, within so many rows.
_ENTRIES, _LEAST_ROWS, _MOST_ROWS = 1 << 24, 1000, 20_000
# Arrays of the size of a block that linking and solving hold at their peak, and bytes for each row and neighbour.
_BLOCK_ARRAYS, _NEIGHBOR_BYTES = 12, 120


def check_compression(model: Any) -> None:
    """Raise ValueError for parameters of `CompressiveFRPCAG` that no data could make right."""
    check_flags(keep_low_rank=model.keep_low_rank)
    if model.output is not None and not isinstance(model.output, (str, Path)):
        raise ValueError(f"output={model.output!r} must be None or the path of a folder.")
    inner = model.estimator
    if inner is None:
        return
    if not isinstance(inner, FRPCAG):
        raise ValueError(f"estimator={inner!r} must be an FRPCAG or None.")
    graph = inner.sample_graph
    if not isinstance(graph, str) and not hasattr(graph, "fit_transform"):
        raise ValueError(
            "estimator's sample_graph must be a search such as 'auto', since rows are linked to a sample that is drawn "
            f"in fit; got {type(graph).__name__}."
        )


def count_kept(name: str, given: Any, n: int, *, least: int, width: int | None = None) -> int:
    """Return how many of ``n`` to keep; a share is rounded, and more than there are is all.

    "auto" is for rows of a known ``width``.

    Examples
    --------
    >>> from frpcag.estimators.kept import count_kept
    >>> count_kept("n_samples_kept", 0.25, 1000, least=2), count_kept("n_samples_kept", 5000, 1000, least=2)
    (250, 1000)
    """
    if isinstance(given, str) and given == "auto" and width is not None:
        return min(n, _MOST_ROWS, max(_LEAST_ROWS, _ENTRIES // width))
    whole = isinstance(given, Integral) and not isinstance(given, bool) and int(given) >= least
    share = isinstance(given, Real) and not isinstance(given, Integral) and 0 < float(given) <= 1
    if not whole and not share:
        word = "'auto', " if width is not None else ""
        raise ValueError(f"{name}={given!r} must be {word}an integer of at least {least}, or a share in (0, 1].")
    return min(n, int(given) if whole else max(least, round(float(given) * n)))


def carry_bytes(
    shape: tuple[int, int], itemsize: int, *, kept: tuple[int, int], n_neighbors: int, n_components: int, stored: bool,
    low_rank: bool,
) -> int:  # fmt: skip
    """Return about how many bytes a compressive fit takes at its peak, those of ``X`` not counted.

    Parameters
    ----------
    shape, itemsize : tuple of int and int
        Of the matrix.
    kept : tuple of int
        Rows and columns that the problem is solved on.
    n_neighbors, n_components : int
    stored : bool
        Whether results of the length of ``X`` go to files.
    low_rank : bool
        Whether the clean part is kept.

    Examples
    --------
    >>> from frpcag.estimators.kept import carry_bytes
    >>> needs = {"kept": (20_000, 64), "n_neighbors": 10, "n_components": 8, "low_rank": False, "stored": True}
    >>> carry_bytes((10**7, 64), 4, **needs) / 2**30 < 0.6
    True
    """
    (n, p), (m, q) = shape, kept
    rows = min(n, block_rows(p))
    fit = 2 * m * p * itemsize + needed_bytes(m, q, np.float32 if itemsize == 4 else np.float64, n_neighbors)
    sample = 6 * m * p * itemsize
    blocks = _BLOCK_ARRAYS * rows * p * itemsize + _NEIGHBOR_BYTES * rows * 5 * n_neighbors
    results = 0 if stored else n * itemsize * (n_components + (p if low_rank else 0))
    return int(max(fit, sample + blocks) + results)
