"""The paper's preprocessing for each comparison model."""

from __future__ import annotations

import numpy as np

from frpcag.data.preprocess import center_and_scale

Array = np.ndarray

PREPROCESSING = ("none", "standardize", "standardize+unit", "unit")


def preprocess(X: Array, how: str) -> Array:
    """Preprocess the data for a comparison model, as Shahid et al. 2016 do.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data; not changed.
    how : {"none", "standardize", "standardize+unit", "unit"}
        "standardize" gives every feature mean zero and standard deviation one, "unit" every sample length one;
        "standardize+unit" does the one, then the other.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        A new array, float32 where ``X`` is float32. Constant features and zero samples become, or stay, zero.

    Notes
    -----
    The paper standardises for RPCA, RPCAG and FRPCAG, adds unit length for MMF, and takes unit length alone for NMF and
    GNMF. It does not say what k-means, NCut, LE, PCA and GLPCA get. Here the data of PCA and GLPCA are standardised,
    since both need centred data; k-means, NCut and LE get the data as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.baselines import preprocess
    >>> preprocess(np.array([[3.0, 4.0], [0.0, 0.0]]), "unit")
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    if how not in PREPROCESSING:
        raise ValueError(f"how={how!r} is unknown; choose one of {', '.join(map(repr, PREPROCESSING))}.")
    standardize = how.startswith("standardize")
    out, _, _ = center_and_scale(X, center=standardize, scale=standardize)
    if how.endswith("unit"):
        lengths = np.sqrt(np.einsum("ij,ij->i", out, out, dtype=np.float64))
        out /= np.where(lengths > 0, lengths, 1.0)[:, None].astype(out.dtype)
    return out
