"""A fit in words and tables: what a person reads first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from frpcag.insight import OutlierShares
from frpcag.report.cells import count_of, percent, sentences
from frpcag.report.fit import Fit

# Rows of the tables of corrupted samples and features.
MAX_ROWS = 50
# Samples or features whose mean is looked at, where nothing stands out.
_MOST_LOOKED_AT = 5000
_GROSS_ONLY = "This shows gross errors only; frpcag clean judges every cell."


def summary(fit: Fit) -> list[str]:
    """Return the summary as sentences, one paragraph each."""
    shares = fit.outliers
    if fit.lines is not None:
        return list(fit.lines)
    if fit.cells is not None:
        return sentences(fit.cells, partial(sample_name, fit), partial(feature_name, fit))
    size = f"{fit.n_samples} samples with {fit.n_features} features"
    rank = ""
    if fit.singular_values is not None:
        rank = f" with {count_of(len(fit.singular_values), 'component')}"
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


def worst_samples(fit: Fit) -> list[dict[str, Any]]:
    """Return a row for each of the most corrupted samples: number, id, label, share, mean and largest ``|S|``."""
    rows = []
    for i in _worst(fit.outliers.samples, lambda i: fit.S[i]):
        size = np.abs(fit.S[i])
        label = None if fit.labels is None else str(fit.labels[i])
        rows.append(_row(fit.number(i), label, fit.outliers.samples[i], size, title=sample_name(fit, int(i))))
    return rows


def worst_features(fit: Fit) -> list[dict[str, Any]]:
    """Return a row for each of the most corrupted features, with its name where there is one."""
    rows = []
    for j in _worst(fit.outliers.features, lambda j: fit.S[:, j]):
        name = None if fit.feature_names is None else str(fit.feature_names[j])
        rows.append(_row(int(j), name, fit.outliers.features[j], np.abs(fit.S[:, j])))
    return rows


def _worst(shares: np.ndarray, values: Callable[[int], np.ndarray]) -> list[int]:
    """Return the numbers of the largest shares; where none stands out, of the largest mean of some of them."""
    if shares.any():
        return [int(i) for i in np.argsort(-shares, kind="stable")[:MAX_ROWS]]
    some = np.unique(np.linspace(0, len(shares) - 1, min(len(shares), _MOST_LOOKED_AT)).astype(int))
    means = np.array([np.abs(values(int(i))).mean(dtype=np.float64) for i in some])
    return [int(i) for i in some[np.argsort(-means, kind="stable")[:MAX_ROWS]]]


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


def _row(number: int, name: str | None, share: float, size: np.ndarray, *, title: str = "") -> dict[str, Any]:
    mean, top = float(size.mean(dtype=np.float64)), float(size.max())
    return {"number": number, "title": title, "name": name, "share": float(share), "mean": mean, "largest": top}
