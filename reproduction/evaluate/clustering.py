"""Labels compared with the truth: the clustering error of the paper, and two other scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix


def clustering_error(y_true: Any, y_pred: Any) -> float:
    """Return the share of samples in the wrong cluster, under the best matching of clusters to classes.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The classes.
    y_pred : array-like of shape (n_samples,)
        The clusters; their names do not matter, and their number may differ from that of the classes.

    Returns
    -------
    float
        Between 0 and 1. Each cluster is matched with at most one class and each class with at most one
        cluster; samples of an unmatched cluster count as errors.

    Notes
    -----
    The matching is the optimal assignment on the contingency table: O(n + k^3) for k clusters.

    Examples
    --------
    >>> from reproduction.evaluate import clustering_error
    >>> clustering_error([0, 0, 1, 1], [1, 1, 0, 0])
    0.0
    >>> clustering_error(["a", "a", "b", "b"], [5, 5, 5, 7])
    0.25
    """
    y_true, y_pred = _check_labels(y_true, y_pred)
    counts = contingency_matrix(y_true, y_pred)
    matched = counts[linear_sum_assignment(counts, maximize=True)].sum()
    return float(1 - matched / len(y_true))


def clustering_scores(y_true: Any, y_pred: Any) -> dict[str, float]:
    """Return three scores of a clustering: error, normalised mutual information, adjusted Rand index.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The classes.
    y_pred : array-like of shape (n_samples,)
        The clusters.

    Returns
    -------
    dict
        ``"error"`` (0 is perfect, see :func:`clustering_error`), ``"nmi"`` and ``"ari"`` (1 is perfect).

    Examples
    --------
    >>> from reproduction.evaluate import clustering_scores
    >>> clustering_scores([0, 0, 1, 1], [1, 1, 0, 0])
    {'error': 0.0, 'nmi': 1.0, 'ari': 1.0}
    """
    y_true, y_pred = _check_labels(y_true, y_pred)
    return {
        "error": clustering_error(y_true, y_pred),
        "nmi": float(normalized_mutual_info_score(y_true, y_pred)),
        "ari": float(adjusted_rand_score(y_true, y_pred)),
    }


def _check_labels(y_true: Any, y_pred: Any) -> tuple[np.ndarray, np.ndarray]:
    y_true, y_pred = np.asarray(y_true), np.asarray(y_pred)
    if y_true.ndim != 1 or y_true.shape != y_pred.shape or len(y_true) == 0:
        raise ValueError(
            f"y_true has shape {y_true.shape} and y_pred {y_pred.shape}; both must be one label for each of "
            "the same samples, at least one; pass vectors of equal length."
        )
    for name, labels in (("y_true", y_true), ("y_pred", y_pred)):
        if labels.dtype.kind not in "biufUSO" or (labels.dtype.kind == "f" and not _whole(labels)):
            raise ValueError(f"{name} holds {labels.dtype} that cannot be labels; pass whole numbers or words.")
    return y_true, y_pred


def _whole(labels: np.ndarray) -> bool:
    return bool(np.isfinite(labels).all() and (labels == np.floor(labels)).all())
