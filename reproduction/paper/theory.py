"""Why the model works, as the paper shows it: singular values, subspaces, components and alignment."""

from __future__ import annotations

import numpy as np

from frpcag.baselines import BASELINES, preprocess
from frpcag.graphs import build_graph
from frpcag.insight import alignment_ratio, graph_basis, graph_covariance, shape_interaction, vector_alignment
from frpcag.linalg.factorize import gram_svd
from frpcag.problem import Problem
from frpcag.solvers import solve
from reproduction import load_dataset
from reproduction.paper.clustering import (
    kmeans_runs,
    low_rank_points,
    low_rank_tries,
    model_graphs,
    points_tries,
    sample_graph,
    scores,
)
from reproduction.paper.grid import (
    FEW_GRAPH_WEIGHTS,
    FEW_SPARSE_WEIGHTS,
    GRAPH_TYPES,
    PAPER_MODELS,
    SPARSE_WEIGHTS,
    LabelledSet,
    corrupt,
    load_set,
)

Array = np.ndarray

SUBSPACE_GAMMAS = (1.0, 3.0, 10.0, 30.0)
# Samples of the shape interaction matrix and vectors of the alignment that a picture shows.
SIM_CELLS = 100
SHOWN_VECTORS = 40
EIGENVECTORS = 16


def spectra_cells(smoke: bool) -> list[dict]:
    """Return ORL's 30 subjects under three occlusions, for the data and each convex model."""
    data = "digits" if smoke else "orl30"
    corruptions = ("clean",) if smoke else ("clean", "block15", "block25")
    models = ("X", "RPCA", "RPCAG", "FRPCAG(A)")
    return [{"data": data, "corruption": one, "model": model} for one in corruptions for model in models]


def measure_spectra(cell: dict) -> tuple[dict, dict]:
    """Return the singular values of the low-rank part at the parameters of the smallest clustering error."""
    data = load_set(cell["data"])
    X, _ = corrupt(data.X, data.shape, cell["corruption"])
    found = [
        (scores(kmeans_runs(low_rank_points(U), data.n_classes), data.y), params, U)
        for params, U in _convex_tries(cell["model"], X)
    ]
    best, params, U = min(found, key=lambda one: (one[0]["error_min"], one[0]["error_mean"]))
    Sigma = np.linalg.svd(U, compute_uv=False).astype(np.float32)
    return {"params": params, **best}, {"Sigma": Sigma}


def _convex_tries(model: str, X: Array):
    """Yield the parameters and the low-rank part of each try; of the data themselves, one try."""
    Xs = preprocess(X, "standardize")
    if model in GRAPH_TYPES:
        yield from low_rank_tries(model, X)
        return
    if model == "X":
        yield {}, Xs
        return
    options = {} if model == "RPCA" else {"sample_graph": sample_graph(X, is_image=True, n_neighbors=10)}
    for weight in SPARSE_WEIGHTS if model == "RPCA" else FEW_SPARSE_WEIGHTS:
        for gamma in (None,) if model == "RPCA" else FEW_GRAPH_WEIGHTS:
            params = {"lam": weight} if gamma is None else {"lam": weight, "gamma": gamma}
            literal = {**params, "lam": weight / np.sqrt(max(X.shape))}
            yield params, BASELINES[model](**literal, tol=1e-5, **options).fit(Xs).low_rank_


