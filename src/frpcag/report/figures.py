"""The plots of a report as images inside the page, one for light and one for dark surroundings."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from frpcag.insight import shape_interaction
from frpcag.report.cells import Cells
from frpcag.report.diagnostics import Diagnostics, corruption, shown_samples
from frpcag.report.fit import Fit

LIGHT, DARK = "light", "dark"
# Plots of a section of their own.
CELL_PLOTS = ("cells",)
# Dots per inch: a figure of one column is 560 dots wide.
_DPI = 160
# Points of a scatter: more only hide each other.
_MAX_POINTS = 4000
# Classes told apart by lines: more would cover what they frame.
_MAX_EDGES = 20
_INK, _GRID = "#d7dbe0", "#3a4048"
# Colours too dark for a dark ground, and what stands for them there.
_ON_DARK = {
    "#000000": _INK,
    "#0072b2": "#4aa3df",
    "#882255": "#d4719a",
    "#332288": "#9488e8",
    "#4d4d4d": "#8c959f",
}


@dataclass(frozen=True)
class Picture:
    """One plot of a report.

    Parameters
    ----------
    name, title, caption : str
        The caption says how to read it.
    sources : dict of str to str
        Data addresses of the image under "light" and "dark".
    """

    name: str
    title: str
    caption: str
    sources: dict[str, str]


def draw_figures(
    fit: Fit,
    numbers: Diagnostics | None,
    *,
    themes: Sequence[str] = (LIGHT, DARK),
    only: Collection[str] | None = None,
    leave: Collection[str] = (),
    check: Callable[[], None] = lambda: None,
) -> list[Picture]:
    """Draw what a fit and its diagnostics have to show.

    Parameters
    ----------
    fit : Fit
    numbers : Diagnostics or None
        None leaves the diagnostics out, for a quick look.
    themes : sequence of {"light", "dark"}
        Which variants to make.
    only : collection of str, optional
        Names of the plots to draw; all by default.
    leave : collection of str
        Names of plots not to draw.
    check : callable
        Called before each plot; it may raise to end the work.

    Returns
    -------
    list of Picture
    """
    import matplotlib

    matplotlib.use("Agg")
    plans = [*_basics(fit, numbers), *(_diagnostics(fit, numbers) if numbers is not None else ())]
    pictures = []
    for plan in plans:
        if plan.name in leave or (only is not None and plan.name not in only):
            continue
        check()
        pictures.append(Picture(plan.name, plan.title, plan.caption, _images(plan.draw, themes)))
    return pictures


class _Plan(NamedTuple):
    """A plot to be drawn."""

    name: str
    title: str
    caption: str
    draw: Callable[[], Any]


def _basics(fit: Fit, numbers: Diagnostics | None) -> Iterator[_Plan]:
    from frpcag import plots

    if fit.cells is not None:
        cells = fit.cells
        names = {"feature_names": fit.feature_names, "sample_names": fit.sample_names}
        yield _Plan(
            "cells",
            "Cell map",
            "Samples down, features across: cells that are probably wrong, red where too high, blue where too low. "
            "Samples and features with the same wrong cells lie side by side. "
            "A stripe down is a bad sensor, a stripe across a bad sample.",
            partial(_cell_map, cells, **names),
        )
    if fit.embedding is not None:
        at = np.unique(np.linspace(0, fit.n_samples - 1, min(fit.n_samples, _MAX_POINTS)).astype(int))
        labels = None if fit.labels is None else fit.labels[at]
        yield _Plan(
            "embedding",
            "Samples in the first two components",
            "Each point is a sample of the clean data; samples that belong together lie together."
            + _part(len(at), fit.n_samples, "samples"),
            partial(plots.plot_embedding, fit.embedding[at], labels),
        )
    if fit.singular_values is not None:
        yield _Plan(
            "singular-values",
            "Singular values",
            "The faster they fall, the fewer components the data need. U is the clean part, X the data.",
            partial(_spectra, fit.singular_values, None if numbers is None else numbers.sigma_X),
        )
    if fit.history is not None and len(fit.history["n_iter"]):
        history = fit.history
        yield _Plan(
            "history",
            "Way to the optimum",
            "The relative duality gap bounds how far the result is from the optimum; the objective is dashed.",
            partial(plots.plot_history, history["n_iter"], history["gap"], objective=history.get("objective")),
        )
    if fit.is_video:
        yield _Plan(
            "shares",
            "Foreground over time",
            "Share of the pixels that are foreground in each frame.",
            partial(plots.plot_outlier_shares, corruption(fit).samples, numbers=fit.numbers, xlabel="frame"),
        )
        return
    if fit.cells is not None:
        return
    yield _Plan(
        "outliers",
        "Where the data are corrupted",
        "Size of S, samples down and features across. Rows are bad samples, columns bad sensors.",
        partial(plots.plot_outlier_map, fit.S),
    )


def _diagnostics(fit: Fit, numbers: Diagnostics) -> Iterator[_Plan]:
    from frpcag import plots

    graphs = [("samples", ("W", "Q"), numbers.samples), ("features", ("V", "P"), numbers.features)]
    for word, _, found in graphs:
        if found is not None:
            yield _Plan(
                f"spectrum-{word}",
                f"Frequencies of the graph of {word}",
                f"Its lowest eigenvalues. A wide gap after k of them says that the {word} fall into k clusters.",
                partial(plots.plot_graph_spectrum, found.eigenvalues, k=found.k),
            )
            yield _Plan(
                f"energy-{word}",
                f"Energy over the graph of {word}",
                "The sooner a curve rises, the smoother the matrix is on the graph. U should lie above X.",
                partial(plots.plot_frequency_energy, {"X": found.energy_X, "U": found.energy_U}),
            )
    if numbers.Gamma is not None:
        yield _Plan(
            "gamma",
            "Covariance in the basis of the feature graph",
            "Gamma = P'CP; a bright diagonal (s_r near 1) says that the graph knows the data's main directions."
            + _part(len(numbers.Gamma), fit.n_features, "frequencies"),
            partial(plots.plot_graph_covariance, numbers.Gamma),
        )
    for word, (vectors, basis), found in graphs:
        if found is not None and found.alignment is not None:
            yield _Plan(
                f"alignment-{word}",
                f"Singular vectors in the graph of {word}",
                "Weight at the left: the clean data are made of low graph frequencies.",
                partial(plots.plot_alignment, found.alignment, vectors=vectors, basis=basis),
            )
    if numbers.left is not None and numbers.predicted is not None:
        yield _Plan(
            "attenuation",
            "What is left of each singular value",
            "Against 1 / ((1 + gamma1 lambda)(1 + gamma2 omega)), which holds for squared loss and aligned data.",
            partial(plots.plot_attenuation, numbers.left[: len(numbers.predicted)], numbers.predicted),
        )
    if fit.labels is not None and fit.W is not None:
        at, c = shown_samples(fit), min(len(np.unique(fit.labels)), fit.W.shape[1])
        SIM, edges = shape_interaction(fit.W[at, :c]), fit.labels[at] if c <= _MAX_EDGES else None
        yield _Plan(
            "interaction",
            "Shape interaction of the samples",
            f"|W W'| of the first {c} components, samples sorted by label. Blocks on the diagonal are subspaces."
            + _part(len(at), fit.n_samples, "samples"),
            partial(plots.plot_shape_interaction, SIM, labels=edges),
        )


def _cell_map(cells: Cells, **names: Any) -> Any:
    """Draw a cell map as wide as its features need, and no higher than a screen."""
    import matplotlib.pyplot as plt

    from frpcag import plots

    n, p = cells.deviation.shape
    size = (np.clip(0.17 * p + 1.8, 4.5, 7.0), np.clip(0.13 * n + 1.2, 2.4, 5.0))
    _, ax = plt.subplots(figsize=size, layout="constrained")
    return plots.plot_cell_map(cells.deviation, cells.probability, scale=cells.scale, ax=ax, **names)


def _spectra(sigma_U: np.ndarray, sigma_X: np.ndarray | None) -> Any:
    from frpcag import plots

    ax = None if sigma_X is None else plots.plot_singular_values(sigma_X, label="X")
    return plots.plot_singular_values(sigma_U, ax=ax, label="U")


def _part(shown: int, total: int, word: str) -> str:
    return "" if shown == total else f" {shown} of {total} {word}."


def _images(draw: Callable[[], Any], themes: Sequence[str]) -> dict[str, str]:
    """Return the data addresses of one plot; for the dark it is repainted with light ink."""
    import matplotlib.pyplot as plt

    found = {}
    with plt.style.context("default", after_reset=True), fonts_as_they_are():
        figure = draw().figure
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once; saving would do it again, twice
        for theme in sorted(themes, reverse=True):  # light first: the repainting stays
            if theme == DARK:
                _repaint(figure)
            buffer = io.BytesIO()
            figure.savefig(buffer, dpi=_DPI, transparent=True, metadata={"Software": None})
            found[theme] = data_address(buffer.getvalue(), "image/png")
        plt.close(figure)
    return found


@contextmanager
def fonts_as_they_are() -> Iterator[None]:
    """Draw names in scripts that the font lacks as boxes, without a warning for each character."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


