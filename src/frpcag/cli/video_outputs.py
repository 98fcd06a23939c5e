"""What frpcag video writes: videos with the timing and sound of the clip, masks, boxes and a page."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from frpcag import BackgroundSeparator
from frpcag.cli.errors import InputError
from frpcag.cli.progress import Bar
from frpcag.cli.runs import percent
from frpcag.insight import OutlierShares
from frpcag.report import Fit, Pictures
from frpcag.report.pictures import MAX_PICTURES, MAX_SIDE
from frpcag.video.boxes import boxes_of
from frpcag.video.decode import import_pillow
from frpcag.video.encode import video_writer, write_image
from frpcag.video.frames import FrameSource

Array = np.ndarray

# Frames separated at a time.
_BLOCK = 16
BOX_COLUMNS = ("frame", "seconds", "x", "y", "w", "h", "area")


class Fitted:
    """The frames that were fitted, by their numbers in the clip."""

    def __init__(self, separator: BackgroundSeparator, numbers: Array) -> None:
        self.separator, self.numbers = separator, numbers

    def separate(self, start: int, block: Array) -> tuple[Array, Array]:
        """Return backgrounds and masks of the frames from ``start`` on, as fitted where they were."""
        model, times = self.separator, np.arange(start, start + len(block))
        known = np.isin(times, self.numbers)
        background, mask = np.empty(block.shape, np.float32), np.empty(block.shape[:3], bool)
        at = np.searchsorted(self.numbers, times[known])
        background[known], mask[known] = model.background_[at], model.mask_[at]
        if not known.all():
            background[~known], mask[~known] = model.separate(block[~known])
        return background, mask


def write_results(
    folder: Path,
    frames: FrameSource,
    n_frames: int,
    separator: BackgroundSeparator,
    fitted: Fitted | None,
    grey_range: tuple[float, float],
    bar: Bar,
    *,
    masks: bool,
    side_by_side: bool,
) -> tuple[list[float], dict[int, dict[str, Array]]]:
    """Separate the clip frame by frame; return the share of foreground in each, and small frames by their numbers."""
    shares: list[float] = []
    videos = ("background", "foreground", "mask", *(("side_by_side",) if side_by_side else ()))
    sound = frames.source if frames.has_sound() else None
    if masks:
        (folder / "masks").mkdir()
    paged = set(np.linspace(0, n_frames - 1, MAX_PICTURES).astype(int).tolist())
    kept: dict[int, dict[str, Array]] = {}
    digits = len(str(max(n_frames - 1, 1)))
    with ExitStack() as files:
        write = {
            name: files.enter_context(video_writer(folder / f"{name}.mp4", fps=frames.fps, sound_of=sound))
            for name in videos
        }
        table = csv.DictWriter(
            files.enter_context((folder / "boxes.csv").open("w", newline="", encoding="utf-8")), BOX_COLUMNS
        )
        table.writeheader()
        listed = files.enter_context((folder / "boxes.json").open("w", encoding="utf-8"))
        before = "["
        for times, block in _blocks(frames):
            start = len(shares)
            background, mask = separator.separate(block) if fitted is None else fitted.separate(start, block)
            pictures = _pictures(block, background, mask, grey_range)
            for offset, seconds in enumerate(times):
                number = start + offset
                for name, append in write.items():
                    append(_joined(pictures, offset) if name == "side_by_side" else pictures[name][offset], seconds)
                for x, y, w, h, area in boxes_of(mask[offset]).tolist():
                    row = dict(zip(BOX_COLUMNS, (number, round(seconds, 4), x, y, w, h, area), strict=True))
                    table.writerow(row)
                    listed.write(before + json.dumps(row))
                    before = ",\n"
                if masks:
                    write_image(folder / "masks" / f"{number:0{digits}d}.png", pictures["mask"][offset])
                if number in paged:
                    kept[number] = {name: _small(stack[offset]) for name, stack in pictures.items()}
                shares.append(float(mask[offset].mean()))
            done = len(shares)
            bar.advance(f"separating, frame {done} of {n_frames}", done, n_frames)
        listed.write("[]" if before == "[" else "]")
    return shares, kept


def video_page(kept: dict[int, dict[str, Array]], record: dict[str, Any]) -> Fit:
    """Return a run as a report shows it: some of its frames, and what its record says."""
    stacks = {name: np.stack([frame[name] for frame in kept.values()]) for name in next(iter(kept.values()))}
    stacks["mask"] = on = stacks["mask"] > 127
    grey = {name: stacks[name].astype(np.float32) for name in ("frame", "background")}
    U, X = (A.mean(axis=3) if A.ndim == 4 else A for A in (grey["background"], grey["frame"]))
    m, h, w = on.shape
    data, share, proof = record["data"], record["foreground"], record["certificate"]
    height, width = data["frame_shape"][:2]
    lines = [
        f"{data['n_frames']} frames of {width} x {height} pixels were split into a background and what moves in front "
        "of it.",
        f"{percent(share['share'])} of the pixels are foreground, {percent(share['largest'])} in the fullest frame: "
        f"where the clip leaves its background by more than {record['threshold']:.3g} "
        f"(its noise is {record['noise']:.3g}).",
    ]
    if proof:
        lines.append(
            f"The background is proved to be within {percent(proof['relative_gap'])} of the optimum after "
            f"{proof['n_iter']} steps."
        )
    return Fit(
        U=U.reshape(m, -1),
        S=np.where(on, X - U, np.float32(0)).reshape(m, -1),
        title=data["file"],
        gamma1=float(record["gamma1"]),
        feature_names=[f"row {height * y // h}, column {width * x // w}" for y in range(h) for x in range(w)],
        pictures=Pictures(stacks, signed=(), is_video=True, total=data["n_frames"]),
        numbers=list(kept),
        shares=OutlierShares(
            float(record["threshold"]), float(on.mean()), on.mean(axis=(1, 2)), on.mean(axis=0).ravel()
        ),
        lines=lines,
        parameters=record["parameters"],
        timings=record["timings"],
        versions=record["versions"],
        files={name: name for name in record["files"]},
    )


def _small(picture: Array) -> Array:
    """Return a picture of bytes at the size that a page shows."""
    image = import_pillow().fromarray(picture)
    return np.asarray(image.reduce(-(-max(image.size) // MAX_SIDE)))


def check_size(separator: BackgroundSeparator, shape: tuple[int, ...], source: str, model: str) -> None:
    """Raise InputError unless frames of a shape suit a separator."""
    if shape == separator.frame_shape_:
        return
    (h, w, *_), now, known = separator.frame_shape_, *map(_in_words, (shape, separator.frame_shape_))
    color = " --color" if len(separator.frame_shape_) == 3 else ""
    raise InputError(
        f"{source} has frames of {now} but {model} was learned from frames of {known}; pass --resize {w}x{h}{color} "
        "with it, or learn anew without --model."
    )


def _in_words(shape: tuple[int, ...]) -> str:
    return f"{shape[1]} x {shape[0]} in {'colour' if len(shape) == 3 else 'grey'}"


def grey_range(sample: Array) -> tuple[float, float]:
    """Return the values that become black and white in the output."""
    if sample.dtype.kind in "ui":
        return 0.0, float(np.iinfo(sample.dtype).max)
    return float(sample.min()), float(sample.max())


def to_bytes(values: Array, low: float, high: float) -> Array:
    """Return values as uint8, ``low`` black and ``high`` white."""
    scale = 255 / (high - low) if high > low else 1.0
    return np.rint(np.clip((values.astype(np.float32) - low) * scale, 0, 255)).astype(np.uint8)


def _pictures(block: Array, background: Array, mask: Array, grey_range: tuple[float, float]) -> dict[str, Array]:
    pictures = {"frame": to_bytes(block, *grey_range), "background": to_bytes(background, *grey_range)}
    cut = mask if block.ndim == 3 else mask[..., None]
    pictures["foreground"] = np.where(cut, pictures["frame"], np.uint8(0))
    pictures["mask"] = mask.astype(np.uint8) * np.uint8(255)
    return pictures


def _joined(pictures: dict[str, Array], offset: int) -> Array:
    """Return clip, background and mask beside each other."""
    parts = [pictures[name][offset] for name in ("frame", "background", "mask")]
    if any(part.ndim == 3 for part in parts):
        parts = [np.repeat(part[..., None], 3, axis=2) if part.ndim == 2 else part for part in parts]
    return np.concatenate(parts, axis=1)


def _blocks(frames: FrameSource) -> Iterator[tuple[list[float], Array]]:
    times: list[float] = []
    held: list[Array] = []
    for seconds, frame in frames.timed():
        times.append(seconds)
        held.append(frame)
        if len(held) == _BLOCK:
            yield times, np.stack(held)
            times, held = [], []
    if held:
        yield times, np.stack(held)
