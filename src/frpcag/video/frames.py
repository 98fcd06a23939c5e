"""Frames in and out: video files through PyAV, folders of images through Pillow, arrays; decoded one by one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".pgm", ".ppm", ".webp")
# Rec. 601 luma, what "grey" means to PyAV, Pillow and OpenCV.
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)
_ENCODERS = ("libx264", "mpeg4")


@dataclass(frozen=True)
class FrameSource:
    """Frames that can be read again and again, one at a time.

    Parameters
    ----------
    source : path or ndarray
        A video file in any container and codec that PyAV reads, a folder of images (in natural order of their
        names), an npy or npz file or an array of shape (n_frames, h, w) or (n_frames, h, w, 3).
    max_frames : int, optional
        End after this many frames.
    every : int, default=1
        Take every so manieth frame.
    resize : (height, width) or float, optional
        Size to bring the frames to, or a factor.
    color : bool, default=False
        Give frames of shape (h, w, 3) instead of (h, w).

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.video.frames import FrameSource
    >>> clip = np.zeros((10, 4, 6), np.uint8)
    >>> [frame.shape for frame in FrameSource(clip, every=4, resize=0.5)]
    [(2, 3), (2, 3), (2, 3)]
    """

    source: Any
    max_frames: int | None = None
    every: int = 1
    resize: tuple[int, int] | float | None = None
    color: bool = False

    def __post_init__(self) -> None:
        for name in ("max_frames", "every"):
            value = getattr(self, name)
            if value is not None and (int(value) != value or value < 1):
                raise ValueError(f"{name}={value!r} must be an integer >= 1.")
        sizes = self.resize if isinstance(self.resize, tuple) else (self.resize,)
        if any(size is not None and not size > 0 for size in sizes):
            raise ValueError(f"resize={self.resize!r} must be (height, width) or a factor, all positive.")
        if not isinstance(self.source, np.ndarray) and not Path(self.source).exists():
            raise FileNotFoundError(f"there is no file or folder {self.source}; check the path.")

    def __iter__(self) -> Iterator[Array]:
        shape = None
        for number, frame in enumerate(self._decoded()):
            if number % self.every:
                continue
            if self.max_frames is not None and number // self.every >= self.max_frames:
                return
            if shape is not None and frame.shape[:2] != shape:
                raise ValueError(
                    f"{self.name}: frame {number} is {_size(frame.shape)} but the first is {_size(shape)}; all "
                    "frames must have one size: bring them to it first, or cut the clip."
                )
            shape = frame.shape[:2]
            yield self._shaped(frame)

    @property
    def name(self) -> str:
        """What to call the source in a message."""
        return "the array" if isinstance(self.source, np.ndarray) else str(self.source)

    @property
    def fps(self) -> float:
        """Frames per second as played, ``every`` counted in; 25 where the source does not say."""
        rate: Fraction | float | None = None
        if self._is_video():
            with _opened(Path(self.source)) as container:
                rate = container.streams.video[0].average_rate
        return max(float(rate or 25) / self.every, 1.0)

    def count(self) -> int | None:
        """Return how many frames there will be, if that is known without decoding; damaged files have fewer."""
        total = None
        if isinstance(self.source, np.ndarray):
            total = len(self.source)
        elif Path(self.source).is_dir():
            total = len(_image_files(Path(self.source)))
        elif self._is_video():
            with _opened(Path(self.source)) as container:
                stream = container.streams.video[0]
                total = stream.frames or None
                if total is None and container.duration and stream.average_rate:
                    total = int(container.duration / 1_000_000 * stream.average_rate)
        if total is not None:
            total = -(-total // self.every)
            total = total if self.max_frames is None else min(total, self.max_frames)
        return total

    def _is_video(self) -> bool:
        if isinstance(self.source, np.ndarray):
            return False
        path = Path(self.source)
        return not path.is_dir() and path.suffix.lower() not in (".npy", ".npz")

    def _decoded(self) -> Iterator[Array]:
        if isinstance(self.source, np.ndarray):
            yield from _check_stack(self.source, self.name)
        elif Path(self.source).is_dir():
            yield from _images(Path(self.source))
        elif self._is_video():
            yield from _video(Path(self.source), color=self.color)
        else:
            yield from _check_stack(_stored_array(Path(self.source)), self.name)

    def _shaped(self, frame: Array) -> Array:
        if frame.ndim == 3 and not self.color:
            frame = _like(frame[..., :3] @ _LUMA, frame.dtype)
        if frame.ndim == 2 and self.color:
            frame = np.repeat(frame[:, :, None], 3, axis=2)
        return frame if self.resize is None else _resized(frame, self.resize)


def read_frames(source: Any, **options: Any) -> Array:
    """Return all frames of a source at once.

    Parameters
    ----------
    source : path or ndarray
        As in :class:`FrameSource`.
    **options
        ``max_frames``, ``every``, ``resize`` and ``color`` of :class:`FrameSource`.

    Returns
    -------
    ndarray of shape (n_frames, h, w) or (n_frames, h, w, 3)

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.video.frames import read_frames
    >>> read_frames(np.zeros((10, 4, 6), np.uint8), max_frames=3).shape
    (3, 4, 6)
    """
    frames, _, _ = sample_frames(FrameSource(source, **options), None)
    return frames


def sample_frames(frames: Any, limit: int | None, *, callback=None) -> tuple[Array, int, int]:
    """Return frames spread evenly over a stream whose length need not be known, in bounded memory.

    Whenever more than ``limit`` frames are held, every second one is dropped and twice as many are skipped from then
    on.

    Parameters
    ----------
    frames : iterable of ndarray
        All of one shape.
    limit : int or None
        Hold at most this many; None holds all.
    callback : callable, optional
        Called with the number of frames seen.

    Returns
    -------
    sample : ndarray of shape (n_sampled, ...)
        The frames at 0, ``step``, 2 ``step``, ...
    step : int
        A power of two; 1 when every frame is held.
    n_seen : int
        Length of the stream.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.video.frames import sample_frames
    >>> sample, step, n_seen = sample_frames(np.arange(10).reshape(10, 1, 1), 4)
    >>> sample.ravel(), step, n_seen
    (array([0, 4, 8]), 4, 10)
    """
    held: list[Array] = []
    step, n_seen = 1, 0
    for frame in frames:
        if n_seen % step == 0:
            held.append(frame)
            if limit is not None and len(held) > limit:
                held, step = held[::2], 2 * step
        n_seen += 1
        if callback is not None:
            callback(n_seen)
    if not held:
        raise ValueError(f"{getattr(frames, 'name', 'the clip')} holds no frame; there is nothing to separate.")
    return np.stack(held), step, n_seen


@contextmanager
def video_writer(path: str | os.PathLike, *, fps: float = 25.0) -> Iterator[Any]:
    """Give a function that appends a uint8 frame of shape (h, w) or (h, w, 3) to an mp4 file.

    Parameters
    ----------
    path : path
        File to write.
    fps : float, default=25.0
        Frames per second.

    Yields
    ------
    callable
        Takes one frame. Odd sizes are padded by a repeated row or column, as 4:2:0 video needs.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from frpcag.video.frames import read_frames, video_writer
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "clip.mp4")
    ...     with video_writer(path, fps=10) as write:
    ...         for level in (0, 100, 200):
    ...             write(np.full((16, 16), level, np.uint8))
    ...     read_frames(path).mean(axis=(1, 2)).round(-1)
    array([  0., 100., 200.])
    """
    av = _av()
    name = next((name for name in _ENCODERS if name in av.codecs_available), None)
    if name is None:
        raise ImportError(f"this PyAV has none of the encoders {', '.join(_ENCODERS)}; install the wheel of av.")
    with av.open(str(path), "w") as container:
        stream = container.add_stream(name, rate=Fraction(fps).limit_denominator(1000))
        stream.pix_fmt = "yuv420p"
        stream.options = {"crf": "18"} if name == "libx264" else {"qscale": "3"}

        def write(frame: Array) -> None:
            frame = np.pad(frame, [(0, size % 2) for size in frame.shape[:2]] + [(0, 0)] * (frame.ndim - 2), "edge")
            if not stream.codec_context.is_open:
                stream.height, stream.width = frame.shape[:2]
            kind = "gray" if frame.ndim == 2 else "rgb24"
            picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format=kind)
            container.mux(stream.encode(picture))

        yield write
        container.mux(stream.encode())


def write_image(path: str | os.PathLike, frame: Array) -> None:
    """Write one uint8 frame of shape (h, w) or (h, w, 3) as PNG."""
    _pillow().fromarray(np.ascontiguousarray(frame)).save(path, format="PNG")


def _av():
    try:
        import av
    except ImportError as error:
        raise ImportError("video files need PyAV; install frpcag[video], or pass a folder of images.") from error
    return av


def _pillow():
    from PIL import Image

    return Image


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a video file; what PyAV says becomes a ValueError."""
    av = _av()
    try:
        with av.open(str(path)) as container:
            if not container.streams.video:
                raise ValueError(f"{path} has no video stream; pass a video file, a folder of images or an array.")
            if container.streams.video[0].codec_context is None:
                raise ValueError(f"{path}: the codec of its video is unknown here; convert it, to H.264 for one.")
            yield container
    except av.FFmpegError as error:
        raise ValueError(
            f"{path} cannot be read as video ({error.strerror or error}); it is damaged, cut off or no video."
        ) from error


