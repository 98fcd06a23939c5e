"""Images and frames for the browser of a report, small and few enough to travel inside the page."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np

from frpcag.insight import OutlierShares
from frpcag.report.figures import data_address
from frpcag.report.fit import Fit, Pictures

Array = np.ndarray

# Pictures in the page at most, their longer side in pixels, and the bytes they may add up to.
MAX_PICTURES, MAX_SIDE, MAX_BYTES = 240, 160, 4_000_000
# Percentiles between which grey values are told apart.
_LIMITS = (0.5, 99.5)
# Percentile of the sizes at which signed colours end.
_SIGNED_LIMIT = 99.0


def picture_browser(fit: Fit, *, limit: int = MAX_PICTURES) -> dict[str, Any] | None:
    """Return the pictures of a fit, ready for the page.

    Parameters
    ----------
    fit : Fit
        With ``pictures``, or with ``feature_shape`` and rows that are images.
    limit : int
        Pictures at most.

    Returns
    -------
    dict or None
        ``panes`` (titles), ``items`` (one per picture: ``index``, ``label``, ``corrupted`` in per cent, ``src`` of
        each pane), ``is_video``, ``total`` and ``ratio`` of width to height; None where rows are no images.

    Notes
    -----
    Of a set that is too large, half are the most corrupted and the rest are evenly spaced; of a video all are.
    """
    pictures = fit.pictures if fit.pictures is not None else _rows_as_images(fit)
    if pictures is None:
        return None
    shares = fit.outliers
    chosen = _choose(len(pictures), shares, limit, is_video=pictures.is_video)
    scales = {name: _grey_limits(pictures, name, chosen) for name in pictures.stacks}
    items: list[dict[str, Any]] = []
    spent = 0
    for index in chosen:
        src = {name: encode_picture(pictures, name, index, scales[name]) for name in pictures.stacks}
        spent += sum(map(len, src.values()))
        if spent > MAX_BYTES and items:
            break
        share = float(shares.samples[index]) if len(shares.samples) == len(pictures) else 0.0
        label = None if fit.labels is None else str(fit.labels[index])
        items.append(
            {"index": fit.number(index), "label": label, "corrupted": round(100 * share, 2), "src": list(src.values())}
        )
    items.sort(key=lambda item: item["index"])
    h, w = next(iter(pictures.stacks.values())).shape[1:3]
    return {
        "panes": list(pictures.stacks),
        "items": items,
        "is_video": pictures.is_video,
        "total": pictures.total or len(pictures),
        "ratio": w / h,
    }


def _rows_as_images(fit: Fit) -> Pictures | None:
    if fit.feature_shape is None or math.prod(fit.feature_shape) != fit.n_features:
        return None
    U, S = (A.reshape(-1, *fit.feature_shape) for A in (fit.U, fit.S))
    return Pictures({"X, as given": _Sum(U, S), "U, cleaned": U, "S, corruption": S}, signed=("S, corruption",))


class _Sum:
    """Images of ``X = U + S``, added when they are looked at: the arrays may be larger than memory."""

    def __init__(self, U: Array, S: Array) -> None:
        self._U, self._S, self.shape = U, S, U.shape

    def __len__(self) -> int:
        return len(self._U)

    def __getitem__(self, at: Any) -> Array:
        return self._U[at] + self._S[at]


def _choose(n: int, shares: OutlierShares, limit: int, *, is_video: bool) -> Array:
    """Return what to show, the most wanted first."""
    if is_video or n <= limit or len(shares.samples) != n:
        return np.unique(np.linspace(0, n - 1, min(n, limit)).astype(int))
    worst = shares.worst_samples(limit // 2)
    rest = np.setdiff1d(np.arange(n), worst)
    spread = rest[np.linspace(0, len(rest) - 1, limit - len(worst)).astype(int)]
    return np.ravel(np.column_stack([worst, spread])) if len(worst) == len(spread) else np.concatenate([worst, spread])


def _grey_limits(pictures: Pictures, name: str, chosen: Array) -> tuple[float, float]:
    """Return the values drawn black and white; panes that are not signed share them."""
    if name in pictures.signed:
        # One image with gross errors must not pale all others: a percentile of what is not zero anywhere.
        sizes = np.concatenate([np.ravel(np.abs(np.asarray(pictures.stacks[name][i], float))) for i in chosen])
        sizes = sizes[sizes > 0]
        size = float(np.percentile(sizes, _SIGNED_LIMIT)) if len(sizes) else 1.0
        return -size, size
    if any(
        np.asarray(stack[0]).dtype == np.uint8
        for other, stack in pictures.stacks.items()
        if other not in pictures.signed
    ):
        return 0.0, 255.0
    first = next(other for other in pictures.stacks if other not in pictures.signed)
    sample = np.concatenate([np.ravel(pictures.stacks[first][i]) for i in chosen[:64]]).astype(float)
    low, high = np.nanpercentile(sample, _LIMITS)
    return (float(low), float(high)) if high > low else (float(low) - 0.5, float(low) + 0.5)


def encode_picture(pictures: Pictures, name: str, index: int, limits: tuple[float, float]) -> str:
    """Return one picture of a pane as the address of an image; ``limits`` are drawn black and white."""
    from PIL import Image

    values = np.asarray(pictures.stacks[name][index])
    if values.dtype == bool:
        image = Image.fromarray(values.astype(np.uint8) * 255)
    else:
        low, high = limits
        with np.errstate(invalid="ignore"):
            share = np.clip((values.astype(np.float64) - low) / (high - low), 0, 1)
        share = np.nan_to_num(share, nan=0.5)
        grey = (255 * share).round().astype(np.uint8)
        image = Image.fromarray(_signed_colours(share) if name in pictures.signed and values.ndim == 2 else grey)
    if max(image.size) > MAX_SIDE:
        image.thumbnail((MAX_SIDE, MAX_SIDE))
    buffer = io.BytesIO()
    small = max(image.size) <= 48  # lossy blocks would show when a few pixels fill the pane
    image.save(buffer, "WEBP", lossless=small, quality=80, method=2)
    return data_address(buffer.getvalue(), "image/webp")


def _signed_colours(share: Array) -> Array:
    """Return blue, white and red for 0, 1/2 and 1."""
    blue, white, red = np.array([5, 80, 160]), np.array([247, 247, 247]), np.array([178, 24, 43])
    t = np.abs(2 * share - 1)[..., None]
    end = np.where((share < 0.5)[..., None], blue, red)
    return (white + t * (end - white)).round().astype(np.uint8)
