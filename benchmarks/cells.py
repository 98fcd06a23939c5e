"""The cells that clustering choices are judged on: real data sets times corruptions, at most 1500 samples each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from reproduction.corrupt import block_occlusion, missing_pixels, salt_and_pepper
from reproduction.datasets import load_dataset

# The sets of the paper, on which choices are made; and others, on which they are checked.
PAPER = ("yale", "orl", "usps", "coil20", "mfeat", "pie")
OTHERS = ("digits", "mnist", "scrna_worm")
CORRUPTIONS = ("clean", "zeros20", "zeros40", "block25", "black/white25")


def load(name: str, *, max_samples: int = 1500) -> tuple[np.ndarray, np.ndarray, tuple[int, int] | None]:
    """Return data, labels and image shape: ORL at half size, MFEAT without pixels, counts as log(1 + rate)."""
    data = load_dataset(name)
    X, y, shape = data.X.astype(np.float32), data.y, data.shape
    if name == "orl":
        X, shape = X.reshape(-1, 56, 2, 46, 2).mean(axis=(2, 4)).reshape(len(X), -1), (56, 46)
    if name == "mfeat":
        X = X[:, data.view != 4]
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    if name == "scrna_worm":
        X = np.log1p(X / data.libsize[:, None] * 1e4).astype(np.float32)
    if len(X) > max_samples:
        keep = np.sort(np.random.default_rng(0).permutation(len(X))[:max_samples])
        X, y = X[keep], y[keep]
    return X, y, shape


def corrupt(X: np.ndarray, shape, corruption: str) -> np.ndarray | None:
    """Return corrupted data; None where the corruption needs an image and there is none."""
    if corruption.startswith("zeros"):
        return missing_pixels(X, int(corruption[5:]) / 100, random_state=0)[0]
    if corruption.startswith("black/white"):
        return salt_and_pepper(X, int(corruption[11:]) / 100, random_state=0)[0]
    if corruption.startswith("block"):
        return None if shape is None else block_occlusion(X, shape, int(corruption[5:]) / 100, random_state=0)[0]
    return X


def cells(*, max_samples: int = 1500) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """Yield (data set, corruption, X, y)."""
    for name in sorted(PAPER + OTHERS, key=lambda name: name == "pie"):  # the slowest, 68 classes, last
        X, y, shape = load(name, max_samples=max_samples)
        for corruption in CORRUPTIONS if name != "scrna_worm" else ("clean",):
            if (Xc := corrupt(X, shape, corruption)) is not None:
                yield name, corruption, Xc, y