def _video(path: Path, *, color: bool) -> Iterator[Array]:
    with _opened(path) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        deep = stream.codec_context.pix_fmt is not None and bool(re.search(r"1[0246](le|be)$", stream.pix_fmt or ""))
        kind = {(False, False): "gray", (True, False): "rgb24", (False, True): "gray16le", (True, True): "rgb48le"}
        for frame in container.decode(stream):
            yield frame.to_ndarray(format=kind[color, deep])


def _image_files(folder: Path) -> list[Path]:
    def natural(path: Path) -> list[Any]:
        return [int(part) if part.isdigit() else part.lower() for part in re.split(r"(\d+)", path.name)]

    files = sorted((path for path in folder.iterdir() if path.suffix.lower() in IMAGES), key=natural)
    if not files:
        raise ValueError(f"{folder} holds no image ({', '.join(IMAGES)}); pass a folder of frames.")
    return files


def _images(folder: Path) -> Iterator[Array]:
    Image = _pillow()
    for path in _image_files(folder):
        try:
            with Image.open(path) as image:
                if image.mode in ("P", "RGBA", "LA", "CMYK", "YCbCr"):
                    image = image.convert("RGB")
                frame = np.asarray(image)
        except (OSError, SyntaxError, ValueError) as error:
            raise ValueError(f"{path} cannot be read as an image; it is damaged or cut off.") from error
        if frame.dtype == np.int32:  # how Pillow opens some 16-bit files
            frame = frame.astype(np.uint16)
        yield frame.astype(np.uint8) * np.uint8(255) if frame.dtype == np.bool_ else frame


