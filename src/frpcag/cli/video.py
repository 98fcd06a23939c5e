"""frpcag video: a clip goes in, a run folder with background, foreground and mask videos comes out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from frpcag import BackgroundSeparator
from frpcag.cli.errors import InputError
from frpcag.cli.models import parameters, with_settings
from frpcag.cli.runs import Result, Rows, Run
from frpcag.cli.video_outputs import Clip, video_page, write_results
from frpcag.report import Fit
from frpcag.report.cells import percent
from frpcag.report.words import certificate
from frpcag.video.decode import STREAMS
from frpcag.video.frames import FrameSource, sample_frames
from frpcag.video.separator import BYTES_PER_ENTRY

Array = np.ndarray


def work(run: Run) -> Result:
    """Learn the background of a clip, or load one; the clip is separated while its videos are written."""
    asked = run.asked
    if asked.file.startswith(STREAMS):
        raise InputError(f"SOURCE={asked.file} is a stream, which plays once; record a part of it and pass the file.")
    if asked.model and asked.set:
        raise InputError(
            f"--set {next(iter(asked.set))} is for learning, and --model learns nothing; drop one of them."
        )
    frames = FrameSource(
        run.file, max_frames=asked.max_frames, every=asked.every, resize=asked.resize, color=asked.color
    )
    limit = 1 if asked.model else min(asked.fit_frames, _frames_in_memory(frames, asked.max_memory))
    sample, numbers, n_frames = _sampled(frames, limit, run)
    separator = BackgroundSeparator(
        threshold=asked.threshold, n_jobs=asked.jobs, callback=lambda progress: run.bar(progress)
    )
    separator = with_settings(separator, asked.set)
    if asked.model:
        separator = _loaded(run, sample.shape[1:])
    elif n_frames < 2:
        raise InputError(f"{frames.name} holds one frame; a background needs at least two to compare.")
    else:
        separator.fit(sample)
        run.lap("fit")
    fitted = None if asked.model else numbers
    clip = Clip(frames, n_frames, separator, fitted, sample)
    data = {"file": run.file.name, "n_frames": n_frames, "frame_shape": list(sample.shape[1:])}
    run.record |= {
        "data": {**data, "dtype": str(sample.dtype), "fps": frames.fps, "every": asked.every},
        "parameters": {**parameters(separator), "fit_frames": asked.fit_frames, "max_memory": asked.max_memory},
        "model": asked.model and asked.model.name,
        "fitted_frames": None if fitted is None else len(fitted),
        "noise": separator.noise_,
        "threshold": separator.threshold_,
        "gamma1": separator.gamma1_,
        "certificate": None
        if fitted is None
        else {"relative_gap": separator.duality_gap_, "tol": separator.tol, "n_iter": separator.n_iter_},
    }
    kept: dict[int, dict[str, Array]] = {}

    def write(folder: Path) -> None:
        shares = write_results(folder, clip, kept, run.bar, masks=asked.masks)
        run.record["foreground"] = {"share": float(np.mean(shares)), "largest": float(np.max(shares))}
        run.lap("separate_and_write")

    def page(**about: Any) -> Fit:
        return video_page(kept, run.record, [f"{name}: {text}." for name, text in _rows(run.record)], **about)

    return Result(write=write, page=page, rows=_rows)


def _loaded(run: Run, shape: tuple[int, ...]) -> BackgroundSeparator:
    """Return the background of an earlier run, with the threshold that is asked for."""
    model: Path = run.asked.model
    separator = BackgroundSeparator.load(model)
    if shape != separator.frame_shape_:
        (h, w, *_), now, known = separator.frame_shape_, *map(_in_words, (shape, separator.frame_shape_))
        color = " --color" if len(separator.frame_shape_) == 3 else ""
        raise InputError(
            f"{run.file.name} has frames of {now} but {model.name} was learned from frames of {known}; "
            f"pass --resize {w}x{h}{color} with it, or learn anew without --model."
        )
    if run.asked.threshold != "auto":
        separator.threshold_ = run.asked.threshold
    return separator


def _in_words(shape: tuple[int, ...]) -> str:
    return f"{shape[1]} x {shape[0]} in {'colour' if len(shape) == 3 else 'grey'}"


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


def _sampled(frames: FrameSource, limit: int, run: Run) -> tuple[Array, Array, int]:
    total = frames.count()

    def show(done: int) -> None:
        if total is None:
            run.bar.stage(f"reading, frame {done}")
        else:
            run.bar.advance(f"reading, frame {done} of {total}", done, total)

    found = sample_frames(frames, limit, callback=show)
    run.bar.stage("linking frames")
    run.lap("read")
    return found


def _rows(record: dict[str, Any]) -> Rows:
    data, fitted, share = record["data"], record["fitted_frames"], record["foreground"]
    h, w, *channels = data["frame_shape"]
    frames = "1 frame" if data["n_frames"] == 1 else f"{data['n_frames']} frames"
    learned = "learned from all frames" if fitted == data["n_frames"] else f"learned from {fitted} frames of the clip"
    kind = np.dtype(data["dtype"])
    of = f" of {np.iinfo(kind).max}" if kind.kind in "ui" and kind != np.uint8 else ""
    unit = "grey levels" if kind.kind in "ui" else "in units of the frames"
    noise = f"{record['noise']:.3g}{of} {unit}; foreground from {record['threshold']:.3g} noise levels on"
    return [
        ("clip", f"{data['file']}: {frames} of {w} x {h}, {'colour' if channels else 'grey'}, {data['dtype']}"),
        ("background", f"frozen, from {record['model']}" if fitted is None else learned),
        ("noise", noise),
        ("foreground", f"{percent(share['share'])} of the pixels, {percent(share['largest'])} at most"),
        *([("certificate", certificate(record["certificate"]))] if record["certificate"] else []),
    ]
