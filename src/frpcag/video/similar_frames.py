"""Which frames of a clip resemble each other, and how much a pixel of theirs differs all the same."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from frpcag.runtime.threads import block_pool

Array = np.ndarray

# Measured in docs/decisions/video.md, one set for all clips.
# Frames nearer in time than this share of the clip are not linked: they show the same slow person in the same place.
APART = 1 / 20
# Frames are compared at about this many cells.
CELLS = 1200
# The noise is estimated on this many frames.
NOISE_FRAMES = 100

# Makes the median absolute value of Gaussian noise its standard deviation.
_MAD_TO_STD = 1.4826
# Frames compared, and pixels looked at, by one thread at a time.
_BLOCK, _PIXELS = 16, 2048


def nearest_frames(
    thumbnails: Array, n_neighbors: int, *, rows: Array | None = None, n_jobs: int | None = None
) -> Array:
    """Return the frames most like each frame in mean absolute difference, those near it in time left out.

    Parameters
    ----------
    thumbnails : ndarray of shape (n_frames, n_cells)
        Small grey frames.
    n_neighbors : int
        How many.
    rows : ndarray of int, optional
        Look at these frames only.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    ndarray of shape (n_rows, n_neighbors)
        Their numbers, nearest first.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.video.similar_frames import nearest_frames
    >>> nearest_frames(np.array([[0.0], [5.0], [1.0], [6.0]]), 1).ravel()
    array([2, 3, 0, 1])
    """
    n = len(thumbnails)
    time = np.arange(n)
    rows = time if rows is None else rows
    near = np.empty((len(rows), n_neighbors), np.int64)

    def search(start: int) -> None:
        block = rows[start : start + _BLOCK]
        distance = cdist(thumbnails[block], thumbnails, "cityblock")
        apart = np.abs(block[:, None] - time)
        # Near frames come last rather than never: a short clip may have no others.
        distance += np.where(apart < n * APART, 2 * distance.max() + 1, 0)
        distance[apart == 0] = np.inf
        near[start : start + _BLOCK] = np.argsort(distance, axis=1, kind="stable")[:, :n_neighbors]

    with block_pool(n_jobs) as run:
        run(search, range(0, len(rows), _BLOCK))
    return near


def shrink(frames: Array, *, side: int | None = None) -> Array:
    """Return grey frames of about CELLS cells each, averages of square blocks (of ``side`` pixels), one a row."""
    n, h, w = frames.shape[:3]
    side = max(1, round((h * w / CELLS) ** 0.5)) if side is None else side
    rows, columns = (np.arange(0, max(size - size % side, 1), side) for size in (h, w))
    # The last cell of a row or column also takes what is left over.
    area = np.outer(np.diff([*rows, h]), np.diff([*columns, w])).ravel()
    out = np.empty((n, area.size))
    for start in range(0, n, _BLOCK):
        block = frames[start : start + _BLOCK].astype(np.float32)
        block = block.mean(axis=3) if block.ndim == 4 else block
        sums = np.add.reduceat(np.add.reduceat(block, rows, axis=1), columns, axis=2)
        out[start : start + len(block)] = sums.reshape(len(block), -1) / area
    return out


def noise_map(planes: Array, rows: Array, near: Array, *, n_jobs: int | None = None) -> Array:
    """Return the noise of each pixel: how far it lies from the mean of its similar frames, in the median.

    Parameters
    ----------
    planes : ndarray of shape (n_frames, n_pixels, n_channels)
        All frames.
    rows : ndarray of int of shape (n_rows,)
        Frames to look at.
    near : ndarray of int of shape (n_rows, n_neighbors)
        Similar frames of each.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    ndarray of shape (n_pixels, n_channels)
        In the scale of a standard deviation, float32.
    """
    out = np.empty(planes.shape[1:], np.float32)

    def fill(start: int) -> None:
        part = planes[:, start : start + _PIXELS]
        off = [
            np.abs(part[row] - part[links].mean(axis=0, dtype=np.float32))
            for row, links in zip(rows, near, strict=True)
        ]
        out[start : start + _PIXELS] = np.median(off, axis=0)

    with block_pool(n_jobs) as run:
        run(fill, range(0, len(out), _PIXELS))
    return np.float32(_MAD_TO_STD) * out


def spread(n: int, limit: int) -> Array:
    """Return at most ``limit`` of ``n`` numbers, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, limit)).astype(int))
