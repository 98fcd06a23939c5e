"""Clusters of tables: the library's default beside k-means and spectral clustering, as adjusted Rand index.

Run ``python benchmarks/clustering_tables.py``. Real tables, raw and standardised, and made ones that nothing was chosen
on: overlapping, uneven and long clusters, heavy tails, outlying rows, mixed units, categories, duplicates. Writes
results/clustering_tables.jsonl and prints the table; seeds 0 to 2 where data are drawn.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator

import numpy as np
from machine import RESULTS
from sklearn import datasets
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale

from frpcag import FRPCAGClustering

FILE = RESULTS / "clustering_tables.jsonl"


def real_tables() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    for name in ("iris", "wine", "breast_cancer", "digits"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield f"{name}, raw", X, y
        yield f"{name}, standardised", scale(X), y


def made_tables(seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed + 100)
    blobs = {"random_state": seed + 100}
    yield "overlapping, 2 columns", *datasets.make_blobs(400, 2, centers=4, cluster_std=1.5, **blobs)
    yield "overlapping, 15 columns", *datasets.make_blobs(300, 15, centers=5, cluster_std=5, **blobs)
    X, y = datasets.make_blobs(400, 8, centers=3, cluster_std=2, **blobs)
    yield "long", X @ rng.normal(size=(8, 8)), y
    yield "mixed units", X * 10.0 ** rng.uniform(-2, 3, 8), y
    yield "heavy tails", X + 0.7 * rng.standard_t(2, size=X.shape), y
    yield "20 columns of noise", np.column_stack([X, 3 * rng.normal(size=(400, 20))]), y
    yield "3 % outlying rows", X * np.where(rng.random(400) < 0.03, 20, 1)[:, None], y
    yield "uneven", *datasets.make_blobs([300, 60, 30], 5, cluster_std=[1, 2.5, 0.5], **blobs)
    yield "moons", *datasets.make_moons(400, noise=0.1, **blobs)
    yield "circles", *datasets.make_circles(400, noise=0.05, factor=0.5, **blobs)
    y = rng.integers(0, 3, 500)
    often = np.where(np.arange(12) % 3 == y[:, None], 0.8, 0.2)
    yield "categories", np.column_stack([rng.random((500, 12)) < often, rng.normal(size=(500, 2)) + y[:, None]]), y
    yield "duplicates", np.round(0.7 * rng.normal(size=(500, 4)) + 3 * np.eye(4)[y]), y


def scores(X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    k = len(np.unique(y))
    methods = {
        "k-means": KMeans(k, n_init=10, random_state=0),
        "spectral": SpectralClustering(k, affinity="nearest_neighbors", random_state=0, n_jobs=1),
        "FRPCAGClustering": FRPCAGClustering(k, random_state=0),
    }
    return {name: round(adjusted_rand_score(y, method.fit_predict(X)), 3) for name, method in methods.items()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    tables = [*real_tables(), *(table for seed in range(3) for table in made_tables(seed))]
    rows = []
    for name, X, y in tables:
        rows.append({"data": name, "shape": X.shape, **scores(np.asarray(X, float), y)})
        ahead = rows[-1]["FRPCAGClustering"] - max(rows[-1]["k-means"], rows[-1]["spectral"])
        columns = "  ".join(f"{rows[-1][method]:.2f}" for method in ("k-means", "spectral", "FRPCAGClustering"))
        print(f"{name:26s} {columns}  {ahead:+.2f}", flush=True)
    RESULTS.mkdir(exist_ok=True)
    FILE.write_text("".join(json.dumps(row) + "\n" for row in rows))
