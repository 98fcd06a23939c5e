"""frpcag demo: wrong cells, clusters and missing values, compared with the usual tools on data of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.decomposition import PCA
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.preprocessing import scale

from frpcag import FRPCAGClustering, RobustGraphCleaner, RobustGraphImputer
from frpcag.baselines import RPCA
from frpcag.cli import options
from frpcag.cli.errors import InputError
from frpcag.cli.progress import Bar
from frpcag.cli.runs import (
    Timer,
    check_output,
    library_versions,
    print_json,
    read_run,
    run_folder,
    seconds_in_words,
    write_run,
)
from frpcag.data import load_dataset, missing_pixels, salt_and_pepper
from frpcag.evaluate import clustering_error

Array = np.ndarray

SEED = 0
N_IMAGES = 12
OURS = "frpcag"
PAGE = "demo.html"
# Cells that the pictures show.
SALTED, TABLE, GAPS = "digits, 10 % black or white", "table, 5 % off by 5 sd", "digits, 60 % missing"


@dataclass
class Cell:
    """Data and what was done to them: ``X`` as given, ``truth``, where they differ, and labels if they have any."""

    X: Array
    truth: Array
    hit: Array
    y: Array | None = None


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
IMPUTERS: dict[str, Callable[[Array], Array]] = {
    "mean of the column": lambda X: SimpleImputer(keep_empty_features=True).fit_transform(X),
    "KNNImputer": lambda X: KNNImputer(keep_empty_features=True).fit_transform(X),
    OURS: lambda X: RobustGraphImputer().fit_transform(X),
}


def demo(
    output: Annotated[Path, typer.Option(help="Folder for the page; an earlier demo is replaced.")] = Path(
        "frpcag-demo"
    ),
    as_json: options.Json = False,
) -> None:
    """Repair wrong cells, find clusters and fill in missing values, and compare with the usual tools."""
    overwrite = read_run(output).get("command") == "demo"
    if output.exists() and not overwrite:
        raise InputError(f"--output={output} exists and is not the folder of a demo; pass another --output.")
    check_output(output, overwrite=overwrite)
    cells = wrong_cells()
    timer = Timer()
    with Bar(shown=not as_json) as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # spectral clustering warns of graphs in several pieces
        cleaned = _tried(bar, "cleaning", CLEANERS, cells, lambda clean, cell: clean(cell))
        timer.lap("cleaning")
        grouped = {name: cell for name, cell in (cells | tables()).items() if cell.y is not None}
        labels = _tried(bar, "clustering", CLUSTERERS, grouped, lambda f, cell: f(cell.X, len(np.unique(cell.y))))
        timer.lap("clustering")
        gaps = missing_values()
        filled = _tried(bar, "filling in", IMPUTERS, gaps, lambda fill, cell: fill(cell.X))
        timer.lap("filling in")
        bar.stage("drawing")
        record = {
            "command": "demo",
            "seed": SEED,
            "cleaning": _figures(cleaned, lambda name, result: _distance(result, cells[name].truth)),
            "clustering": _figures(labels, lambda name, result: clustering_error(grouped[name].y, result)),
            "missing": _figures(filled, lambda name, result: _distance_at_gaps(result, gaps[name])),
            "versions": library_versions(),
        }
        with run_folder(output, overwrite=overwrite) as folder:
            (folder / PAGE).write_text(_page(record, cells, cleaned, gaps, filled), encoding="utf-8")
            record["timings"] = {**timer.seconds, "page": timer.lap("page")}
            record["files"] = [PAGE]
            write_run(folder, record)
    if as_json:
        print_json(record)
    else:
        _print_summary(record, output)


def wrong_cells() -> dict[str, Cell]:
    """Return digits and a table with wrong cells, by what was done to them."""
    digits, table = load_dataset("digits"), load_breast_cancer()
    salted, hit = salt_and_pepper(digits.X, 0.1, random_state=SEED)
    zeroed, dead = missing_pixels(digits.X, 0.25, random_state=SEED)
    measured = scale(table.data).astype(np.float32)
    rng = np.random.default_rng(SEED)
    off = rng.random(measured.shape) < 0.05
    wrong = measured + np.float32(5) * off * rng.choice(np.array([-1, 1], np.float32), measured.shape)
    return {
        SALTED: Cell(salted, digits.X, hit, digits.y),
        "digits, 25 % dead": Cell(zeroed, digits.X, dead, digits.y),
        TABLE: Cell(wrong, measured, off),
    }


def tables() -> dict[str, Cell]:
    """Return data with classes and nothing wrong."""
    found = {}
    for name, X, y in (
        ("digits, clean", *_data(load_dataset("digits"))),
        ("wine", *load_wine(return_X_y=True)),
        ("breast cancer", *load_breast_cancer(return_X_y=True)),
    ):
        X = X if name.startswith("digits") else scale(X).astype(np.float32)
        found[name] = Cell(X, X, np.zeros(X.shape, bool), y)
    return found


def missing_values() -> dict[str, Cell]:
    """Return digits with missing pixels."""
    digits = load_dataset("digits")
    found = {}
    for share in (0.3, 0.6):
        hit = np.random.default_rng(SEED).random(digits.X.shape) < share
        found[f"digits, {100 * share:.0f} % missing"] = Cell(
            np.where(hit, np.float32(np.nan), digits.X), digits.X, hit, digits.y
        )
    return found


def _data(dataset) -> tuple[Array, Array]:
    return dataset.X, dataset.y


def _tried(bar: Bar, what: str, tools: dict, cells: dict[str, Cell], use: Callable) -> dict[str, dict[str, Array]]:
    """Return the result of every tool on every cell."""
    results: dict[str, dict[str, Array]] = {}
    total = len(tools) * len(cells)
    for done, (tool, name) in enumerate((tool, name) for tool in tools for name in cells):
        bar.advance(f"{what}: {tool}", done, total)
        results.setdefault(tool, {})[name] = use(tools[tool], cells[name])
    return results


def _figures(results: dict[str, dict[str, Array]], judge: Callable[[str, Array], float]) -> dict[str, dict[str, float]]:
    return {
        tool: {name: float(judge(name, result)) for name, result in of_tool.items()}
        for tool, of_tool in results.items()
    }


def _distance(result: Array, truth: Array) -> float:
    return float(np.linalg.norm(result - truth) / np.linalg.norm(truth - truth.mean(axis=0)))


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
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from frpcag.plots import plot_cell_map, plot_image_grid
    from frpcag.report.story import Finding, render_story

    show = np.arange(0, 10 * N_IMAGES, 10)

    def images(cell: Cell, given: str, results: dict[str, Array]) -> Any:
        rows = {given: cell.X, **results, "the truth": cell.truth}
        figure = plt.figure(figsize=(9, 4.4), layout="constrained")
        shown = {title: row[show] for title, row in rows.items()}
        return plot_image_grid(shown, load_dataset("digits").shape, n_images=N_IMAGES, signed=(), figure=figure)

    salted, gap, table = (of[name] for of, name in ((cells, SALTED), (gaps, GAPS), (cells, TABLE)))
    moved = table.X[:80] - cleaned[OURS][TABLE][:80]
    names = list(load_breast_cancer().feature_names)
    labels = record["clustering"]
    cell_map, ax = plt.subplots(figsize=(9, 6), layout="constrained")
    plot_cell_map(moved, (moved != 0).astype(float), feature_names=names, ax=ax)
    return render_story(
        "What frpcag does",
        "Wrong cells, clusters and missing values, on data that come with scikit-learn. No labels, no settings.",
        [
            Finding(
                "Wrong pixels are repaired, the others stay",
                "Distance to the true images, in % of their spread. PCA is told its best number of components.",
                _columns(record["cleaning"], lambda name: name != TABLE),
                images(
                    salted,
                    "as given: one pixel in ten is black or white",
                    {name: cleaned[name][SALTED] for name in ("robust PCA", OURS)},
                ),
                "Nothing tells frpcag which pixels are wrong, or what a digit looks like.",
            ),
            Finding(
                "So are wrong values in a table",
                "The breast cancer table, standardised; one value in twenty is off by five standard deviations.",
                _columns(record["cleaning"], lambda name: name == TABLE),
                cell_map,
                "The wrong cells that were found in 80 of its rows: red where a value is too high, blue where too low.",
            ),
            Finding(
                "Clusters, also of damaged data",
                "Samples in the wrong cluster, in %. Labels are used to count, not to choose. "
                + where_not_first(labels),
                labels,
            ),
            Finding(
                "Missing values are filled in",
                "Error at the missing pixels, in % of their standard deviation.",
                record["missing"],
                images(
                    gap,
                    "as given: 60 % of the pixels are missing (light blue)",
                    {name: filled[name][GAPS] for name in ("KNNImputer", OURS)},
                ),
                "Pixels are missing at random; every method sees the same ones.",
            ),
        ],
        closing="Next: frpcag clean FILE repairs a table of yours, frpcag fit FILE --clusters K finds its groups.",
    )


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


def _columns(rows: dict[str, dict[str, float]], wanted: Callable[[str], bool]) -> dict[str, dict[str, float]]:
    return {tool: {name: v for name, v in values.items() if wanted(name)} for tool, values in rows.items()}


def _print_summary(record: dict[str, Any], output: Path) -> None:
    console = Console(highlight=False, markup=False)
    for name, words in (
        ("cleaning", "Wrong cells: distance to the true data, in % of their spread"),
        ("clustering", "Clusters: samples in the wrong one, in %"),
        ("missing", "Missing values: error at the gaps, in % of their spread"),
    ):
        console.print(words)
        console.print(_table(record[name]))
        told = where_not_first(record[name])
        console.print(f"{told}\n" if told else "")
    console.print(f"Open {output / PAGE} in a browser for the pictures ({seconds_in_words(record['timings'])}).")


def _table(rows: dict[str, dict[str, float]]) -> Table:
    """Return shares in per cent, the least of each column in bold."""
    from frpcag.report.story import least

    best = least(rows)
    table = Table()
    table.add_column("", no_wrap=True)
    for column in best:
        table.add_column(column.replace(", ", ",\n"), justify="right")
    for name, values in rows.items():
        table.add_row(
            name, *(Text(f"{100 * v:.1f}", "bold green" if v == best[column] else "") for column, v in values.items())
        )
    return table
