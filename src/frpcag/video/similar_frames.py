"""Which frames of a clip resemble each other, how much a pixel of theirs differs all the same, and what they explain.

A background may move, such as an escalator: what linked frames show in the same place explains a frame.
"""

from __future__ import annotations

import numpy as np
from scipy.ndimage import maximum_filter
from scipy.spatial.distance import cdist

from frpcag.runtime.compiled import compiled
from frpcag.runtime.threads import block_pool

Array = np.ndarray

# Measured in docs/decisions/video.md, one set for all clips.
# Frames nearer in time than this share of the clip are not linked: they show the same slow person in the same place.
APART = 1 / 20
# Frames are compared at about this many patches.
PATCHES = 1200
# The noise is estimated on this many frames.
NOISE_FRAMES = 100

# This share of the linked frames must show a value in a place before it counts as background there: fewer may be
# people that were not found.
SEEN = 0.2
# Differences of up to this many noise levels to the mean stay as they are, or the noise of a still wall would shrink.
REACH = 2.0
# Pixels that foreground in linked frames is widened by.
RIM = 2

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
    thumbnails : ndarray of shape (n_frames, n_patches)
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
    """Return grey frames of about PATCHES patches each, averages of squares (of ``side`` pixels), one a row."""
    n, h, w = frames.shape[:3]
    side = max(1, round((h * w / PATCHES) ** 0.5)) if side is None else side
    rows, columns = (np.arange(0, max(size - size % side, 1), side) for size in (h, w))
    # The last patch of a row or column also takes what is left over.
    area = np.outer(np.diff([*rows, h]), np.diff([*columns, w])).ravel()
    out = np.empty((n, area.size))
    for start in range(0, n, _BLOCK):
        block = frames[start : start + _BLOCK].astype(np.float32)
        block = block.mean(axis=3) if block.ndim == 4 else block
        sums = np.add.reduceat(np.add.reduceat(block, rows, axis=1), columns, axis=2)
        out[start : start + len(block)] = sums.reshape(len(block), -1) / area
    return out


def noise_map(planes: Array, rows: Array, near: Array) -> Array:
    """Return the noise of each pixel: how far it lies from the mean of its similar frames, in the median.

    Parameters
    ----------
    planes : ndarray of shape (n_frames, n_pixels, n_channels)
        All frames.
    rows : ndarray of int of shape (n_rows,)
        Frames to look at.
    near : ndarray of int of shape (n_rows, n_neighbors)
        Similar frames of each.

    Returns
    -------
    ndarray of shape (n_pixels, n_channels)
        In the scale of a standard deviation, float32.
    """
    pairs = zip(rows, near, strict=True)
    off = [np.abs(planes[row] - planes[links].mean(axis=0, dtype=np.float32)) for row, links in pairs]
    return np.float32(_MAD_TO_STD) * np.median(off, axis=0).astype(np.float32)


def spread(n: int, limit: int) -> Array:
    """Return at most ``limit`` of ``n`` numbers, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, limit)).astype(int))


def widened(moving: Array) -> Array:
    """Return masks of shape (n, h, w) widened by RIM pixels."""
    return maximum_filter(moving, (0, 2 * RIM + 1, 2 * RIM + 1))


def explain(frame: Array, mean: Array, planes: Array, moving: Array, links: Array, noise: float) -> Array:
    """Return the background of a frame, as near to it as the linked frames explain.

    Where the frame is farther from their mean than the noise, the linked frames are asked for that place: the
    difference shrinks to that of the value which a fifth of those that show it free come near, and two noise levels.

    Parameters
    ----------
    frame : ndarray of shape (n_pixels, n_channels)
        A frame.
    mean : ndarray of shape (n_pixels, n_channels)
        The mean of the backgrounds of the frames it is linked to.
    planes : ndarray of shape (n_frames, n_pixels, n_channels)
        All frames.
    moving : bool ndarray of shape (n_frames, n_pixels)
        Where something stands in front of the background of each.
    links : ndarray of int
        The linked frames.
    noise : float
        Standard deviation of the noise.

    Returns
    -------
    ndarray of the shape of ``frame``
        float32, between ``mean`` and ``frame``.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.video.similar_frames import explain
    >>> planes = np.array([20.0, 80, 20, 80, 20])[:, None, None]  # one pixel, which stripes pass
    >>> mean, nothing = planes[1:].mean(axis=0), np.zeros((5, 1), bool)
    >>> for value in (20, 80, 140):
    ...     print(explain(np.full((1, 1), value), mean, planes, nothing, np.arange(1, 5), 1.0))
    [[22.]]
    [[78.]]
    [[78.]]
    """
    out = np.array(mean, np.float32)
    _explain(frame, planes, moving, links, np.float32(REACH * noise), SEEN, out)
    return out


@compiled
def _explain(frame, planes, moving, links, reach, share, out):
    near = np.empty(len(links) + 2, np.float32)  # the least distances of linked frames, sorted
    for pixel in range(out.shape[0]):
        for channel in range(out.shape[1]):
            value = np.float32(frame[pixel, channel])
            off = value - out[pixel, channel]
            room = np.abs(off) - reach
            if room <= 0:
                continue
            free = 0
            for link in links:
                free += not moving[link, pixel]
            rank = max(int(np.ceil(share * free)), 2)
            near[:rank] = room
            for link in links:
                if moving[link, pixel]:
                    continue
                distance = np.abs(np.float32(planes[link, pixel, channel]) - value)
                if distance < near[rank - 1]:
                    place = rank - 1
                    while place > 0 and near[place - 1] > distance:
                        near[place] = near[place - 1]
                        place -= 1
                    near[place] = distance
            out[pixel, channel] += np.sign(off) * (room - near[rank - 1])


def typical_size(differences: Array, moving: Array, *, otherwise: float, n_jobs: int | None = None) -> Array:
    """Return the median size of differences at each pixel, over the frames that show it free.

    Parameters
    ----------
    differences : ndarray of shape (n_frames, n_pixels, n_channels)
        Frames less their background.
    moving : bool ndarray of shape (n_frames, n_pixels)
        Frames to leave out.
    otherwise : float
        The result where no frame is left.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    ndarray of shape (n_pixels, n_channels)
        In the scale of a standard deviation, float32.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.video.similar_frames import typical_size
    >>> differences = np.array([1.0, -1.0, 1.0, 90.0])[:, None, None]
    >>> typical_size(differences, np.array([[False], [False], [False], [True]]), otherwise=0.0)
    array([[1.4826]], dtype=float32)
    """
    out = np.empty(differences.shape[1:], np.float32)

    def fill(start: int) -> None:
        pixels = slice(start, start + _PIXELS)
        size = median_where(np.abs(differences[:, pixels]), ~moving[:, pixels])
        out[pixels] = np.where(np.isfinite(size), size * np.float32(_MAD_TO_STD), otherwise)

    with block_pool(n_jobs) as run:
        run(fill, range(0, len(out), _PIXELS))
    return out


def median_where(values: Array, shown: Array) -> Array:
    """Return the median over the first axis of values of shape (n, m, c), of those shown; infinite where none is."""
    ordered = np.sort(np.where(shown[..., None], values, np.inf), axis=0)
    last = np.maximum(shown.sum(axis=0) - 1, 0)[None, :, None]
    low, high = (np.take_along_axis(ordered, half, axis=0)[0] for half in (last // 2, (last + 1) // 2))
    return (low + high) / 2
