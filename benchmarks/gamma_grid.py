"""How far the clusterer without labels is from one whose gammas the labels chose: a 10 x 10 grid a cell.

Run with FRPCAG_DATA set: ``python benchmarks/gamma_grid.py``. Appends one line a cell to results/gamma_grid.jsonl and
skips cells that are there; ``--table`` prints the summary alone. At most 400 samples a cell; PIE, which would have six
a class, is left out. The grid is in the library's own unit (``gamma = c / mean|2 L X|``); every pair is tried with one
seed, the five best of them and the library's own choice with five seeds, so the label-tuned figure is optimistic. The
grid labels with ``assign="spectral"``; the library's own choice is ``assign="auto"``. ``--library`` does it again.
"""

from __future__ import annotations

import json
import sys
import warnings
from itertools import product
from time import perf_counter

import numpy as np
from machine import RESULTS
from reproduction.evaluate.clustering import clustering_error

from cells import cells
from frpcag import FRPCAG, FRPCAGClustering

FILE = RESULTS / "gamma_grid.jsonl"
UNITS = np.geomspace(0.05, 5, 10)
SEEDS = range(5)


def error(seeds, X: np.ndarray, y: np.ndarray, **gammas: float) -> float:
    """Return the mean error, with gammas by one way to label, without them by the library's own choice."""
    k, assign = len(np.unique(y)), "spectral" if gammas else "auto"
    model = FRPCAG(n_refine="auto", n_jobs=1, **gammas)
    models = (FRPCAGClustering(k, model, assign=assign, random_state=seed, n_jobs=1) for seed in seeds)
    return float(np.mean([clustering_error(y, model.fit_predict(X)) for model in models]))


def measure(X: np.ndarray, y: np.ndarray) -> dict:
    unit = FRPCAG(random_state=0, max_iter=1, tol=1).fit(X)

    def gammas(c1: float, c2: float) -> dict:
        return {"gamma1": c1 * unit.gamma1_, "gamma2": c2 * unit.gamma2_}

    grid = {pair: error([0], X, y, **gammas(*pair)) for pair in product(UNITS, UNITS)}
    best = sorted(grid, key=grid.__getitem__)[:5]
    again = {pair: error(SEEDS, X, y, **gammas(*pair)) for pair in best}
    tuned = min(again, key=again.__getitem__)
    return {
        "label_free": error(SEEDS, X, y),
        "label_tuned": again[tuned],
        "label_tuned_pair": [float(c) for c in tuned],
        "grid": [[grid[c1, c2] for c2 in UNITS] for c1 in UNITS],
    }


def table(rows: list[dict]) -> None:
    print(f"{'data':10s} {'corruption':14s} {'no labels':>9s} {'by labels':>9s} {'points':>7s}  c1, c2 of the labels")
    for row in rows:
        loss = 100 * (row["label_free"] - row["label_tuned"])
        c1, c2 = row["label_tuned_pair"]
        print(
            f"{row['data']:10s} {row['corruption']:14s} {row['label_free']:9.3f} {row['label_tuned']:9.3f} {loss:7.1f}"
            f"  {c1:.2f}, {c2:.2f}"
        )
    loss = np.array([100 * (row["label_free"] - row["label_tuned"]) for row in rows])
    print(f"{len(rows)} cells: {loss.mean():.1f} points behind on average, {loss.max():.1f} at worst")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    RESULTS.mkdir(exist_ok=True)
    rows = [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.exists() else []
    if "--library" in sys.argv:  # measure what the library offers again, after a change
        by_cell = {(row["data"], row["corruption"]): row for row in rows}
        for name, corruption, X, y in cells(max_samples=400):
            if row := by_cell.get((name, corruption)):
                row["label_free"] = error(SEEDS, X, y)
                print(name, corruption, row["label_free"], flush=True)
        FILE.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif "--table" not in sys.argv:
        done = {(row["data"], row["corruption"]) for row in rows}
        for name, corruption, X, y in cells(max_samples=400):
            if name == "pie" or (name, corruption) in done:
                continue
            start = perf_counter()
            rows.append(row := {"data": name, "corruption": corruption, **measure(X, y)})
            with FILE.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{name:10s} {corruption:14s} {perf_counter() - start:.0f} s", flush=True)
    table(rows)
