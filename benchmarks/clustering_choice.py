"""Which clusterer to offer without labels: candidates over data sets and corruptions.

Run with FRPCAG_DATA set: ``python benchmarks/clustering_choice.py``. Appends one line a cell to
results/clustering_choice.jsonl and skips cells that are there, so it resumes where it stopped;
``--table`` prints the summary. Errors are means over 5 seeds of k-means with 10 starts.
"""

from __future__ import annotations

import json
import sys
import warnings
from itertools import combinations
from time import perf_counter

import numpy as np
from cells import cells
from machine import RESULTS
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

from frpcag import Problem, build_graph, solve
from frpcag.clustering import spectral_embedding
from frpcag.evaluate.clustering import clustering_error
from frpcag.graphs import graph_from_weights
from frpcag.problem import scale_free_gamma

FILE = RESULTS / "clustering_choice.jsonl"
BASELINES = ("k-means X", "PCA", "spectral X")
SEEDS = range(5)


def labelings(points: np.ndarray, k: int) -> list[np.ndarray]:
    return [KMeans(k, n_init=10, random_state=seed).fit_predict(points) for seed in SEEDS]


def error(labels: list[np.ndarray], y: np.ndarray) -> float:
    return float(np.mean([clustering_error(y, one) for one in labels]))


def stability(labels: list[np.ndarray]) -> float:
    return float(np.mean([adjusted_rand_score(a, b) for a, b in combinations(labels, 2)]))


def spectral(weights, k: int) -> list[np.ndarray]:
    return labelings(spectral_embedding(graph_from_weights(weights).laplacian, k, random_state=0), k)


def normalised(A):
    """Return the adjacency scaled to unit degrees, so that graphs of different data can be averaged."""
    degree = np.asarray(A.sum(axis=1)).ravel()
    s = 1 / np.sqrt(np.where(degree > 0, degree, 1))
    return A.multiply(s[:, None]).multiply(s[None, :]).tocsr()


def measure(X: np.ndarray, y: np.ndarray) -> dict:
    k = len(np.unique(y))
    X = X - X.mean(axis=0)
    G1, G2 = build_graph(X), build_graph(X, axis=1)
    units = [scale_free_gamma(G.laplacian, X, axis=axis) for axis, G in enumerate((G1, G2))]

    def clean(c1, c2, G1=G1, G2=G2, U0=None):
        problem = Problem(X, G1.laplacian, G2.laplacian, c1 * units[0], c2 * units[1])
        return solve(problem, U0=U0, max_iter=2000).U

    errors, extra = {}, {}
    errors["k-means X"] = error(labelings(PCA(min(X.shape) - 1).fit_transform(X), k), y)
    errors["PCA"] = error(labelings(PCA(min(k, *X.shape)).fit_transform(X), k), y)
    errors["spectral X"] = error(spectral(G1.weights, k), y)
    graphs, start = {}, None
    for c1 in (0.3, 1.0, 3.0):
        for c2 in (0.3, 1.0):
            U = start = clean(c1, c2, U0=start)
            graphs[c1, c2] = build_graph(U).weights
            labels = spectral(graphs[c1, c2], k)
            errors[f"U({c1:g},{c2:g})"] = error(labels, y)
            extra[f"U({c1:g},{c2:g})"] = stability(labels)
            if (c1, c2) == (1.0, 1.0):
                U11 = U
    errors["k-means U(1,1)"] = error(labelings(PCA(min(X.shape) - 1).fit_transform(U11), k), y)
    errors["most stable U"] = errors[max(extra, key=extra.get)]
    mean = sum(normalised(A) for A in graphs.values()) / len(graphs)
    errors["mean of 6 U"] = error(spectral(mean, k), y)
    errors["mean of 6 U and X"] = error(spectral(mean + normalised(G1.weights) / 2, k), y)
    three = sum(normalised(graphs[c, 1.0]) for c in (0.3, 1.0, 3.0)) / 3
    errors["mean of 3 U"] = error(spectral(three, k), y)
    wide = [normalised(build_graph(U11, n_neighbors=K).weights) for K in (5, 10, 20)]
    errors["U(1,1), K 5 10 20"] = error(spectral(sum(wide) / 3, k), y)
    for name, K in (("K=5", 5), ("K=7", 7), ("K=15", 15)):
        errors[f"U(1,1) {name}"] = error(spectral(build_graph(U11, n_neighbors=K).weights, k), y)
    R1, R2 = build_graph(U11), build_graph(U11, axis=1)
    U2 = clean(1.0, 1.0, R1, R2, U0=U11)
    refined = build_graph(U2).weights
    errors["refined U(1,1)"] = error(spectral(refined, k), y)
    errors["mean of U, refined"] = error(spectral(normalised(graphs[1.0, 1.0]) + normalised(refined), k), y)
    errors["mean of 6 U and refined"] = error(spectral(mean + normalised(refined), k), y)
    return {"errors": errors, "stability": extra}


def table(rows: list[dict]) -> None:
    names = list(rows[0]["errors"])
    best = np.array([min(row["errors"][b] for b in BASELINES) for row in rows])
    print(f"{'candidate':26s} {'mean':>6s} {'below all three':>16s} {'worst loss':>11s}   (cells: {len(rows)}, "
          f"best baseline per cell {best.mean():.3f})")  # fmt: skip
    for name in names:
        found = np.array([row["errors"][name] for row in rows])
        print(f"{name:26s} {found.mean():6.3f} {100 * (found < best).mean():14.0f} % {100 * (found - best).max():9.1f}")


if __name__ == "__main__":
    RESULTS.mkdir(exist_ok=True)
    rows = [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.exists() else []
    if "--table" not in sys.argv:
        warnings.simplefilter("ignore")
        done = {(row["data"], row["corruption"]) for row in rows}
        for name, corruption, X, y in cells():
            if (name, corruption) in done:
                continue
            start = perf_counter()
            rows.append(row := {"data": name, "corruption": corruption, **measure(X, y)})
            with FILE.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(name, corruption, f"{perf_counter() - start:.0f} s", flush=True)
    table(rows)
