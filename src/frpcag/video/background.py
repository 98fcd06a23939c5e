"""The backgrounds of a clip: the problem of all frames, solved for a block of pixels at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import nan
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from frpcag.problem import Problem
from frpcag.runtime.threads import block_pool
from frpcag.runtime.warn import muted
from frpcag.solvers import Progress
from frpcag.solvers.options import SolveOptions
from frpcag.solvers.solve import run
from frpcag.video.similar_frames import spread

Array = np.ndarray

# Without a pixel graph each pixel is a problem of its own. Blocks of about this many entries stay in the cache over all
# steps; they are whole vectors of pixels.
_ENTRIES, _VECTOR = 1 << 19, 64
# Frames that tell the level of a pixel.
_LEVEL_FRAMES = 51
# Backends of one processor; others take all pixels at once.
_IN_BLOCKS = ("auto", "numba", "numpy")


@dataclass(frozen=True)
class Backgrounds:
    """The solution for all frames and channels.

    Parameters
    ----------
    U : ndarray of shape (n_frames, n_pixels, n_channels)
        The backgrounds, float32.
    n_iter : int
        Solver steps; the largest of the blocks, summed over the channels.
    gap : float
        Relative duality gap; the largest of the channels.
    """

    U: Array
    n_iter: int
    gap: float


def solve_backgrounds(
    planes: Array,
    L: Any,
    gamma1: float,
    *,
    missing: Array | None = None,
    start: Array | None = None,
    tol: float,
    max_iter: int,
    backend: Any = "auto",
    n_jobs: int | None = None,
    callback: Callable[[Progress], object] | None = None,
) -> Backgrounds:
    """Return the backgrounds of all frames.

    Parameters
    ----------
    planes : ndarray of shape (n_frames, n_pixels, n_channels)
        The frames.
    L : sparse array of shape (n_frames, n_frames)
        Laplacian of their graph.
    gamma1 : float
        Its weight.
    missing : bool ndarray of shape (n_frames, n_pixels), optional
        Pixels without a data term.
    start : ndarray of the shape of ``planes``, optional
        Warm start.
    tol, max_iter, backend, n_jobs, callback
        As in :class:`frpcag.BackgroundSeparator`.

    Returns
    -------
    Backgrounds

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from frpcag.video.background import solve_backgrounds
    >>> path = sp.csr_array(np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]]))
    >>> planes = np.array([100.0, 180, 100])[:, None, None]
    >>> solve_backgrounds(planes, path, 10.0, tol=1e-6, max_iter=500).U.ravel().round(1)
    array([100., 100., 100.], dtype=float32)
    """
    options = SolveOptions(tol=tol, max_iter=max_iter, backend=backend, callback=callback)
    n, n_pixels, n_channels = planes.shape
    U = np.empty(planes.shape, np.float32)
    width = n_pixels
    if isinstance(backend, str) and backend in _IN_BLOCKS:
        width = max(_ENTRIES // n // _VECTOR, 1) * _VECTOR
    blocks = [
        (channel, slice(first, first + width)) for channel in range(n_channels) for first in range(0, n_pixels, width)
    ]
    n_threads = 1 if width < n_pixels else n_jobs
    told = None if callback is None else _Told(callback, len(blocks))
    some = spread(n, _LEVEL_FRAMES)

    def fill(number: int) -> tuple[int, float, float]:
        channel, pixels = blocks[number]
        # No term sees the level of a pixel, but its digits cost the solver a pass over the data.
        level = np.partition(planes[some, pixels, channel], len(some) // 2, axis=0)[len(some) // 2]
        X = np.subtract(planes[:, pixels, channel], level, dtype=np.result_type(planes, np.float32))
        X = np.ascontiguousarray(X, dtype=np.float32)
        if missing is not None:
            X[missing[:, pixels]] = np.nan
        with muted(ConvergenceWarning):  # the step limit is part of the preset; the gap says how far it got
            solution = run(
                Problem(X, L, None, gamma1, 0.0),
                replace(options, n_jobs=n_threads, callback=None if told is None else told.of(number)),
                U0=None if start is None else start[:, pixels, channel] - level.astype(np.float32),
            )
        U[:, pixels, channel] = solution.U + level.astype(np.float32)
        return solution.n_iter, solution.objective, solution.gap

    with block_pool(n_jobs if width < n_pixels else 1) as over:
        done = np.array(over(fill, range(len(blocks))))
    steps, objective, gap = done.reshape(n_channels, -1, 3).transpose(2, 0, 1)
    return Backgrounds(U, int(steps.max(axis=1).sum()), float(_together(objective, gap).max()))


def _together(objective: Array, gap: Array) -> Array:
    """Return the relative duality gap of several problems taken as one, over the last axis."""
    total = objective.sum(axis=-1)
    return np.where(total > 0, (objective * gap).sum(axis=-1) / np.where(total > 0, total, 1), gap.max(axis=-1))


@dataclass
class _Told:
    """What a callback is told of blocks that are solved in several threads: one at a time, of all together."""

    callback: Callable[[Progress], object]
    n_blocks: int
    last: dict[int, Progress] = field(default_factory=dict)
    stopped: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, number: int) -> Callable[[Progress], bool]:
        """Return the callback of a block."""

        def tell(at: Progress) -> bool:
            with self.lock:
                self.last[number] = at
                if not self.stopped:
                    self.stopped = bool(self.callback(self._all(at)))
                return self.stopped

        return tell

    def _all(self, at: Progress) -> Progress:
        seen = np.array([(each.n_iter, each.objective, each.gap) for each in self.last.values()])
        steps, objective, gap = seen.T
        known = np.isfinite(gap)
        return at._replace(
            n_iter=int(np.ceil(steps.sum() / self.n_blocks)),
            gap=float(_together(objective[known], gap[known])) if known.any() else nan,
            objective=float(objective[known].sum()),
        )
