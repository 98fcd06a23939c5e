"""New frames against the background that a fit has left: the few references that stand for those of a clip."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_is_fitted

from frpcag.video.masks import foreground_score
from frpcag.video.similar_frames import shrink

Array = np.ndarray

# Largest entry of a frame, and one over the least: differences, sums over frames and their squares stay in float32.
LARGEST = 1e15
MOST_REFERENCES = 64
# Two backgrounds are alike when their most different patches differ by less than this many noise levels.
ALIKE = 1.5
# Patches are squares of this many pixels, in which noise averages out; this share of them may differ more.
_SIDE, _RARE = 8, 0.01
# float16 holds numbers of this size to a two-thousandth.
_HALF = (1e-2, 6e4)
# Frames compared with the references at a time.
_BLOCK = 16
# Share of the difference that the background follows in one frame: half of it in 14 frames where nothing moves, in 14
# seconds (at 25 frames a second) under what moves, so that a light nobody has seen yet does not stay foreground.
RATE, RATE_UNDER_MASK = 0.05, 0.002


class FrozenBackground:
    """What a fitted separator does with new frames; ``fit`` leaves ``references_``, ``noise_map_`` and the levels."""

    frame_shape_: tuple[int, ...]
    references_: Array
    n_links_: int
    drift_: Array
    noise_map_: Array
    threshold_: float
    gamma1_: float
    n_jobs: int | None
    fit: Callable

    def partial_fit(self, frames, y=None):
        """Let the background follow new frames slowly: dusk, clouds, the gain of the camera.

        Parameters
        ----------
        frames : array-like of shape (n_frames, h, w), (n_frames, h, w, 3), or of one frame
            In the order of time. The first call of a separator that is not fitted is :meth:`fit`, which takes two.
        y : None
            Ignored.

        Returns
        -------
        BackgroundSeparator
            The estimator. ``background_``, ``foreground_`` and ``mask_`` stay those of the fit.
        """
        if not hasattr(self, "references_"):
            return self.fit(frames)
        for frame in self._new_frames(frames)[0]:
            self.follow(frame)
        return self

    def follow(self, frame) -> tuple[Array, Array]:
        """Return background and mask of one new frame, and let the background follow it: a step of a live picture.

        Parameters
        ----------
        frame : array-like of shape (h, w) or (h, w, 3)
            The next frame, in the units of the frames fitted.

        Returns
        -------
        background : ndarray of the shape of ``frame``
            float32, as it was before the frame.
        mask : bool ndarray of shape (h, w)
        """
        background, mask = self.separate(frame)
        S = np.subtract(frame, background, dtype=np.float32)
        rate = np.where(mask, np.float32(RATE_UNDER_MASK), np.float32(RATE))
        self.drift_ = self.drift_ + (rate[..., None] if S.ndim == 3 else rate) * S
        return background, mask

    def transform(self, frames) -> Array:
        """Return the masks of new frames against the frozen background.

        Parameters
        ----------
        frames : array-like of shape (n_frames, h, w), (n_frames, h, w, 3), or of one frame
            In the units of the frames fitted. Each is treated on its own.

        Returns
        -------
        bool ndarray of shape (n_frames, h, w), or (h, w) for one frame
        """
        return self.separate(frames)[1]

    def background(self, frames) -> Array:
        """Return the backgrounds of new frames.

        Parameters
        ----------
        frames : array-like of shape (n_frames, h, w), (n_frames, h, w, 3), or of one frame
            In the units of the frames fitted.

        Returns
        -------
        ndarray of the shape of ``frames``
            float32.
        """
        frames, single = self._new_frames(frames)
        background = np.concatenate([self._near(x, b) for x, b in self._linked_means(frames)])
        return background[0] if single else background

    def separate(self, frames) -> tuple[Array, Array]:
        """Return the backgrounds and the masks of new frames.

        Parameters
        ----------
        frames : array-like of shape (n_frames, h, w), (n_frames, h, w, 3), or of one frame
            In the units of the frames fitted. Each is treated on its own.

        Returns
        -------
        background : ndarray of the shape of ``frames``
            float32.
        mask : bool ndarray of shape (n_frames, h, w), or (h, w) for one frame
        """
        frames, single = self._new_frames(frames)
        pairs = [(self._near(x, b), self._mask(x, b, self.noise_map_)) for x, b in self._linked_means(frames)]
        background, mask = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        return (background[0], mask[0]) if single else (background, mask)

    def _mask(self, frames: Array, behind: Array, noise: Array) -> Array:
        """Return the masks of frames, given the mean of the backgrounds that each is linked to.

        ``S`` is what is left of the difference to that mean after up to ``1 / (2 gamma1)`` of it went to ``U``: a
        dark coat in front of a dark counter would be lost in it.
        """
        S = np.subtract(frames, behind, dtype=np.float32)
        return foreground_score(S, noise, background=behind, n_jobs=self.n_jobs) > self.threshold_

    def _keep(self, references: Array, n_links: int) -> None:
        self.references_, self.n_links_ = references, n_links
        self._thumbnails = shrink(references)

    def _after_load(self) -> None:
        if not hasattr(self, "drift_"):  # files of earlier versions
            self.drift_ = np.zeros(self.frame_shape_, np.float32)
        self._keep(self.references_, self.n_links_)

    def _new_frames(self, frames) -> tuple[Array, bool]:
        check_is_fitted(self, "references_")
        frames = np.asarray(frames)
        single = frames.shape == self.frame_shape_
        frames = frames[None] if single else frames
        if frames.shape[1:] != self.frame_shape_:
            raise ValueError(
                f"frames has shape {frames.shape} but the separator was fitted to frames of {self.frame_shape_}; "
                "resize them or fit again."
            )
        return check_frames(frames), single

    def _linked_means(self, frames: Array) -> Iterator[tuple[Array, Array]]:
        """Yield a few frames at a time, and for each the mean of the references it is linked to."""
        for start in range(0, len(frames), _BLOCK):
            x = frames[start : start + _BLOCK].astype(np.float32)
            b = np.repeat(self.drift_[None], len(x), axis=0)
            if len(self.references_) == 1:
                b += self.references_[0]
            else:
                distance = cdist(shrink(x - self.drift_), self._thumbnails, "cityblock")
                near = np.argpartition(distance, self.n_links_ - 1, axis=1)[:, : self.n_links_]
                for out, links in zip(b, near, strict=True):
                    out += self.references_[links].mean(axis=0, dtype=np.float32)
            yield x, b

    def _near(self, x: Array, b: Array) -> Array:
        """Return the background of frames between them and the mean of their references.

        With the references fixed and no pixel graph, the problem of a new frame falls apart into pixels,
        ``min |x - u| + gamma1 (u - b)^2``: ``u`` is ``x`` within ``1 / (2 gamma1)`` of ``b``, and ends there beyond.
        """
        reach = 1 / (2 * self.gamma1_) if self.gamma1_ > 0 else np.inf
        return b + np.clip(x - b, -reach, reach)


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
    >>> from frpcag.video.frozen import choose_references
    >>> light = np.repeat([100.0, 40.0], 10)[:, None, None]
    >>> choose_references(np.broadcast_to(light, (20, 6, 8)), 1.0)[:, 0, 0]
    array([ 40., 100.], dtype=float16)
    """
    patches = shrink(backgrounds, side=_SIDE)
    chosen = [len(patches) // 2]
    rank = max(0, int(np.ceil((1 - _RARE) * patches.shape[1])) - 1)

    def off(t: int) -> Array:
        return np.partition(np.abs(patches - patches[t]), rank, axis=1)[:, rank]

    nearest = off(chosen[0])
    while len(chosen) < MOST_REFERENCES and nearest.max() > ALIKE * noise:
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, off(chosen[-1]))
    owner = cdist(patches, patches[chosen], "cityblock").argmin(axis=1)
    means = np.stack([backgrounds[owner == which].mean(axis=0, dtype=np.float32) for which in np.unique(owner)])
    size = np.abs(means).max()
    return means.astype(np.float16) if _HALF[0] < size < _HALF[1] else means


