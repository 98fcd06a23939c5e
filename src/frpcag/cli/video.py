"""frpcag video: a clip goes in, a run folder with background, foreground and mask videos comes out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from frpcag import BackgroundSeparator
from frpcag.cli import options
from frpcag.cli.errors import InputError, input_errors
from frpcag.cli.progress import Bar, collected_warnings, print_warnings
from frpcag.cli.runs import (
    Timer,
    check_output,
    library_versions,
    percent,
    print_json,
    run_folder,
    seconds_in_words,
    write_run,
)
from frpcag.video.frames import FrameSource, sample_frames, video_writer, write_image
from frpcag.video.separator import BYTES_PER_ENTRY

Array = np.ndarray

_CLIP = "The clip"

# More frames than this do not make a better background.
FIT_FRAMES = 1000
# Frames of the contact sheet, and frames separated at a time.
_SHOWN, _BLOCK = 6, 16


def video(
    source: Annotated[Path, typer.Argument(help="A video file, a folder of images, or an npy or npz file.")],
    max_frames: Annotated[
        int | None, typer.Option(min=2, help="End after this many frames.", rich_help_panel=_CLIP)
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Take every Nth frame.", rich_help_panel=_CLIP)] = 1,
    resize: Annotated[
        Any,
        typer.Option(
            parser=lambda text: parse_resize(text),
            metavar="WxH|X",
            help="Size to work at, such as 320x240, or a factor, such as 0.5.",
            rich_help_panel=_CLIP,
        ),
    ] = None,
    color: Annotated[
        bool, typer.Option("--color/--grey", help="Separate the three channels.", rich_help_panel=_CLIP)
    ] = False,
    fit_frames: Annotated[
        int,
        typer.Option(
            min=2,
            help="Frames to learn from at most, spread over the clip; the others follow.",
            rich_help_panel=options.MODEL,
        ),
    ] = FIT_FRAMES,
    threshold: Annotated[Any, options.gamma_option("Noise levels from which on a pixel is foreground.")] = "auto",
    model: Annotated[
        Path | None,
        typer.Option(help="A separator.npz of an earlier run: its background, frozen.", rich_help_panel=options.MODEL),
    ] = None,
    max_memory: Annotated[
        float,
        typer.Option(min=0.01, help="Gigabytes the fit may take: fewer frames then.", rich_help_panel=options.MODEL),
    ] = 4.0,
    jobs: options.Jobs = None,
    output: options.Output = None,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Separate the background of a fixed camera from what moves: background, foreground and mask videos."""
    target = output if output is not None else Path(f"frpcag-run-{source.stem}")
    check_output(target, overwrite=overwrite)
    with Bar(shown=not (as_json or quiet)) as bar, input_errors(source), collected_warnings() as notes:
        timer = Timer()
        frames = FrameSource(source, max_frames=max_frames, every=every, resize=resize, color=color)
        if model is None:
            limit = min(fit_frames, _frames_in_memory(frames, max_memory))
            sample, step, n_frames = _sampled(frames, limit, bar)
            timer.lap("read")
            separator = BackgroundSeparator(threshold=threshold, n_jobs=jobs, callback=bar).fit(sample)
            timer.lap("fit")
            fitted: _Fitted | None = _Fitted(separator, step, len(sample))
        else:
            separator, fitted = BackgroundSeparator.load(model), None
            sample, _, n_frames = _sampled(frames, 1, bar)
            timer.lap("read")
        low, high = _grey_range(sample)
        with run_folder(target, overwrite=overwrite) as folder:
            shares, sheet = _write_videos(folder, frames, n_frames, separator, fitted, (low, high), bar)
            middle = separator.references_[len(separator.references_) // 2]
            write_image(folder / "background.png", _to_bytes(middle, low, high))
            _write_sheet(folder / "frames.png", sheet)
            separator.save(folder / "separator.npz")
            timer.lap("separate_and_write")
            record = {
                "command": "video",
                "data": {
                    "file": source.name,
                    "n_frames": n_frames,
                    "frame_shape": list(sample.shape[1:]),
                    "dtype": str(sample.dtype),
                    "fps": frames.fps,
                    "every": every,
                },
                "parameters": {"threshold": threshold, "fit_frames": fit_frames, "max_memory": max_memory},
                "model": None if model is None else model.name,
                "fitted_frames": None if fitted is None else fitted.n_frames,
                "noise": separator.noise_,
                "threshold": separator.threshold_,
                "gamma1": separator.gamma1_,
                "certificate": None
                if fitted is None
                else {"relative_gap": separator.duality_gap_, "n_iter": separator.n_iter_},
                "foreground": {"share": float(np.mean(shares)), "largest": float(np.max(shares))},
                "timings": timer.seconds,
                "versions": library_versions(),
                "files": sorted(path.name for path in folder.iterdir()),
            }
            write_run(folder, record)
    if as_json:
        print_json(record)
        return
    print_warnings(notes)
    if not quiet:
        _print_summary(record, target)


class _Fitted:
    """The frames that were fitted: every ``step``-th of the clip."""

    def __init__(self, separator: BackgroundSeparator, step: int, n_frames: int) -> None:
        self.separator, self.step, self.n_frames = separator, step, n_frames

    def separate(self, start: int, block: Array) -> tuple[Array, Array]:
        """Return backgrounds and masks of the frames from ``start`` on, as fitted where they were."""
        model, times = self.separator, np.arange(start, start + len(block))
        known = (times % self.step == 0) & (times // self.step < self.n_frames)
        background, mask = np.empty(block.shape, np.float32), np.empty(block.shape[:3], bool)
        at = times[known] // self.step
        background[known], mask[known] = model.background_[at], model.mask_[at]
        if not known.all():
            background[~known], mask[~known] = model.separate(block[~known])
        return background, mask


def parse_resize(text: Any) -> tuple[int, int] | float:
    """Return (height, width) from ``WxH``, or a factor.

    Examples
    --------
    >>> from frpcag.cli.video import parse_resize
    >>> parse_resize("320x240"), parse_resize("0.5")
    ((240, 320), 0.5)
    """
    if "x" in str(text).lower():
        try:
            w, h = (int(part) for part in str(text).lower().split("x"))
        except ValueError:
            w = h = 0
        if w > 0 and h > 0:
            return h, w
    else:
        try:
            factor = float(text)
        except ValueError:
            factor = 0.0
        if 0 < factor <= 16:
            return factor
    raise typer.BadParameter(f"{text!r} must be WIDTHxHEIGHT, such as 320x240, or a factor, such as 0.5")


def _frames_in_memory(frames: FrameSource, gigabytes: float) -> int:
    first = next(iter(frames), None)
    if first is None:
        raise InputError(f"{frames.name} holds no frame; there is nothing to separate.")
    limit = int(gigabytes * 2**30 / (BYTES_PER_ENTRY * first.size))
    if limit < 2:
        raise InputError(
            f"--max-memory={gigabytes:g} gigabytes hold fewer than two frames of {first.shape[1]} x {first.shape[0]}; "
            "raise it, or pass a smaller --resize."
        )
    return limit


def _sampled(frames: FrameSource, limit: int, bar: Bar) -> tuple[Array, int, int]:
    total = frames.count()

    def show(done: int) -> None:
        if total is None:
            bar.stage(f"reading, frame {done}")
        else:
            bar.advance(f"reading, frame {done} of {total}", done, total)

    sample, step, n_frames = sample_frames(frames, limit, callback=show)
    if n_frames < 2:
        raise InputError(f"{frames.name} holds one frame; a background needs at least two to compare.")
    bar.stage("linking frames")
    return sample, step, n_frames


def _write_videos(
    folder: Path,
    frames: FrameSource,
    n_frames: int,
    separator: BackgroundSeparator,
    fitted: _Fitted | None,
    grey_range: tuple[float, float],
    bar: Bar,
) -> tuple[list[float], dict[str, Any]]:
    """Separate the clip frame by frame; return the share of foreground in each, and some frames to show."""
    shares: list[float] = []
    shown = set(np.linspace(0, n_frames - 1, _SHOWN).astype(int).tolist())
    sheet: dict[str, list[Any]] = {"labels": [], "frame": [], "background": [], "foreground": [], "mask": []}
    with ExitStack() as files:
        write = {
            name: files.enter_context(video_writer(folder / f"{name}.mp4", fps=frames.fps))
            for name in ("background", "foreground", "mask")
        }
        for block in _blocks(frames):
            start = len(shares)
            background, mask = separator.separate(block) if fitted is None else fitted.separate(start, block)
            pictures = {"frame": _to_bytes(block, *grey_range), "background": _to_bytes(background, *grey_range)}
            cut = mask if block.ndim == 3 else mask[..., None]
            pictures["foreground"] = np.where(cut, pictures["frame"], np.uint8(0))
            pictures["mask"] = mask.astype(np.uint8) * np.uint8(255)
            for offset in range(len(block)):
                for name, append in write.items():
                    append(pictures[name][offset])
                if start + offset in shown:
                    sheet["labels"].append(str(start + offset))
                    for name, stack in pictures.items():
                        sheet[name].append(stack[offset])
                shares.append(float(mask[offset].mean()))
            done = len(shares)
            bar.advance(f"separating, frame {done} of {n_frames}", done, n_frames)
    return shares, sheet


def _blocks(frames: FrameSource) -> Iterator[Array]:
    held: list[Array] = []
    for frame in frames:
        held.append(frame)
        if len(held) == _BLOCK:
            yield np.stack(held)
            held = []
    if held:
        yield np.stack(held)


def _grey_range(sample: Array) -> tuple[float, float]:
    """Return the values that become black and white in the output."""
    if sample.dtype.kind in "ui":
        return 0.0, float(np.iinfo(sample.dtype).max)
    return float(sample.min()), float(sample.max())


def _to_bytes(values: Array, low: float, high: float) -> Array:
    scale = 255 / (high - low) if high > low else 1.0
    return np.rint(np.clip((values.astype(np.float32) - low) * scale, 0, 255)).astype(np.uint8)


def _write_sheet(path: Path, sheet: dict[str, Any]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from frpcag.plots.frames import plot_contact_sheet

    labels = sheet.pop("labels")
    figure: Any = plot_contact_sheet({name: np.stack(stack) for name, stack in sheet.items()}, labels=labels)
    figure.savefig(path, dpi=100, metadata={"Software": None})
    plt.close(figure)


def _print_summary(record: dict[str, Any], target: Path) -> None:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    data, fitted = record["data"], record["fitted_frames"]
    h, w, *channels = data["frame_shape"]
    kind = "colour" if channels else "grey"
    table.add_row("clip", f"{data['file']}: {data['n_frames']} frames of {w} x {h}, {kind}, {data['dtype']}")
    if fitted is None:
        table.add_row("background", f"frozen, from {record['model']}")
    else:
        words = "all frames" if fitted == data["n_frames"] else f"{fitted} frames spread over the clip"
        table.add_row("background", f"learned from {words}")
    table.add_row(
        "noise", f"{record['noise']:.3g} grey levels; foreground from {record['threshold']:.3g} noise levels on"
    )
    share = record["foreground"]
    table.add_row("foreground", f"{percent(share['share'])} of the pixels, {percent(share['largest'])} at most")
    table.add_row("time", seconds_in_words(record["timings"]))
    table.add_row("written to", f"{target}{'/' if not str(target).endswith('/') else ''}")
    table.add_row("", ", ".join([*record["files"], "run.json"]))
    Console(highlight=False, markup=False).print(table)
