"""Which Laplacian and how many neighbours fill in missing values best, by data set and share missing.

``python benchmarks/imputer_choice.py`` (with FRPCAG_DATA set for the image sets) writes results/imputer_choice.json and
prints the table of docs/decisions/imputer.md: root mean squared error on the hidden entries, over that of the column
mean.
"""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
from machine import write_result
from reproduction import list_datasets
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import KNNImputer

from cells import load
from frpcag import FRPCAG, FRPCAGCV, RobustGraphImputer

TABLES = {"cancer": load_breast_cancer, "wine": load_wine, "diabetes": load_diabetes, "digits": load_digits}
IMAGES = ("orl", "usps", "mfeat", "coil20")
SHARES = (0.1, 0.3, 0.6)
N_ROWS = 500
CHOICES = list(product(("normalized", "combinatorial"), (5, 10)))


def data_sets():
    for name, loader in TABLES.items():
        X = loader().data[:N_ROWS]
        yield name, X / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    there = list_datasets()
    for name in IMAGES:
        if name in there:
            X = load(name, max_samples=N_ROWS)[0].astype(np.float64)
            yield name, X[:, :: max(1, X.shape[1] // 300)]


def score(imputer, X, hidden) -> float:
    given = np.where(hidden, np.nan, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        filled = imputer.fit_transform(given)
    mean = np.broadcast_to(np.nanmean(given, axis=0), X.shape)
    return float(np.sqrt(np.mean((filled - X)[hidden] ** 2) / np.mean((mean - X)[hidden] ** 2)))


def main() -> None:
    rows = []
    for (name, X), share in product(data_sets(), SHARES):
        hidden = np.random.default_rng(0).random(X.shape) < share
        hidden[:, hidden.all(axis=0)] = False
        hidden[hidden.all(axis=1)] = False
        row = {"data": name, "shape": X.shape, "missing": share, "KNNImputer": score(KNNImputer(), X, hidden)}
        for laplacian, k in CHOICES:
            model = FRPCAGCV(FRPCAG(laplacian=laplacian, n_neighbors=k, random_state=0), random_state=0)
            row[f"{laplacian}, {k}"] = score(RobustGraphImputer(model), X, hidden)
        rows.append(row)
        print(
            "| " + " | ".join(f"{v:.3f}" if isinstance(v, float) else str(v) for v in row.values()) + " |", flush=True
        )
    names = list(rows[0])[3:]
    print("means:", {name: round(float(np.mean([row[name] for row in rows])), 4) for name in names})
    write_result("imputer_choice", {"rows": rows})


if __name__ == "__main__":
    main()