def _repaint(figure: Any) -> None:
    """Give a figure light ink, a dark grid, and colours that stand out from a dark ground."""
    from frpcag.plots import cell_map

    for ax in figure.axes:
        for image in ax.images:
            if image.get_cmap().name == cell_map.COLOURS:
                image.set_cmap(cell_map.colours(dark=True))
        ax.tick_params(which="both", colors=_INK)
        for spine in ax.spines.values():
            spine.set_edgecolor(_INK)
        for axis in (ax.xaxis, ax.yaxis):
            axis.label.set_color(_lighter(axis.label.get_color()))
            for line in axis.get_gridlines():
                line.set_color(_GRID)
        legend = ax.get_legend()
        handles = [] if legend is None else legend.legend_handles
        for text in [ax.title, *([] if legend is None else legend.get_texts())]:
            text.set_color(_INK)
        for artist in [*ax.lines, *ax.collections, *handles]:
            if hasattr(artist, "get_color"):  # a line
                artist.set_color(_lighter(artist.get_color()))
            elif len(colours := np.atleast_2d(artist.get_facecolor())):
                artist.set_facecolor(_lighter(colours[0]))


def _lighter(colour: Any) -> Any:
    """Return the colour that stands for another on a dark ground; most stay as they are."""
    from matplotlib.colors import to_hex, to_rgba

    return (*to_rgba(_ON_DARK.get(to_hex(colour), to_hex(colour)))[:3], to_rgba(colour)[3])


def data_address(content: bytes, kind: str) -> str:
    """Return bytes as an address that carries them."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
