"""Figures of the front pages by name, each computed from a record in results/; `check_figures.py` compares them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "results"
IMAGES = ("orl", "usps", "mnist", "coil20", "yale", "pie")


@cache
def record(name: str) -> Any:
    """Return ``results/name``, a JSON file or a list of JSON lines."""
    text = (RESULTS / name).read_text()
    return [json.loads(line) for line in text.splitlines()] if name.endswith("l") else json.loads(text)


@cache
def cleaning() -> dict[tuple[str, str], dict[str, float]]:
    """Return errors by cell and method: at most 300 samples a set, damaged data only."""
    cells: dict[tuple[str, str], dict[str, float]] = {}
    for row in record("cleaning.jsonl"):
        if row["most"] == 300 and row["corruption"] != "clean":
            cells.setdefault((row["data"], row["corruption"]), {})[row["method"]] = row["error"]
    return cells


def images(method: str) -> float:
    """Return the mean error on images, in % of their spread."""
    return 100 * mean(cell[method] for (data, _), cell in cleaning().items() if data in IMAGES)


def tables(method: str) -> float:
    """Return the mean error on tables, in % of their spread."""
    return 100 * mean(cell[method] for (data, _), cell in cleaning().items() if data not in IMAGES)


def won(of_images: bool) -> int:
    """Return in how many cells ours is below RPCA and best-rank PCA."""
    cells = [cell for (data, _), cell in cleaning().items() if (data in IMAGES) == of_images]
    return sum(cell["ours"] < min(cell["rpca"], cell["pca"]) for cell in cells)


def total(of_images: bool) -> int:
    """Return how many cells there are."""
    return sum((data in IMAGES) == of_images for data, _ in cleaning())


@cache
def clusters() -> dict[tuple[str, str], dict[str, float]]:
    """Return clustering errors of the paper's cells by model, mean over the seeds."""
    cells: dict[tuple[str, str], dict[str, float]] = {}
    for row in record("clustering/records.jsonl"):
        at = row["cell"]
        if "best" in row:  # the record of all labellers has none
            cells.setdefault((at["data"], at["corruption"]), {})[at["model"]] = row["best"]["error_mean"]
    return cells


def clustering(model: str) -> float:
    """Return the mean clustering error of a model over the paper's cells, in %."""
    return 100 * mean(cell[model] for cell in clusters().values())


def first() -> int:
    """Return in how many cells our clusterer has the smallest error of those that see no labels."""
    rivals = ("k-means", "spectral clustering", "UMAP + k-means")
    return sum(cell["FRPCAGClustering"] <= min(cell[name] for name in rivals) for cell in clusters().values())


def n_cells() -> int:
    """Return how many cells of the paper there are."""
    return len(clusters())


def front(name: str) -> float:
    """Return a figure of the picture on the front page."""
    return record("front_page.json")[name]
