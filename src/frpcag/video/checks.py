"""What the separator is given: frames and parameters, refused with the way out."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np

Array = np.ndarray

# Largest entry of a frame, and one over the least: differences, sums over frames and their squares stay in float32.
LARGEST = 1e15


def check_frames(frames) -> Array:
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


def choice(name: str, value, auto, *, whole: bool = False):
    """Return ``value``, checked, or what "auto" stands for."""
    if isinstance(value, str) and value == "auto":
        return auto
    if isinstance(value, bool) or not isinstance(value, Integral if whole else Real) or not 0 <= float(value) < np.inf:
        raise ValueError(f"{name}={value!r} must be 'auto' or {'an integer' if whole else 'a number >= 0'}.")
    return value
