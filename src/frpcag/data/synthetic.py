"""Synthetic data that are low-rank on two graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

Array = np.ndarray


def make_low_rank_on_graphs(
    n_samples: int = 200,
    n_features: int = 100,
    *,
    n_sample_clusters: int = 4,
    n_feature_clusters: int = 4,
    noise: float = 0.1,
    outliers: float = 0.05,
    outlier_size: float = 5.0,
    dtype: Any = np.float64,
    random_state: Any = None,
) -> tuple[Array, Array, Array]:
    """Make data whose samples and features both fall into clusters, with noise and gross outliers.

    The clean matrix takes one value for each pair of a sample cluster and a feature cluster. It lies in
    the span of the first eigenvectors of both graphs when these join equal clusters only: a low-rank
    matrix on graphs in the sense of Shahid et al. 2016, with ``k1 = n_sample_clusters`` and
    ``k2 = n_feature_clusters``. Its rank is ``min(k1, k2)`` and its root mean square about 1.

    Parameters
    ----------
    n_samples, n_features : int, default=200 and 100
        Size of the data.
    n_sample_clusters, n_feature_clusters : int, default=4
        Number of clusters of rows and of columns, of sizes that differ by one at most, in random order.
    noise : float, default=0.1
        Standard deviation of the Gaussian noise on every entry.
    outliers : float in [0, 1], default=0.05
        Share of the entries, exact to rounding, that get a gross error of ``+outlier_size`` or
        ``-outlier_size``.
    outlier_size : float, default=5.0
        Size of a gross error.
    dtype : float dtype, default=numpy.float64
        Of ``X`` and ``clean``.
    random_state : int, RandomState or None, default=None
        Seeds everything.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        What is observed.
    clean : ndarray of shape (n_samples, n_features)
        The matrix without noise and outliers.
    labels : ndarray of int of shape (n_samples,)
        The cluster of each sample.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.data import make_low_rank_on_graphs
    >>> X, clean, labels = make_low_rank_on_graphs(60, 40, n_sample_clusters=3, random_state=0)
    >>> X.shape, int(np.linalg.matrix_rank(clean)), np.bincount(labels)
    ((60, 40), 3, array([20, 20, 20]))
    """
    _check_clusters("n_sample_clusters", n_sample_clusters, "n_samples", n_samples)
    _check_clusters("n_feature_clusters", n_feature_clusters, "n_features", n_features)
    if not 0 <= outliers <= 1:
        raise ValueError(f"outliers={outliers} must lie in [0, 1]; pass a share of the entries, like 0.05.")
    rng = check_random_state(random_state)
    labels = rng.permutation(np.arange(n_samples) % n_sample_clusters)
    feature_labels = rng.permutation(np.arange(n_features) % n_feature_clusters)
    clean = _block_values(n_sample_clusters, n_feature_clusters, rng)[labels][:, feature_labels]
    X = clean + noise * rng.standard_normal(clean.shape)
    hit = rng.permutation(X.size)[: round(outliers * X.size)]
    X.flat[hit] += outlier_size * rng.choice([-1.0, 1.0], size=len(hit))
    return X.astype(dtype, copy=False), clean.astype(dtype, copy=False), labels


def _block_values(k1: int, k2: int, rng: np.random.RandomState) -> Array:
    """Return (k1, k2) values of mean square 1; orthogonal rows (or columns) keep the clusters apart."""
    Q, _ = np.linalg.qr(rng.standard_normal((max(k1, k2), min(k1, k2))))
    C = np.sqrt(max(k1, k2)) * Q
    return C if k1 >= k2 else C.T


def _check_clusters(name: str, k: int, size_name: str, size: int) -> None:
    if not 1 <= k <= size:
        raise ValueError(f"{name}={k} must lie between 1 and {size_name}={size}; pass at most {size}.")
