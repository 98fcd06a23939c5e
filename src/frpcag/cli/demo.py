"""frpcag demo: wrong cells, clusters and missing values, compared with the usual tools on data of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.metrics.cluster import contingency_matrix
from sklearn.preprocessing import scale

from frpcag import FRPCAGClustering, RobustGraphCleaner
from frpcag.baselines import RPCA
from frpcag.cli.runs import Result, Run
from frpcag.report.figures import data_address, png_of

Array = np.ndarray

SEED = 0
WHITE, SHAPE = 16.0, (8, 8)
OURS = "frpcag"
PAGE = "demo.html"
# Dots per inch of the pictures: sharp on screens of twice the usual density.
_DPI = 180
# Cells that the pictures show, and data with nothing wrong.
SPIKES, TABLE, GAPS = "digits, 5 % far off", "breast cancer, 5 % far off", "digits, 30 % missing, 5 % far off"
RIGHT = "digits, nothing wrong"


@dataclass
class Cell:
    """Data and what was done to them: ``X`` as given, ``truth``, where they differ, and labels."""

    X: Array
    truth: Array
    hit: Array
    y: Array


# Tools for each job. A tool gets what users have; only best-rank PCA sees the truth, which gives its rank.
CLEANERS: dict[str, Callable[[Cell], Array]] = {
    "as given": lambda cell: cell.X,
    "PCA, best rank": lambda cell: _best_rank(cell),
    "robust PCA": lambda cell: RPCA().fit(cell.X - cell.X.mean(axis=0)).low_rank_ + cell.X.mean(axis=0),
    OURS: lambda cell: RobustGraphCleaner(random_state=SEED).fit_transform(cell.X),
}
CLUSTERERS: dict[str, Callable[[Array, int], Array]] = {
    "k-means": lambda X, k: KMeans(k, n_init=10, random_state=SEED).fit_predict(X),
    "spectral clustering": lambda X, k: SpectralClustering(
        k, affinity="nearest_neighbors", n_neighbors=10, random_state=SEED
    ).fit_predict(X),
    OURS: lambda X, k: FRPCAGClustering(k, random_state=SEED).fit_predict(X),
}
IMPUTERS: dict[str, Callable[[Cell], Array]] = {
    "mean of the column": lambda cell: SimpleImputer(keep_empty_features=True).fit_transform(cell.X),
    "KNNImputer": lambda cell: KNNImputer(keep_empty_features=True).fit_transform(cell.X),
    OURS: CLEANERS[OURS],
}


def work(run: Run) -> Result:
    """Try all tools on all data, and draw what came of it."""
    cells, gaps = wrong_cells(), missing_values()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # spectral clustering warns of graphs in several pieces
        cleaned = _tried(run, "cleaning", CLEANERS, cells, lambda _, name, use: use(cells[name]))

        def clustered(tool: str, name: str, use: Callable) -> Array:
            """Cluster the data as given; ours with wrong cells as missing, which is what ``clean=True`` does."""
            X, repaired = cells[name].X, cleaned[OURS][name]
            marked = np.where(repaired == X, X, np.float32(np.nan)) if tool == OURS else X
            return use(marked, len(np.unique(cells[name].y)))

        labels = _tried(run, "clustering", CLUSTERERS, cells, clustered)
        filled = _tried(run, "filling in", IMPUTERS, gaps, lambda _, name, use: use(gaps[name]))
    run.record |= {
        "seed": SEED,
        "cleaning": _errors(cleaned, lambda name, result: _distance(result, cells[name].truth)),
        "clustering": _errors(labels, lambda name, result: _error_of_labels(cells[name].y, result)),
        "missing": _errors(filled, lambda name, result: _distance_at_gaps(result, gaps[name])),
    }

    def write(folder: Path) -> None:
        (folder / PAGE).write_text(_page(run.record, cells, cleaned, gaps, filled), encoding="utf-8")

    return Result(write=write, figures=_figures)


def wrong_cells() -> dict[str, Cell]:
    """Return digits and tables with wrong cells, by what was done to them, and digits with nothing wrong."""
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    tops, lefts = np.random.RandomState(SEED).randint(0, 5, size=(2, len(X), 1, 1))
    rows, columns = np.indices(SHAPE)
    block = ((rows - tops) // 4 == 0) & ((columns - lefts) // 4 == 0)
    block = block.reshape(X.shape)
    covered = np.where(block, np.float32(0), X)
    return {
        SPIKES: _far_off(X, y),
        "digits, a quarter covered": Cell(covered, X, block, y),
        TABLE: _far_off(*_standardised(load_breast_cancer)),
        "wine, 5 % far off": _far_off(*_standardised(load_wine)),
        RIGHT: Cell(X, X, np.zeros(X.shape, bool), y),
    }


def missing_values() -> dict[str, Cell]:
    """Return data with missing values, with and without wrong ones among the others."""
    cells = wrong_cells()
    found = {}
    for name, cell, X in (
        ("breast cancer, 30 % missing", cells[TABLE], cells[TABLE].truth),
        ("breast cancer, 30 % missing, 5 % far off", cells[TABLE], cells[TABLE].X),
        (GAPS, cells[SPIKES], cells[SPIKES].X),
    ):
        gap = np.random.default_rng(SEED + 1).random(X.shape) < 0.3
        found[name] = Cell(np.where(gap, np.float32(np.nan), X), cell.truth, gap, cell.y)
    return found


def _far_off(truth: Array, y: Array) -> Cell:
    """Return data of which one cell in twenty is five standard deviations too high or too low."""
    rng = np.random.default_rng(SEED)
    hit = rng.random(truth.shape) < 0.05
    shift = 5 * truth.std() * rng.choice([-1, 1], truth.shape)
    return Cell((truth + hit * shift).astype(np.float32), truth, hit, y)


def _standardised(load: Callable) -> tuple[Array, Array]:
    X, y = load(return_X_y=True)
    return scale(X).astype(np.float32), y


def _tried(run: Run, what: str, tools: dict, cells: dict[str, Cell], use: Callable) -> dict[str, dict[str, Array]]:
    """Return the result of every tool on every cell: ``use(name of the tool, name of the cell, tool)``."""
    results: dict[str, dict[str, Array]] = {}
    total = len(tools) * len(cells)
    for done, (tool, name) in enumerate((tool, name) for tool in tools for name in cells):
        run.bar.advance(f"{what}: {tool}", done, total)
        results.setdefault(tool, {})[name] = use(tool, name, tools[tool])
    run.lap(what)
    return results


def _errors(results: dict[str, dict[str, Array]], judge: Callable[[str, Array], float]) -> dict[str, dict[str, float]]:
    return {
        tool: {name: float(judge(name, result)) for name, result in of_tool.items()}
        for tool, of_tool in results.items()
    }


def _distance(result: Array, truth: Array) -> float:
    return float(np.linalg.norm(result - truth) / np.linalg.norm(truth - truth.mean(axis=0)))


def _error_of_labels(y: Array, labels: Array) -> float:
    """Return the share of samples in the wrong cluster, under the best matching of clusters to classes."""
    together = contingency_matrix(y, labels)
    return 1 - float(together[linear_sum_assignment(-together)].sum() / len(y))


def _distance_at_gaps(result: Array, cell: Cell) -> float:
    off = (result - cell.truth)[cell.hit]
    return float(np.sqrt(np.mean(off**2)) / cell.truth[cell.hit].std())


def _best_rank(cell: Cell) -> Array:
    """Return the PCA with the number of components that is nearest to the truth."""
    pca = PCA().fit(cell.X)
    Z = pca.transform(cell.X)
    target = (cell.truth - pca.mean_) @ pca.components_.T
    # Each direction moves the squared distance by |z|^2 - 2 <z, target>.
    rank = int(np.argmin(np.cumsum(np.sum(Z * Z - 2 * Z * target, axis=0)))) + 1
    return Z[:, :rank] @ pca.components_[:rank] + pca.mean_


def _page(record: dict[str, Any], cells, cleaned, gaps, filled) -> str:
    import matplotlib.pyplot as plt

    from frpcag.plots import plot_cell_map, plot_image_grid

    y = cells[RIGHT].y
    shown = [int(np.flatnonzero(y == digit)[0]) for digit in range(10)]

    def images(rows: dict[str, Array], *, coloured: str = "") -> Any:
        """Draw one image of each digit; in the row named ``coloured`` changes in red and blue."""
        figure = plt.figure(figsize=(9, 1.13 * len(rows)), layout="constrained")
        rows = {title: X[shown] for title, X in rows.items()}
        return plot_image_grid(rows, SHAPE, n_images=len(shown), signed=[coloured], limits=(0, WHITE), figure=figure)

    def repaired(results: dict[str, dict[str, Array]], names: Sequence[str], cell: str) -> dict[str, Array]:
        """Return what tools made of a cell; values a little beyond black and white are drawn as these."""
        return {name: np.clip(results[name][cell], 0, WHITE) for name in names}

    spikes, table = cells[SPIKES], cells[TABLE]
    marked = "what frpcag changed: red was too bright, blue too dark"
    moved = table.X[:80] - cleaned[OURS][TABLE][:80]
    names = list(load_breast_cancer().feature_names)
    pictures: dict[str, Callable[[], Any]] = {
        "Nothing tells frpcag which pixels are wrong, or what a digit looks like.": lambda: images(
            {"as given: one pixel in twenty is far too bright (red) or far too dark (blue)": spikes.X}
            | repaired(cleaned, ["robust PCA"], SPIKES)
            | {marked: spikes.X - cleaned[OURS][SPIKES]}
            | repaired(cleaned, [OURS], SPIKES)
            | {"the truth": spikes.truth},
            coloured=marked,
        ),
        "The cells that frpcag changed in 80 rows of the breast cancer table: red where a value was too high, "
        "blue where it was too low.": lambda: plot_cell_map(
            moved,
            (moved != 0).astype(float),
            feature_names=names,
            ax=plt.subplots(figsize=(9, 6), layout="constrained")[1],
        ),
        "Pixels are missing at random; every method sees the same ones.": lambda: images(
            {"as given: 30 % of the pixels are missing (light blue), 5 % of the others are wrong": gaps[GAPS].X}
            | repaired(filled, ["KNNImputer", OURS], GAPS)
            | {"the truth": spikes.truth}
        ),
    }
    console = Console(file=StringIO(), record=True, width=120, highlight=False, markup=False)
    for figure in _figures(record):
        console.print(figure)
    drawn = "".join(
        f'<p>{words}</p><img alt="{words}" src="{data_address(png_of(draw, dpi=_DPI), "image/png")}">'
        for words, draw in pictures.items()
    )
    page = (Path(__file__).parent / PAGE).read_text(encoding="utf-8").replace("PICTURES", drawn)
    return console.export_html(inline_styles=True, code_format=page)


def where_not_first(rows: dict[str, dict[str, float]]) -> str:
    """Return a sentence that names the columns where another tool is as good as ours or better; empty if none is.

    Examples
    --------
    >>> from frpcag.cli.demo import where_not_first
    >>> where_not_first({"k-means": {"wine": 0.03, "digits": 0.2}, "frpcag": {"wine": 0.05, "digits": 0.1}})
    'Not first: wine (k-means 3.0, frpcag 5.0).'
    """
    told = []
    for column, ours in rows.get(OURS, {}).items():
        rival, best = min(((tool, of[column]) for tool, of in rows.items() if tool != OURS), key=lambda one: one[1])
        if round(100 * best, 1) <= round(100 * ours, 1):
            told.append(f"{column} ({rival} {100 * best:.1f}, {OURS} {100 * ours:.1f})")
    return f"Not first: {'; '.join(told)}." if told else ""


def _figures(record: dict[str, Any]) -> list[Any]:
    shown: list[Any] = []
    for name, words in (
        ("cleaning", "Wrong cells: distance to the true data, in % of their spread"),
        ("clustering", "Clusters: samples in the wrong one, in %"),
        ("missing", "Missing values: error at the gaps, in % of their spread"),
    ):
        told = "" if name == "cleaning" else where_not_first(record[name])  # "as given" is no tool
        shown += [words, _table(record[name]), f"{told}\n" if told else ""]
    return shown


def _table(rows: dict[str, dict[str, float]]) -> Table:
    """Return shares in per cent, the least of each column in bold."""
    best = {column: min(values[column] for values in rows.values()) for column in next(iter(rows.values()))}
    table = Table()
    table.add_column("", no_wrap=True)
    for column in best:
        table.add_column(column.replace(", ", ",\n"), justify="right")
    for name, values in rows.items():
        table.add_row(
            name, *(Text(f"{100 * v:.1f}", "bold green" if v == best[column] else "") for column, v in values.items())
        )
    return table
