"""Boxes around what moves."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import find_objects, label

Array = np.ndarray

# Share of the picture below which a blob gets no box.
LEAST_AREA = 1 / 2000


def boxes_of(mask: Array, *, least_area: float | None = None) -> Array:
    """Return boxes around the connected blobs of a mask.

    Parameters
    ----------
    mask : bool ndarray of shape (h, w)
        True for foreground.
    least_area : float, optional
        Pixels below which a blob is left out; a two-thousandth of the picture by default.

    Returns
    -------
    ndarray of int of shape (n_boxes, 5)
        Column of the left side, row of the top, width, height, and pixels of the blob; largest blob first.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.video.boxes import boxes_of
    >>> mask = np.zeros((20, 30), bool)
    >>> mask[5:9, 10:20] = True
    >>> boxes_of(mask)
    array([[10,  5, 10,  4, 40]])
    """
    least = LEAST_AREA * mask.size if least_area is None else least_area
    blobs, _ = label(mask, np.ones((3, 3)))
    areas = np.bincount(blobs.ravel())[1:]
    rows = [
        (across.start, down.start, across.stop - across.start, down.stop - down.start, area)
        for (down, across), area in zip(find_objects(blobs), areas, strict=True)
        if area >= least
    ]
    rows.sort(key=lambda row: (-row[4], row))
    return np.array(rows, dtype=np.int64).reshape(-1, 5)
