"""Video files and folders of images, decoded one frame at a time, upright and without interlacing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".pgm", ".ppm", ".webp")
# How an address of a stream begins.
STREAMS = ("rtsp://", "rtmp://", "http://", "https://", "udp://", "tcp://")
_NAMES = {(False, False): "gray", (True, False): "rgb24", (False, True): "gray16le", (True, True): "rgb48le"}


def import_av():
    """Return PyAV, or say what to install."""
    try:
        import av
    except ImportError as error:
        raise ImportError("video files need PyAV; install frpcag[video], or pass a folder of images.") from error
    return av


def import_pillow():
    """Return ``PIL.Image``."""
    from PIL import Image

    return Image


@contextmanager
def opened_video(source: Any) -> Iterator[Any]:
    """Open a video file or stream; what PyAV says becomes a ValueError."""
    av = import_av()
    try:
        with av.open(str(source)) as container:
            if not container.streams.video:
                raise ValueError(f"{source} has no video stream; pass a video file, a folder of images or an array.")
            if container.streams.video[0].codec_context is None:
                raise ValueError(f"{source}: the codec of its video is unknown here; convert it, to H.264 for one.")
            yield container
    except av.FFmpegError as error:
        why = "it is damaged, cut off or no video."
        if str(source).startswith(STREAMS):
            why = "check the address, and that it sends video."
        raise ValueError(f"{source} cannot be read as video ({error.strerror or error}); {why}") from error


def decode_video(source: Any, *, color: bool) -> Iterator[tuple[float | None, Array]]:
    """Yield the time in seconds, from the first frame on, and the picture of each frame.

    A rotation that the file asks players for is applied. Of an interlaced frame the first field is kept and the lines
    between are interpolated, because the two fields show two moments. Frames of more than 8 bits come as uint16.
    """
    with opened_video(source) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        deep = stream.codec_context.pix_fmt is not None and bool(re.search(r"1[0246](le|be)$", stream.pix_fmt or ""))
        start = None
        for frame in container.decode(stream):
            picture = frame.to_ndarray(format=_NAMES[color, deep])
            if getattr(frame, "interlaced_frame", False) and len(picture) > 2:
                picture = _first_field(picture)
            turns = round((getattr(frame, "rotation", 0) or 0) / 90)
            start = frame.time if start is None else start
            seconds = None if frame.time is None or start is None else frame.time - start
            yield seconds, np.rot90(picture, turns) if turns % 4 else picture


def _first_field(picture: Array) -> Array:
    picture = picture.copy()
    above = picture[0:-1:2].astype(np.float32)
    below = np.concatenate([picture[2::2], picture[-1:] if len(picture) % 2 else picture[-2:-1]])[: len(above)]
    picture[1::2] = np.rint((above + below) / 2).astype(picture.dtype)
    return picture


def image_files(folder: Path) -> list[Path]:
    """Return the images of a folder in the natural order of their names."""

    def natural(path: Path) -> list[Any]:
        return [int(part) if part.isdigit() else part.lower() for part in re.split(r"(\d+)", path.name)]

    files = sorted((path for path in folder.iterdir() if path.suffix.lower() in IMAGES), key=natural)
    if not files:
        raise ValueError(f"{folder} holds no image ({', '.join(IMAGES)}); pass a folder of frames.")
    return files


def decode_images(folder: Path) -> Iterator[Array]:
    """Yield the images of a folder, turned upright as their EXIF tags say."""
    Image = import_pillow()
    from PIL import ImageOps

    for path in image_files(folder):
        try:
            with Image.open(path) as image:
                if image.mode in ("P", "RGBA", "LA", "CMYK", "YCbCr"):
                    image = image.convert("RGB")
                frame = np.asarray(ImageOps.exif_transpose(image))
        except (OSError, SyntaxError, ValueError) as error:
            raise ValueError(f"{path} cannot be read as an image; it is damaged or cut off.") from error
        if frame.dtype == np.int32:  # how Pillow opens some 16-bit files
            frame = frame.astype(np.uint16)
        yield frame.astype(np.uint8) * np.uint8(255) if frame.dtype == np.bool_ else frame
