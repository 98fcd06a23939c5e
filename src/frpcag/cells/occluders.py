"""Rectangles of one value that lie over images, also where the value is that of the background.

A rectangle inside a background of its own colour has no outline, and the columns under it are covered in most rows, so
neither its edge nor the usual value of a pixel gives it away. Its size does: let ``F(a, b)`` be the share of images
with some flat window of ``a x b`` pixels. Natural gaps come in all sizes, and ``F`` falls smoothly. Images that were
covered by one occluder all have its size and mostly nothing larger, so ``F`` falls off a cliff right behind it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from frpcag.cells.repeats import EDGES, LEAST_CELLS

Array = np.ndarray

# How much steeper F must fall behind a size than before it. Clean image sets: up to 0.08; covered ones: 0.14 to 1.
LEAST_CLIFF = 0.12
# Sides of a rectangle in pixels, and its share of the image.
LEAST_SIDE = 3
LEAST_AREA = 0.02
# Images that the size is read off from.
IMAGES = 300
# Pixels side by side say the same: of a patch of nine, one counts.
TEMPER = 1 / 9
ROUNDS = 5
# Groups of distances between prediction and value.
N_DISTANCES = len(EDGES) + 1
# Cells of a group that count as much as what is known of all of them.
PRIOR_CELLS = 4.0


@dataclass(frozen=True)
class Occluder:
    """A rectangle of one size and value that covers images at any place.

    Attributes
    ----------
    value : float
    size, shape : (height, width)
        Of the rectangle and of the image.
    covered : float
        Share of the images that have one.
    natural : ndarray
        Share of cells that have the value by nature: by column or, where a prediction is known, by its distance.
    scale : float
        Unit of that distance; 0 where no prediction was known.
    """

    value: float
    size: tuple[int, int]
    shape: tuple[int, int]
    covered: float
    natural: Array
    scale: float = 0.0
    kind: str = "rectangle"

    @property
    def rate(self) -> float:
        """Share of the cells that are covered."""
        return self.covered * self.size[0] * self.size[1] / (self.shape[0] * self.shape[1])

    def posterior(self, X: Array, observed: Array, W2=None, predicted: Array | None = None) -> Array:
        """Return the probability that each cell lies under the rectangle; zero where it has another value.

        The rectangle lies where all cells have its value. Of several such places those are likely that hold cells
        which seldom have the value by nature.
        """
        natural = self.natural[self._groups(X, predicted)]
        equal = (self.value == X) & observed
        flat = (equal | ~observed).reshape(-1, *self.shape)
        surprise = np.where(equal, -TEMPER * np.log(natural), 0).reshape(-1, *self.shape)
        places = _window_sums(flat.astype(np.float64), self.size) > self.size[0] * self.size[1] - 0.5
        score = np.where(places, _window_sums(surprise, self.size), -np.inf)
        # Against no rectangle at all, whose score is that of its prior odds.
        prior = np.log(max(self.covered, 1e-9)) - np.log(places[0].size)
        none = np.log(max(1 - self.covered, 1e-9))
        top = np.maximum(score.max(axis=(1, 2)) + prior, none)[:, None, None]
        weight = np.exp(score + prior - top)
        weight /= weight.sum(axis=(1, 2), keepdims=True) + np.exp(none - top)
        under = _spread(weight, self.size, self.shape).reshape(X.shape)
        return np.where(equal, np.clip(under, 0, 1), 0).astype(np.float32)

    def learnt(self, X: Array, observed: Array, predicted: Array | None = None, scale: float = 0.0) -> Occluder:
        """Return the occluder with natural shares estimated from these images, by expectation maximisation."""
        size = X.shape[1] if predicted is None else N_DISTANCES
        found = replace(self, natural=np.full(size, 0.5), scale=0.0 if predicted is None else scale)
        groups = np.broadcast_to(found._groups(X, predicted), X.shape)[observed]
        equal = ((self.value == X) & observed)[observed]
        for _ in range(ROUNDS):
            free = 1 - found.posterior(X, observed, None, predicted)[observed]
            overall = float((free * equal).sum() / max(free.sum(), 1))
            cells = np.bincount(groups, weights=free, minlength=size) + PRIOR_CELLS
            hits = np.bincount(groups, weights=free * equal, minlength=size) + PRIOR_CELLS * overall
            found = replace(found, natural=np.clip(hits / cells, 1e-3, 1.0))
        return found

    def _groups(self, X: Array, predicted: Array | None) -> Array:
        if not self.scale or predicted is None:
            return np.arange(X.shape[1])[None]
        return np.searchsorted(EDGES, np.abs(predicted - self.value) / self.scale)


def find_occluder(X: Array, observed: Array, value: float, shape: tuple[int, int]) -> Occluder | None:
    """Return the rectangle that covers images with a value, if one size of flat windows stands out.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Data as given: equality is exact.
    observed : bool ndarray of the same shape
    value : float
    shape : (height, width)
        Of the image behind a row.
    """
    rows = np.unique(np.linspace(0, len(X) - 1, min(len(X), IMAGES)).astype(int))
    flat = ((value == X[rows]) | ~observed[rows]).reshape(-1, *shape)
    F = window_shares(flat)
    cliff, (a, b) = steepest(F)
    if cliff < LEAST_CLIFF or observed.sum() < LEAST_CELLS:
        return None
    # Covered images have the window; of the others at most those that have a larger one.
    larger = max(F[a + 1, b], F[a, b + 1])
    covered = float((F[a, b] - larger) / max(1 - larger, 1e-9))
    return Occluder(value, (a, b), shape, min(covered, 1.0), np.full(X.shape[1], 0.5)).learnt(X, observed)


def steepest(F: Array) -> tuple[float, tuple[int, int]]:
    """Return how much steeper ``F`` falls behind the size where it does so most than before it, and that size."""
    height, width = F.shape[0] - 2, F.shape[1] - 2
    # How far F falls behind a size, at its slower side, and before it, at its faster side.
    after = F[1:-1, 1:-1] - np.maximum(F[2:, 1:-1], F[1:-1, 2:])
    before = np.maximum(F[:-2, 1:-1], F[1:-1, :-2]) - F[1:-1, 1:-1]
    tall, wide = np.arange(1, height + 1)[:, None], np.arange(1, width + 1)[None]
    # Bars from side to side are margins and letter boxes.
    possible = (tall >= LEAST_SIDE) & (wide >= LEAST_SIDE) & (tall < height) & (wide < width)
    cliff = np.where(possible & (tall * wide >= LEAST_AREA * height * width), after - before, 0)
    a, b = np.unravel_index(np.argmax(cliff), cliff.shape)
    return float(cliff.max()), (int(a) + 1, int(b) + 1)


def window_shares(flat: Array) -> Array:
    """Return the share of images that have a flat window of each size; one for size 0, zero beyond the image.

    Parameters
    ----------
    flat : bool ndarray of shape (n_images, height, width)

    Returns
    -------
    ndarray of shape (height + 2, width + 2)
    """
    _, height, width = flat.shape
    F = np.zeros((height + 2, width + 2))
    F[0] = F[:, 0] = 1
    tall = flat
    for a in range(1, height + 1):
        tall = flat if a == 1 else tall[:, :-1] & flat[:, a - 1 :]
        window = tall
        for b in range(1, width + 1):
            window = window if b == 1 else window[:, :, :-1] & tall[:, :, b - 1 :]
            F[a, b] = window.any(axis=(1, 2)).mean()
            if not F[a, b]:
                break
    return F


def _window_sums(Z: Array, size: tuple[int, int]) -> Array:
    """Return the sums of all windows of a size."""
    a, b = size
    total = np.pad(Z.cumsum(axis=1).cumsum(axis=2), ((0, 0), (1, 0), (1, 0)))
    return total[:, a:, b:] - total[:, :-a, b:] - total[:, a:, :-b] + total[:, :-a, :-b]


def _spread(weight: Array, size: tuple[int, int], shape: tuple[int, int]) -> Array:
    """Return for every pixel the weight of the windows over it."""
    a, b = size
    edges = np.zeros((len(weight), shape[0] + 1, shape[1] + 1))
    h, w = weight.shape[1:]
    edges[:, :h, :w] += weight
    edges[:, a : a + h, :w] -= weight
    edges[:, :h, b : b + w] -= weight
    edges[:, a : a + h, b : b + w] += weight
    return edges.cumsum(axis=1).cumsum(axis=2)[:, :-1, :-1]