def _stored_array(path: Path) -> Array:
    """Return the frames of an npy file, mapped rather than loaded, or of an npz file."""
    try:
        stored = np.load(path, allow_pickle=False, mmap_mode="r")
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path} cannot be read as an array; it is damaged, pickled or cut off.") from error
    if isinstance(stored, np.ndarray):
        return stored
    with stored:
        stacks = [name for name in stored.files if name == "frames"] or stored.files
        if len(stacks) != 1:
            raise ValueError(f"{path} holds {len(stacks)} arrays; name the one with the frames 'frames'.")
        return stored[stacks[0]]


def _check_stack(frames: Array, name: str) -> Array:
    if frames.ndim not in (3, 4) or (frames.ndim == 4 and frames.shape[3] != 3) or frames.dtype.kind not in "uifb":
        raise ValueError(
            f"{name} has shape {frames.shape} and dtype {frames.dtype}; frames must be numbers of shape "
            "(n_frames, h, w) or (n_frames, h, w, 3)."
        )
    return frames


def _resized(frame: Array, size: tuple[int, int] | float) -> Array:
    """Return the frame at another size: area averages down, bilinear up."""
    h, w = frame.shape[:2]
    target = size if isinstance(size, tuple) else (max(round(h * size), 1), max(round(w * size), 1))
    if target == (h, w):
        return frame
    Image = _pillow()
    planes = [frame[..., c] for c in range(3)] if frame.ndim == 3 else [frame]
    resized = [
        np.asarray(
            Image.fromarray(plane.astype(np.float32)).resize(target[::-1], Image.Resampling.BILINEAR), np.float32
        )
        for plane in planes
    ]
    return _like(np.stack(resized, axis=2) if frame.ndim == 3 else resized[0], frame.dtype)


def _like(values: Array, dtype: np.dtype) -> Array:
    return np.rint(values).astype(dtype) if dtype.kind in "ui" else values.astype(dtype)


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]} x {shape[0]}"
