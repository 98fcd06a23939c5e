"""The models that are compared, ours and those of other libraries, each as one call on the same data.

A contender sees a :class:`Given`, never the truth. Every library but scikit-learn is imported when its turn comes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.impute import KNNImputer, SimpleImputer

from frpcag.baselines import BASELINES
from frpcag.estimators.cleaner import RobustGraphCleaner
from frpcag.estimators.clustering import FRPCAGClustering
from frpcag.estimators.decomposition import FRPCAG
from frpcag.estimators.imputer import RobustGraphImputer
from frpcag.problem import Problem, certificate, gradient, smooth_part
from frpcag.solvers import solve
from frpcag.solvers.fista import lipschitz

Array = np.ndarray

# A run shorter than this, in seconds, is repeated so many times, and the median counts.
QUICK, REPEATS = 0.5, 5
# Relative duality gaps that a solver is timed to; the last one ends it.
GAPS = (1e-2, 1e-3, 1e-4)
# IterativeImputer regresses every feature on all others: beyond this many features, on so many of the nearest.
MANY_FEATURES, NEAREST_FEATURES = 100, 30
# UMAP searches exactly up to 4096 rows; what it runs beyond must be compiled in the warm-up, too.
UMAP_ROWS = 4200


@dataclass(frozen=True, eq=False)
class Given:
    """What a contender is given: data, new rows to clean, and the sizes that nobody has to guess."""

    X: Array
    rows: Array | None = None
    n_clusters: int = 0
    rank: int = 0
    threads: int = 1
    problem: Problem | None = None


@dataclass(frozen=True)
class Contender:
    """One model: ``run(state, seed)`` is timed; ``state`` is what ``prepare(given)`` returns, before the clock starts.

    ``needs`` is the module that must be installed; ``warm_rows`` how many rows the warm-up takes at most. A
    ``reference`` does next to nothing, so nobody asks whether it is fast.
    """

    run: Callable[[Any, int], Any]
    prepare: Callable[[Given], Any] | None = None
    needs: str | None = None
    ours: bool = False
    reference: bool = False
    warm_rows: int = 200


class Timed(NamedTuple):
    """An output with seconds of its own, for a contender that is looked at in between."""

    output: Any
    seconds: float


def fill(X: Array) -> Array:
    """Return ``X`` with the mean of its column in place of NaN: what is done for those that do not take NaN."""
    return SimpleImputer(keep_empty_features=True).fit_transform(X).astype(X.dtype) if np.isnan(X).any() else X


# Clean matrices


def as_given(given: Given, seed: int) -> Array:
    """Do nothing."""
    return fill(given.X)


def median_rows(given: Given, seed: int) -> Array:
    """Take the median of each feature."""
    return np.broadcast_to(np.median(given.X, axis=0), given.X.shape)


def clean_cells(given: Given, seed: int) -> Array:
    """Find and repair wrong cells."""
    return RobustGraphCleaner(random_state=0).fit(given.X).cleaned_


def clean_frpcag(given: Given, seed: int, *, laplacian: str) -> Array:
    """Take U of FRPCAG as it comes."""
    return FRPCAG(laplacian=laplacian, random_state=0, n_jobs=given.threads).fit(given.X).low_rank_


def clean_rpca(given: Given, seed: int) -> Array:
    """Take the low-rank part of our robust PCA, inexact ALM with the SVD through the smaller Gram matrix."""
    return BASELINES["RPCA"]().fit(given.X).low_rank_


def clean_tensorly(given: Given, seed: int) -> Array:
    """Take the low-rank part of TensorLy's robust PCA, its defaults but the weight of the sparse part.

    It sums the nuclear norms of both unfoldings, which are one and the same for a matrix; so twice the weight
    ``1 / sqrt(max(n, p))`` makes it the problem of Candes et al. 2011. The default weight, 1, finds no corruption.
    """
    from tensorly.decomposition import robust_pca

    return robust_pca(given.X, reg_E=2 / np.sqrt(max(given.X.shape)), verbose=0)[0]


def clean_pca(given: Given, seed: int, *, model: Callable) -> Array:
    """Project on the first principal directions, and back."""
    fitted = model(given.rank).fit(given.X)
    return fitted.inverse_transform(fitted.transform(given.X))


# Solvers of one and the same problem


def solve_ours(problem: Problem, seed: int, *, backend: str, gaps=GAPS) -> Timed:
    """Solve to each gap in turn, from the start; the median of five where that takes less than half a second."""
    seconds = {}
    for gap in gaps:
        runs: list[float] = []
        while not runs or (sum(runs) / len(runs) < QUICK and len(runs) < REPEATS):
            start = perf_counter()
            U = solve(problem, tol=gap, max_iter=20_000, backend=backend).U
            runs.append(perf_counter() - start)
        seconds[gap] = median(runs)
    return Timed((U, seconds), seconds[gaps[-1]])


def solve_pyunlocbox(problem: Problem, seed: int, *, gaps=GAPS, every: int = 5) -> Timed:
    """Run its accelerated forward-backward splitting until our certificate, outside the clock, shows the last gap.

    It gets our step size, from the same Lanczos estimates.
    """
    from pyunlocbox import acceleration, functions, solvers

    seconds: dict[float, float] = {}
    looked, start = 0.0, perf_counter()

    class Reached(Exception):
        pass

    class Watched(acceleration.fista):
        def _update_sol(self, solver, objective, niter):
            nonlocal looked
            since = perf_counter()
            if niter % every == 0:
                gap = certificate(problem, solver.sol).gap
                seconds.update({one: since - start - looked for one in gaps if one not in seconds and gap <= one})
                if gaps[-1] in seconds:
                    raise Reached
            looked += perf_counter() - since
            return super()._update_sol(solver, objective, niter)

    smooth = functions.func()
    smooth._eval = partial(smooth_part, problem)
    smooth._grad = partial(gradient, problem)
    data_term = functions.norm_l1(y=problem.X)
    solver = solvers.forward_backward(accel=Watched(), step=1 / lipschitz(problem))
    with suppress(Reached):
        solvers.solve([data_term, smooth], problem.X, solver, rtol=None, maxit=None, verbosity="NONE")
    return Timed((solver.sol, seconds), seconds[gaps[-1]])


def problem_of(given: Given) -> Problem:
    """Return the problem to solve."""
    assert given.problem is not None
    return given.problem


# Labels


def cluster_frpcag(given: Given, seed: int) -> Array:
    """Cluster with FRPCAGClustering, which takes NaN as it is."""
    return FRPCAGClustering(given.n_clusters, random_state=seed, n_jobs=given.threads).fit_predict(given.X)


def cluster_kmeans(given: Given, seed: int) -> Array:
    """Run k-means on the data."""
    return _kmeans(fill(given.X), given, seed)


def cluster_pca(given: Given, seed: int) -> Array:
    """Run k-means on as many principal components as there are clusters."""
    return _kmeans(PCA(min(given.n_clusters, *given.X.shape)).fit_transform(fill(given.X)), given, seed)


def cluster_spectral(given: Given, seed: int) -> Array:
    """Cluster the k-nearest-neighbour graph of the data spectrally."""
    model = SpectralClustering(
        given.n_clusters, affinity="nearest_neighbors", n_neighbors=10, random_state=seed, n_jobs=given.threads
    )
    return model.fit_predict(fill(given.X))


def cluster_umap(given: Given, seed: int) -> Array:
    """Run k-means on UMAP, set as its authors advise for clustering: no minimal distance, several dimensions."""
    return _kmeans(_umap(given, seed, n_components=min(10, given.n_clusters), min_dist=0.0), given, seed)


def _kmeans(points: Array, given: Given, seed: int) -> Array:
    return KMeans(given.n_clusters, n_init=10, random_state=seed).fit_predict(points)


def _umap(given: Given, seed: int, **options) -> Array:
    from umap import UMAP

    # A random_state would hold it to one thread; without one it draws its seeds from NumPy.
    np.random.seed(seed)
    return UMAP(n_neighbors=10, n_jobs=given.threads, **options).fit_transform(fill(given.X))


# Missing entries


def impute_ours(given: Given, seed: int) -> Array:
    """Fill in with RobustGraphImputer, which chooses its gammas by entries that it hides from itself."""
    return RobustGraphImputer().fit_transform(given.X)


def impute_iterative(given: Given, seed: int) -> Array:
    """Fill in with IterativeImputer (Bayesian ridge), on the nearest features only where there are many."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    nearest = NEAREST_FEATURES if given.X.shape[1] > MANY_FEATURES else None
    model = IterativeImputer(n_nearest_features=nearest, random_state=seed, keep_empty_features=True)
    return model.fit_transform(given.X)


