"""Frames out: mp4 files with the timing and the sound of the clip they come from, and PNG files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from typing import Any

import numpy as np

from frpcag.video.decode import import_av, import_pillow

Array = np.ndarray

_ENCODERS = ("libx264", "mpeg4")
# Ticks a second: fine enough for any frame rate, and what FFmpeg takes for video itself.
_TICKS = 90_000
# Sound that mp4 files hold as it is; any other is coded again.
_COPIED = {"aac", "mp3", "ac3", "eac3", "alac"}


@contextmanager
def video_writer(path: str | os.PathLike, *, fps: float = 25.0, sound_of: Any = None) -> Iterator[Any]:
    """Give a function that appends a uint8 frame of shape (h, w) or (h, w, 3) to an mp4 file.

    Parameters
    ----------
    path : path
        File to write.
    fps : float, default=25.0
        Frames per second, for frames that come without a time.
    sound_of : path, optional
        A video file whose sound to add, if it has any; it ends with the frames.

    Yields
    ------
    callable
        Takes one frame, and as second argument, optional, its time in seconds. Odd sizes are padded by a repeated row
        or column, as 4:2:0 video needs.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from frpcag.video.encode import video_writer
    >>> from frpcag.video.frames import read_frames
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "clip.mp4")
    ...     with video_writer(path, fps=10) as write:
    ...         for level in (0, 100, 200):
    ...             write(np.full((16, 16), level, np.uint8))
    ...     read_frames(path).mean(axis=(1, 2)).round(-1)
    array([  0., 100., 200.])
    """
    av = import_av()
    name = next((name for name in _ENCODERS if name in av.codecs_available), None)
    if name is None:
        raise ImportError(f"this PyAV has none of the encoders {', '.join(_ENCODERS)}; install the wheel of av.")
    with ExitStack() as files:
        container = files.enter_context(av.open(str(path), "w"))
        stream = container.add_stream(name, rate=Fraction(fps).limit_denominator(1000))
        stream.pix_fmt = "yuv420p"
        stream.options = {"crf": "18"} if name == "libx264" else {"qscale": "3"}
        if name == "libx264":  # MPEG-4 takes no more than 65535 ticks a second
            stream.codec_context.time_base = Fraction(1, _TICKS)
        tick = stream.codec_context.time_base or 1 / Fraction(fps).limit_denominator(1000)
        add_sound = _sound(files, container, sound_of) if sound_of is not None else lambda until: None
        last = [-1]

        def write(frame: Array, seconds: float | None = None) -> None:
            frame = np.pad(frame, [(0, size % 2) for size in frame.shape[:2]] + [(0, 0)] * (frame.ndim - 2), "edge")
            if not stream.codec_context.is_open:
                stream.height, stream.width = frame.shape[:2]
            kind = "gray" if frame.ndim == 2 else "rgb24"
            picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format=kind)
            due = last[0] + max(round(1 / fps / tick), 1) if last[0] >= 0 else 0
            picture.pts = max(due if seconds is None else round(seconds / tick), last[0] + 1)
            picture.time_base = tick
            last[0] = picture.pts
            container.mux(stream.encode(picture))
            add_sound(float(picture.pts * tick) + 1 / fps)

        yield write
        container.mux(stream.encode())


def _sound(files: ExitStack, container: Any, source: Any) -> Any:
    """Return a function that adds the sound of a file up to a time."""
    av = import_av()
    clip = files.enter_context(av.open(str(source)))
    if not clip.streams.audio:
        return lambda until: None
    heard = clip.streams.audio[0]
    start = float(clip.streams.video[0].start_time or 0) * float(clip.streams.video[0].time_base)
    copied = heard.codec_context.name in _COPIED
    if copied:
        stream = container.add_stream_from_template(heard)
    else:
        layout = "mono" if heard.codec_context.layout.nb_channels == 1 else "stereo"
        stream = container.add_stream("aac", rate=heard.codec_context.sample_rate, layout=layout)
    parts = clip.demux(heard) if copied else clip.decode(heard)
    waiting: list[Any] = []

    def add(until: float) -> None:
        while True:
            part = waiting.pop() if waiting else next(parts, None)
            if part is None or part.pts is None:
                return
            if float(part.pts * part.time_base) - start > until:
                waiting.append(part)
                return
            part.pts -= round(start / part.time_base)
            if copied:
                part.dts = part.pts
                part.stream = stream
                container.mux(part)
            else:
                container.mux(stream.encode(part))

    if not copied:
        files.callback(lambda: container.mux(stream.encode()))
    return add


def write_image(path: str | os.PathLike, frame: Array) -> None:
    """Write one uint8 frame of shape (h, w) or (h, w, 3) as PNG."""
    import_pillow().fromarray(np.ascontiguousarray(frame)).save(path, format="PNG")
