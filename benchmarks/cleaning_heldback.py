"""Cleaning of data that the method was not built on: made tables, scikit-learn's small sets and its two photographs.

``python benchmarks/cleaning_heldback.py [--table]`` writes one JSON line a cell to results/cleaning_heldback.jsonl, and
goes on where it stopped. Corruptions and errors are those of benchmarks/cleaning.py, with two more kinds of damage:
random values inside the range, and blocks of half that size.
"""

from __future__ import annotations

import json
import sys
import warnings
from time import perf_counter

import numpy as np
from cleaning import best_rank, corrupt, error
from machine import RESULTS
from sklearn.datasets import (
    load_digits,
    load_iris,
    load_linnerud,
    load_sample_image,
    make_blobs,
    make_friedman1,
    make_low_rank_matrix,
    make_regression,
    make_sparse_coded_signal,
    make_swiss_roll,
)

from frpcag import RobustGraphCleaner

Array = np.ndarray

RECORDS = RESULTS / "cleaning_heldback.jsonl"
KINDS = ("clean", "salt10", "salt25", "zero25", "zero40", "sd5", "random10", "block12", "block25")


def patches(name: str, side: int = 16, n: int = 400) -> Array:
    """Return grey patches of a photograph."""
    rng = np.random.default_rng(3)
    image = load_sample_image(name).mean(axis=2) / 255
    tops, lefts = (rng.integers(0, length - side, size=n) for length in image.shape)
    return np.stack([image[t : t + side, w : w + side].ravel() for t, w in zip(tops, lefts, strict=True)])


def data_sets():
    """Yield name, matrix and image shape."""
    rng = np.random.default_rng(4)
    X, y = make_regression(400, 12, n_informative=5, noise=5, random_state=0)
    houses = np.column_stack([
        rng.lognormal(1, 0.5, 500), rng.integers(1, 52, 500), rng.lognormal(1.6, 0.3, 500), rng.lognormal(7, 0.7, 500),
        rng.normal(35, 2, 500), rng.normal(-119, 2, 500),
    ])  # fmt: skip
    houses = np.column_stack([houses, houses[:, 2] * 0.2 + 0.05 * rng.normal(size=500), houses[:, 0] * 5e4])
    friedman, target = make_friedman1(400, 10, noise=0.5, random_state=0)
    roll, at = make_swiss_roll(500, noise=0.05, random_state=0)
    codes, *_ = make_sparse_coded_signal(300, n_components=60, n_features=40, n_nonzero_coefs=3, random_state=0)
    tables = {
        "iris": load_iris().data,
        "linnerud": np.hstack([load_linnerud().data, load_linnerud().target]),
        "houses": houses,
        "regression": np.column_stack([X, y]),
        "friedman": np.column_stack([friedman, target]),
        "blobs": make_blobs(400, 20, centers=8, random_state=0)[0],
        "low rank": make_low_rank_matrix(300, 60, effective_rank=6, random_state=0),
        "swiss roll": np.column_stack([roll, at, np.sin(at), np.cos(at)]),
        "sparse codes": codes,
    }
    for name, Z in tables.items():
        spread = Z.std(axis=0)
        yield name, (Z - Z.mean(axis=0)) / np.where(spread > 0, spread, 1), None
    yield "digits", load_digits().data[:400] / 16, (8, 8)
    yield "china", patches("china.jpg"), (16, 16)
    yield "flower", patches("flower.jpg"), (16, 16)


def damage(X: Array, shape, kind: str):
    """Return the damaged matrix and where; None where an image is needed."""
    if kind != "random10":
        return corrupt(X, shape, kind)
    rng = np.random.RandomState(2)
    hit = rng.rand(*X.shape) < 0.1
    return np.where(hit, rng.uniform(X.min(), X.max(), size=X.shape), X).astype(X.dtype), hit


def read() -> list[dict]:
    return [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []


def main() -> None:
    done = {(r["data"], r["corruption"]) for r in read()}
    for name, truth, shape in data_sets():
        truth = np.ascontiguousarray(truth, np.float32)
        for kind in KINDS:
            if (name, kind) in done or (damaged := damage(truth, shape, kind)) is None:
                continue
            X, hit = damaged
            start = perf_counter()
            cleaner = RobustGraphCleaner(random_state=0).fit(X)
            flags = cleaner.outliers_
            record = {
                "data": name, "corruption": kind, "shape": truth.shape, "given": error(X, truth),
                "pca": error(best_rank(X, truth), truth), "ours": error(cleaner.cleaned_, truth),
                "precision": float((flags & hit).sum() / max(flags.sum(), 1)),
                "recall": float((flags & hit).sum() / max(hit.sum(), 1)),
                "seconds": perf_counter() - start, "notes": cleaner.notes_,
            }  # fmt: skip
            with RECORDS.open("a") as file:
                file.write(json.dumps(record) + "\n")
            print(name, kind, *(f"{record[key]:.3f}" for key in ("given", "pca", "ours", "precision", "recall")),
                  flush=True)  # fmt: skip


def print_table() -> None:
    """Print given and cleaned errors, one row a set, and what is worse after cleaning than before."""
    rows: dict[str, dict[str, dict]] = {}
    for r in read():
        rows.setdefault(r["data"], {})[r["corruption"]] = r
    print("| data | " + " | ".join(KINDS) + " |\n|---|" + "---|" * len(KINDS))
    for name, cells in rows.items():
        shown = (f"{cells[k]['given']:.2f} -> {cells[k]['ours']:.2f}" if k in cells else "-" for k in KINDS)
        print(f"| {name} | " + " | ".join(shown) + " |")
    for r in read():
        if r["ours"] > r["given"] + 0.005:
            print(f"worse than given: {r['data']} {r['corruption']} {r['given']:.3f} -> {r['ours']:.3f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print_table() if "--table" in sys.argv else main()
