"""frpcag demo: both jobs, clusters and cleaning, on digits that come with scikit-learn, corrupted here."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from frpcag import FRPCAG, FRPCAGClustering
from frpcag.cli import options
from frpcag.cli.errors import InputError
from frpcag.cli.pictures import save_embeddings, save_history, save_images, save_spectra
from frpcag.cli.progress import Bar
from frpcag.cli.runs import (
    Timer,
    certificate,
    certificate_in_words,
    check_output,
    library_versions,
    print_json,
    read_run,
    run_folder,
    seconds_in_words,
    write_run,
)
from frpcag.data import load_dataset, missing_pixels, salt_and_pepper
from frpcag.evaluate import clustering_error, relative_error

Array = np.ndarray

# Pixels set to zero are the paper's corruption, up to 40 %. The pictures show the last one.
CORRUPTIONS: dict[str, tuple[Callable[..., tuple[Array, Array]], float]] = {
    "none": (missing_pixels, 0.0),
    "25 % zero": (missing_pixels, 0.25),
    "40 % zero": (missing_pixels, 0.4),
    "25 % black or white": (salt_and_pepper, 0.25),
}
# Each seed draws its own corruption and starts its own k-means.
SEEDS = range(5)
N_CLUSTERS = 10
N_COMPONENTS = 10

# From corrupted data, the pixels hit, and a seed to labels. Only the last method is told which pixels were hit.
METHODS: dict[str, Callable[[Array, Array, int], Array]] = {
    "k-means on the pixels": lambda X, hit, seed: _kmeans(X, seed),
    "PCA + k-means": lambda X, hit, seed: _kmeans(PCA(N_COMPONENTS, random_state=seed).fit_transform(X), seed),
    "spectral clustering": lambda X, hit, seed: SpectralClustering(
        N_CLUSTERS, affinity="nearest_neighbors", n_neighbors=10, random_state=seed
    ).fit_predict(X),
    "FRPCAG, k-means on U (the paper)": lambda X, hit, seed: FRPCAGClustering(
        N_CLUSTERS, assign="kmeans", random_state=seed
    ).fit_predict(X),
    "FRPCAGClustering (default)": lambda X, hit, seed: FRPCAGClustering(N_CLUSTERS, random_state=seed).fit_predict(X),
    "the same, hit pixels as NaN": lambda X, hit, seed: FRPCAGClustering(N_CLUSTERS, random_state=seed).fit_predict(
        _as_missing(X, hit)
    ),
}


def demo(
    output: Annotated[Path, typer.Option(help="Folder of the pictures; an earlier demo is replaced.")] = Path(
        "frpcag-demo"
    ),
    as_json: options.Json = False,
) -> None:
    """Clean and cluster corrupted digits, beside k-means, PCA and spectral clustering."""
    overwrite = read_run(output).get("command") == "demo"
    if output.exists() and not overwrite:
        raise InputError(f"--output={output} exists and is not the folder of a demo; pass another --output.")
    check_output(output, overwrite=overwrite)
    digits = load_dataset("digits")
    # These data are small: more threads would wait for each other longer than they work.
    with Bar(shown=not as_json) as bar, threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # spectral clustering warns of graphs in several pieces
        timer = Timer()
        errors = _errors(digits.X, digits.y, bar)
        timer.lap("clustering")
        bar.stage("cleaning")
        distances, X, model = _cleaned(digits.X)
        timer.lap("cleaning")
        record = _record(X, model, errors, distances)
        bar.stage("drawing")
        with run_folder(output, overwrite=overwrite) as folder:
            _draw(folder, digits, X, model)
            record["timings"] = {**timer.seconds, "pictures": timer.lap("pictures")}
            record["files"] = sorted(path.name for path in folder.iterdir())
            write_run(folder, record)
    if as_json:
        print_json(record)
    else:
        _print_summary(record, output)


def _kmeans(points: Array, seed: int) -> Array:
    return KMeans(N_CLUSTERS, n_init=10, random_state=seed).fit_predict(points)


def _as_missing(X: Array, hit: Array) -> Array:
    return np.where(hit, np.float32(np.nan), X)


def _errors(clean: Array, y: Array, bar: Bar) -> dict[str, dict[str, float]]:
    """Return the mean clustering error of each method under each corruption."""
    errors: dict[str, dict[str, float]] = {name: {} for name in METHODS}
    total = len(CORRUPTIONS) * len(SEEDS) * len(METHODS)
    done = 0
    for corruption, (corrupt, share) in CORRUPTIONS.items():
        seen: dict[str, list[float]] = {name: [] for name in METHODS}
        for seed in SEEDS:
            X, hit = corrupt(clean, share, random_state=seed)
            for name, cluster in METHODS.items():
                bar.advance(f"clustering ({corruption})", done, total)
                seen[name].append(clustering_error(y, cluster(X, hit, seed)))
                done += 1
        for name in METHODS:
            errors[name][corruption] = float(np.mean(seen[name]))
    return errors


def _cleaned(clean: Array) -> tuple[dict[str, dict[str, float]], Array, FRPCAG]:
    """Return each method's distance to the clean images, and the last corrupted data with their model."""
    distances: dict[str, dict[str, float]] = {}
    for corruption, (corrupt, share) in CORRUPTIONS.items():
        X, _ = corrupt(clean, share, random_state=SEEDS[0])
        pca = PCA(N_COMPONENTS, random_state=SEEDS[0]).fit(X)
        model = FRPCAG(random_state=SEEDS[0]).fit(X)
        guesses = {
            "as given": X,
            f"PCA, {N_COMPONENTS} components": pca.inverse_transform(pca.transform(X)),
            "FRPCAG": model.low_rank_,
        }
        for name, guess in guesses.items():
            distances.setdefault(name, {})[corruption] = relative_error(guess, clean)
    return distances, X, model