def check_frames(frames) -> Array:
    """Return frames as an array that the kernels take; raise ValueError with the way out."""
    frames = np.asarray(frames)
    if frames.ndim not in (3, 4) or 0 in frames.shape or (frames.ndim == 4 and frames.shape[3] != 3):
        raise ValueError(
            f"frames has shape {frames.shape}; it must be (n_frames, h, w) or (n_frames, h, w, 3), none of them 0."
        )
    if frames.dtype.kind not in "uifb":
        raise ValueError(f"frames has dtype {frames.dtype}; it must be numbers.")
    if frames.dtype.kind == "b":
        frames = frames.astype(np.uint8)
    elif frames.dtype.kind == "f" and frames.dtype.itemsize not in (4, 8):  # kernels know no others
        frames = frames.astype(np.float32 if frames.dtype.itemsize < 4 else np.float64)
    if frames.dtype.kind == "f" and not np.isfinite(frames.sum(dtype=np.float64)):
        raise ValueError("frames has entries that are NaN or infinite; repair or drop these frames.")
    largest = max(abs(float(frames.max())), abs(float(frames.min())))
    if largest > LARGEST or 0 < largest < 1 / LARGEST:
        raise ValueError(
            f"frames reaches {largest:.3g}, which float32 does not hold with its squares; divide it by a constant."
        )
    return frames
