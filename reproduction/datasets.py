"""Data sets by name."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.utils import Bunch

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
    >>> from reproduction import load_dataset
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
    >>> from reproduction import list_datasets
    >>> list_datasets(data_home="a folder without data")
    ['digits']
    """
    home = _home(data_home)
    return [name for name in DATASETS if name == "digits" or (home and (home / f"{name}.npz").is_file())]


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
