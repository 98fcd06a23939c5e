"""Which samples and which features are bad: the share of entries that stand out.

A cleaner gives each entry a probability of being wrong; entries above one half stand out. With a decomposition alone,
an entry stands out if its ``|S|`` is far above the mean, which finds gross errors only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray

# An entry stands out when |S| is this many times its mean.
STANDS_OUT = 6.0
# Entries of S looked at together: bounds the memory of |S|.
_BLOCK = 2**22


@dataclass(frozen=True, eq=False)
class OutlierShares:
    """Where entries stand out.

    Parameters
    ----------
    threshold : float
        An entry stands out if ``|S|``, or its probability of being wrong, is above this.
    share : float
        Share of all entries that stand out.
    samples : ndarray of shape (n_samples,)
        Share of the entries of each sample.
    features : ndarray of shape (n_features,)
        Share of the entries of each feature.
    in_units : bool
        Whether the columns were divided by units of their own.
    """

    threshold: float
    share: float
    samples: Array
    features: Array
    in_units: bool = False

    def worst_samples(self, n: int) -> Array:
        """Return the ``n`` samples with the most outlying entries, worst first."""
        return np.argsort(-self.samples, kind="stable")[:n]

    def worst_features(self, n: int) -> Array:
        """Return the ``n`` features with the most outlying entries, worst first."""
        return np.argsort(-self.features, kind="stable")[:n]


def outlier_shares(S: Array, *, threshold: float | None = None, units: Array | None = None) -> OutlierShares:
    """Count the entries of ``S`` that stand out, for each sample and each feature.

    Parameters
    ----------
    S : ndarray of shape (n_samples, n_features)
        The sparse part, ``sparse_`` of a fit.
    threshold : float, optional
        An entry stands out if ``|S|`` is above this. The default is six times the mean of ``|S|``, far above the small
        residues that noise leaves everywhere.
    units : ndarray of shape (n_features,), optional
        The columns of ``S`` are divided by these first, if they have different units; the threshold is in these units.

    Returns
    -------
    OutlierShares

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.insight import outlier_shares
    >>> S = np.zeros((4, 10))
    >>> S[2, :5] = -3.0
    >>> shares = outlier_shares(S)
    >>> shares.samples, shares.worst_samples(1)
    (array([0. , 0. , 0.5, 0. ]), array([2]))
    """
    S = np.asarray(S)
    if S.ndim != 2 or S.size == 0:
        raise ValueError(f"S has shape {S.shape}; it must be (n_samples, n_features); pass a matrix.")
    n, p = S.shape
    blocks = [slice(start, start + max(1, _BLOCK // p)) for start in range(0, n, max(1, _BLOCK // p))]
    unit = np.ones(p) if units is None else np.asarray(units)
    if threshold is None:
        total = sum(float(np.abs(S[rows] / unit).sum(dtype=np.float64)) for rows in blocks)
        threshold = STANDS_OUT * total / S.size
    samples, features = np.zeros(n), np.zeros(p)
    for rows in blocks:
        part = flagged_shares(np.abs(S[rows] / unit) > threshold)
        samples[rows] = part.samples
        features += part.features * len(part.samples)
    return OutlierShares(float(threshold), float(features.sum() / S.size), samples, features / n, units is not None)


def flagged_shares(flags: Array, *, threshold: float = 0.5) -> OutlierShares:
    """Return the shares of flagged entries, for each sample and each feature.

    Parameters
    ----------
    flags : bool ndarray of shape (n_samples, n_features)
        Entries that stand out, such as the wrong cells of a :class:`~frpcag.RobustGraphCleaner`.
    threshold : float, default=0.5
        The probability that they exceed.

    Returns
    -------
    OutlierShares

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.insight import flagged_shares
    >>> flagged_shares(np.array([[True, False], [False, False]])).share
    0.25
    """
    return OutlierShares(float(threshold), float(flags.mean()), flags.mean(axis=1), flags.mean(axis=0))
