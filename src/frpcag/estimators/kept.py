"""How much of a matrix a compressive fit keeps, and what it refuses."""

from __future__ import annotations

from numbers import Integral, Real
from pathlib import Path
from typing import Any

from frpcag.data.preprocess import check_flags
from frpcag.estimators.carried_rows import DECODERS
from frpcag.estimators.decomposition import FRPCAG

# What "auto" keeps: so many entries, within so many rows.
_ENTRIES, _LEAST_ROWS, _MOST_ROWS = 1 << 24, 1000, 20_000


def check_compression(model: Any) -> None:
    """Raise ValueError for parameters of `CompressiveFRPCAG` that no data could make right."""
    if model.decoder not in DECODERS:
        raise ValueError(f"decoder={model.decoder!r} is unknown; choose one of {', '.join(map(repr, DECODERS))}.")
    check_flags(keep_low_rank=model.keep_low_rank)
    if model.output is not None and not isinstance(model.output, (str, Path)):
        raise ValueError(f"output={model.output!r} must be None or the path of a folder.")
    inner = model.estimator
    if inner is None:
        return
    if not isinstance(inner, FRPCAG):
        raise ValueError(f"estimator={inner!r} must be an FRPCAG or None.")
    graphs = [("sample_graph", inner.sample_graph)]
    if model.n_features_kept is not None:
        graphs.append(("feature_graph", inner.feature_graph))
    for name, graph in graphs:
        if not isinstance(graph, str) and not hasattr(graph, "fit_transform"):
            raise ValueError(
                f"estimator's {name} must be a search such as 'auto', since rows are linked to a sample that is "
                f"drawn in fit; got {type(graph).__name__}."
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
