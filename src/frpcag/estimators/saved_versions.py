"""Headers of model files of earlier versions, lifted one version at a time to the layout of today."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Parameters of FRPCAG in version 1, in which FRPCAGClustering and FRPCAGCV repeated them.
_MODEL_PARAMS = {
    *("n_components", "gamma1", "gamma2", "n_neighbors", "sample_graph", "feature_graph", "sigma", "laplacian"),
    *("loss", "huber_delta", "center", "scale", "n_refine", "tol", "max_iter", "stop", "backend", "feature_shape"),
    *("random_state", "n_jobs"),
}
_OWN = {"FRPCAGClustering": {"random_state", "n_jobs"}, "FRPCAGCV": {"random_state"}}
# Results of FRPCAGCV itself; all others are those of the model inside.
_CHOICE = {"cv_results_", "best_index_"}
# Graphs of neighbours, all of which were Euclidean.
_SEARCHED = ("exact", "approximate", "pynndescent")
_COLUMNS = {"n_features_in_", "feature_names_in_"}


def lift_to_2(header: Any) -> Any:
    """Return a header of version 1, or a part of it, as version 2 writes it.

    The Laplacian of a graph is a flag, no longer a name, and a graph says its metric; FRPCAGClustering and FRPCAGCV
    hold an FRPCAG as a parameter, and FRPCAGCV its fitted model as a result.
    """
    if isinstance(header, list):
        return [lift_to_2(item) for item in header]
    if not isinstance(header, dict):
        return header
    lifted = {key: lift_to_2(item) for key, item in header.items()}
    graph = lifted.get("graph")
    if isinstance(graph, dict) and "kind" in graph:
        graph["normalized"] = graph.pop("kind") == "normalized"
        graph["metric"] = "euclidean" if graph.get("method") in _SEARCHED else None
    name = lifted.get("model")
    if isinstance(name, str) and name in _OWN and isinstance(lifted.get("params"), dict):
        return _composed(lifted)
    return lifted


def _composed(model: dict) -> dict:
    """Return an estimator that repeats the parameters of FRPCAG as one that holds an FRPCAG."""
    name, params, results = model["model"], model["params"], model["results"]
    inner = {key: value for key, value in params.items() if key in _MODEL_PARAMS}
    own = {key: value for key, value in params.items() if key not in _MODEL_PARAMS or key in _OWN[name]}
    own["estimator"] = {"model": {"model": "FRPCAG", "params": inner, "results": {}}}
    if name == "FRPCAGCV" and results:
        inside = {key: value for key, value in results.items() if key not in _CHOICE}
        results = {key: value for key, value in results.items() if key in _CHOICE | _COLUMNS}
        chosen = {**inner, **{key: inside[f"{key}_"] for key in ("gamma1", "gamma2") if f"{key}_" in inside}}
        results["estimator_"] = {"model": {"model": "FRPCAG", "params": chosen, "results": inside}}
    return {**model, "params": own, "results": results}


MIGRATIONS: dict[int, Callable[[dict], dict]] = {1: lift_to_2}
