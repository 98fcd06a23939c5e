"""Whether to cluster whitened components: alone, added to the mixed graph, or by how tight the clusters are.

Run with FRPCAG_DATA set: ``python benchmarks/whitening_choice.py``. Appends one line a cell to
results/whitening_choice.jsonl and skips cells that are there; ``--table`` prints the summary alone. At most 800 samples
a cell; PIE: 40 lightings of 30 people. Errors are means of two seeds of k-means.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator

import numpy as np
from machine import RESULTS
from reproduction.evaluate.clustering import clustering_error
from reproduction.paper.grid import load_set
from sklearn.cluster import KMeans

from cells import CORRUPTIONS, cells, corrupt
from frpcag import FRPCAG, build_graph
from frpcag.estimators.clustering import CLUSTER_NEIGHBORS, RAW_SHARE
from frpcag.graphs import graph_from_weights
from frpcag.labels.spectral import spectral_embedding, unit_degrees
from frpcag.linalg.factorize import gram_svd

FILE = RESULTS / "whitening_choice.jsonl"


def all_cells() -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    pie = load_set("pie")
    yield from (("pie", one, corrupt(pie.X, pie.shape, one), pie.y) for one in CORRUPTIONS)
    yield from (cell for cell in cells(max_samples=800) if cell[0] != "pie")


def measure(X: np.ndarray, y: np.ndarray) -> dict:
    k = len(np.unique(y))
    X = X - X.mean(axis=0)
    model = FRPCAG(random_state=0, n_refine="auto").fit(X)
    U = model.low_rank_

    def graph(Z):
        return unit_degrees(build_graph(Z, n_neighbors=CLUSTER_NEIGHBORS))

    W, _, _ = gram_svd(U - U.mean(axis=0), min(2 * k, *U.shape))
    mixed = graph(U) + (RAW_SHARE * graph(X) if model.n_refine_ == 0 else 0 * graph(X))
    weights = {"U + X": mixed, "W, k": graph(W[:, :k]), "W, 2k": graph(W), "U + X + W, 2k": mixed + graph(W)}
    found = {}
    for name, A in weights.items():
        points = spectral_embedding(graph_from_weights(A).laplacian, k, random_state=0)
        runs = [KMeans(k, n_init=10, random_state=seed).fit(points) for seed in range(2)]
        errors = [clustering_error(y, run.labels_) for run in runs]
        found[name] = {"error": float(np.mean(errors)), "inertia": float(runs[0].inertia_ / len(X))}
    return found


def table(rows: list[dict]) -> None:
    def line(name, errors) -> None:
        others = [error for error, row in zip(errors, rows, strict=True) if row["data"] != "pie"]
        print(f"{name:46s} {np.mean(errors):6.3f} {np.mean(others):13.3f}")

    print(f"{len(rows)} cells\n{'graph that is clustered':46s} {'mean':>6s} {'without PIE':>13s}")
    for name in rows[0]["found"]:
        line(name, [row["found"][name]["error"] for row in rows])
    mixed, alone = "U + X + W, 2k", "W, 2k"
    for share in (0.3, 0.5, 0.8, 1.0):
        errors = []
        for row in rows:
            found = row["found"]
            tight = found[alone]["inertia"] < share * found[mixed]["inertia"]
            errors.append(found[alone if tight else mixed]["error"])
        line(f"{mixed}; W alone if its inertia is < {share:g}", errors)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    rows = [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.exists() else []
    if "--table" not in sys.argv:
        done = {(row["data"], row["corruption"]) for row in rows}
        for name, corruption, X, y in all_cells():
            if (name, corruption) not in done:
                rows.append(row := {"data": name, "corruption": corruption, "found": measure(X, y)})
                with FILE.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(name, corruption, flush=True)
    table(rows)
