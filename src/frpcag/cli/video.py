"""frpcag video: a clip goes in, a run folder with background, foreground and mask videos comes out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from frpcag import BackgroundSeparator
from frpcag.cli import options
from frpcag.cli.errors import InputError, input_errors, printable
from frpcag.cli.progress import Bar, collected_warnings, print_warnings
from frpcag.cli.runs import (
    PAGE,
    Timer,
    check_output,
    library_versions,
    percent,
    print_json,
    run_folder,
    seconds_in_words,
    write_run,
)
from frpcag.cli.video_outputs import Fitted, check_size, grey_range, to_bytes, video_page, write_results
from frpcag.report import write_report
from frpcag.video.decode import STREAMS
from frpcag.video.encode import write_image
from frpcag.video.frames import FrameSource, sample_frames
from frpcag.video.separator import BYTES_PER_ENTRY

Array = np.ndarray

_CLIP = "The clip"

# More frames than this do not make a better background.
FIT_FRAMES = 1000


def video(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A video file, a folder of images, or an npy or npz file.")
    ],
    max_frames: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="End after this many frames.", rich_help_panel=_CLIP)
    ] = None,
    every: Annotated[
        int, typer.Option(min=1, metavar="N", help="Keep one frame in every N.", rich_help_panel=_CLIP)
    ] = 1,
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
            metavar="N",
            help="Learn from at most N frames, spread over the clip.",
            rich_help_panel=options.MODEL,
        ),
    ] = FIT_FRAMES,
    threshold: Annotated[Any, options.gamma_option("A pixel is foreground from this many noise levels on.")] = "auto",
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="separator.npz of an earlier run: use its background, learn nothing.",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    max_memory: Annotated[
        float,
        typer.Option(
            min=0.01,
            metavar="X",
            help="Gigabytes that the fit may take; it learns from fewer frames if needed.",
            rich_help_panel=options.MODEL,
        ),
    ] = 4.0,
    masks: Annotated[
        bool, typer.Option("--masks", help="Also write each mask as PNG, in masks/.", rich_help_panel=options.OUTPUT)
    ] = False,
    side_by_side: Annotated[
        bool,
        typer.Option(
            "--side-by-side/--no-side-by-side",
            help="Write clip, background and mask beside each other.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = True,
    jobs: options.Jobs = None,
    output: options.Output = None,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Separate the background of a fixed camera from what moves: background, foreground and mask videos."""
    if source.startswith(STREAMS):
        raise InputError(f"SOURCE={source} is a stream, which plays once; record a part of it and pass the file.")
    clip = Path(source)
    target = output if output is not None else Path(f"frpcag-run-{clip.stem}")
    check_output(target, overwrite=overwrite)
    with Bar(shown=not (as_json or quiet)) as bar, input_errors(clip), collected_warnings() as notes:
        timer = Timer()
        frames = FrameSource(clip, max_frames=max_frames, every=every, resize=resize, color=color)
        if model is None:
            limit = min(fit_frames, _frames_in_memory(frames, max_memory))
            sample, numbers, n_frames = _sampled(frames, limit, bar)
            if n_frames < 2:
                raise InputError(f"{frames.name} holds one frame; a background needs at least two to compare.")
            timer.lap("read")
            separator = BackgroundSeparator(threshold=threshold, n_jobs=jobs, callback=bar.steps).fit(sample)
            timer.lap("fit")
            fitted: Fitted | None = Fitted(separator, numbers)
        else:
            separator, fitted = BackgroundSeparator.load(model), None
            if threshold != "auto":
                separator.threshold_ = threshold
            sample, _, n_frames = _sampled(frames, 1, bar)
            check_size(separator, sample.shape[1:], clip.name, model.name)
            timer.lap("read")
        low, high = grey_range(sample)
        with run_folder(target, overwrite=overwrite) as folder:
            shares, kept = write_results(
                folder, frames, n_frames, separator, fitted, (low, high), bar, masks=masks, side_by_side=side_by_side
            )
            middle = separator.references_[len(separator.references_) // 2]
            write_image(folder / "background.png", to_bytes(middle, low, high))
            separator.save(folder / "separator.npz")
            timer.lap("separate_and_write")
            record = {
                "command": "video",
                "data": {
                    "file": clip.name,
                    "n_frames": n_frames,
                    "frame_shape": list(sample.shape[1:]),
                    "dtype": str(sample.dtype),
                    "fps": frames.fps,
                    "every": every,
                },
                "parameters": {"threshold": threshold, "fit_frames": fit_frames, "max_memory": max_memory},
                "model": None if model is None else model.name,
                "fitted_frames": None if fitted is None else len(fitted.numbers),
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
            write_report(folder / PAGE, video_page(kept, record))
            record["files"].append(PAGE)
            write_run(folder, record)
    if as_json:
        print_json(record)
        return
    print_warnings(notes)
    if not quiet:
        _print_summary(record, target)


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


def _sampled(frames: FrameSource, limit: int, bar: Bar) -> tuple[Array, Array, int]:
    total = frames.count()

    def show(done: int) -> None:
        if total is None:
            bar.stage(f"reading, frame {done}")
        else:
            bar.advance(f"reading, frame {done} of {total}", done, total)

    found = sample_frames(frames, limit, callback=show)
    bar.stage("linking frames")
    return found


def _print_summary(record: dict[str, Any], target: Path) -> None:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    data, fitted = record["data"], record["fitted_frames"]
    h, w, *channels = data["frame_shape"]
    kind = "colour" if channels else "grey"
    frames = "1 frame" if data["n_frames"] == 1 else f"{data['n_frames']} frames"
    table.add_row("clip", f"{printable(data['file'])}: {frames} of {w} x {h}, {kind}, {data['dtype']}")
    if fitted is None:
        table.add_row("background", f"frozen, from {record['model']}")
    else:
        words = "all frames" if fitted == data["n_frames"] else f"{fitted} frames spread over the clip"
        table.add_row("background", f"learned from {words}")
    kind = np.dtype(data["dtype"])
    of = f" of {np.iinfo(kind).max}" if kind.kind in "ui" and kind != np.uint8 else ""
    unit = "grey levels" if kind.kind in "ui" else "in units of the frames"
    table.add_row(
        "noise", f"{record['noise']:.3g}{of} {unit}; foreground from {record['threshold']:.3g} noise levels on"
    )
    share = record["foreground"]
    table.add_row("foreground", f"{percent(share['share'])} of the pixels, {percent(share['largest'])} at most")
    table.add_row("time", seconds_in_words(record["timings"]))
    table.add_row("written to", f"{target}{'/' if not str(target).endswith('/') else ''}")
    table.add_row("", ", ".join([*record["files"], "run.json"]))
    Console(highlight=False, markup=False).print(table)
