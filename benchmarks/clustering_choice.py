"""Which clusterer to offer without labels: candidates over data sets and corruptions.

Run with FRPCAG_DATA set: ``python benchmarks/clustering_choice.py``. Appends one line a cell to
results/clustering_choice.jsonl and skips cells that are there, so it resumes where it stopped; ``--table`` prints the
summary alone, ``--library`` measures the library's own clusterer again, where an earlier rule was measured. Errors are
means over 5 seeds of k-means with 10 starts; the library's rule draws nothing for data of many features: one seed.
"""

from __future__ import annotations

import json
import sys
import warnings
from time import perf_counter

import numpy as np
from machine import RESULTS
from reproduction.evaluate.clustering import clustering_error
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from cells import OTHERS, cells
from frpcag import FRPCAG, FRPCAGClustering, build_graph
from frpcag.graphs import graph_from_weights
from frpcag.labels import spectral_embedding
from frpcag.labels.cleaned import WIDE

FILE = RESULTS / "clustering_choice.jsonl"
BASELINES = ("k-means X", "PCA + k-means", "spectral X")
SEEDS = range(5)
# Number of the library's rule, so that a run of ``--library`` goes on where it stopped.
RULE = 2


def error(points: np.ndarray, y: np.ndarray) -> float:
    k = len(np.unique(y))
    labels = (KMeans(k, n_init=10, random_state=seed).fit_predict(points) for seed in SEEDS)
    return float(np.mean([clustering_error(y, one) for one in labels]))


def library_error(X: np.ndarray, y: np.ndarray) -> float:
    """Return the mean error of what the library offers."""
    seeds = SEEDS if X.shape[1] < WIDE else SEEDS[:1]
    labels = (FRPCAGClustering(len(np.unique(y)), random_state=seed).fit_predict(X) for seed in seeds)
    return float(np.mean([clustering_error(y, one) for one in labels]))


def measure(X: np.ndarray, y: np.ndarray) -> dict:
    k = len(np.unique(y))
    X = X - X.mean(axis=0)

    def spectral(A) -> float:
        return error(spectral_embedding(graph_from_weights(A).laplacian, k, random_state=0), y)

    components = PCA(min(X.shape) - 1).fit_transform(X)
    errors = {"k-means X": error(components, y), "PCA + k-means": error(components[:, :k], y)}
    errors["spectral X"] = spectral(build_graph(X).weights)
    plain, refined = FRPCAG(random_state=0).fit(X), FRPCAG(random_state=0, n_refine=1).fit(X)
    kept = plain.sample_graph_.edges_kept_by(build_graph(plain.low_rank_))
    auto = refined if kept < 0.5 else plain
    errors["k-means U (the paper)"] = error(PCA(min(X.shape) - 1).fit_transform(plain.low_rank_), y)
    errors["spectral U"] = spectral(build_graph(plain.low_rank_).weights)
    errors["spectral U, always refined"] = spectral(build_graph(refined.low_rank_).weights)
    errors["spectral U, refined if < half kept"] = spectral(build_graph(auto.low_rank_).weights)
    errors["FRPCAGClustering"] = library_error(X, y)
    return {"edges_kept": kept, "errors": errors}


def table(rows: list[dict], title: str) -> None:
    best = np.array([min(row["errors"][name] for name in BASELINES) for row in rows])
    print(f"\n{title}: {len(rows)} cells, best of the three baselines in each cell {best.mean():.3f}")
    print(f"{'candidate':36s} {'mean':>6s} {'below all three':>16s} {'worst loss, points':>19s}")
    for name in rows[0]["errors"]:
        found = np.array([row["errors"][name] for row in rows])
        print(
            f"{name:36s} {found.mean():6.3f} {100 * (found < best).mean():14.0f} % {100 * (found - best).max():19.1f}"
        )


if __name__ == "__main__":
    RESULTS.mkdir(exist_ok=True)
    rows = [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.exists() else []
    if "--library" in sys.argv:  # measure what the library offers again, after a change
        warnings.simplefilter("ignore")
        by_cell = {(row["data"], row["corruption"]): row for row in rows}
        for name, corruption, X, y in cells():
            if (row := by_cell.get((name, corruption))) and row.get("rule") != RULE:
                start = perf_counter()
                row["errors"]["FRPCAGClustering"], row["rule"] = library_error(X, y), RULE
                FILE.write_text("".join(json.dumps(row) + "\n" for row in rows))
                took, error_now = perf_counter() - start, row["errors"]["FRPCAGClustering"]
                print(f"{name:10s} {corruption:14s} {error_now:.3f} {took:.0f} s", flush=True)
    elif "--table" not in sys.argv:
        warnings.simplefilter("ignore")
        done = {(row["data"], row["corruption"]) for row in rows}
        for name, corruption, X, y in cells():
            if (name, corruption) in done:
                continue
            start = perf_counter()
            rows.append(row := {"data": name, "corruption": corruption, "rule": RULE, **measure(X, y)})
            with FILE.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{name:10s} {corruption:14s} {perf_counter() - start:.0f} s", flush=True)
    table([row for row in rows if row["data"] not in OTHERS], "sets of the paper")
    table([row for row in rows if row["data"] in OTHERS], "other sets")
    table(rows, "all")
