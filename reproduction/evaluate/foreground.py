"""Foreground masks against the truth: precision, recall and F1, and the best that any threshold could do."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray

# Value of a truth mask where the truth is unknown, such as the rim of an object.
IGNORE = 255
# Thresholds tried between 0 and the largest score.
_LEVELS = 4096


def mask_scores(mask: Any, truth: Any) -> dict[str, float]:
    """Score the foreground pixels of a mask, counted over all frames together.

    Parameters
    ----------
    mask : array-like of bool of shape (n_frames, h, w)
        True for foreground.
    truth : array-like of int of shape (n_frames, h, w)
        0 for background, 1 for foreground, 255 for pixels that do not count.

    Returns
    -------
    dict
        ``"precision"`` (share of the pixels found that are foreground), ``"recall"`` (share of the foreground that is
        found) and ``"f1"``. If there is nothing to count, a share is 1.

    Examples
    --------
    >>> from reproduction.evaluate.foreground import mask_scores
    >>> mask_scores([[[True, True, False, True]]], [[[1, 0, 1, 255]]])
    {'precision': 0.5, 'recall': 0.5, 'f1': 0.5}
    """
    mask, truth = _checked(mask, truth, "mask")
    counts = truth != IGNORE
    found, real = mask[counts].astype(bool), truth[counts] == 1
    return _shares(int((found & real).sum()), int(found.sum()), int(real.sum()))


def best_threshold(score: Any, truth: Any) -> dict[str, float]:
    """Return the threshold of a score with the best F1, and the scores that it reaches: the limit for any rule.

    Parameters
    ----------
    score : array-like of shape (n_frames, h, w)
        Not negative; larger is more likely foreground, such as ``|S|``.
    truth : array-like of int of shape (n_frames, h, w)
        0 for background, 1 for foreground, 255 for pixels that do not count.

    Returns
    -------
    dict
        ``"threshold"``, of 4096 tried between 0 and the 99.99 % quantile of the score, and ``"precision"``,
        ``"recall"``, ``"f1"`` of ``score >= threshold``.

    Examples
    --------
    >>> from reproduction.evaluate.foreground import best_threshold
    >>> best_threshold([[[0.0, 1.0, 2.0, 4.0]]], [[[0, 0, 1, 1]]])["f1"]
    1.0
    """
    score, truth = _checked(score, truth, "score")
    counts = truth != IGNORE
    values, real = score[counts] + 0.0, truth[counts] == 1
    top = float(np.quantile(values, 0.9999)) if values.size else 0.0
    if not top > 0:
        top = max(float(values.max(initial=0.0)), 1e-30)
    level = np.minimum(values * (_LEVELS / top), _LEVELS).astype(np.int64)
    # Pixels at or above each level.
    hits, false = (np.cumsum(np.bincount(level[which], minlength=_LEVELS + 1)[::-1])[::-1] for which in (real, ~real))
    found, total = hits + false, int(real.sum())
    f1 = np.where(found + total > 0, 2 * hits / np.maximum(found + total, 1), 1.0)
    best = int(f1.argmax())
    return {"threshold": best * top / _LEVELS, **_shares(int(hits[best]), int(found[best]), total)}


def _checked(values: Any, truth: Any, name: str) -> tuple[Array, Array]:
    values, truth = np.asarray(values), np.asarray(truth)
    if values.shape != truth.shape or values.size == 0:
        raise ValueError(
            f"{name} has shape {values.shape} and truth {truth.shape}; they must agree and not be empty; pass the "
            "frames that have a mask."
        )
    if values.dtype.kind not in "biuf" or truth.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {values.dtype} and truth {truth.dtype}; pass dense arrays of numbers.")
    if values.dtype.kind == "f" and not (np.isfinite(values).all() and values.min() >= 0):
        raise ValueError(f"{name} has entries that are negative or not finite; pass absolute values.")
    return values, truth


def _shares(hits: int, n_found: int, n_real: int) -> dict[str, float]:
    return {
        "precision": hits / n_found if n_found else 1.0,
        "recall": hits / n_real if n_real else 1.0,
        "f1": 2 * hits / (n_found + n_real) if n_found + n_real else 1.0,
    }