def impute_knn(given: Given, seed: int) -> Array:
    """Fill in with KNNImputer."""
    return KNNImputer(keep_empty_features=True).fit_transform(given.X)


def impute_mean(given: Given, seed: int) -> Array:
    """Fill in the mean of the feature."""
    return fill(given.X)


# New rows: the models are fitted before the clock starts


def fit_frpcag(given: Given) -> tuple:
    """Return a fitted FRPCAG and the rows to clean."""
    return FRPCAG(random_state=0, n_jobs=given.threads).fit(given.X), given.rows


def fit_pca(given: Given, *, model: Callable) -> tuple:
    """Return a fitted PCA, the rows to clean, and what stands for NaN."""
    return model(min(given.rank, *given.X.shape)).fit(given.X), given.rows


def rows_frpcag(state: tuple, seed: int) -> Array:
    """Clean the rows against the fitted samples."""
    model, rows = state
    return model.denoise(rows)


def rows_pca(state: tuple, seed: int) -> Array:
    """Project the rows on the fitted directions, and back; NaN is the mean of the training data."""
    model, rows = state
    return model.inverse_transform(model.transform(np.where(np.isnan(rows), model.mean_.astype(rows.dtype), rows)))


def rows_as_given(given: Given, seed: int) -> Array:
    """Do nothing but to put the mean of the training data for NaN."""
    assert given.rows is not None
    return np.where(np.isnan(given.rows), given.X.mean(axis=0), given.rows)


