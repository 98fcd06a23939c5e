"""What this library and its peers are compared on: tasks with data, a truth kept apart, contenders and a score."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from reproduction import block_occlusion, list_datasets, load_dataset, missing_pixels, salt_and_pepper
from reproduction.evaluate import clustering_scores, relative_error

from contest.contenders import (
    CLEANERS,
    CLUSTERERS,
    FITS,
    IMPUTERS,
    ROW_CLEANERS,
    SOLVERS,
    Contender,
    Given,
)
from frpcag.data import make_low_rank_on_graphs
from frpcag.engines.gammas import scale_free_gamma
from frpcag.graphs import build_graph
from frpcag.problem import Problem, certificate

Array = np.ndarray

N_COMPONENTS = 50  # where no truth tells PCA its rank
NEW_ROWS = 0.2  # share of the samples that are cleaned as new rows


@dataclass(frozen=True, eq=False)
class Task:
    """One question, asked of every contender.

    ``load`` takes a cell to what contenders are given and the truth; ``score`` takes an output and the truth to
    numbers. The first of ``scores`` ranks, the smaller the better; ``scores`` maps its keys to the heads of the table.
    ``note`` says what a reader must know to trust the comparison.
    """

    name: str
    title: str
    contenders: dict[str, Contender]
    settings: Callable[[bool], list[dict]]
    load: Callable[[dict], tuple[Given, Any]]
    score: Callable[[Any, Any], dict[str, float]]
    scores: dict[str, str]
    note: str = ""
    n_seeds: int = 1
    grows: bool = False  # a contender that was too slow for one setting is not run on the later ones
    certified: bool = False  # everybody ends at the same quality: only the way there is compared
    seconds: str = "seconds"

    def cells(self, quick: bool) -> list[dict]:
        """Return all cells, the contenders of one setting after each other, so that ratios are of one time."""
        return [
            {"task": self.name, **setting, "model": model}
            for setting in self.settings(quick)
            for model in self.contenders
        ]

    @property
    def ours(self) -> str:
        """The contender that the others are set beside."""
        return next(name for name, one in self.contenders.items() if one.ours)


def load_images(name: str) -> tuple[Array, Array, tuple[int, int]]:
    """Return images with values up to 1, their labels and their shape.

    Parameters
    ----------
    name : str
        A data set, or ``name-n`` for ``n`` samples of it, drawn once and for all. ORL comes at half size.
    """
    name, _, n = name.partition("-")
    data = load_dataset(name)
    X, shape = data.X, data.shape
    if name == "orl":
        X, shape = X.reshape(-1, 56, 2, 46, 2).mean(axis=(2, 4)).reshape(len(X), -1), (56, 46)
    X = X / np.abs(X).max()
    if not n:
        return X, data.y, shape
    keep = np.sort(np.random.default_rng(0).permutation(len(X))[: int(n)])
    return X[keep], data.y[keep], shape


def corrupt(X: Array, shape: tuple[int, int], corruption: str) -> tuple[Array, Array]:
    """Return corrupted images and where they were hit.

    ``corruption`` is a kind and a per cent of the pixels: "clean", "block25" (a black rectangle), "salt10" (black or
    white pixels), "nan25" and "nanblock25" (missing pixels, marked as such); two of them joined by "+" follow each
    other, the first one counting as the hit.
    """
    hit = np.zeros(X.shape, bool)
    for number, one in enumerate(corruption.split("+")):
        kind, share = one.rstrip("0123456789"), int(one.lstrip("abcdefghijklmnopqrstuvwxyz") or 0) / 100
        low, high = float(np.nanmin(X)), float(np.nanmax(X))
        if kind == "clean":
            continue
        if kind in ("block", "nanblock"):
            new, at = block_occlusion(X, shape, share, value=np.nan if kind == "nanblock" else low, random_state=number)
        elif kind == "nan":
            new, at = missing_pixels(X, share, value=np.nan, random_state=number)
        elif kind == "salt":
            new, at = salt_and_pepper(X, share, low=low, high=high, random_state=number)
            new[np.isnan(X)] = np.nan  # what is missing stays missing
        else:
            raise ValueError(f"corruption={one!r} is unknown; choose clean, blockN, saltN, nanN or nanblockN.")
        X, hit = new, at if number == 0 else hit
    return X, hit


def best_rank(X: Array, clean: Array) -> int:
    """Return the number of principal components of ``X`` that come nearest to the clean data.

    Nobody has the clean data in practice; it gives PCA the best that it can reach.
    """
    center = X.mean(axis=0)
    W, Sigma, Vt = np.linalg.svd((X - center).astype(np.float64), full_matrices=False)
    kept = np.einsum("ij,ij->j", W, (clean - center) @ Vt.T)
    return int(np.argmin(np.cumsum(Sigma**2 - 2 * Sigma * kept))) + 1


def load_recovery(cell: dict) -> tuple[Given, Array]:
    """Return corrupted data and the clean ones."""
    if cell["data"].startswith("synthetic"):
        n, p = map(int, cell["data"].removeprefix("synthetic-").split("x"))
        X, clean, _ = make_low_rank_on_graphs(n, p, n_sample_clusters=8, n_feature_clusters=8, random_state=0)
        X, clean = X.astype(np.float32), clean.astype(np.float32)
    else:
        clean, _, shape = load_images(cell["data"])
        X, _ = corrupt(clean, shape, cell["corruption"])
    return Given(X, rank=best_rank(X, clean)), clean


def score_recovery(U: Array, clean: Array) -> dict[str, float]:
    """Return the distance from the clean data, relative to their distance from their mean."""
    center = clean.mean(axis=0)
    return {"error": relative_error(U - center, clean - center)}


def load_problem(cell: dict) -> tuple[Given, Problem]:
    """Return the convex problem on two graphs with scale-free weights; it is the truth, too: it certifies."""
    X, _, _ = load_images(cell["data"])
    X = X - X.mean(axis=0)
    L1, L2 = (build_graph(X, axis=axis, random_state=0).laplacian for axis in (0, 1))
    gammas = scale_free_gamma(L1, X, axis=0), scale_free_gamma(L2, X, axis=1)
    problem = Problem(X.astype(np.float64), L1.astype(np.float64), L2.astype(np.float64), *gammas)
    return Given(problem.X, problem=problem), problem


def score_solution(output: tuple[Array, dict], problem: Problem) -> dict[str, float]:
    """Return the certified gap, the objective, and the seconds to each gap on the way."""
    U, seconds = output
    proved = certificate(problem, U)
    way = {f"seconds_{gap:g}": value for gap, value in seconds.items()}
    return {"gap": proved.gap, "objective": proved.objective, **way}


def load_labelled(cell: dict) -> tuple[Given, Array]:
    """Return corrupted images and their classes."""
    X, y, shape = load_images(cell["data"])
    return Given(corrupt(X, shape, cell["corruption"])[0], n_clusters=len(np.unique(y))), y


def score_labels(labels: Array, y: Array) -> dict[str, float]:
    """Return the share of samples in the wrong cluster, and the mutual information."""
    scores = clustering_scores(y, labels)
    return {"error": scores["error"], "nmi": scores["nmi"]}


def load_missing(cell: dict) -> tuple[Given, tuple[Array, Array]]:
    """Return images with NaN; the truth is the images and where they were hidden."""
    clean, _, shape = load_images(cell["data"])
    X, hidden = corrupt(clean, shape, cell["corruption"])
    return Given(X), (clean, hidden)


def score_missing(filled: Array, truth: tuple[Array, Array]) -> dict[str, float]:
    """Return the root mean squared error at the hidden entries, in units of their standard deviation."""
    clean, hidden = truth
    error = (filled[hidden] - clean[hidden]).astype(np.float64)
    return {"error": float(np.sqrt(np.mean(error**2)) / clean[hidden].std())}


def load_rows(cell: dict) -> tuple[Given, Array]:
    """Return clean training images and new rows, corrupted; the truth is the new rows, clean."""
    X, _, shape = load_images(cell["data"])
    order = np.random.default_rng(1).permutation(len(X))
    new, known = np.split(order, [round(NEW_ROWS * len(X))])
    rows, _ = corrupt(X[new], shape, cell["corruption"])
    return Given(X[known], rows=rows, rank=N_COMPONENTS), X[new]


def load_growing(cell: dict) -> tuple[Given, None]:
    """Return ever more samples of one kind."""
    n = cell["n"]
    if cell["data"] == "synthetic":
        X, _, _ = make_low_rank_on_graphs(n, 256, n_sample_clusters=10, n_feature_clusters=10, random_state=0)
        return Given(X.astype(np.float32), rank=N_COMPONENTS, n_clusters=10), None
    X, _, _ = load_images(f"{cell['data']}-{n}")
    return Given(X, rank=N_COMPONENTS, n_clusters=10), None


def score_nothing(output: Any, truth: None) -> dict[str, float]:
    """Return no score: only time and memory count."""
    return {}


def shrink(given: Given, n: int) -> Given:
    """Return the first rows, for a warm-up."""
    if len(given.X) <= n:
        return given
    problem = given.problem
    if problem is not None:
        problem = replace(problem, X=problem.X[:n], L1=problem.L1[:n, :n])  # type: ignore[index]
    rows = None if given.rows is None else given.rows[:n]
    sizes = {"n_clusters": min(given.n_clusters, n // 4), "rank": min(given.rank, n)}
    return replace(given, X=given.X[:n], rows=rows, problem=problem, **sizes)


def _there(*names: str) -> list[str]:
    """Return those data sets that can be loaded here."""
    known = list_datasets()
    return [name for name in names if name.partition("-")[0] in known]


def _images(*names: str) -> list[str]:
    """Return those data sets that can be loaded here, the digits of scikit-learn for want of others."""
    return _there(*names) or ["digits"]


def _product(names: Iterable[str], corruptions: Iterable[str]) -> list[dict]:
    corruptions = tuple(corruptions)
    return [{"data": name, "corruption": corruption} for name in names for corruption in corruptions]


def _recovery_settings(quick: bool) -> list[dict]:
    made = [{"data": "synthetic-300x100" if quick else "synthetic-1000x400", "corruption": "outliers5"}]
    return made if quick else made + _product(_images("usps-1500", "orl"), ("salt10", "block25"))


def _solver_settings(quick: bool) -> list[dict]:
    return [{"data": name} for name in (["digits-400"] if quick else _images("usps-1500", "mnist-5000"))]


def _clustering_settings(quick: bool) -> list[dict]:
    if quick:
        return _product(["digits-400"], ["clean"])
    return _product(["digits", *_there("usps-1500", "coil20", "orl")], ("clean", "block25", "nan25"))


def _missing_settings(quick: bool) -> list[dict]:
    if quick:
        return _product(["digits-400"], ["nan30"])
    return _product(_images("usps-1500", "orl"), ("nan30", "nanblock15", "nan30+salt5"))


def _row_settings(quick: bool) -> list[dict]:
    if quick:
        return _product(["digits-400"], ["salt10"])
    return _product(_images("usps-1500", "orl"), ("salt10", "block25", "nan25"))


def _growth_settings(quick: bool) -> list[dict]:
    if quick:
        return [{"data": "synthetic", "n": n} for n in (500, 1000)]
    name = "mnist" if _there("mnist") else "synthetic"
    return [{"data": name, "n": n} for n in (1000, 2000, 4000, 8000, 16000)]


TASKS = {
    task.name: task
    for task in (
        Task(
            "recovery",
            "Clean data from corrupted ones",
            CLEANERS,
            _recovery_settings,
            load_recovery,
            score_recovery,
            {"error": "error"},
            "Error: distance from the clean matrix over its distance from its mean. PCA gets the rank that is best for "
            "it, judged by the clean data, which nobody else is shown.",
        ),
        Task(
            "solver",
            "The same convex problem",
            SOLVERS,
            _solver_settings,
            load_problem,
            score_solution,
            {"gap": "gap", "objective": "objective", "seconds_0.001": "s to 1e-3"},
            "Seconds until the relative duality gap is 1e-4, as `frpcag.problem.certificate` proves it outside the "
            "clock; float64, same Laplacians, weights and step size.",
            certified=True,
            seconds="s to 1e-4",
        ),
        Task(
            "clustering",
            "Clusters of corrupted images",
            CLUSTERERS,
            _clustering_settings,
            load_labelled,
            score_labels,
            {"error": "error", "nmi": "NMI"},
            "Error: share of samples in the wrong cluster under the best matching. Means over three seeds. Where "
            "pixels are missing (nan), all but FRPCAGClustering get the mean of the feature instead.",
            n_seeds=3,
        ),
        Task(
            "missing",
            "Missing entries",
            IMPUTERS,
            _missing_settings,
            load_missing,
            score_missing,
            {"error": "error"},
            "Error: root mean square at the hidden entries over their standard deviation. IterativeImputer looks at "
            "the 30 nearest features where there are over 100.",
        ),
        Task(
            "transform",
            "New corrupted rows",
            ROW_CLEANERS,
            _row_settings,
            load_rows,
            score_recovery,
            {"error": "error"},
            "Error as for recovery, of new rows after a fit on clean ones, which is not timed; PCA with 50 components. "
            "Missing pixels (nan) are the training mean for PCA.",
        ),
        Task(
            "growth",
            "Time of a fit against the number of samples",
            FITS,
            _growth_settings,
            load_growing,
            score_nothing,
            {},
            "Fits alone, of different models: PCA with 50 components, UMAP in 2 dimensions, 10 clusters.",
            grows=True,
        ),
    )
}
