"""Which distance of rows with missing entries finds neighbours of the same class: a choice and its losers.

Run with FRPCAG_DATA set: ``python benchmarks/masked_distances.py``. Prints, for data sets and shares of NaN, the share
of the ten nearest neighbours that have the label of their row, at most 1000 rows a set:

shared    mean squared difference over the entries both rows have (what the graphs take)
weighted  squared differences over the entries both rows have, over the sum of these features' variances
expected  missing entries as their feature's mean and variance: what the squared distance is on average
filled    missing entries as their feature's mean
"""

from __future__ import annotations

import numpy as np
from reproduction.corrupt import block_occlusion, missing_pixels

from cells import OTHERS, PAPER, load

K = 10
SHARES = (0.2, 0.4, 0.6, 0.8)


def shared(X: np.ndarray) -> np.ndarray:
    seen, F = (~np.isnan(X)).astype(float), np.nan_to_num(X)
    squares = np.square(F) @ seen.T
    return (squares + squares.T - 2 * F @ F.T) / np.maximum(seen @ seen.T, 1)


def weighted(X: np.ndarray) -> np.ndarray:
    seen, F, variance = (~np.isnan(X)).astype(float), np.nan_to_num(X), np.nanvar(X, axis=0)
    squares = np.square(F) @ seen.T
    return (squares + squares.T - 2 * F @ F.T) / np.maximum((seen * variance) @ seen.T, 1e-9 * variance.max())


def filled(X: np.ndarray) -> np.ndarray:
    F = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    size = np.square(F).sum(axis=1)
    return size[:, None] + size - 2 * F @ F.T


def expected(X: np.ndarray) -> np.ndarray:
    unknown = np.isnan(X) @ np.nanvar(X, axis=0)
    return filled(X) + unknown[:, None] + unknown


def same_class(D: np.ndarray, y: np.ndarray) -> float:
    """Return the share of each row's K nearest that have its label."""
    np.fill_diagonal(D, np.inf)
    nearest = np.argpartition(D, K, axis=1)[:, :K]
    return float(np.mean(y[nearest] == y[:, None]))


if __name__ == "__main__":
    print("| data | missing | shared | weighted | expected | filled |\n|---|---|---|---|---|---|")
    for name in PAPER + OTHERS:
        X, y, shape = load(name, max_samples=1000)
        X = X.astype(float)
        print(f"| {name} | none | {same_class(shared(X), y):.3f} | | | |")
        cases = {f"{share:.0%}": missing_pixels(X, share, value=np.nan, random_state=0)[0] for share in SHARES}
        if shape is not None:
            cases["a block of 25%"] = block_occlusion(X, shape, 0.25, value=np.nan, random_state=0)[0]
        for case, Y in cases.items():
            shares = [same_class(distance(Y), y) for distance in (shared, weighted, expected, filled)]
            print(f"| {name} | {case} | " + " | ".join(f"{share:.3f}" for share in shares) + " |", flush=True)