# Fits that are only timed


def fit_umap(given: Given, seed: int) -> Array:
    """Embed in two dimensions."""
    return _umap(given, seed)


def fit_model(given: Given, seed: int, *, model: Callable) -> Any:
    """Fit a model of as many components as asked for."""
    return model(given.rank).fit(given.X)


_OURS = partial(clean_frpcag, laplacian="normalized")

CLEANERS = {
    "RobustGraphCleaner": Contender(clean_cells, ours=True),
    "FRPCAG": Contender(_OURS),
    "FRPCAG, combinatorial": Contender(partial(clean_frpcag, laplacian="combinatorial")),
    "RPCA, our ALM": Contender(clean_rpca),
    "TensorLy robust_pca": Contender(clean_tensorly, needs="tensorly"),
    "PCA": Contender(partial(clean_pca, model=PCA)),
    "IncrementalPCA": Contender(partial(clean_pca, model=IncrementalPCA)),
    "median": Contender(median_rows, reference=True),
    "as given": Contender(as_given, reference=True),
}
SOLVERS = {
    "frpcag, Numba": Contender(partial(solve_ours, backend="numba"), problem_of, ours=True),
    "frpcag, NumPy": Contender(partial(solve_ours, backend="numpy"), problem_of),
    "pyunlocbox": Contender(solve_pyunlocbox, problem_of, needs="pyunlocbox"),
}
CLUSTERERS = {
    "FRPCAGClustering": Contender(cluster_frpcag, ours=True),
    "SpectralClustering": Contender(cluster_spectral),
    "UMAP + k-means": Contender(cluster_umap, needs="umap", warm_rows=UMAP_ROWS),
    "PCA + k-means": Contender(cluster_pca),
    "k-means": Contender(cluster_kmeans),
}
IMPUTERS = {
    "RobustGraphImputer": Contender(impute_ours, ours=True),
    "IterativeImputer": Contender(impute_iterative),
    "KNNImputer": Contender(impute_knn),
    "mean": Contender(impute_mean, reference=True),
}
ROW_CLEANERS = {
    "FRPCAG": Contender(rows_frpcag, fit_frpcag, ours=True),
    "PCA": Contender(rows_pca, partial(fit_pca, model=PCA)),
    "IncrementalPCA": Contender(rows_pca, partial(fit_pca, model=IncrementalPCA)),
    "as given": Contender(rows_as_given, reference=True),
}
FITS = {
    "FRPCAG": Contender(_OURS, ours=True),
    "PCA": Contender(partial(fit_model, model=PCA)),
    "IncrementalPCA": Contender(partial(fit_model, model=IncrementalPCA)),
    "UMAP": Contender(fit_umap, needs="umap", warm_rows=UMAP_ROWS),
    "SpectralClustering": Contender(cluster_spectral),
    "TensorLy robust_pca": Contender(clean_tensorly, needs="tensorly"),
}
