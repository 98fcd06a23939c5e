"""The plots of a report as images inside the page."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from frpcag.report.fit import Fit

# Dots per inch: a figure of one column is 560 dots wide.
_DPI = 160
# Points of a scatter: more only hide each other.
_MAX_POINTS = 4000


class Picture(NamedTuple):
    """One plot of a report; the caption says how to read it, the source is the image as a data address."""

    name: str
    title: str
    caption: str
    source: str


def draw_figures(fit: Fit) -> list[Picture]:
    """Draw what a fit has to show; the cell map comes first, where there is one."""
    return [
        Picture(name, title, caption, data_address(png_of(draw), "image/png"))
        for name, title, caption, draw in _plans(fit)
    ]


def _plans(fit: Fit) -> Iterator[tuple[str, str, str, Callable[[], Any]]]:
    """Yield name, title, caption and how to draw it."""
    from frpcag import plots

    if fit.cells is not None:
        cells = fit.cells
        names: Any = {"feature_names": fit.feature_names, "sample_names": fit.sample_names}
        yield (
            "cells",
            "Cell map",
            "Samples down, features across: cells that are probably wrong, red where too high, blue where too low. "
            "Samples and features with the same wrong cells lie side by side. "
            "A stripe down is a bad sensor, a stripe across a bad sample.",
            partial(plots.plot_cell_map, cells.deviation, cells.probability, scale=cells.scale, **names),
        )
    if fit.embedding is not None:
        at = np.unique(np.linspace(0, fit.n_samples - 1, min(fit.n_samples, _MAX_POINTS)).astype(int))
        labels = None if fit.labels is None else fit.labels[at]
        yield (
            "embedding",
            "Samples in the first two components",
            "Each point is a sample of the clean data; samples that belong together lie together."
            + ("" if len(at) == fit.n_samples else f" {len(at)} of {fit.n_samples} samples."),
            partial(plots.plot_embedding, fit.embedding[at], labels),
        )
    if fit.singular_values is not None:
        yield (
            "singular-values",
            "Singular values",
            "Of the clean part: the faster they fall, the fewer components the data need.",
            partial(plots.plot_singular_values, fit.singular_values, label="U"),
        )
    if fit.history is not None and len(fit.history["n_iter"]):
        history = fit.history
        yield (
            "history",
            "Way to the optimum",
            "The relative duality gap bounds how far the result is from the optimum; the objective is dashed.",
            partial(plots.plot_history, history["n_iter"], history["gap"], objective=history.get("objective")),
        )
    if fit.is_video:
        yield (
            "shares",
            "Foreground over time",
            "Share of the pixels that are foreground in each frame.",
            partial(plots.plot_outlier_shares, fit.outliers.samples, numbers=fit.numbers, xlabel="frame"),
        )
    elif fit.cells is None:
        yield (
            "outliers",
            "Where the data are corrupted",
            "Size of S, samples down and features across. Rows are bad samples, columns bad sensors.",
            partial(plots.plot_outlier_map, fit.S),
        )


def png_of(draw: Callable[[], Any], *, dpi: int = _DPI) -> bytes:
    """Return one plot as a picture; ``draw`` draws it, without a screen, and returns its figure or axes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    with plt.style.context("default", after_reset=True), fonts_as_they_are():
        figure = draw().figure
        figure.savefig(buffer, dpi=dpi, metadata={"Software": None})
        plt.close(figure)
    return buffer.getvalue()


@contextmanager
def fonts_as_they_are() -> Iterator[None]:
    """Draw names in scripts that the font lacks as boxes, without a warning for each character."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


def data_address(content: bytes, kind: str) -> str:
    """Return bytes as an address that carries them."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
