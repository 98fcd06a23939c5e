"""What frpcag video writes: videos with the timing and sound of the clip, masks, boxes and a page."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from frpcag import BackgroundSeparator
from frpcag.cli.progress import Bar
from frpcag.insight import OutlierShares
from frpcag.report import Fit, Pictures
from frpcag.report.pictures import MAX_PICTURES, MAX_SIDE
from frpcag.video.decode import import_pillow
from frpcag.video.encode import video_writer, write_image
from frpcag.video.frames import FrameSource
from frpcag.video.masks import boxes_of

Array = np.ndarray

# Frames separated at a time.
_BLOCK = 16
BOX_COLUMNS = ("frame", "seconds", "x", "y", "w", "h", "area")
VIDEOS = ("background", "foreground", "mask", "side_by_side")


@dataclass(frozen=True)
class Clip:
    """A clip and its background: ``numbers`` are those of the frames that were fitted, None for a frozen background."""

    frames: FrameSource
    n_frames: int
    separator: BackgroundSeparator
    numbers: Array | None
    sample: Array

    def separate(self, start: int, block: Array) -> tuple[Array, Array]:
        """Return backgrounds and masks of the frames from ``start`` on, as fitted where they were."""
        model, numbers = self.separator, self.numbers
        if numbers is None:
            return model.separate(block)
        times = np.arange(start, start + len(block))
        known = np.isin(times, numbers)
        background, mask = np.empty(block.shape, np.float32), np.empty(block.shape[:3], bool)
        at = np.searchsorted(numbers, times[known])
        background[known], mask[known] = model.background_[at], model.mask_[at]
        if not known.all():
            background[~known], mask[~known] = model.separate(block[~known])
        return background, mask

    def to_bytes(self, values: Array) -> Array:
        """Return values as uint8: the least that a frame can hold black, the largest white."""
        sample = self.sample
        ends = (0, np.iinfo(sample.dtype).max) if sample.dtype.kind in "ui" else (sample.min(), sample.max())
        low, high = map(float, ends)
        scale = 255 / (high - low) if high > low else 1.0
        return np.rint(np.clip((values.astype(np.float32) - low) * scale, 0, 255)).astype(np.uint8)

    def pictures(self, block: Array, background: Array, mask: Array) -> dict[str, Array]:
        """Return frames of each video, and those of the clip."""
        found = {"frame": self.to_bytes(block), "background": self.to_bytes(background)}
        found["foreground"] = np.where(mask if block.ndim == 3 else mask[..., None], found["frame"], np.uint8(0))
        found["mask"] = mask.astype(np.uint8) * np.uint8(255)
        shown = found["mask"] if block.ndim == 3 else np.repeat(found["mask"][..., None], 3, axis=3)
        found["side_by_side"] = np.concatenate([found["frame"], found["background"], shown], axis=2)
        return found


def write_results(folder: Path, clip: Clip, kept: dict[int, dict[str, Array]], bar: Bar, *, masks: bool) -> list[float]:
    """Separate the clip frame by frame; return the share of foreground in each, and keep small frames for the page."""
    shares: list[float] = []
    frames, n_frames, separator = clip.frames, clip.n_frames, clip.separator
    sound = frames.source if frames.has_sound() else None
    if masks:
        (folder / "masks").mkdir()
    paged = set(np.linspace(0, n_frames - 1, MAX_PICTURES).astype(int).tolist())
    digits = len(str(max(n_frames - 1, 1)))
    with ExitStack() as files:
        writers = [video_writer(folder / f"{name}.mp4", fps=frames.fps, sound_of=sound) for name in VIDEOS]
        append = dict(zip(VIDEOS, map(files.enter_context, writers), strict=True))
        lines, listed = (
            files.enter_context((folder / f"boxes.{kind}").open("w", newline="", encoding="utf-8"))
            for kind in ("csv", "json")
        )
        table = csv.DictWriter(lines, BOX_COLUMNS)
        table.writeheader()
        before = "["
        for times, block in _blocks(frames):
            background, mask = clip.separate(len(shares), block)
            pictures = clip.pictures(block, background, mask)
            for at, seconds in enumerate(times):
                number = len(shares)
                for name in VIDEOS:
                    append[name](pictures[name][at], seconds)
                for box in boxes_of(mask[at]).tolist():
                    row = dict(zip(BOX_COLUMNS, (number, round(seconds, 4), *box), strict=True))
                    table.writerow(row)
                    listed.write(before + json.dumps(row))
                    before = ",\n"
                if masks:
                    write_image(folder / "masks" / f"{number:0{digits}d}.png", pictures["mask"][at])
                if number in paged:
                    kept[number] = {name: _small(pictures[name][at]) for name in ("frame", *VIDEOS[:3])}
                shares.append(float(mask[at].mean()))
            bar.advance(f"separating, frame {len(shares)} of {n_frames}", len(shares), n_frames)
        listed.write("[]" if before == "[" else "]")
    write_image(folder / "background.png", clip.to_bytes(separator.references_[len(separator.references_) // 2]))
    separator.save(folder / "separator.npz")
    return shares


def video_page(kept: dict[int, dict[str, Array]], record: dict[str, Any], lines: list[str], **about: Any) -> Fit:
    """Return a run as a report shows it: some of its frames, and lines about all of them."""
    stacks = {name: np.stack([frame[name] for frame in kept.values()]) for name in next(iter(kept.values()))}
    stacks["mask"] = on = stacks["mask"] > 127
    grey = [stacks[name].astype(np.float32) for name in ("frame", "background")]
    X, U = (A.mean(axis=3) if A.ndim == 4 else A for A in grey)
    m, h, w = on.shape
    data, threshold = record["data"], float(record["threshold"])
    height, width = data["frame_shape"][:2]
    return Fit(
        U=U.reshape(m, -1),
        S=np.where(on, X - U, np.float32(0)).reshape(m, -1),
        gamma1=float(record["gamma1"]),
        feature_names=[f"row {height * y // h}, column {width * x // w}" for y in range(h) for x in range(w)],
        pictures=Pictures(stacks, signed=(), is_video=True, total=data["n_frames"]),
        numbers=list(kept),
        shares=OutlierShares(threshold, float(on.mean()), on.mean(axis=(1, 2)), on.mean(axis=0).ravel()),
        lines=lines,
        parameters=record["parameters"],
        **about,
    )


def _small(picture: Array) -> Array:
    """Return a picture of bytes at the size that a page shows."""
    image = import_pillow().fromarray(picture)
    return np.asarray(image.reduce(-(-max(image.size) // MAX_SIDE)))


def _blocks(frames: FrameSource) -> Iterator[tuple[list[float], Array]]:
    timed = frames.timed()
    while block := list(islice(timed, _BLOCK)):
        times, pictures = zip(*block, strict=True)
        yield list(times), np.stack(pictures)
