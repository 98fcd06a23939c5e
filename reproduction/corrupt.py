"""Corruptions for clean data: block occlusions, missing pixels, salt and pepper."""

from __future__ import annotations

from math import sqrt
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

Array = np.ndarray

# Random numbers drawn at a time: 8 MiB of scratch. The stream, and so the result, is the same for any value.
_BLOCK_ENTRIES = 1 << 20


def block_occlusion(
    X: Any, shape: tuple[int, int], fraction: float, *, value: float = 0, random_state: Any = None
) -> tuple[Array, Array]:
    """Cover one rectangle of every image with a constant, as in Shahid et al. 2016, Results.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        One image per row; not changed.
    shape : tuple of int (h, w)
        Size of an image; ``h * w`` is ``n_features``.
    fraction : float in [0, 1]
        Share of the image area to cover. The block has the proportions of the image and the whole-pixel
        size nearest to that share, at least one pixel unless ``fraction`` is 0. The paper takes
        0.15, 0.25 and 0.4.
    value : float, default=0
        Value of the block; NaN marks the pixels as missing.
    random_state : int, RandomState or None, default=None
        Seed of the positions of the blocks, which are uniform and independent.

    Returns
    -------
    corrupted : ndarray of shape (n_samples, n_features)
        A copy of ``X``, of the same dtype, with the blocks in it.
    mask : ndarray of bool of shape (n_samples, n_features)
        True where the block lies, also where it hides pixels that were equal to ``value``.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction import block_occlusion
    >>> corrupted, mask = block_occlusion(np.ones((1, 16)), (4, 4), 0.25, random_state=0)
    >>> corrupted.reshape(4, 4)
    array([[1., 0., 0., 1.],
           [1., 0., 0., 1.],
           [1., 1., 1., 1.],
           [1., 1., 1., 1.]])
    """
    X = _copy_of(X)
    _check_fraction(fraction)
    _check_value(value, X.dtype)
    n, p = X.shape
    h, w = _check_shape(shape, p)
    rng = check_random_state(random_state)
    block_h, block_w = _block_size(h, w, fraction)
    tops = rng.randint(0, h - block_h + 1, size=n)
    lefts = rng.randint(0, w - block_w + 1, size=n)
    mask = np.zeros((n, h, w), dtype=bool)
    for image, top, left in zip(mask, tops, lefts, strict=True):
        image[top : top + block_h, left : left + block_w] = True
    mask = mask.reshape(n, p)
    X[mask] = value
    return X, mask


def missing_pixels(X: Any, fraction: float, *, value: float = 0, random_state: Any = None) -> tuple[Array, Array]:
    """Replace the same number of entries, uniformly chosen, in every row by a constant.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The data, left untouched.
    fraction : float in [0, 1]
        ``round(fraction * n_features)`` entries of each row are replaced. The paper
        (Shahid et al. 2016, Results) takes 0.1 to 0.4.
    value : float, default=0
        Their new value; NaN marks them as missing.
    random_state : int, RandomState or None, default=None
        Seeds the choice.

    Returns
    -------
    corrupted : ndarray of shape (n_samples, n_features)
        A copy of ``X``, of the same dtype, with entries replaced.
    mask : ndarray of bool of shape (n_samples, n_features)
        True at the chosen entries, also where they were equal to ``value``.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction import missing_pixels
    >>> corrupted, mask = missing_pixels(np.ones((2, 10)), 0.3, random_state=0)
    >>> mask.sum(axis=1), corrupted.sum(axis=1)
    (array([3, 3]), array([7., 7.]))
    """
    X = _copy_of(X)
    _check_fraction(fraction)
    _check_value(value, X.dtype)
    mask = _choose_per_row(X.shape, fraction, check_random_state(random_state))
    X[mask] = value
    return X, mask


