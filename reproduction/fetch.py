"""Fetch the public data sets from OpenML, for people with internet: ``python -m reproduction.fetch FOLDER``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_openml

from frpcag.runtime.atomic import atomic_file

Array = np.ndarray

# OpenML's number of each data set. The views of MFEAT are in the order of the UCI archive.
OPENML = {
    "usps": (41082,),
    "mnist": (554,),
    "mfeat": (12, 14, 16, 18, 20, 22),
}
MFEAT_VIEWS = ("fac", "fou", "kar", "mor", "pix", "zer")
SHAPES = {"usps": (16, 16), "mnist": (28, 28)}


def fetch_dataset(name: str, folder: str | os.PathLike, *, fetch: Callable = fetch_openml) -> Path:
    """Download a data set and store it under the name and in the layout that `load_dataset` reads.

    Parameters
    ----------
    name : str
        One of :data:`OPENML`. The face, object and video sets are not there; get them from their owners.
    folder : path
        Where ``name.npz`` goes; made where missing. A file that is there is kept.
    fetch : callable, default=sklearn.datasets.fetch_openml
        Called with ``data_id``, ``as_frame=False`` and ``parser="auto"``.

    Returns
    -------
    Path
        The file, whole: it appears under its name only when the download has ended.
    """
    if name not in OPENML:
        raise ValueError(f"name={name!r} is not on OpenML; pass one of {', '.join(OPENML)}.")
    file = Path(folder).expanduser() / f"{name}.npz"
    if file.is_file():
        return file
    views = [fetch(data_id=number, as_frame=False, parser="auto") for number in OPENML[name]]
    X = np.hstack([np.asarray(view.data, dtype=np.float32) for view in views])
    if not np.isfinite(X).all():
        raise ValueError(f"name={name!r}: OpenML's copy holds {np.sum(~np.isfinite(X))} values that are no numbers.")
    arrays = {"X": X, "y": labels(views[0].target), "shape": np.array(SHAPES.get(name, (0, 0)))}
    if name == "mfeat":
        arrays["view"] = np.repeat(np.arange(len(views)), [view.data.shape[1] for view in views])
        arrays["view_names"] = np.array(MFEAT_VIEWS)
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(file) as partial:
        np.savez_compressed(partial, **arrays)  # type: ignore[arg-type]
    return file


def labels(target: Array) -> Array:
    """Return classes as numbers from 0, in the order of their names."""
    return np.unique(np.asarray(target).astype(str), return_inverse=True)[1].astype(np.int64)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m reproduction.fetch FOLDER")
    for one in OPENML:
        print(fetch_dataset(one, sys.argv[1]))
    print(f"now: export FRPCAG_DATA={Path(sys.argv[1]).resolve()}")
