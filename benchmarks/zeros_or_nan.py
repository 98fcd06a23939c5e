"""The same overwritten entries as zeros and as NaN: which clusters are better, and why.

Run with FRPCAG_DATA set: ``python benchmarks/zeros_or_nan.py``. The first 100 samples a class of sets of the
reproduction, 10, 20 and 40 % of the entries hit, three draws each. Appends one line a draw to
results/zeros_or_nan.jsonl and skips those that are there; ``--table`` prints the summary alone.

zeros   as zeros, unmarked; the clusterer looks for them
all     all that were hit are NaN
wrong   NaN only where the zero is wrong; the zeros that were zeros anyway stay
filled  all, but a gap gets the most common value where three quarters of its observed neighbours in the image have it
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
from machine import RESULTS
from reproduction.corrupt import missing_pixels
from reproduction.evaluate.clustering import clustering_error
from reproduction.paper.grid import load_set

from frpcag import FRPCAGClustering
from frpcag.cells.feature_graphs import grid_weights

FILE = RESULTS / "zeros_or_nan.jsonl"
SETS, SHARES, DRAWS = ("mnist", "usps", "pie"), (0.1, 0.2, 0.4), range(3)
PER_CLASS = 100
KINDS = ("zeros", "all", "wrong", "filled")


def measure(name: str, share: float, draw: int) -> dict:
    data = load_set(name)
    rows = np.concatenate([np.flatnonzero(data.y == one)[:PER_CLASS] for one in np.unique(data.y)])
    X, y = data.X[rows], data.y[rows]
    zeros, hit = missing_pixels(X, share, random_state=draw)
    wrong = hit & (X != 0)
    row = {"data": name, "share": share, "draw": draw, "right": round(1 - wrong.sum() / hit.sum(), 3)}
    gaps = {kind: np.where(marked, np.float32(np.nan), X) for kind, marked in (("all", hit), ("wrong", wrong))}
    for kind, Z in {"zeros": zeros, **gaps, "filled": filled(gaps["all"], data.shape)}.items():
        model = FRPCAGClustering(data.n_classes, random_state=0, n_jobs=1).fit(Z)
        A = model.estimator_.sample_graph_.weights.tocoo()
        row[kind] = {
            "error": round(clustering_error(y, model.labels_), 4),
            "missing": round(model.missing_share_, 3),
            "neighbours": round(float(np.mean(y[A.coords[0]] == y[A.coords[1]])), 3),
        }
    return row


def filled(X: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return the data with gaps on flat ground filled, where a fifth of the entries or more have one value."""
    seen = ~np.isnan(X)
    values, counts = np.unique(X[seen], return_counts=True)
    ground = values[counts.argmax()]
    if counts.max() < 0.2 * counts.sum():
        return X
    near = (grid_weights(*shape) != 0).astype(np.float32)
    there, equal = ((near @ A.T.astype(np.float32)).T for A in (seen, ground == X))
    return np.where(~seen & (there > 0) & (equal >= 0.74 * there), ground, X)


def table(rows: list[dict]) -> None:
    print(
        "| | zeros that are right | error: "
        + " / ".join(KINDS)
        + " | neighbours of the same class |\n|---|---|---|---|"
    )
    for name, share in dict.fromkeys((row["data"], row["share"]) for row in rows):
        here = [row for row in rows if (row["data"], row["share"]) == (name, share)]
        mean = {
            key: " / ".join(f"{np.mean([row[kind][key] for row in here]):.3f}" for kind in KINDS)
            for key in ("error", "neighbours")
        }
        right = np.mean([row["right"] for row in here])
        print(f"| {name}, {share:.0%} | {right:.2f} | {mean['error']} | {mean['neighbours']} |")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    rows = [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.exists() else []
    done = {(row["data"], row["share"], row["draw"]) for row in rows}
    todo = [(name, share, draw) for draw in DRAWS for name in SETS for share in SHARES]
    for cell in [] if "--table" in sys.argv else todo:
        if cell not in done:
            rows.append(measure(*cell))
            with FILE.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(json.dumps(rows[-1]), flush=True)
    table(rows)
