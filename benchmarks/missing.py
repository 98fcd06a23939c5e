"""Corruption that is known and corruption that is not: pixels missing as NaN, or as zeros nobody marked.

Run with FRPCAG_DATA set: ``python benchmarks/missing.py``. Writes results/missing.json and docs/images/missing.png.
Errors are means over 5 seeds of k-means with 10 starts; the pixels that go missing are the same for all methods.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from clustering_choice import error
from machine import write_result
from reproduction.corrupt import missing_pixels
from reproduction.evaluate.clustering import clustering_error
from sklearn.decomposition import PCA
from sklearn.impute import KNNImputer, SimpleImputer

from cells import load
from frpcag import FRPCAG, FRPCAGClustering, build_graph
from frpcag.labels import spectral_embedding

SHARES = (0.0, 0.2, 0.4, 0.6, 0.8)
SEEDS = range(5)
PICTURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "missing.png"


def ours(X: np.ndarray, y: np.ndarray, **params) -> float:
    k = len(np.unique(y))
    models = (FRPCAG(n_refine="auto", random_state=seed, **params) for seed in SEEDS)
    labels = (FRPCAGClustering(k, model, random_state=model.random_state).fit_predict(X) for model in models)
    return float(np.mean([clustering_error(y, one) for one in labels]))


def measure(X: np.ndarray, y: np.ndarray, share: float) -> dict[str, float]:
    k = len(np.unique(y))
    gaps, _ = missing_pixels(X, share, value=np.nan, random_state=0)
    zeros = np.nan_to_num(gaps, nan=0.0)
    mean = SimpleImputer(keep_empty_features=True).fit_transform(gaps).astype(np.float32)
    knn = KNNImputer(keep_empty_features=True).fit_transform(gaps) if share else X
    return {
        "ours, NaN": ours(gaps, y),
        "ours, zeros": ours(zeros, y, n_refine=0),
        "ours, zeros, refined": ours(zeros, y, n_refine=1),
        "mean imputation, PCA, k-means": error(PCA(min(k, *X.shape)).fit_transform(mean), y),
        "KNNImputer, k-means": error(PCA(min(X.shape) - 1).fit_transform(knn), y),
        "mean imputation, spectral": error(spectral_embedding(build_graph(mean).laplacian, k, random_state=0), y),
    }


def draw(results: dict[str, list[dict]]) -> None:
    figure, axes = plt.subplots(1, len(results), figsize=(9, 3.6), sharey=True, layout="constrained")
    colours = ("#0072B2", "#56B4E9", "#009E73", "#D55E00", "#E69F00", "#CC79A7")
    markers = "os^vDX"
    for ax, (name, rows) in zip(axes, results.items(), strict=True):
        for (method, _), colour, marker in zip(rows[0]["errors"].items(), colours, markers, strict=True):
            errors = [100 * row["errors"][method] for row in rows]
            ax.plot([100 * row["share"] for row in rows], errors, color=colour, marker=marker, label=method)
        ax.set(title=name.upper(), xlabel="pixels missing, %", ylim=(0, None))
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("samples in the wrong cluster, %")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    results: dict[str, list[dict]] = {}
    for name in ("orl", "usps"):
        X, y, _ = load(name)
        results[name] = []
        for share in SHARES:
            results[name].append({"share": share, "errors": measure(X, y, share)})
            print(name, share, {key: round(value, 3) for key, value in results[name][-1]["errors"].items()}, flush=True)
    write_result("missing", results)
    draw(results)
