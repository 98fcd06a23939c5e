"""Estimators as the words on the command line make them, and what a fitted one puts on record."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import numpy as np

from frpcag import FRPCAG
from frpcag.cli.errors import InputError
from frpcag.report.cells import count_of
from frpcag.report.words import certificate


def with_settings(model: Any, settings: dict[str, Any], **inner: Any) -> Any:
    """Return an estimator with what ``--set`` asks; ``inner`` are parameters of the FRPCAG that is set within."""
    if getattr(model, "estimator", model) is None and any(name.startswith("estimator__") for name in settings):
        model.set_params(estimator=FRPCAG(**inner))
    known = parameters(model)
    for name, value in settings.items():
        if name not in known:
            near = get_close_matches(name, known, 1)
            way = f"did you mean {near[0]}={value}." if near else f"it has {', '.join(sorted(known))}."
            raise InputError(f"--set {name}={value}: {type(model).__name__} has no parameter {name}; {way}")
    return model.set_params(**settings)


def solved(model: Any) -> Any:
    """Return the fitted FRPCAG within an estimator, or itself."""
    while "estimator_" in vars(model):
        model = model.estimator_
    return model


def parameters(model: Any) -> dict[str, Any]:
    """Return the parameters of an estimator that are words and numbers."""
    plain, skipped = (bool, int, float, str, tuple, type(None)), ("callback", "estimator__callback", "estimator")
    return {
        name: value for name, value in model.get_params().items() if isinstance(value, plain) and name not in skipped
    }


def record_of(model: Any) -> dict[str, Any]:
    """Return what a fitted FRPCAG chose, and the proof that it carries."""
    return {
        "gamma1": model.gamma1_,
        "gamma2": model.gamma2_,
        "backend": model.backend_,
        "graphs": {"samples": _graph(model.sample_graph_), "features": _graph(model.feature_graph_)},
        "certificate": {
            "objective": float(model.objective_),
            "relative_gap": float(model.duality_gap_),
            "tol": model.tol,
            "converged": bool(model.converged_),
            "n_iter": int(model.n_iter_),
            "status": model.status_,
        },
        "history": {
            name: [float(value) if np.isfinite(value) else None for value in values]
            for name, values in model.history_.items()
        },
    }


def _graph(graph: Any) -> dict[str, Any] | None:
    if graph is None:
        return None
    laplacian = "normalized" if graph.normalized else "combinatorial"
    told = {name: getattr(graph, name) for name in ("method", "metric", "n_edges", "sigma")}
    return {**told, "laplacian": laplacian}


def rows_of(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a person wants to know of a solve: its proof, gammas and graphs."""
    rows = [("certificate", certificate(record["certificate"]))]
    for name in ("gamma1", "gamma2"):
        auto = " (auto)" if record["parameters"].get(name) == "auto" else ""
        rows.append((name, f"{record[name]:.4g}{auto}"))
    for name, graph in record["graphs"].items():
        words = graph and f"{graph['method']}, {count_of(graph['n_edges'], 'edge')}, {graph['laplacian']}"
        rows.append((f"graph of {name}", words or "none"))
    return rows
