"""The few backgrounds that stand for all those of a clip."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from frpcag.video.similar_frames import shrink

Array = np.ndarray

MOST_REFERENCES = 64
# Two backgrounds are alike when their most different cells differ by less than this many noise levels.
ALIKE = 1.5
# Cells are squares of this many pixels, in which noise averages out; this share of them may differ more.
_SIDE, _RARE = 8, 0.01
# float16 holds numbers of this size to a two-thousandth.
_HALF = (1e-2, 6e4)


def choose_references(backgrounds: Array, noise: float) -> Array:
    """Return as few backgrounds as cover all, each the mean of those like it.

    Starts with the one in the middle of the clip and adds the one farthest from those chosen, until all are near one.

    Parameters
    ----------
    backgrounds : ndarray of shape (n_frames, h, w) or (n_frames, h, w, 3)
        Of the clip.
    noise : float
        Standard deviation of its noise.

    Returns
    -------
    ndarray of shape (n_references, h, w) or (n_references, h, w, 3)
        At most 64; float16 where that holds the values to a two-thousandth, else float32.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.video.references import choose_references
    >>> light = np.repeat([100.0, 40.0], 10)[:, None, None]
    >>> choose_references(np.broadcast_to(light, (20, 6, 8)), 1.0)[:, 0, 0]
    array([ 40., 100.], dtype=float16)
    """
    cells = shrink(backgrounds, side=_SIDE)
    chosen = [len(cells) // 2]
    rank = max(0, int(np.ceil((1 - _RARE) * cells.shape[1])) - 1)

    def off(t: int) -> Array:
        return np.partition(np.abs(cells - cells[t]), rank, axis=1)[:, rank]

    nearest = off(chosen[0])
    while len(chosen) < MOST_REFERENCES and nearest.max() > ALIKE * noise:
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, off(chosen[-1]))
    owner = cdist(cells, cells[chosen], "cityblock").argmin(axis=1)
    means = np.stack([backgrounds[owner == which].mean(axis=0, dtype=np.float32) for which in np.unique(owner)])
    size = np.abs(means).max()
    return means.astype(np.float16) if _HALF[0] < size < _HALF[1] else means
