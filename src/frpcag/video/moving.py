"""A background that moves, such as an escalator: what linked frames show in the same place explains a frame."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import maximum_filter

from frpcag.runtime.compiled import compiled
from frpcag.runtime.threads import block_pool

Array = np.ndarray

# Measured in docs/decisions/video.md, one set for all clips.
# This share of the linked frames must show a value in a place before it counts as background there: fewer may be
# people that were not found.
SEEN = 0.2
# Differences of up to this many noise levels to the mean stay as they are, or the noise of a still wall would shrink.
REACH = 2.0
# Pixels that foreground in linked frames is widened by.
RIM = 2

_MAD_TO_STD = 1.4826
_PIXELS = 2048


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
    >>> from frpcag.video.moving import explain
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
    >>> from frpcag.video.moving import typical_size
    >>> differences = np.array([1.0, -1.0, 1.0, 90.0])[:, None, None]
    >>> typical_size(differences, np.array([[False], [False], [False], [True]]), otherwise=0.0)
    array([[1.4826]], dtype=float32)
    """
    out = np.empty(differences.shape[1:], np.float32)

    def fill(start: int) -> None:
        pixels = slice(start, start + _PIXELS)
        size = np.abs(differences[:, pixels])
        size[moving[:, pixels]] = np.inf
        size.sort(axis=0)
        last = np.maximum((~moving[:, pixels]).sum(axis=0)[None, :, None] - 1, 0)
        middle = [np.take_along_axis(size, half, axis=0)[0] for half in (last // 2, (last + 1) // 2)]
        out[pixels] = np.where(np.isfinite(middle[1]), (middle[0] + middle[1]) * np.float32(_MAD_TO_STD / 2), otherwise)

    with block_pool(n_jobs) as run:
        run(fill, range(0, len(out), _PIXELS))
    return out
