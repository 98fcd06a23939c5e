"""Recovered matrices compared with the truth: how close U is to the clean data, how well S finds the outliers."""

from __future__ import annotations

from typing import Any

import numpy as np

# Makes the median absolute value of Gaussian noise its standard deviation.
_MAD_TO_STD = 1.4826

# Rows converted to float64 at a time.
_BLOCK_ROWS = 1024


def relative_error(U: Any, clean: Any) -> float:
    """Return the relative distance ``||U - clean|| / ||clean||`` in the Frobenius norm.

    Parameters
    ----------
    U : array-like of shape (n_samples, n_features)
        The recovered matrix.
    clean : array-like of shape (n_samples, n_features)
        The truth; not all zero.

    Returns
    -------
    float
        0 for a perfect recovery. Sums are in float64 for every dtype.

    Examples
    --------
    >>> from reproduction.evaluate import relative_error
    >>> relative_error([[3.0, 4.5]], [[3.0, 4.0]])
    0.1
    """
    U, clean = np.asarray(U), np.asarray(clean)
    if U.shape != clean.shape:
        raise ValueError(
            f"U has shape {U.shape} and clean {clean.shape}; they must agree; pass the same samples and features."
        )
    _check_finite(U=U, clean=clean)
    difference = total = 0.0
    for start in range(0, len(U), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        truth = clean[rows].astype(np.float64)
        difference += np.sum(np.square(U[rows] - truth))
        total += np.sum(np.square(truth))
    if total == 0:
        raise ValueError("clean is all zero, so there is no relative error; use numpy.linalg.norm(U) instead.")
    return float(np.sqrt(difference / total))


def outlier_scores(S: Any, mask: Any, *, threshold: float | None = None) -> dict[str, float]:
    """Compare the entries that ``S`` detects, ``|S| > threshold``, with the truly corrupted ones.

    Parameters
    ----------
    S : array-like of shape (n_samples, n_features)
        The sparse part ``X - U``, without NaN.
    mask : array-like of bool of shape (n_samples, n_features)
        True where the data were corrupted.
    threshold : float or None, default=None
        By default three robust standard deviations, ``3 * 1.4826 * median(|S|)``, and at least a
        millionth of the largest ``|S|``, below which a value is rounding.

    Returns
    -------
    dict
        ``"precision"`` (share of the detected entries that are corrupted), ``"recall"`` (share of the
        corrupted entries that are detected), ``"f1"``, and the ``"threshold"`` used. If there is
        nothing to count, a share is 1.

    Examples
    --------
    >>> from reproduction.evaluate import outlier_scores
    >>> outlier_scores([[0.0, 9.0, 0.0], [-8.0, 0.0, 7.0]], [[0, 1, 1], [1, 0, 0]], threshold=1.0)
    {'precision': 0.666..., 'recall': 0.666..., 'f1': 0.666..., 'threshold': 1.0}
    """
    size, mask = np.abs(np.asarray(S)), np.asarray(mask).astype(bool)
    if size.shape != mask.shape or size.size == 0:
        raise ValueError(
            f"S has shape {size.shape} and mask {mask.shape}; they must agree and not be empty; pass the "
            "mask of the same data."
        )
    _check_finite(S=size)
    if threshold is None:
        threshold = max(3 * _MAD_TO_STD * float(np.median(size)), 1e-6 * float(size.max()))
    detected = size > threshold
    hits, n_detected, n_corrupted = (int(found.sum()) for found in (detected & mask, detected, mask))
    return {
        "precision": _share(hits, n_detected),
        "recall": _share(hits, n_corrupted),
        "f1": _share(2 * hits, n_detected + n_corrupted),
        "threshold": float(threshold),
    }


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _check_finite(**matrices: np.ndarray) -> None:
    for name, A in matrices.items():
        if A.dtype.kind not in "biuf" or not np.isfinite(A).all():
            raise ValueError(
                f"{name}, {A.dtype}, has entries that are missing, infinite or not numbers; leave them out."
            )
