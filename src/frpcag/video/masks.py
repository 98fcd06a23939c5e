"""From the sparse part of a video to a mask and boxes: a score in units of the noise, smoothed over the image."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import find_objects, gaussian_filter, label, uniform_filter

from frpcag.runtime.threads import block_pool

Array = np.ndarray

# Measured in docs/decisions/video.md, one set for all clips. The slope of S counts beside S itself: a shadow or a
# change of light is smooth inside, an object is not.
SLOPE = 2.0
# Beyond this many noise levels a pixel is no more foreground than before: a bright rim must not spill over its
# surroundings when the score is smoothed.
CAP = 18.0
# Pixels: standard deviation of the smoothing.
BLUR = 2.0
# A shadow is the background times one number between LEAST_LIGHT and 1 in a window of SIDE pixels, to within the noise;
# where that explains the frame, a pixel counts for this much less.
SHADOW, LEAST_LIGHT, SIDE = 0.7, 0.6, 5
# Noise levels from which on a pixel is foreground.
LEVEL = 12.0

# Share of the picture below which a blob is not looked at.
LEAST_AREA = 1 / 2000
# Frames scored at a time by one thread.
_BLOCK = 8


def foreground_score(
    S: Array, noise: float | Array, *, background: Array | None = None, n_jobs: int | None = None
) -> Array:
    """Return how strongly each pixel stands out, in noise levels.

    ``min((|S| + 2 |grad S|) / noise, 18)``, the larger of the channels of a colour video, less where a shadow on the
    background explains it, smoothed by a Gaussian of two pixels.

    Parameters
    ----------
    S : ndarray of shape (n_frames, h, w) or (n_frames, h, w, 3)
        The sparse part.
    noise : float or ndarray of the shape of a frame
        Standard deviation of the noise, of all pixels or of each, in the units of ``S``; positive.
    background : ndarray of the shape of ``S``, optional
        What ``S`` is the difference to; without it shadows count like anything else. Zero is black.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    ndarray of shape (n_frames, h, w)
        float32, from 0 to 18.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.video.masks import foreground_score
    >>> S = np.zeros((1, 40, 40), np.float32)
    >>> S[0, 10:30, 10:30] = 50
    >>> score = foreground_score(S, 2.0)
    >>> bool(score[0, 20, 20] > 17.9), bool(score[0, 0, 0] < 0.1)
    (True, True)
    """
    score = np.empty(S.shape[:3], np.float32)

    levels = np.asarray(noise, np.float32)

    def fill(start: int) -> None:
        rows = slice(start, start + _BLOCK)
        block = S[rows].astype(np.float32, copy=False) / levels
        size = _strength(block) if block.ndim == 3 else np.max([_strength(block[..., c]) for c in range(3)], axis=0)
        np.minimum(size, np.float32(CAP), out=size)
        if background is not None:
            size *= 1 - np.float32(SHADOW) * _shadow(block, background[rows].astype(np.float32, copy=False) / levels)
        gaussian_filter(size, (0, BLUR, BLUR), output=score[rows], truncate=3.0)

    if len(S) <= _BLOCK:  # threads would take longer to start than to finish
        fill(0)
        return score
    with block_pool(n_jobs) as run:
        run(fill, range(0, len(S), _BLOCK))
    return score


def _strength(block: Array) -> Array:
    """Return ``|S| + SLOPE |grad S|`` by central differences."""
    squares = np.zeros_like(block)
    for axis in (1, 2):
        if block.shape[axis] > 1:
            squares += np.square(np.gradient(block, axis=axis))
    return np.abs(block) + np.float32(SLOPE) * np.sqrt(squares)


def _shadow(S: Array, background: Array) -> Array:
    """Return how well a shadow explains each pixel of a difference, from 0 to 1; both in noise levels."""
    # One noise level more keeps the quotient of two dark places from being one of noise.
    behind = background + 1
    grey, lit = (values.mean(axis=3) if S.ndim == 4 else values for values in (S, behind))
    mean = _around(lit)
    light = (mean + _around(grey)) / np.where(mean > 0, mean, np.inf)
    rest = np.square(S + (1 - (light if S.ndim == 3 else light[..., None])) * behind)
    off = np.sqrt(np.maximum(_around(rest if S.ndim == 3 else rest.mean(axis=3)), 0))
    fits = np.exp(-np.maximum(off - 1, 0))
    fits[(light <= LEAST_LIGHT) | (light >= 1)] = 0
    return fits


def _around(values: Array) -> Array:
    return uniform_filter(values, (0, SIDE, SIDE))


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
    >>> from frpcag.video.masks import boxes_of
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
