"""Whether the clusterer should clean first: wrong cells repaired, or taken as missing, before the fit.

Run with FRPCAG_DATA set: ``python benchmarks/cleaning_first.py``; at most 400 samples a set. Appends one line a cell to
results/cleaning_first.jsonl and skips those that are there; ``--table`` prints the summary alone. "sd5" moves 5 % of
the cells by five standard deviations of their feature, "in25" replaces 25 % by values within the range of the data; the
other corruptions repeat one value, which the clusterer finds by itself.
"""

from __future__ import annotations

import json
import sys
import warnings
from time import process_time

import numpy as np
from machine import RESULTS
from reproduction.evaluate.clustering import clustering_error

from cells import corrupt, load
from frpcag import FRPCAGClustering, RobustGraphCleaner

FILE = RESULTS / "cleaning_first.jsonl"
SETS = ("orl", "usps", "yale", "digits", "mnist", "coil20", "mfeat")
CORRUPTIONS = ("sd5", "in25", "black/white25", "clean")


def damaged(X: np.ndarray, shape, corruption: str) -> np.ndarray | None:
    kind, share = corruption[:2], corruption[2:]
    if kind not in ("sd", "in"):
        return corrupt(X, shape, corruption)
    rng = np.random.default_rng(7 if kind == "sd" else 8)
    hit = rng.random(X.shape) < int(share) / 100
    moved = X + 5 * X.std(axis=0) * rng.choice([-1, 1], X.shape) if kind == "sd" else None
    return np.where(hit, rng.uniform(X.min(), X.max(), X.shape) if moved is None else moved, X).astype(np.float32)


def measure(X: np.ndarray, y: np.ndarray) -> dict:
    def error(Z: np.ndarray) -> float:
        model = FRPCAGClustering(len(np.unique(y)), random_state=0, n_jobs=1).fit(Z)
        return round(clustering_error(y, model.labels_), 4)

    start = process_time()
    row = {"plain": error(X), "t": round(process_time() - start, 1)}
    start = process_time()
    cleaner = RobustGraphCleaner(random_state=0, n_jobs=1).fit(X)
    wrong = cleaner.outliers_
    row |= {"tclean": round(process_time() - start, 1), "flagged": round(float(wrong.mean()), 4)}
    if wrong.any():
        row |= {"repaired": error(cleaner.cleaned_), "nan": error(np.where(wrong, np.float32(np.nan), X))}
    return row


def table(rows: list[dict]) -> None:
    print("| damage | sets | as they are | wrong cells repaired | wrong cells missing | time, cleaner to clusterer |")
    print("|---|---|---|---|---|---|")
    for corruption in dict.fromkeys(row["corruption"] for row in rows):
        here = [row for row in rows if row["corruption"] == corruption]
        errors = [np.mean([row.get(key, row["plain"]) for row in here]) for key in ("plain", "repaired", "nan")]
        ratio = np.median([row["tclean"] / row["t"] for row in here])
        print(f"| {corruption} | {len(here)} | " + " | ".join(f"{e:.3f}" for e in errors) + f" | {ratio:.1f} |")
    sets = list(dict.fromkeys(row["data"] for row in rows))
    for left in sets:
        others = [row for row in rows if row["data"] != left]
        gain = np.mean([row.get("nan", row["plain"]) - row["plain"] for row in others])
        own = np.mean([row.get("nan", row["plain"]) - row["plain"] for row in rows if row["data"] == left])
        print(f"missing, without {left}: {100 * gain:+.1f} points on the others, {100 * own:+.1f} on it")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    rows = [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.exists() else []
    done = {(row["data"], row["corruption"]) for row in rows}
    for corruption in () if "--table" in sys.argv else CORRUPTIONS:
        for name in SETS:
            X, y, shape = load(name, max_samples=400)
            if (name, corruption) in done or (Z := damaged(X, shape, corruption)) is None:
                continue
            rows.append({"data": name, "corruption": corruption, **measure(Z, y)})
            with FILE.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(json.dumps(rows[-1]), flush=True)
    table(rows)
