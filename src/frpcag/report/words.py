"""A fit in words and tables: what a person reads first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from frpcag.insight import OutlierShares
from frpcag.report.cells import count_of, percent, sentences
from frpcag.report.diagnostics import Diagnostics, GraphNumbers
from frpcag.report.fit import Fit

# Rows of the tables of corrupted samples and features.
MAX_ROWS = 50
# Samples or features whose mean is looked at, where nothing stands out.
_MOST_LOOKED_AT = 5000
_GROSS_ONLY = "This shows gross errors only; frpcag clean judges every cell."


def summary(fit: Fit, shares: OutlierShares) -> list[str]:
    """Return the summary as sentences.

    Parameters
    ----------
    fit : Fit
    shares : OutlierShares
        Of its corruptions.

    Returns
    -------
    list of str
        Plain text, one paragraph each.
    """
    if fit.lines is not None:
        return list(fit.lines)
    if fit.cells is not None:
        return sentences(fit.cells, partial(sample_name, fit), partial(feature_name, fit))
    size = f"{fit.n_samples} samples with {fit.n_features} features"
    rank = ""
    if fit.singular_values is not None:
        least = "at least " if len(fit.singular_values) == fit.max_components else ""
        rank = f" with {least}{count_of(len(fit.singular_values), 'component')}"
    lines = [f"{size} were split into a clean part{rank} and sparse corruptions, X = U + S."]
    if fit.certificate:
        lines.append(certificate(fit.certificate))
    if shares.share > 0:
        sample, feature = int(shares.worst_samples(1)[0]), int(shares.worst_features(1)[0])
        lines.append(
            f"{percent(shares.share)} of the entries stand out ({_rule(shares)}, six times the mean). "
            f"Worst sample: {sample_name(fit, sample)} ({percent(shares.samples[sample])} of its entries); "
            f"worst feature: {feature_name(fit, feature)} ({percent(shares.features[feature])}). {_GROSS_ONLY}"
        )
    else:
        lines.append(f"No entry stands out: S is small everywhere. {_GROSS_ONLY}")
    if fit.has_missing:
        lines.append("Missing entries were predicted; they show no corruption.")
    return lines


def _rule(shares: OutlierShares) -> str:
    if shares.in_units:
        return f"|S| above {shares.threshold:.3g} of the spread of its column"
    return f"|S| > {shares.threshold:.3g}"


def certificate(proof: Mapping[str, Any]) -> str:
    """Return the certificate as a sentence.

    Examples
    --------
    >>> from frpcag.report.words import certificate
    >>> certificate({"relative_gap": 8e-4, "tol": 1e-3, "n_iter": 17, "status": "converged"})
    'The result is proved to be within 0.08 % of the optimum (0.1 % were asked for), after 17 steps.'
    """
    end = {
        "max_iter": ", the limit",
        "interrupted": ", then interrupted",
        "stopped": ", then stopped",
    }.get(str(proof.get("status")), "")
    return (
        f"The result is proved to be within {percent(proof['relative_gap'])} of the optimum ({percent(proof['tol'])} "
        f"were asked for), after {count_of(proof['n_iter'], 'step')}{end}."
    )


def worst_samples(fit: Fit, shares: OutlierShares) -> list[dict[str, Any]]:
    """Return a row for each of the most corrupted samples: number, id, label, share, mean and largest ``|S|``."""
    rows = []
    for i in _worst(shares.samples, lambda i: fit.S[i]):
        size = np.abs(fit.S[i])
        label = None if fit.labels is None else str(fit.labels[i])
        rows.append(_row(fit.number(i), label, shares.samples[i], size, title=sample_name(fit, int(i))))
    return rows


def worst_features(fit: Fit, shares: OutlierShares) -> list[dict[str, Any]]:
    """Return a row for each of the most corrupted features, with its name where there is one."""
    rows = []
    for j in _worst(shares.features, lambda j: fit.S[:, j]):
        name = None if fit.feature_names is None else str(fit.feature_names[j])
        rows.append(_row(int(j), name, shares.features[j], np.abs(fit.S[:, j])))
    return rows


def _worst(shares: np.ndarray, values: Callable[[int], np.ndarray]) -> list[int]:
    """Return the numbers of the largest shares; where none stands out, of the largest mean of some of them."""
    if shares.any():
        return [int(i) for i in np.argsort(-shares, kind="stable")[:MAX_ROWS]]
    some = np.unique(np.linspace(0, len(shares) - 1, min(len(shares), _MOST_LOOKED_AT)).astype(int))
    means = np.array([np.abs(values(int(i))).mean(dtype=np.float64) for i in some])
    return [int(i) for i in some[np.argsort(-means, kind="stable")[:MAX_ROWS]]]


def theory(fit: Fit, numbers: Diagnostics) -> list[tuple[str, str, str]]:
    """Return the diagnostics as rows: what, value, what it means."""
    rows = []
    for word, found in (("samples", numbers.samples), ("features", numbers.features)):
        if found is not None:
            rows += _graph_rows(word, found)
    if numbers.s_r is not None and numbers.Gamma is not None:
        part = "" if len(numbers.Gamma) == fit.n_features else f", first {len(numbers.Gamma)} frequencies"
        rows.append(
            (
                f"s_r, alignment of covariance and feature graph{part}",
                f"{numbers.s_r:.3f}",
                "1: the graph's eigenvectors are the data's main directions (paper: 0.97 on USPS digit 3)",
            )
        )
    if numbers.samples is not None and numbers.features is not None:
        k1, k2 = numbers.samples.k, numbers.features.k
        rows.append(
            (
                f"distance to the matrices of rank ({k1}, {k2}) on the graphs",
                f"X {percent(numbers.distance_X or 0.0)}, U {percent(numbers.distance_U or 0.0)}",
                "share of the norm outside; the fit brings U nearer",
            )
        )
    if numbers.gap is not None:
        words = "the relative duality gap from U, S and the graphs alone, in plain NumPy: the solver is not trusted"
        rows.append(("certificate, computed again", percent(numbers.gap), words))
    if numbers.bound is not None:
        bound = numbers.bound
        rows.append(
            (
                "Theorem 1, both sides",
                f"{bound.left:.5g} {'≤' if bound.left <= bound.right else '>'} {bound.right:.5g}",
                "the left side bounds the part of U that is not low-rank on the graphs; at the gammas of this fit"
                + ("" if bound.holds else "; it does not hold: U is not a solution of the problem"),
            )
        )
    return rows


def sample_name(fit: Fit, i: int) -> str:
    """Return a sample's id, or its number."""
    return str(fit.sample_names[i]) if fit.sample_names is not None else str(fit.number(i))


