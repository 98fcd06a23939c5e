"""New rows with gross errors: how near `denoise` brings them to the truth, and how long a row takes.

Run with FRPCAG_DATA set: ``python benchmarks/transform.py``. Writes results/transform.json. Distances are relative to
the distance of the held-back rows from the training mean. Milliseconds a row are the median of repeated calls, for a
row alone and in batches of 1000. ``--stream`` also takes a million made rows of 64 features through, in batches.
"""

from __future__ import annotations

import sys
import warnings
from statistics import median
from time import perf_counter

import numpy as np
from machine import write_result
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances_argmin

from cells import load
from frpcag import FRPCAG
from frpcag.baselines import RPCA
from frpcag.data.corrupt import block_occlusion, missing_pixels, salt_and_pepper

SETS = (("orl", 300, 100), ("yale", 120, 45), ("usps", 1200, 300), ("coil20", 1140, 300), ("mfeat", 1200, 300))
CORRUPTIONS = {
    "clean": lambda X, shape: X,
    "block25": lambda X, shape: None if shape is None else block_occlusion(X, shape, 0.25, random_state=0)[0],
    "zeros40": lambda X, shape: missing_pixels(X, 0.4, random_state=0)[0],
    "black/white20": lambda X, shape: salt_and_pepper(X, 0.2, random_state=0)[0],
    "NaN60": lambda X, shape: missing_pixels(X, 0.6, value=np.nan, random_state=0)[0],
}
BATCH, STREAM = 1000, 10**6


def milliseconds(call, rows: np.ndarray, repeats: int) -> float:
    """Return the median time of a row."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        call(rows)
        times.append(perf_counter() - start)
    return 1e3 * median(times) / len(rows)


def directions(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and row space of the low-rank part that RPCA finds."""
    low_rank = RPCA(max_iter=60).fit(X).low_rank_
    mean = low_rank.mean(axis=0)
    return mean, np.linalg.svd(low_rank - mean, full_matrices=False)[2][:50]


def measure(name: str, n_train: int, n_test: int) -> list[dict]:
    X, _, shape = load(name)
    order = np.random.default_rng(1).permutation(len(X))
    train, test = X[order[:n_train]], X[order[n_train : n_train + n_test]]
    model = FRPCAG(random_state=0).fit(train)
    start = perf_counter()
    model.denoise(test[:1])
    first = perf_counter() - start
    pca = PCA(min(50, n_train - 1)).fit(train)
    middle, V = directions(train)
    unit = np.linalg.norm(test - train.mean(axis=0))
    rows = []
    for corruption, corrupt in CORRUPTIONS.items():
        if (Z := corrupt(test, shape)) is None:
            continue
        filled = np.where(np.isnan(Z), train.mean(axis=0), Z)
        guesses = {
            "as given": filled,
            "PCA": pca.inverse_transform(pca.transform(filled)),
            "RPCA, projected": (filled - middle) @ V.T @ V + middle,
            "nearest": train[pairwise_distances_argmin(filled, train)],
            "denoise": model.denoise(Z),
        }
        errors = {key: float(np.linalg.norm(guess - test) / unit) for key, guess in guesses.items()}
        batch = np.resize(Z, (BATCH, Z.shape[1]))
        times = {
            "ms_per_row": milliseconds(model.denoise, batch, 3),
            "ms_alone": milliseconds(model.denoise, Z[:1], 20),
            "prepared_seconds": first,
        }
        rows.append({"data": name, "corruption": corruption, **errors, **times})
        print(
            "  ".join(f"{k} {v:.3f}" if isinstance(v, float) else f"{v:13s}" for k, v in rows[-1].items()), flush=True
        )
    return rows


def stream() -> dict:
    """Return the seconds that a million rows of 64 features take against 1500 training rows."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(10, 64)).astype(np.float32)

    def make(n: int) -> np.ndarray:
        return (rng.normal(size=(n, 10)) @ A + 0.1 * rng.normal(size=(n, 64))).astype(np.float32)

    model = FRPCAG(random_state=0).fit(make(1500))
    rows = make(100_000)
    rows[rng.random(rows.shape) < 0.05] += 10
    start = perf_counter()
    for _ in range(STREAM // len(rows)):
        model.transform(rows)
    return {"rows": STREAM, "features": 64, "seconds": perf_counter() - start}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if "--stream" in sys.argv:
        found = {"stream": stream()}
        print(found)
    else:
        found = {}
    rows = [row for arguments in SETS for row in measure(*arguments)]
    means = {
        key: float(np.mean([row[key] for row in rows]))
        for key in ("as given", "PCA", "RPCA, projected", "nearest", "denoise")
    }
    print("means:", {key: round(value, 3) for key, value in means.items()})
    write_result("transform", {"rows": rows, "means": means, **found})
