"""A background that follows slow changes of a live picture."""

from __future__ import annotations

import numpy as np

Array = np.ndarray

# Share of the difference that the background follows in one frame: half of it in 14 frames where nothing moves, in 14
# seconds (at 25 frames a second) under what moves, so that a light nobody has seen yet does not stay foreground.
RATE, RATE_UNDER_MASK = 0.05, 0.002


def follow(drift: Array, S: Array, mask: Array) -> Array:
    """Return what to add to the frozen background after one more frame.

    Parameters
    ----------
    drift : ndarray of shape (h, w) or (h, w, 3)
        What was added until now.
    S : ndarray of the same shape
        The frame less its background.
    mask : bool ndarray of shape (h, w)
        True for foreground.

    Returns
    -------
    ndarray of the same shape
        float32.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.video.follow import follow
    >>> follow(np.zeros((1, 2), np.float32), np.array([[10.0, 10.0]]), np.array([[False, True]])).round(2)
    array([[0.5 , 0.02]], dtype=float32)
    """
    rate = np.where(mask, np.float32(RATE_UNDER_MASK), np.float32(RATE))
    return drift + (rate[..., None] if S.ndim == 3 else rate) * S.astype(np.float32, copy=False)