def salt_and_pepper(
    X: Any, fraction: float, *, low: float | None = None, high: float | None = None, random_state: Any = None
) -> tuple[Array, Array]:
    """Set the same number of entries of every row to the darkest or the brightest value, by a fair coin.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The data, left untouched.
    fraction : float in [0, 1]
        ``round(fraction * n_features)`` entries of each row are set.
    low, high : float or None, default=None
        The two values; by default the smallest and largest of ``X`` (NaN aside).
    random_state : int, RandomState or None, default=None
        Seeds the choice.

    Returns
    -------
    corrupted : ndarray of shape (n_samples, n_features)
        A copy of ``X``, of the same dtype, with entries replaced.
    mask : ndarray of bool of shape (n_samples, n_features)
        True at the chosen entries.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction import salt_and_pepper
    >>> corrupted, mask = salt_and_pepper(np.full((1, 8), 0.5), 0.5, low=0, high=1, random_state=0)
    >>> corrupted
    array([[0. , 0.5, 0.5, 0. , 0. , 0.5, 1. , 0.5]])
    """
    X = _copy_of(X)
    _check_fraction(fraction)
    if (low is None or high is None) and np.isnan(X).all():
        raise ValueError("X has no entry that is not NaN to take low and high from; pass both, such as low=0, high=1.")
    low = np.nanmin(X) if low is None else low
    high = np.nanmax(X) if high is None else high
    _check_value(low, X.dtype, name="low")
    _check_value(high, X.dtype, name="high")
    rng = check_random_state(random_state)
    mask = _choose_per_row(X.shape, fraction, rng)
    bright = rng.randint(0, 2, size=np.count_nonzero(mask)).astype(bool)
    X[mask] = np.where(bright, high, low)
    return X, mask


def _block_size(h: int, w: int, fraction: float) -> tuple[int, int]:
    """Return the whole-pixel block with the proportions of the image and about ``fraction`` of its area."""
    if fraction == 0:
        return 0, 0
    block_h = min(h, max(1, round(h * sqrt(fraction))))
    block_w = min(w, max(1, round(fraction * h * w / block_h)))
    return block_h, block_w


def _choose_per_row(shape: tuple[int, int], fraction: float, rng: np.random.RandomState) -> Array:
    """Return a mask with ``round(fraction * p)`` entries True in each row, uniform over such subsets."""
    n, p = shape
    count = round(fraction * p)
    mask = np.zeros(shape, dtype=bool)
    if count == 0:
        return mask
    step = max(1, _BLOCK_ENTRIES // p)
    for start in range(0, n, step):
        keys = rng.random_sample((min(step, n - start), p))
        chosen = np.argpartition(keys, count - 1, axis=1)[:, :count]
        np.put_along_axis(mask[start : start + step], chosen, True, axis=1)
    return mask


def _copy_of(X: Any) -> Array:
    X = np.array(np.asarray(X))  # in two steps: tensors do not take a request for a copy
    if X.ndim != 2 or X.size == 0 or X.dtype.kind not in "biuf":
        raise ValueError(
            f"X has shape {X.shape} and dtype {X.dtype}; it must be a dense, non-empty, real matrix of shape "
            "(n_samples, n_features); reshape it, or densify a sparse one with X.toarray()."
        )
    return X


def _check_fraction(fraction: float) -> None:
    if not isinstance(fraction, Real) or not 0 <= float(fraction) <= 1:
        raise ValueError(f"fraction={fraction!r} must lie in [0, 1]; for 25 per cent pass 0.25.")


def _check_shape(shape: tuple[int, int], p: int) -> tuple[int, int]:
    if len(shape) != 2 or min(shape) < 1 or shape[0] * shape[1] != p:
        raise ValueError(
            f"shape={tuple(shape)} does not match n_features={p}; pass (height, width) of the image behind a "
            "row, with height * width = n_features."
        )
    return int(shape[0]), int(shape[1])


def _check_value(value: float, dtype: np.dtype, *, name: str = "value") -> None:
    with np.errstate(invalid="ignore", over="ignore"):
        held = np.asarray(value).astype(dtype)
    if (held != value) if dtype.kind != "f" else (np.isinf(held) and not np.isinf(value)):
        raise ValueError(f"{name}={value} cannot be held by X of dtype {dtype}; convert first, with X.astype(float).")
