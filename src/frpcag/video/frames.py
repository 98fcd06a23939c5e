"""Frames in: video files, streams, folders of images and arrays, read one by one; some of them held to learn from."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from frpcag.video.decode import STREAMS, decode_images, decode_video, image_files, import_pillow, opened_video

Array = np.ndarray

# Rec. 601 luma, what "grey" means to PyAV, Pillow and OpenCV.
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)
# A frame is new to a sample when it lies this many times as far from the frames held as frames usually do; such frames
# may fill this share of the sample.
_NEW, _NEW_SHARE = 4.0, 0.25
# Points of a frame that the sample compares, down and across.
_POINTS = (12, 16)


@dataclass(frozen=True)
class FrameSource:
    """Frames that can be read again and again, one at a time.

    Parameters
    ----------
    source : path or ndarray
        A video file in any container and codec that PyAV reads, the address of a stream (``rtsp://...``,
        ``http://...``), a folder of images (in natural order of their names), an npy or npz file or an array of shape
        (n_frames, h, w) or (n_frames, h, w, 3). Rotation tags are applied; interlaced video becomes progressive.
    max_frames : int, optional
        End after this many frames.
    every : int, default=1
        Keep one frame in every ``every``.
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
        if self._kind not in ("array", "stream") and not Path(self.source).exists():
            raise FileNotFoundError(f"there is no file or folder {self.source}; check the path.")

    def __iter__(self) -> Iterator[Array]:
        for _, frame in self.timed():
            yield frame

    def timed(self) -> Iterator[tuple[float, Array]]:
        """Yield the time of each frame, in seconds from the first one, and the frame."""
        shape, rate = None, self.fps * self.every
        for number, (seconds, frame) in enumerate(self._decoded()):
            if number % self.every:
                continue
            if self.max_frames is not None and number // self.every >= self.max_frames:
                return
            if shape not in (None, frame.shape[:2]) and not isinstance(self.resize, tuple):
                raise ValueError(
                    f"{self.name}: frame {number} is {_size(frame.shape)} but the first is {_size(shape)}; all "
                    f"frames must have one size: pass resize, such as --resize {shape[1]}x{shape[0]}, or cut the clip."
                )
            shape = frame.shape[:2]
            yield number / rate if seconds is None else seconds, self._shaped(frame)

    @property
    def name(self) -> str:
        """What to call the source in a message."""
        return "the array" if isinstance(self.source, np.ndarray) else str(self.source)

    @property
    def fps(self) -> float:
        """Frames per second as played, ``every`` counted in; 25 where the source does not say."""
        rate: Fraction | float | None = None
        if self._kind == "video":
            with opened_video(self.source) as container:
                rate = container.streams.video[0].average_rate
        return max(float(rate or 25) / self.every, 1.0)

    def count(self) -> int | None:
        """Return how many frames there will be, if that is known without decoding; damaged files have fewer."""
        total = None
        if self._kind == "array":
            total = len(self.source)
        elif self._kind == "folder":
            total = len(image_files(Path(self.source)))
        elif self._kind == "video":
            with opened_video(self.source) as container:
                stream = container.streams.video[0]
                total = stream.frames or None
                if total is None and container.duration and stream.average_rate:
                    total = int(container.duration / 1_000_000 * stream.average_rate)
        return None if total is None else min(-(-total // self.every), self.max_frames or total)

    def has_sound(self) -> bool:
        """Return whether the source is a file with sound."""
        if self._kind != "video":
            return False
        with opened_video(self.source) as container:
            return bool(container.streams.audio)

    @property
    def _kind(self) -> str:
        if isinstance(self.source, np.ndarray):
            return "array"
        if str(self.source).startswith(STREAMS):
            return "stream"
        if Path(self.source).is_dir():
            return "folder"
        return "stored" if Path(self.source).suffix.lower() in (".npy", ".npz") else "video"

    def _decoded(self) -> Iterator[tuple[float | None, Array]]:
        if self._kind in ("video", "stream"):
            return decode_video(self.source, color=self.color)
        if self._kind == "folder":
            return ((None, frame) for frame in decode_images(Path(self.source)))
        stored = self.source if self._kind == "array" else _stored_array(Path(self.source))
        return ((None, frame) for frame in _check_stack(stored, self.name))

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


def sample_frames(frames: Any, limit: int | None, *, callback=None) -> tuple[Array, Array, int]:
    """Return frames that cover a stream whose length need not be known, in bounded memory.

    Most are spread evenly: whenever too many are held, every second one is dropped and twice as many are skipped from
    then on. Up to a quarter are frames unlike all that were held when they came, such as a light that is on for some
    seconds of an hour.

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
        In the order of time.
    numbers : ndarray of int of shape (n_sampled,)
        Which frames they are.
    n_seen : int
        Length of the stream.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.video.frames import sample_frames
    >>> sample, numbers, n_seen = sample_frames(np.zeros((10, 1, 1)), 4)
    >>> numbers, n_seen
    (array([0, 4, 8]), 10)
    """
    even: dict[int, Array] = {}
    new: dict[int, Array] = {}
    room = 0 if limit is None else int(limit * _NEW_SHARE)
    usual: deque[float] = deque(maxlen=100)
    points = np.empty(0)  # of the frames held, from the time on at which some were dropped
    step, n_seen = 1, 0
    for frame in frames:
        if n_seen % step == 0:
            even[n_seen] = frame
            if limit is not None and len(even) > limit - room:
                step *= 2
                even = {number: held for number, held in even.items() if number % step == 0}
                points = np.stack([_points(held) for held in (*even.values(), *new.values())])
        if room and step > 1:
            here = _points(frame)
            off = float(np.abs(points - here).mean(axis=1).min())
            is_new = len(usual) > 8 and off > _NEW * max(float(np.median(usual)), 1e-30)
            if is_new and n_seen not in even and len(new) < room:
                new[n_seen] = frame
            if n_seen in even or n_seen in new:
                points = np.concatenate([points, here[None]])
            usual.append(off)
        n_seen += 1
        if callback is not None:
            callback(n_seen)
    if not even:
        raise ValueError(f"{getattr(frames, 'name', 'the clip')} holds no frame; there is nothing to separate.")
    held = dict(sorted({**new, **even}.items()))
    return np.stack(list(held.values())), np.array(list(held)), n_seen


def _points(frame: Array) -> Array:
    down, across = (max(1, size // points) for size, points in zip(frame.shape[:2], _POINTS, strict=True))
    return frame[::down, ::across].astype(np.float32).ravel()


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
    Image = import_pillow()
    planes = np.moveaxis(frame, 2, 0) if frame.ndim == 3 else frame[None]
    resized = [
        Image.fromarray(plane.astype(np.float32)).resize(target[::-1], Image.Resampling.BILINEAR) for plane in planes
    ]
    return _like(np.stack(resized, axis=2) if frame.ndim == 3 else np.asarray(resized[0]), frame.dtype)


def _like(values: Array, dtype: np.dtype) -> Array:
    return np.rint(values).astype(dtype) if dtype.kind in "ui" else values.astype(dtype)


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]} x {shape[0]}"
