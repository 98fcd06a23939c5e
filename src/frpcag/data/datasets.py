"""Data sets by name, and synthetic data that are low-rank on two graphs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.utils import Bunch, check_random_state

Array = np.ndarray

DATA_VARIABLE = "FRPCAG_DATA"

CLUSTERING_SETS = ("usps", "orl", "yale", "coil20", "pie", "mnist", "mfeat", "scrna_worm")
VIDEO_SETS = tuple(
    f"video_{clip}"
    for clip in ("bootstrap", "mall", "hall", "escalator", "lobby", "highway", "hallmonitor", "ibmtest2")
)
UNLABELLED_SETS = ("wordvec",)
DATASETS = ("digits", *CLUSTERING_SETS, *VIDEO_SETS, *UNLABELLED_SETS)


def load_dataset(name: str, *, data_home: str | os.PathLike | None = None) -> Bunch:
    """Load a data set by name.

    Parameters
    ----------
    name : str
        One of :data:`DATASETS`. ``"digits"`` comes with scikit-learn; every other name is the file
        ``name.npz`` in the data folder.
    data_home : path or None, default=None
        The data folder; by default the environment variable ``FRPCAG_DATA`` names it.

    Returns
    -------
    Bunch
        ``X`` float32 of shape (n_samples, n_features), in the units of the source (pixels of 8-bit images
        run from 0 to 255); ``y`` integer labels from 0, or None; ``shape`` = (h, w) of the image behind a
        row, or None; ``name``; and what else the file holds, under its own name, such as ``pose_deg`` of
        ``"coil20"`` or ``gt`` and ``gt_idx`` of a video, whose frames are the rows of ``X``.

    Examples
    --------
    >>> from frpcag.data import load_dataset
    >>> digits = load_dataset("digits")
    >>> digits.X.shape, digits.shape, len(set(digits.y))
    ((1797, 64), (8, 8), 10)
    """
    if name not in DATASETS:
        raise ValueError(f"name={name!r} is not a known data set; pass one of {', '.join(DATASETS)}.")
    if name == "digits":
        digits = load_digits()
        return Bunch(X=digits.data.astype(np.float32), y=digits.target, shape=(8, 8), name=name)
    with np.load(_find(name, data_home), allow_pickle=False) as stored:
        arrays = {key: stored[key] for key in stored.files}
    if name in VIDEO_SETS:
        frames = arrays.pop("frames")
        X, shape = frames.reshape(len(frames), -1).astype(np.float32), frames.shape[1:]
    else:
        X, shape = arrays.pop("X").astype(np.float32), tuple(arrays.pop("shape", (0, 0)))
    if name == "wordvec":
        X *= arrays.pop("scale")
    y = arrays.pop("y", None)
    return Bunch(
        X=X,
        y=None if y is None else y.astype(np.int64),
        shape=(int(shape[0]), int(shape[1])) if min(shape) > 0 else None,
        name=name,
        **arrays,
    )


def list_datasets(*, data_home: str | os.PathLike | None = None) -> list[str]:
    """Return the names that :func:`load_dataset` can load on this machine.

    Parameters
    ----------
    data_home : path or None, default=None
        The data folder; by default the one the environment variable ``FRPCAG_DATA`` points at.

    Returns
    -------
    list of str
        ``"digits"``, then the known data sets whose file lies in the data folder.

    Examples
    --------
    >>> from frpcag.data import list_datasets
    >>> list_datasets(data_home="a folder without data")
    ['digits']
    """
    home = _home(data_home)
    return [name for name in DATASETS if name == "digits" or (home and (home / f"{name}.npz").is_file())]


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


def _home(data_home: str | os.PathLike | None) -> Path | None:
    folder = data_home if data_home is not None else os.environ.get(DATA_VARIABLE)
    return Path(folder).expanduser() if folder else None


def _find(name: str, data_home: str | os.PathLike | None) -> Path:
    home = _home(data_home)
    if home is None:
        raise FileNotFoundError(
            f"name={name!r} needs {name}.npz from the data folder; set the environment variable "
            f"{DATA_VARIABLE} to that folder (export {DATA_VARIABLE}=/path/to/data) or pass data_home."
        )
    path = home / f"{name}.npz"
    if not path.is_file():
        raise FileNotFoundError(
            f"name={name!r}: there is no file {path}; point {DATA_VARIABLE} or data_home at the folder that "
            f"holds {name}.npz."
        )
    return path


def _check_clusters(name: str, k: int, size_name: str, size: int) -> None:
    if not 1 <= k <= size:
        raise ValueError(f"{name}={k} must lie between 1 and {size_name}={size}; pass at most {size}.")
