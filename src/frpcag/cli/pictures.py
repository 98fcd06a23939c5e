"""Figures of a run, drawn by frpcag.plots and saved without a screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from frpcag.report.figures import fonts_as_they_are

# Dots per inch: a figure of one column is 700 dots wide.
_DPI = 200


def save_model_pictures(folder: Path, model, *, labels=None, feature_shape: tuple[int, int] | None = None) -> None:
    """Draw what a fitted FRPCAG found: spectrum, history, embedding, and images where ``feature_shape`` is given."""
    plots = _plots()
    _save(plots.plot_singular_values(model.singular_values_, label="U").figure, folder / "singular_values.png")
    save_history(folder, model)
    _save(plots.plot_embedding(model.embedding_, labels).figure, folder / "embedding.png")
    if feature_shape is not None:
        U, S = model.low_rank_[:8], model.sparse_[:8]
        save_images(folder, {"X, as given": U + S, "U, cleaned": U, "S = X - U": S}, feature_shape)


def save_cell_map(path: Path, cells, **names: Any) -> None:
    """Draw the cell map of what a cleaner says of every cell."""
    ax = _plots().plot_cell_map(cells.deviation, cells.probability, scale=cells.scale, **names)
    _save(ax.figure, path)


def save_history(folder: Path, model) -> None:
    """Draw the gap and the objective along the solve."""
    history = model.history_
    ax = _plots().plot_history(history["n_iter"], history["gap"], objective=history["objective"])
    _save(ax.figure, folder / "history.png")


def save_images(folder: Path, rows: dict[str, Any], shape: tuple[int, int], *, n_images: int = 8) -> None:
    """Draw the first images of each row; the last row is signed."""
    figure = _plots().plot_image_grid(rows, shape, n_images=n_images, signed=[list(rows)[-1]])
    _save(figure, folder / "images.png")


def _plots():
    import matplotlib

    matplotlib.use("Agg")
    import frpcag.plots

    return frpcag.plots


def _save(figure, path: Path) -> None:
    import matplotlib.pyplot as plt

    with fonts_as_they_are():
        figure.savefig(path, dpi=_DPI, metadata={"Software": None})
    plt.close(figure)