def _record(X: Array, model: FRPCAG, errors, distances) -> dict[str, Any]:
    return {
        "command": "demo",
        "data": {"name": "digits", "n_samples": X.shape[0], "n_features": X.shape[1], "dtype": str(X.dtype)},
        "corruptions": {name: share for name, (_, share) in CORRUPTIONS.items()},
        "clustering": {"seeds": list(SEEDS), "error": errors},
        "cleaning": {"seed": SEEDS[0], "distance": distances},
        "gamma1": model.gamma1_,
        "gamma2": model.gamma2_,
        "certificate": certificate(model),
        "fit_timings": model.timings_,
        "versions": library_versions(),
    }


def _draw(folder: Path, digits, X: Array, model: FRPCAG) -> None:
    rows = {
        "original": digits.X,
        f"corrupted X ({list(CORRUPTIONS)[-1]})": X,
        "cleaned U": model.low_rank_,
        "S = X - U": model.sparse_,
    }
    save_images(folder, rows, digits.shape, n_images=10)
    pca = PCA().fit(X)
    save_embeddings(folder, {"PCA": pca.transform(X), "FRPCAG": model.embedding_}, digits.y)
    save_spectra(folder, {"corrupted X": pca.singular_values_, "cleaned U": model.singular_values_})
    save_history(folder, model)


def _print_summary(record: dict[str, Any], output: Path) -> None:
    console = Console(highlight=False, markup=False)
    data = record["data"]
    console.print(f"{data['n_samples']} handwritten digits of 8 x 8 pixels, corrupted at random.\n")
    console.print(f"Clusters: samples in the wrong one of {N_CLUSTERS}, in %, mean of {len(SEEDS)} seeds")
    console.print(_table(record["clustering"]["error"]))
    console.print("\nCleaning: distance to the true images, in % of their norm")
    console.print(_table(record["cleaning"]["distance"]))
    rows = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    rows.add_column(style="bold", no_wrap=True)
    rows.add_column(overflow="fold")
    rows.add_row("certificate", certificate_in_words(record["certificate"]))
    rows.add_row("one fit", seconds_in_words(record["fit_timings"]))
    rows.add_row("the demo", seconds_in_words(record["timings"]))
    rows.add_row("pictures", ", ".join(str(output / name) for name in record["files"]))
    console.print()
    console.print(rows)


def _table(rows: dict[str, dict[str, float]]) -> Table:
    """Return shares in per cent, the least of each column in bold."""
    columns = list(next(iter(rows.values())))
    best = {column: min(values[column] for values in rows.values()) for column in columns}
    table = Table()
    table.add_column("pixels hit", no_wrap=True)
    for column in columns:
        table.add_column(column.replace(" % ", " %\n"), justify="right", no_wrap=True)
    for name, values in rows.items():
        cells = (
            Text(f"{100 * value:.1f}", "bold" if value == best[column] else "") for column, value in values.items()
        )
        table.add_row(name, *cells)
    return table
