"""Clustering errors of one model on one corrupted data set, over the model's parameter range."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from frpcag.baselines import BASELINES, preprocess
from frpcag.estimators.clustering import FRPCAGClustering
from frpcag.estimators.decomposition import FRPCAG
from frpcag.estimators.heldout import regularization_path
from frpcag.graphs import Graph, build_graph
from frpcag.labels import LABELLERS, cloud_of, label, unit_rows
from frpcag.labels.assign import NEIGHBORS
from frpcag.linalg.factorize import gram_svd
from reproduction.evaluate import clustering_error
from reproduction.paper.grid import (
    BETAS,
    COMPONENTS,
    FEW_COMPONENTS,
    FEW_GRAPH_WEIGHTS,
    FEW_SPARSE_WEIGHTS,
    GAMMAS,
    GRAPH_TYPES,
    GRAPH_WEIGHTS,
    LABELLER_ROWS,
    LOW_RANK_COMPONENTS,
    ON_UNIT_W,
    SPARSE_WEIGHTS,
    LabelledSet,
    corrupt,
    load_set,
)

Array = np.ndarray

N_RUNS = 10
N_SEEDS = 5  # of models that are fitted anew for each seed
# Share of the variance of U that the points of k-means keep: distances to a ten-thousandth, in far fewer coordinates.
KEPT_VARIANCE = 0.9999


def measure(cell: dict) -> tuple[dict, dict]:
    """Return the errors of a model over its parameters, and the best of them as the paper takes it: by labels.

    Parameters
    ----------
    cell : dict
        ``data``, ``corruption``, ``model``, and optionally ``n_neighbors``.

    Returns
    -------
    record : dict
        ``tries``: parameters with the smallest and mean error of ten runs of k-means; ``best``: the try of the
        smallest error, with its scores. A model without parameters has one try. FRPCAG(A) is tried on U and, under
        ``best_on_W``, on its first principal components W: the paper names both and reports one. Of `ON_UNIT_W` the
        best alone is kept, of `LABELLER_ROWS` error, mutual information and Rand index of each.
    arrays : dict
        Empty.
    """
    data = load_set(cell["data"])
    X, hit = corrupt(data.X, data.shape, cell["corruption"])
    if cell["model"] == LABELLER_ROWS:
        return {"labellers": labeller_scores(X, data)}, {}
    tries = [
        {"params": params, **scores(labels, data.y)}
        for params, labels in label_tries(cell["model"], X, hit, data, n_neighbors=cell.get("n_neighbors", 10))
    ]
    if cell["model"] == ON_UNIT_W:
        return {"best": best_of(tries), "n_tries": len(tries)}, {}
    kept = [{key: one[key] for key in ("params", "error_min", "error_mean")} for one in tries]
    if cell["model"] not in GRAPH_TYPES:
        return {"best": best_of(tries), "tries": kept}, {}
    on_W, on_U = ([one for one in tries if ("n_components" in one["params"]) is wanted] for wanted in (True, False))
    record = {"best": best_of(on_U), "tries": kept}
    return {**record, "best_on_W": best_of(on_W)} if on_W else record, {}


def best_of(tries: list[dict]) -> dict:
    """Return the try of the smallest error, then of the smallest mean error."""
    return min(tries, key=lambda one: (one["error_min"], one["error_mean"]))


def scores(labels: list[Array], y: Array) -> dict:
    """Return errors, mutual information and Rand index of several runs."""
    errors = [clustering_error(y, one) for one in labels]
    return {
        "error_min": round(float(np.min(errors)), 5),
        "error_mean": round(float(np.mean(errors)), 5),
        "error_std": round(float(np.std(errors)), 5),
        "nmi_mean": round(float(np.mean([normalized_mutual_info_score(y, one) for one in labels])), 5),
        "ari_mean": round(float(np.mean([adjusted_rand_score(y, one) for one in labels])), 5),
    }


def label_tries(
    model: str, X: Array, hit: Array, data: LabelledSet, *, n_neighbors: int = 10
) -> Iterator[tuple[dict, list[Array]]]:
    """Yield the parameters of each try and the labels of its ten runs."""
    k = data.n_classes
    if model == "spectral clustering":
        yield {}, [_spectral(X, k, seed) for seed in range(N_SEEDS)]
    elif model == "UMAP + k-means":
        yield {}, kmeans_runs(_umap(X, k), k)
    elif model.startswith("FRPCAGClustering"):
        if model.endswith("NaN"):
            never = hit.all(axis=0)  # pixels that the blocks cover in every image
            X = np.where(hit, np.float32(np.nan), X)[:, ~never]
        # One run: with so many features nothing is drawn.
        yield {}, [FRPCAGClustering(k, random_state=0, n_jobs=1).fit_predict(X)]
    else:
        tries = points_tries(model, X, is_image=data.shape is not None, n_neighbors=n_neighbors)
        yield from ((params, kmeans_runs(points, k)) for params, points in tries)


def labeller_scores(X: Array, data: LabelledSet) -> dict[str, list[float]]:
    """Return error, mutual information and Rand index of every labeller on U and on W, without labels, one run each."""
    k = data.n_classes
    model = FRPCAGClustering(k, assign="linkage", random_state=0, n_jobs=1).fit(X)
    fit = model.estimator_
    U = (fit.low_rank_ - fit.center_) / fit.scale_
    W = gram_svd(U - U.mean(axis=0), min(2 * k, *X.shape), random_state=0)[0]
    found = {}
    for name, points in (("W", unit_rows(W)), ("U", low_rank_points(U))):
        cloud = cloud_of(points, n_neighbors=NEIGHBORS, random_state=0, n_jobs=1)
        for labeller in LABELLERS:
            labels = label(labeller, cloud, k, random_state=0)
            measured = scores([labels], data.y)
            found[f"{labeller}, {name}"] = [measured[key] for key in ("error_mean", "nmi_mean", "ari_mean")]
    return found


def kmeans_runs(points: Array, n_clusters: int) -> list[Array]:
    """Return the labels of ten runs of k-means from one start each."""
    return [KMeans(n_clusters, n_init=1, random_state=seed).fit_predict(points) for seed in range(N_RUNS)]


def points_tries(model: str, X: Array, *, is_image: bool = True, n_neighbors: int = 10) -> Iterator[tuple[dict, Array]]:
    """Yield the parameters of each try of a model of the paper and the points that k-means labels."""
    if model == ON_UNIT_W:
        for params, U in low_rank_tries("FRPCAG(A)", X, is_image=is_image, n_neighbors=n_neighbors):
            W, _, _ = gram_svd(U - U.mean(axis=0), min(LOW_RANK_COMPONENTS[-1], *X.shape), random_state=0)
            for c in LOW_RANK_COMPONENTS:
                if c <= W.shape[1]:
                    yield {**params, "n_components": c}, unit_rows(W[:, :c])
        return
    if model in GRAPH_TYPES:
        for params, U in low_rank_tries(model, X, is_image=is_image, n_neighbors=n_neighbors):
            yield params, low_rank_points(U)
            if model == "FRPCAG(A)":
                W, _, _ = gram_svd(U - U.mean(axis=0), min(LOW_RANK_COMPONENTS[-1], *X.shape), random_state=0)
                for c in LOW_RANK_COMPONENTS:
                    if c <= W.shape[1]:
                        yield {**params, "n_components": c}, W[:, :c]
        return
    make = BASELINES[model]
    Xp = preprocess(X, make.preprocess)
    options: dict = {"random_state": 0} if "random_state" in make().get_params() else {}
    if make.uses_graph:
        options["sample_graph"] = sample_graph(X, is_image=is_image, n_neighbors=n_neighbors)
    if model == "k-means":
        yield {}, make().fit(Xp).embedding_
    elif model == "RPCA":
        for weight in SPARSE_WEIGHTS:
            yield {"lam": weight}, make(lam=weight / np.sqrt(max(X.shape)), tol=1e-5).fit(Xp).embedding_
    elif model == "RPCAG":
        for weight, gamma in product(FEW_SPARSE_WEIGHTS, FEW_GRAPH_WEIGHTS):
            fitted = make(lam=weight / np.sqrt(max(X.shape)), gamma=gamma, tol=1e-5, **options).fit(Xp)
            yield {"lam": weight, "gamma": gamma}, fitted.embedding_
    elif make.nested:
        sizes = [c for c in COMPONENTS if c < min(X.shape)]
        for params in nested_params(model):
            fitted = make(n_components=sizes[-1], **params, **options).fit(Xp)
            yield from (({**params, "n_components": c}, fitted.first_components(c)) for c in sizes)
    else:
        graph_weights = [{"gamma": gamma} for gamma in GRAPH_WEIGHTS] if make.uses_graph else [{}]
        for c, graph_weight in product((c for c in FEW_COMPONENTS if c < min(X.shape)), graph_weights):
            params = {"n_components": c, **graph_weight}
            yield params, make(**params, **options).fit(Xp).embedding_


def nested_params(model: str) -> list[dict]:
    """Return the parameters of a nested model other than the number of components."""
    if model == "GLPCA":
        return [{"beta": beta} for beta in BETAS]
    return [{"gamma": gamma} for gamma in GRAPH_WEIGHTS] if model == "MMF" else [{}]


def sample_graph(X: Array, *, is_image: bool, n_neighbors: int, method: str = "exact") -> Graph:
    """Return the sample graph that every model of a cell shares: of the pixels as they are, other data standardised."""
    Z = X if is_image else preprocess(X, "standardize")
    return build_graph(Z, n_neighbors=n_neighbors, method=method, random_state=0, n_jobs=1)


def low_rank_tries(
    model: str, X: Array, *, is_image: bool = True, n_neighbors: int = 10, gammas=GAMMAS
) -> Iterator[tuple[dict, Array]]:
    """Yield pairs of gammas and the clean data of FRPCAG on one type of graphs, each from the one before."""
    G1, G2 = model_graphs(model, X, is_image=is_image, n_neighbors=n_neighbors)
    estimator = FRPCAG(sample_graph=G1, feature_graph=G2, center=False, max_iter=1000, n_jobs=1)
    for point in regularization_path(preprocess(X, "standardize"), gammas, gammas, estimator=estimator):
        yield {"gamma1": point.gamma1, "gamma2": point.gamma2}, point.solution.U


def model_graphs(model: str, X: Array, *, is_image: bool = True, n_neighbors: int = 10) -> tuple[Graph, Graph]:
    """Return the two graphs of FRPCAG(A), (B) or (C)."""
    samples, features = GRAPH_TYPES[model]
    G1 = sample_graph(X, is_image=is_image, n_neighbors=n_neighbors, method=samples)
    Z = X if is_image else preprocess(X, "standardize")
    n_neighbors = min(n_neighbors, X.shape[1] - 1)
    return G1, build_graph(Z, axis=1, n_neighbors=n_neighbors, method=features, random_state=0, n_jobs=1)


def low_rank_points(U: Array) -> Array:
    """Return points whose distances are those of the rows of ``U``, for k-means in few coordinates."""
    W, Sigma, _ = gram_svd(U - U.mean(axis=0), KEPT_VARIANCE, random_state=0)
    return W * Sigma


def _spectral(X: Array, k: int, seed: int) -> Array:
    model = SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=10, random_state=seed, n_jobs=1)
    return model.fit_predict(X)


def _umap(X: Array, k: int) -> Array:
    from umap import UMAP

    # As its authors advise for clustering: no minimal distance, more than two dimensions.
    model = UMAP(n_neighbors=10, min_dist=0.0, n_components=min(10, k), random_state=0, n_jobs=1)
    return model.fit_transform(X)
