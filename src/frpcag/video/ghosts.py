"""What stands still for most of a clip: find it in the background, and find the frames that show the place free."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import find_objects, gaussian_filter, label, median_filter, uniform_filter

from frpcag.video.masks import LEAST_AREA
from frpcag.video.similar_frames import median_where, spread

Array = np.ndarray

# Measured in docs/decisions/video.md, one set for all clips.
# Frames looked at.
LOOKED_AT = 100
# Two frames have one light when this share of their patches differ by less than LIGHT noise levels.
SAME_LIGHT, LIGHT = 0.7, 3.0
# Fewer frames than this in one light make no background of their own.
LEAST_FRAMES = 20
# Noise levels of the score from which on a frame and the background differ.
DIFFERENT = 11.0
# The outline of a blob must be this many times as strong in one picture as in the other, and stronger by this many
# noise levels a pixel.
OUTLINE, OUTLINE_NOISE = 1.5, 1.0
# Share of the frames in one light that must show a place free, and frames at least; alike within this many noise
# levels.
FREE_SHARE, FREE_FRAMES, ALIKE = 0.05, 5, 3.0
# Frames show the same in a blob when this share of its pixels are alike.
SAME_STATE = 0.6
# What stands still for this share of the frames in one light is left out of the background.
STANDS = 0.4
# Pixels: side of the patches that light is compared at.
PATCH = 8


@dataclass(frozen=True)
class FreePlaces:
    """Places where something stands still for long, and how they look without it.

    Parameters
    ----------
    light : ndarray of int of shape (n_frames,)
        Which light each frame has; -1 where too few frames share it.
    places : bool ndarray of shape (n_lights, h, w)
        Where something stands still for long.
    free : ndarray of shape (n_lights, h, w) or (n_lights, h, w, 3)
        The background with these places free, float32.
    """

    light: Array
    places: Array
    free: Array

    def __bool__(self) -> bool:
        return bool(self.places.any())


def find_free_places(frames: Array, noise: float, score) -> FreePlaces:
    """Compare frames with the median of all frames in their light, and tell objects from places they have left.

    A blob in which a frame and the median differ is an object in one of the two. The outline of an object is an edge
    in the picture that shows it, and no edge in the other one.

    Parameters
    ----------
    frames : ndarray of shape (n_frames, h, w) or (n_frames, h, w, 3)
        The clip.
    noise : float
        Standard deviation of the noise, in the units of the frames.
    score : callable
        ``score(S)`` of shape (n, h, w): how much each pixel of a difference stands out, in noise levels.

    Returns
    -------
    FreePlaces

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.video.ghosts import find_free_places
    >>> from frpcag.video.masks import foreground_score
    >>> frames = np.random.default_rng(0).normal(100, 2, (40, 30, 40)).astype(np.float32)
    >>> frames[:30, 10:22, 10:22] += 60  # stands there for three quarters of the time
    >>> found = find_free_places(frames, 2.0, lambda S: foreground_score(S, 2.0))
    >>> bool(found.places[0, 15, 15]), bool(found.places[0, 5, 30]), bool(found.free[0, 15, 15] < 105)
    (True, False, True)
    """
    looked_at = spread(len(frames), LOOKED_AT)
    sample = frames[looked_at].astype(np.float32)
    light = _lights(_patches(sample), noise)
    n_lights = max(int(light.max()) + 1, 1)
    places = np.zeros((n_lights, *frames.shape[1:3]), bool)
    free = np.zeros((n_lights, *frames.shape[1:]), np.float32)
    for which in range(n_lights):
        shots = sample[light == which]
        if len(shots):
            places[which], free[which] = _freed(shots, noise, score)
    # Frames between two that were looked at have the light of the nearer one.
    nearest = np.abs(np.arange(len(frames))[:, None] - looked_at).argmin(axis=1)
    return FreePlaces(light[nearest], places, free)


def free_first(found: FreePlaces, planes: Array, first: Array, moving: Array, noise: float) -> None:
    """Free the places in a first background, and call foreground what stands in them; both arrays are changed.

    Parameters
    ----------
    found : FreePlaces
        Of the clip.
    planes, first : ndarray of shape (n_frames, n_pixels, n_channels)
        The frames, and the background to free.
    moving : bool ndarray of shape (n_frames, n_pixels)
        Where the first background calls the frames foreground.
    noise : float
        Standard deviation of the noise, in the units of the frames.
    """
    for which, places in enumerate(found.places.reshape(len(found.places), -1)):
        pixels, times = np.flatnonzero(places), np.flatnonzero(found.light == which)
        if len(pixels) and len(times):
            free = found.free[which].reshape(-1, planes.shape[2])[pixels]
            block = np.ix_(times, pixels)
            first[block] = free
            moving[block] = (np.abs(planes[block] - free) > ALIKE * noise).any(axis=2)


def _patches(frames: Array) -> Array:
    """Return the median of each patch of the frames, one frame a row: what light does, not what a few objects do."""
    grey = frames.mean(axis=3) if frames.ndim == 4 else frames
    n, h, w = grey.shape
    side = min(PATCH, h, w)
    grey = grey[:, : h - h % side, : w - w % side]
    cut = grey.reshape(n, h // side, side, w // side, side).swapaxes(2, 3)
    return np.median(cut.reshape(n, -1, side * side), axis=2)


def _lights(patches: Array, noise: float) -> Array:
    """Group frames by light: each joins the first frame that most of its patches agree with."""
    leaders: list[Array] = []
    light = np.empty(len(patches), int)
    for t, row in enumerate(patches):
        for which, leader in enumerate(leaders):
            if (np.abs(row - leader) < LIGHT * noise).mean() > SAME_LIGHT:
                light[t] = which
                break
        else:
            light[t] = len(leaders)
            leaders.append(row)
    counts = np.bincount(light)
    kept = np.flatnonzero(counts >= LEAST_FRAMES)
    order = np.full(len(counts), -1)
    order[kept] = np.arange(len(kept))
    return order[light]


def _freed(shots: Array, noise: float, score) -> tuple[Array, Array]:
    """Return the places where an object stands still for long in frames of one light, and the median without it."""
    middle = np.median(shots, axis=0)
    S = shots - middle
    differs = score(S) > DIFFERENT
    gone, there = np.zeros((2, *differs.shape), bool)
    least_area = max(9, LEAST_AREA * middle.shape[0] * middle.shape[1])
    slope_of_middle = _slopes(middle)
    candidates = []
    for t, mask in enumerate(differs):
        blobs, n_blobs = label(mask)
        if not n_blobs:
            continue
        slope_of_shot = _slopes(shots[t])
        for number, box in enumerate(find_objects(blobs), start=1):
            box = tuple(slice(max(side.start - 3, 0), side.stop + 3) for side in box)
            blob = blobs[box] == number
            if blob.sum() < least_area:
                continue
            in_shot, in_middle = _outlines(blob, [slope[:, *box] for slope in (slope_of_shot, slope_of_middle)])
            if in_middle > OUTLINE * in_shot and in_middle - in_shot > OUTLINE_NOISE * noise:
                gone[t][box][blob] = True
                candidates.append((t, box, blob))
            elif in_shot > OUTLINE * in_middle:
                there[t][box][blob] = True
    free, places = middle.copy(), np.zeros(differs.shape[1:], bool)
    for t, box, blob in candidates:
        if not _is_free(shots[:, *box][:, blob], t, gone[:, *box][:, blob], there[:, *box][:, blob], noise):
            gone[t][box][blob] = False
    least = max(FREE_FRAMES, FREE_SHARE * len(shots))
    near = gone.sum(axis=0) >= least
    if near.any():
        freed, alike = _typical(shots[:, near], gone[:, near], noise)
        places[near] = (gone[:, near] & alike).sum(axis=0) >= least
        places = median_filter(places, 3) & near
        free[places] = freed.reshape(free[near].shape)[places[near]]
    # What stands still for less than half of the time is not in the median, but links the frames that show it.
    least = max(FREE_FRAMES, STANDS * len(shots))
    near = (there.sum(axis=0) >= least) & ~places
    if near.any():
        _, alike = _typical(shots[:, near], there[:, near], noise)
        places[near] = (there[:, near] & alike).sum(axis=0) >= least
    return places, free


def _is_free(values: Array, t: int, gone: Array, there: Array, noise: float) -> bool:
    """Say whether frames that look the same in a blob agree, by their own outlines, that nothing stands in it."""
    alike = (np.abs(values - values[t]) < ALIKE * noise).reshape(*gone.shape, -1).all(axis=2)
    same = alike.mean(axis=1) > SAME_STATE
    votes, objects = ((which.mean(axis=1) > 0.5)[same].sum() for which in (gone, there))
    return bool(votes > objects)


def _typical(values: Array, chosen: Array, noise: float) -> tuple[Array, Array]:
    """Return the median of the chosen values of each pixel, and which of all values are like it."""
    values = values.reshape(*chosen.shape, -1)
    middle = median_where(values, chosen)
    return middle, (np.abs(values - middle) < ALIKE * noise).all(axis=2)


def _slopes(picture: Array) -> Array:
    """Return the slopes of a picture down and to the right, of the channel mean."""
    grey = picture.mean(axis=2) if picture.ndim == 3 else picture
    return np.stack(np.gradient(gaussian_filter(grey, 1.0, truncate=2.0)))


def _outlines(blob: Array, slopes: list[Array]) -> list[float]:
    """Return the mean slope across the outline of a blob in each picture."""
    soft = uniform_filter(blob.astype(np.float32), 5)
    across = np.stack(np.gradient(soft))
    length = np.hypot(*across)
    weight = np.where(length > 0.5 * length.max(), length, 0)
    total = max(float(weight.sum()), 1e-12)
    across = across / np.maximum(length, 1e-12)
    return [float((np.abs((slope * across).sum(axis=0)) * weight).sum()) / total for slope in slopes]