def feature_name(fit: Fit, j: int) -> str:
    """Return a feature's name, or its number."""
    return str(fit.feature_names[j]) if fit.feature_names is not None else str(j)


def table_of(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return names and values for a table; nested mappings are flattened."""
    rows: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            rows += [(f"{name} {inner}", text) for inner, text in table_of(value)]
        else:
            rows.append((name.replace("_", " "), f"{value:.4g}" if isinstance(value, float) else str(value)))
    return rows


def _graph_rows(word: str, found: GraphNumbers) -> list[tuple[str, str, str]]:
    quality = found.quality
    low, middle, high = quality.n_neighbors
    rows = [
        (
            f"graph of {word}",
            f"{quality.n_edges} edges, {count_of(quality.n_components, 'component')}",
            f"{low} to {high} neighbours a node, {middle} in the middle"
            + (f"; {quality.n_isolated} nodes without any" if quality.n_isolated else ""),
        ),
        (
            f"clusters of {word} by the largest eigengap",
            str(found.k),
            f"eigenvalues {found.eigenvalues[found.k - 1]:.3g} and {found.eigenvalues[found.k]:.3g} around the gap"
            if found.k < len(found.eigenvalues)
            else "",
        ),
        (
            f"energy in the first {found.k} graph frequencies of {word}",
            f"X {percent(found.energy_X[: found.k].sum())}, U {percent(found.energy_U[: found.k].sum())}",
            "the fit moves energy to low frequencies",
        ),
    ]
    if found.recall is not None:
        rows.append((f"recall of the graph of {word}", f"{found.recall:.3f}", "share of true neighbours it links"))
    return rows


def _row(number: int, name: str | None, share: float, size: np.ndarray, *, title: str = "") -> dict[str, Any]:
    mean, top = float(size.mean(dtype=np.float64)), float(size.max())
    return {"number": number, "title": title, "name": name, "share": float(share), "mean": mean, "largest": top}