def two_digits(n_samples: int, smoke: bool) -> LabelledSet:
    """Return digits 0 and 1, half of the samples each, sorted by class."""
    data = _all_of("digits" if smoke else "mnist")
    keep = np.concatenate([np.flatnonzero(data.y == one)[: n_samples // 2] for one in (0, 1)])
    return LabelledSet(data.X[keep], data.y[keep], data.shape)


def subspaces_cells(smoke: bool) -> list[dict]:
    """Return one cell for each value of both gammas."""
    gammas = SUBSPACE_GAMMAS[::2] if smoke else SUBSPACE_GAMMAS
    return [{"smoke": smoke, "gamma": gamma} for gamma in gammas]


def measure_subspaces(cell: dict) -> tuple[dict, dict]:
    """Return the clustering error, and the matrices of Shahid et al. 2016, Fig. 4, small enough to draw."""
    data = two_digits(1000, cell["smoke"])
    G1, G2 = model_graphs("FRPCAG(A)", data.X)
    problem = Problem(preprocess(data.X, "standardize"), G1.laplacian, G2.laplacian, cell["gamma"], cell["gamma"])
    solution = solve(problem, tol=1e-4, max_iter=2000, n_jobs=1)
    W, Sigma, V = gram_svd(solution.U, min(SHOWN_VECTORS, *solution.U.shape))
    rank = int((Sigma > 0.1 * Sigma[0]).sum())
    Q, P = (graph_basis(G, min(SHOWN_VECTORS, G.n_nodes - 1))[1] for G in (G1, G2))
    shown = np.linspace(0, len(W) - 1, min(SIM_CELLS, len(W))).astype(int)
    record = {
        "rank": rank,
        "gap": float(solution.gap),
        **scores(kmeans_runs(low_rank_points(solution.U), 2), data.y),
    }
    arrays = {
        "SIM": shape_interaction(W[shown, :rank]),
        "Sigma": Sigma,
        "WQ": vector_alignment(W, Sigma, Q),
        "VP": vector_alignment(V, Sigma, P),
        "labels": data.y[shown],
    }
    return record, {name: np.asarray(values, np.float32) for name, values in arrays.items()}


def components_cells(smoke: bool) -> list[dict]:
    """Return every model of the paper that has components, once."""
    models = [model for model in PAPER_MODELS if not model.endswith(("k-means", "(B)", "(C)"))]
    return [{"smoke": smoke, "model": model} for model in models]


def measure_components(cell: dict) -> tuple[dict, dict]:
    """Return two-dimensional points of digits 0 and 1 with 15 % of the pixels missing, at the best parameters."""
    data, model = two_digits(1000, cell["smoke"]), cell["model"]
    X, _ = corrupt(data.X, data.shape, "missing15")
    tries = []
    for params, points in points_tries(model, X) if model != "RPCAG" else _rpcag_points(X):
        plane = points[:, 1:3] if model == "NCut" else points[:, :2]  # NCut's first is nearly constant
        if plane.shape[1] < 2:
            continue
        tries.append((scores(kmeans_runs(plane, 2), data.y), params, plane))
    best, params, plane = min(tries, key=lambda one: (one[0]["error_min"], one[0]["error_mean"]))
    return {"params": params, **best}, {"points": np.asarray(plane, np.float32), "labels": data.y.astype(np.int8)}


def _rpcag_points(X: Array):
    """Yield few tries: the nuclear norm with a graph on a thousand digits takes minutes each."""
    graph = sample_graph(X, is_image=True, n_neighbors=10)
    for gamma in FEW_GRAPH_WEIGHTS[:2]:
        model = BASELINES["RPCAG"](lam=1 / np.sqrt(max(X.shape)), gamma=gamma, tol=1e-4, sample_graph=graph)
        yield {"lam": 1.0, "gamma": gamma}, model.fit(preprocess(X, "standardize")).embedding_


def alignment_cells(smoke: bool) -> list[dict]:
    """Return the digit 3 and all digits."""
    return [{"data": "digits" if smoke else "usps", "digits": which} for which in ("3", "all")]


def measure_alignment(cell: dict) -> tuple[dict, dict]:
    """Return ``s_r`` and the eigenvectors of covariance and feature graph (Shahid et al. 2016, Figs. 2 and 3)."""
    data = _all_of(cell["data"])
    X = data.X if cell["digits"] == "all" else data.X[data.y == 3]
    n_neighbors = min(10, X.shape[1] - 1)
    ratios = {}
    for laplacian in ("normalized", "combinatorial"):
        graph = build_graph(X, axis=1, n_neighbors=n_neighbors, laplacian=laplacian, random_state=0, n_jobs=1)
        _, P = graph_basis(graph)
        Gamma = graph_covariance(X, P)
        ratios[laplacian] = alignment_ratio(Gamma)
        if laplacian == "normalized":
            kept = Gamma, P
    Gamma, P = kept
    C = graph_covariance(X, np.eye(X.shape[1]))  # the covariance itself, with the paper's global mean
    covariance_vectors = np.linalg.eigh(C)[1][:, ::-1][:, :EIGENVECTORS]
    arrays = {"Gamma": Gamma, "P": P[:, 1 : EIGENVECTORS + 1], "C": covariance_vectors, "shape": np.array(data.shape)}
    return {"s_r": ratios, "n_samples": len(X)}, {name: np.asarray(a, np.float32) for name, a in arrays.items()}


def _all_of(name: str) -> LabelledSet:
    if name == "digits":
        return load_set(name)
    data = load_dataset(name)
    return LabelledSet(data.X, data.y, data.shape)
