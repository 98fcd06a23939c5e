"""The numbers behind a report, each computed within stated limits so that large fits open too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from frpcag.graphs import Graph
from frpcag.insight import (
    Bound,
    GraphQuality,
    OutlierShares,
    alignment_ratio,
    attenuation,
    frequency_energy,
    graph_basis,
    graph_covariance,
    graph_quality,
    low_rank_distance,
    neighbor_recall,
    outlier_shares,
    singular_value_ratio,
    suggest_k,
    theorem_bound,
    vector_alignment,
)
from frpcag.linalg.factorize import gram_svd
from frpcag.problem import certificate
from frpcag.report.fit import Fit

Array = np.ndarray

# Graph frequencies looked at, by Lanczos, and clusters suggested at most: further up, eigengaps are chance.
N_FREQUENCIES, MAX_CLUSTERS = 40, 20
# Features up to which Gamma takes the whole basis, which costs the cube of their number.
FULL_BASIS = 800
# Samples in the shape interaction matrix, and nodes on which the recall of an approximate graph is measured.
N_SHOWN, N_RECALL = 400, 200


@dataclass(frozen=True, eq=False)
class GraphNumbers:
    """What one graph says about the data.

    Parameters
    ----------
    axis : {0, 1}
        0 of samples, 1 of features.
    eigenvalues, basis : ndarray
        Lowest graph frequencies and their eigenvectors.
    k : int
        Number of clusters, from 2 to 20, that the largest eigengap speaks for.
    energy_X, energy_U : ndarray
        Shares of the energy at each frequency.
    alignment : ndarray or None
        ``Sigma W'Q`` or ``Sigma V'P``.
    quality : GraphQuality
    recall : float or None
        Of an approximate graph.
    """

    axis: int
    eigenvalues: Array
    basis: Array
    k: int
    energy_X: Array
    energy_U: Array
    alignment: Array | None
    quality: GraphQuality
    recall: float | None


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """Everything the theory part of a report shows; what could not be had is None.

    Parameters
    ----------
    samples, features : GraphNumbers or None
    Gamma : ndarray or None
        Covariance in the basis of the feature graph, the paper's.
    s_r : float or None
    distance_X, distance_U : float or None
        To the low-rank matrices on the graphs.
    gap : float or None
        Relative duality gap, computed again from the arrays by the reference; None with missing entries.
    bound : Bound or None
        Theorem 1.
    sigma_X : ndarray or None
        Singular values of the data.
    left, predicted : ndarray or None
        What is left of them, and what the graph frequencies predict.
    """

    samples: GraphNumbers | None = None
    features: GraphNumbers | None = None
    Gamma: Array | None = None
    s_r: float | None = None
    distance_X: float | None = None
    distance_U: float | None = None
    gap: float | None = None
    bound: Bound | None = None
    sigma_X: Array | None = None
    left: Array | None = None
    predicted: Array | None = None


def diagnose(fit: Fit) -> Diagnostics:
    """Compute the diagnostics of a fit.

    Parameters
    ----------
    fit : Fit

    Returns
    -------
    Diagnostics
    """
    found: dict[str, Any] = {}
    for name, axis, graph in (("samples", 0, fit.sample_graph), ("features", 1, fit.feature_graph)):
        if graph is not None and graph.n_nodes > 2:
            found[name] = _graph_numbers(fit, graph, axis)
    if fit.singular_values is not None:
        X = fit.problem.X - fit.problem.X.mean(axis=0)
        found["sigma_X"] = gram_svd(X, len(fit.singular_values), random_state=0)[1]
        found["left"] = singular_value_ratio(found["sigma_X"], fit.singular_values)
    samples, features = found.get("samples"), found.get("features")
    if features is not None:
        full = fit.n_features <= FULL_BASIS
        assert fit.feature_graph is not None
        P = graph_basis(fit.feature_graph)[1] if full else features.basis
        found["Gamma"] = graph_covariance(fit.U + fit.S, P)
        found["s_r"] = alignment_ratio(found["Gamma"])
    if samples is not None and features is not None:
        Q, P = samples.basis[:, : samples.k], features.basis[:, : features.k]
        found["distance_X"] = low_rank_distance(fit.problem.X, Q, P)
        found["distance_U"] = low_rank_distance(fit.clean, Q, P)
        gammas = {"gamma1": fit.gamma1, "gamma2": fit.gamma2}
        found["predicted"] = attenuation(samples.eigenvalues, features.eigenvalues, **gammas)
        if not fit.has_missing:  # with the predictions filled in it is another problem, of which less is proved
            found["gap"] = certificate(fit.problem, fit.clean).gap
        found["bound"] = theorem_bound(fit.problem, fit.clean, k1=samples.k, k2=features.k)
    return Diagnostics(**found)


def corruption(fit: Fit) -> OutlierShares:
    """Return the shares of outlying entries by sample and by feature."""
    return outlier_shares(fit.S, units=fit.units) if fit.shares is None else fit.shares


def shown_samples(fit: Fit) -> Array:
    """Return at most 400 samples, evenly spaced in the order of their labels."""
    order = np.argsort(fit.labels, kind="stable") if fit.labels is not None else np.arange(fit.n_samples)
    return order[np.unique(np.linspace(0, len(order) - 1, min(len(order), N_SHOWN)).astype(int))]


def _graph_numbers(fit: Fit, graph: Graph, axis: int) -> GraphNumbers:
    eigenvalues, basis = graph_basis(graph, min(N_FREQUENCIES, graph.n_nodes - 1))
    vectors, Sigma = fit.W if axis == 0 else fit.V, fit.singular_values
    recall = None
    if graph.method in ("approximate", "pynndescent") and not fit.has_missing:
        k = min(fit.n_neighbors, graph.n_nodes - 1)
        recall = neighbor_recall(graph, fit.problem.X, axis=axis, n_neighbors=k, n_sample=N_RECALL, random_state=0)
    return GraphNumbers(
        axis=axis,
        eigenvalues=eigenvalues,
        basis=basis,
        k=suggest_k(eigenvalues[: MAX_CLUSTERS + 1], k_min=min(2, len(eigenvalues) - 1)),
        energy_X=frequency_energy(fit.problem.X, basis, axis=axis),
        energy_U=frequency_energy(fit.clean, basis, axis=axis),
        alignment=None if vectors is None or Sigma is None else vector_alignment(vectors, Sigma, basis),
        quality=graph_quality(graph),
        recall=recall,
    )
