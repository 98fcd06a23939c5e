"""BackgroundSeparator: frames in, backgrounds, foregrounds and masks out."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real

import numpy as np
from scipy.sparse import diags_array
from sklearn.base import BaseEstimator

from frpcag.estimators.whole import whole_fit
from frpcag.graphs import Graph, build_graph, edges_to_matrix
from frpcag.runtime.memory import require_memory
from frpcag.runtime.threads import block_pool
from frpcag.saving import SavedModel
from frpcag.solvers import Progress
from frpcag.video.background import solve_backgrounds
from frpcag.video.frozen import FrozenBackground, check_frames, choose_references
from frpcag.video.ghosts import find_free_places, free_first
from frpcag.video.masks import LEVEL, foreground_score
from frpcag.video.similar_frames import (
    NOISE_FRAMES,
    explain,
    nearest_frames,
    noise_map,
    shrink,
    spread,
    typical_size,
    widened,
)

Array = np.ndarray

# All measured in docs/decisions/video.md, one set for all clips.
# gamma1 in units of 1 / noise: a background pixel may leave the mean of its neighbour frames by 1.25 noise levels.
TIGHTNESS = 0.4
# S of a solve is shorter by that than the difference the mask is made of, which costs the score of a person this much.
SHORTER = 1.0
# A frame is linked to the square root of their number of frames, at most this many.
MOST_NEIGHBORS = 20
# The noise cannot be smaller than this share of the range of the data, one and a half grey levels of 8 bits: a codec
# smooths away the noise of what stands still, and leaves traces of that size around what moves.
LEAST_NOISE = 1.5 / 255
NOISE_PIXELS = 3000  # that the first estimate of the noise looks at
# What a fit holds for each entry of the frames at its peak; measured by benchmarks/video.py.
BYTES_PER_ENTRY = 40
_FEW = 8  # frames that a thread takes at a time


class BackgroundSeparator(FrozenBackground, SavedModel, BaseEstimator):
    """Background and foreground of a video from a fixed camera (Shahid et al. 2016, "Static background separation").

    Every frame is linked to the frames that it resembles, except those near it in time. The background ``U`` minimises
    ``sum |X - U| + gamma1 tr(U' L1 U)`` over the frames ``X``, one pixel a column. What is left, ``S = X - U``, is the
    foreground, and where it stands out from the noise of the clip it makes the mask.

    Parameters
    ----------
    n_neighbors : "auto" or int, default="auto"
        Frames each frame is linked to; "auto" is the square root of their number, at most 20.
    gamma1 : "auto" or float, default="auto"
        Weight of the graph, in units of one over the grey levels of the frames. A background pixel may leave the mean
        of its neighbour frames by ``1 / (2 gamma1)``. "auto" is 0.4 over the noise of the clip.
    threshold : "auto" or float, default="auto"
        Score from which on a pixel is foreground, in noise levels; see :func:`frpcag.video.masks.foreground_score`.
    tol : float, default=0.05
        Relative duality gap at which to stop.
    max_iter : int, default=100
        Limit of solver steps in each of two solves; most blocks of pixels meet ``tol`` before.
    backend : str, default="auto"
        Which backend computes.
    n_jobs : int, optional
        Number of threads, all cores by default. Results do not depend on it.
    callback : callable, optional
        Called after every solver step of a block of pixels with a ``Progress`` of all blocks together, from one thread
        at a time; a true return value stops the solve early.

    Attributes
    ----------
    background_, foreground_ : ndarray of the shape of the frames
        ``U`` and ``S``, float32, in the units of the frames.
    mask_ : bool ndarray of shape (n_frames, h, w)
        True for foreground.
    threshold_ : float
        Score from which on a pixel is foreground, in noise levels.
    noise_ : float
        Standard deviation of the noise of the typical pixel, estimated from the clip.
    noise_map_ : ndarray of shape (h, w) or (h, w, 3)
        The noise that the foreground of each pixel is compared with.
    gamma1_ : float
        Weight used.
    frame_graph_ : Graph
        The frames and their links.
    references_ : ndarray of shape (n_references, h, w) or (n_references, h, w, 3)
        Backgrounds that new frames are compared with, at most 64. Each is the mean of backgrounds of the clip that look
        alike; float16 where that holds the values.
    drift_ : ndarray of shape (h, w) or (h, w, 3)
        What :meth:`partial_fit` has added to all references.
    n_iter_, duality_gap_ : int and float
        Solver steps and relative duality gap; the largest of the channels.
    frame_shape_ : tuple
        Shape of a frame.

    Notes
    -----
    Colour is solved channel by channel on the graph of the grey frames. The Laplacian is the combinatorial one,
    which keeps levels, over the mean degree, with binary weights. Departures from the paper: no pixel graph, links
    that skip near frames. A fit holds some 40 bytes for each entry of the frames. ``save`` leaves out what is
    of the clip alone: ``background_``, ``foreground_``, ``mask_`` and ``frame_graph_``.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag import BackgroundSeparator
    >>> rng = np.random.default_rng(0)
    >>> frames = rng.normal(100, 2, (40, 24, 32))
    >>> for t in range(40):
    ...     frames[t, 8:16, t % 25 : t % 25 + 8] = 200  # a square that moves
    >>> model = BackgroundSeparator().fit(frames)
    >>> bool(abs(model.background_[20, 12, 23] - 100) < 10)
    True
    >>> bool(model.mask_[20, 12, 23]), bool(model.mask_[20, 2, 2])
    (True, False)
    """

    _unsaved = ("background_", "foreground_", "mask_", "frame_graph_")

    def __init__(
        self,
        *,
        n_neighbors: str | int = "auto",
        gamma1: str | float = "auto",
        threshold: str | float = "auto",
        tol: float = 0.05,
        max_iter: int = 100,
        backend: str = "auto",
        n_jobs: int | None = None,
        callback: Callable[[Progress], object] | None = None,
    ):
        self.n_neighbors = n_neighbors
        self.gamma1 = gamma1
        self.threshold = threshold
        self.tol = tol
        self.max_iter = max_iter
        self.backend = backend
        self.n_jobs = n_jobs
        self.callback = callback

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags

    def fit(self, frames, y=None):
        """Separate the frames of a clip.

        Parameters
        ----------
        frames : array-like of shape (n_frames, h, w) or (n_frames, h, w, 3)
            At least two, in the order of time.
        y : None
            Ignored.

        Returns
        -------
        BackgroundSeparator
            The fitted estimator.
        """
        with whole_fit(self) as fresh:
            fresh._fit(frames)
        return self

    def _fit(self, frames) -> None:
        frames = check_frames(frames)
        if len(frames) < 2:
            raise ValueError("frames holds one frame; a background needs at least two to compare.")
        require_memory(
            BYTES_PER_ENTRY * frames.size,
            f"a fit of frames with shape {frames.shape} ({BYTES_PER_ENTRY} bytes an entry)",
        )
        n, self.frame_shape_ = len(frames), frames.shape[1:]
        k = choice("n_neighbors", self.n_neighbors, max(1, min(round(n**0.5), MOST_NEIGHBORS)), whole=True)
        if not 1 <= k < n:
            raise ValueError(f"n_neighbors={k} must be between 1 and n_frames - 1 = {n - 1}.")
        planes = frames.reshape(n, -1, frames.shape[3] if frames.ndim == 4 else 1)
        near = nearest_frames(shrink(frames), int(k), n_jobs=self.n_jobs)
        self.frame_graph_ = _linked(planes, near)
        least = LEAST_NOISE * (float(frames.max()) - float(frames.min())) or 1.0
        rows = spread(n, NOISE_FRAMES)
        some = planes[:, :: max(1, planes.shape[1] // NOISE_PIXELS)]
        level = max(float(np.median(noise_map(some, rows, near[rows]))), least)
        self.gamma1_ = float(choice("gamma1", self.gamma1, TIGHTNESS / level))
        self.threshold_ = float(choice("threshold", self.threshold, LEVEL))
        self.n_iter_, self.duality_gap_ = 0, 0.0
        first = self._solve(planes, None, None)
        moving = self._stands_out(frames, first.reshape(frames.shape), level).reshape(planes.shape[:2])
        if moving.all():  # a threshold near zero: what is all foreground says nothing about the background
            moving[:] = False
        free = find_free_places(frames, level, lambda S: foreground_score(S, level, n_jobs=self.n_jobs))
        if free:
            free_first(free, planes, first, moving, level)
        # Without the people the noise is that of the background, and frames find closer matches.
        still = np.where(moving[..., None], first, planes)
        near = nearest_frames(shrink(still.reshape(frames.shape)), k, rows=None if free else rows, n_jobs=self.n_jobs)
        if free:  # frames were linked because the same person stood in them
            self.frame_graph_ = _linked(planes, near)
        del still
        self.background_ = self._solve(planes, moving, first).reshape(frames.shape)
        del first
        self.foreground_ = np.subtract(frames, self.background_, dtype=np.float32)
        moving = moving.reshape(frames.shape[:3])
        wide = widened(moving)
        self.noise_, self.noise_map_, closer = self._noise(frames, moving, wide, rows, level, least)
        self.mask_ = self._masks(
            n, lambda rows: self._mask(frames[rows], self._behind(frames, wide, rows, self.noise_)[1], closer)
        )
        self.drift_ = np.zeros(self.frame_shape_, np.float32)
        self._keep(choose_references(self.background_, self.noise_), 1)

    def fit_transform(self, frames, y=None) -> Array:
        """Fit and return ``mask_``."""
        return self.fit(frames).mask_

    def _solve(self, planes: Array, missing: Array | None, start: Array | None) -> Array:
        """Return the backgrounds of all channels; pixels that are ``missing`` have no data term."""
        mean_degree = self.frame_graph_.weights.sum() / len(planes)
        found = solve_backgrounds(
            planes,
            self.frame_graph_.laplacian / mean_degree,
            self.gamma1_,
            missing=missing,
            start=start,
            tol=self.tol,
            max_iter=self.max_iter,
            backend=self.backend,
            n_jobs=self.n_jobs,
            callback=self.callback,
        )
        self.n_iter_ += found.n_iter
        self.duality_gap_ = found.gap
        return found.U

    def _stands_out(self, frames: Array, behind: Array, noise: float) -> Array:
        """Return the masks of frames, given ``U`` of a first solve, shadows included."""

        def mask_of(rows: slice) -> Array:
            S = np.subtract(frames[rows], behind[rows], dtype=np.float32)
            return foreground_score(S, noise, n_jobs=1) > self.threshold_ - SHORTER

        return self._masks(len(frames), mask_of)

    def _masks(self, n: int, mask_of: Callable[[slice], Array]) -> Array:
        """Return the masks of all frames, made of a few at a time."""
        mask = np.empty((n, *self.frame_shape_[:2]), bool)

        def fill(start: int) -> None:
            rows = slice(start, start + _FEW)
            mask[rows] = mask_of(rows)

        with block_pool(self.n_jobs) as run:
            run(fill, range(0, n, _FEW))
        return mask

    def _noise(self, frames: Array, moving: Array, wide: Array, rows: Array, level: float, least: float):
        """Return the noise of the clip and of each pixel, and the latter where linked frames explain what moves."""
        pairs = [self._behind(frames, wide, slice(row, row + 1), level) for row in rows]
        out, hidden = [], moving[rows].reshape(len(rows), -1)
        for which in (0, 1):
            off = np.concatenate([frames[row] - pair[which] for row, pair in zip(rows, pairs, strict=True)])
            off = off.reshape(*hidden.shape, -1)
            out.append(typical_size(off, hidden, otherwise=level, n_jobs=self.n_jobs).reshape(self.frame_shape_))
        noise = max(float(np.median(out[0])), least)
        # Half way, on a logarithmic scale, from one noise for all pixels to each pixel's own, which alone did worse.
        return noise, *(noise * np.sqrt((each / noise + 1) / 2) for each in out)

    def _behind(self, frames: Array, moving: Array, rows: slice, noise: float) -> tuple[Array, Array]:
        """Return what masks compare frames of the clip with: the mean of linked backgrounds, and as they explain it."""
        W = self.frame_graph_.weights.tocsr()[rows]
        n, planes = len(frames), frames.reshape(len(frames), -1, self.frame_shape_[2] if frames.ndim == 4 else 1)
        links = np.split(W.indices, W.indptr[1:-1])
        shares = (diags_array(1 / W.sum(axis=1)) @ W).astype(np.float32)
        mean = shares @ self.background_.reshape(n, -1)
        mean = mean.reshape(-1, *planes.shape[1:])
        hidden = moving.reshape(n, -1)
        explained = np.stack(
            [explain(x, b, planes, hidden, near, noise) for x, b, near in zip(planes[rows], mean, links, strict=True)]
        )
        return mean.reshape(frames[rows].shape), explained.reshape(frames[rows].shape)


def _linked(planes: Array, near: Array) -> Graph:
    weights = edges_to_matrix(near, np.ones(near.shape))
    return build_graph(planes[..., 0], method=weights, laplacian="combinatorial")


def choice(name: str, value, auto, *, whole: bool = False):
    """Return ``value``, checked, or what "auto" stands for."""
    if isinstance(value, str) and value == "auto":
        return auto
    if isinstance(value, bool) or not isinstance(value, Integral if whole else Real) or not 0 <= float(value) < np.inf:
        raise ValueError(f"{name}={value!r} must be 'auto' or {'an integer' if whole else 'a number >= 0'}.")
    return value
