"""New rows with gross errors: how near `denoise` brings them to the truth, beside PCA and the nearest neighbour.

Run with FRPCAG_DATA set: ``python benchmarks/transform.py``. Writes results/transform.json. Distances are relative to
the distance of the held-back rows from the training mean.
"""

from __future__ import annotations

import warnings
from time import perf_counter

import numpy as np
from machine import write_result
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances_argmin

from cells import load
from frpcag import FRPCAG
from frpcag.data.corrupt import block_occlusion, missing_pixels, salt_and_pepper

SETS = (("orl", 300, 100), ("yale", 120, 45), ("usps", 1200, 300), ("coil20", 1140, 300), ("mfeat", 1200, 300))
CORRUPTIONS = {
    "clean": lambda X, shape: X,
    "block25": lambda X, shape: None if shape is None else block_occlusion(X, shape, 0.25, random_state=0)[0],
    "zeros40": lambda X, shape: missing_pixels(X, 0.4, random_state=0)[0],
    "black/white20": lambda X, shape: salt_and_pepper(X, 0.2, random_state=0)[0],
    "NaN60": lambda X, shape: missing_pixels(X, 0.6, value=np.nan, random_state=0)[0],
}


def measure(name: str, n_train: int, n_test: int) -> list[dict]:
    X, _, shape = load(name)
    order = np.random.default_rng(1).permutation(len(X))
    train, test = X[order[:n_train]], X[order[n_train : n_train + n_test]]
    model = FRPCAG(random_state=0).fit(train)
    pca = PCA(min(50, n_train - 1)).fit(train)
    unit = np.linalg.norm(test - train.mean(axis=0))
    rows = []
    for corruption, corrupt in CORRUPTIONS.items():
        if (Z := corrupt(test, shape)) is None:
            continue
        filled = np.where(np.isnan(Z), train.mean(axis=0), Z)
        start = perf_counter()
        ours = model.denoise(Z)
        seconds = perf_counter() - start
        joint = FRPCAG(random_state=0).fit(np.vstack([train, Z])).low_rank_[n_train:]
        guesses = {
            "as given": filled,
            "PCA": pca.inverse_transform(pca.transform(filled)),
            "nearest": train[pairwise_distances_argmin(filled, train)],
            "denoise": ours,
            "joint fit": joint,
        }
        errors = {key: float(np.linalg.norm(guess - test) / unit) for key, guess in guesses.items()}
        rows.append(
            {
                "data": name,
                "corruption": corruption,
                **errors,
                "denoise to joint": float(np.linalg.norm(ours - joint) / unit),
                "ms_per_row": 1e3 * seconds / n_test,
            }
        )
        print(
            "  ".join(f"{k} {v:.3f}" if isinstance(v, float) else f"{v:13s}" for k, v in rows[-1].items()), flush=True
        )
    return rows


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    rows = [row for arguments in SETS for row in measure(*arguments)]
    means = {
        key: float(np.mean([row[key] for row in rows]))
        for key in ("as given", "PCA", "nearest", "denoise", "joint fit")
    }
    print("means:", {key: round(value, 3) for key, value in means.items()})
    write_result("transform", {"rows": rows, "means": means})
