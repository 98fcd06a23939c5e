"""frpcag video --camera 0: a page on this machine with the live picture, its background, its mask and boxes."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import typer

from frpcag import BackgroundSeparator
from frpcag.cli.errors import InputError
from frpcag.cli.video_outputs import check_size, grey_range, to_bytes
from frpcag.runtime.local_server import LocalHandler, LocalServer
from frpcag.video.boxes import boxes_of, draw_boxes
from frpcag.video.decode import decode_video, import_av, import_pillow
from frpcag.video.frames import FrameSource

Array = np.ndarray

# Frames to learn the background from: eight seconds at 25 a second, every second one.
LEARN_FRAMES, LEARN_EVERY = 100, 2
# How FFmpeg reaches the cameras of each system.
CAMERAS = {"linux": ("v4l2", "/dev/video{}"), "darwin": ("avfoundation", "{}"), "win32": ("dshow", "video={}")}
_BOX = ("frame", "x", "y", "w", "h", "area")
_PAGE = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>frpcag video</title>
<style>body{margin:0;background:#111;color:#ddd;font:14px sans-serif}img{display:block;width:100%}
header{display:grid;grid-template-columns:repeat(3,1fr);text-align:center}header b{padding:6px;font-weight:600}
p{margin:8px}</style>
<header><b>Picture</b><b>Background</b><b>Mask</b></header><img src="stream" alt="live picture"><p id="state"></p>
<script>
async function say() {
  const state = document.getElementById("state");
  try {
    const now = await (await fetch("status.json")).json();
    state.textContent = now.to_learn ? `learning the background, ${now.to_learn} frames to go`
      : `frame ${now.frame}, ${now.boxes} ${now.boxes === 1 ? "box" : "boxes"}`;
  } catch { state.textContent = "the stream has ended"; }
}
setInterval(say, 1000); say();
</script></html>"""


class LiveView:
    """Learns a background from the first frames of a stream, then follows it; holds the newest picture for viewers.

    Parameters
    ----------
    separator : BackgroundSeparator
        Fitted, or to be fitted to the first frames.
    learn_frames : int
        Frames to fit to.
    """

    def __init__(self, separator: BackgroundSeparator, *, learn_frames: int = LEARN_FRAMES) -> None:
        self.separator, self.learn_frames = separator, learn_frames
        self.n_seen, self.boxes, self.jpeg = 0, np.empty((0, 5), int), b""
        self.fresh, self.ended = threading.Condition(), False
        self._held: list[Array] = []
        self._range: tuple[float, float] | None = None

    def show(self, frame: Array) -> None:
        """Take the next frame of the stream."""
        if self._range is None:
            self._range = grey_range(frame)
        background, mask = np.zeros(frame.shape, np.float32), np.zeros(frame.shape[:2], bool)
        if hasattr(self.separator, "references_"):
            background, mask = self.separator.follow(frame)
        else:
            if self.n_seen % LEARN_EVERY == 0:
                self._held.append(frame)
            if len(self._held) >= self.learn_frames:
                self.separator.fit(np.stack(self._held))
                self._held = []
        boxes = boxes_of(mask)
        jpeg = _jpeg(frame, background, mask, boxes, self._range)
        with self.fresh:
            self.n_seen, self.boxes, self.jpeg = self.n_seen + 1, boxes, jpeg
            self.fresh.notify_all()

    def status(self) -> dict[str, int]:
        """Return the number of the newest frame, how many boxes it has, and how many frames are yet to learn from."""
        known = hasattr(self.separator, "references_")
        to_learn = 0 if known else max(LEARN_EVERY * (self.learn_frames - len(self._held)), 1)
        return {"frame": self.n_seen - 1, "boxes": len(self.boxes), "to_learn": to_learn}

    def named_boxes(self) -> list[dict[str, int]]:
        """Return the boxes of the newest frame."""
        with self.fresh:
            frame, boxes = self.n_seen - 1, self.boxes
        return [dict(zip(_BOX, (frame, *box), strict=True)) for box in boxes.tolist()]

    def end(self) -> None:
        """Say that no more frames come."""
        with self.fresh:
            self.ended = True
            self.fresh.notify_all()

    def pictures(self) -> Iterator[bytes]:
        """Yield the newest picture, each once, until the stream ends; a slow viewer misses some."""
        seen = 0
        while True:
            with self.fresh:
                while self.n_seen == seen and not self.ended:
                    self.fresh.wait()
                if self.n_seen == seen:
                    return
                seen, jpeg = self.n_seen, self.jpeg
            yield jpeg


class LiveServer(LocalServer):
    """Serves a view: the page at ``address``, below it MJPEG at ``stream``, and ``boxes.json`` and ``status.json``."""

    def __init__(self, view: LiveView, *, port: int = 0) -> None:
        super().__init__(_Handler, port=port)
        self.view = view


class _Handler(LocalHandler):
    server: LiveServer

    def do_GET(self) -> None:
        """Serve the page, and what it shows."""
        self.server.request_read(self.connection)
        if self.refused():
            return
        view = self.server.view
        if self.asks_for(""):
            self.answer(200, _PAGE, "text/html; charset=utf-8")
        elif self.asks_for("stream"):
            self._stream()
        elif self.asks_for("boxes.json"):
            self.answer_json(200, view.named_boxes())
        elif self.asks_for("status.json"):
            self.answer_json(200, view.status())
        else:
            self.answer_json(404, {"error": "there is nothing here; open the address that frpcag video printed."})

    def _stream(self) -> None:
        try:
            self.send_head(200, "multipart/x-mixed-replace; boundary=frame")
            for jpeg in self.server.view.pictures():
                head = f"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {len(jpeg)}\r\n\r\n"
                self.wfile.write(head.encode() + jpeg + b"\r\n")
        except OSError:
            pass  # the viewer has closed the page, or does not read


def serve(
    source: str | None,
    camera: int | None,
    *,
    port: int,
    model: Path | None,
    resize: Any,
    color: bool,
    max_frames: int | None,
    fit_frames: int,
    threshold: Any,
    n_jobs: int | None,
    quiet: bool,
) -> None:
    """Watch a camera, a stream or a file until it ends or Ctrl-C."""
    if camera is not None and source is not None:
        raise InputError(f"--camera={camera} and the clip {source} were both given; pass one of them.")
    separator = BackgroundSeparator(threshold=threshold, n_jobs=n_jobs)
    if model is not None:
        separator = BackgroundSeparator.load(model)
    view = LiveView(separator, learn_frames=min(fit_frames, LEARN_FRAMES))
    try:
        server = LiveServer(view, port=port)
    except OSError as error:
        raise InputError(f"--port={port} cannot be used ({error.strerror}); pass another one, or 0.") from error
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    name = source if camera is None else f"camera {camera}"
    try:
        for number, frame in enumerate(_frames(source, camera, resize, color)):
            if max_frames is not None and number >= max_frames:
                break
            if number == 0 and model is not None:
                check_size(separator, frame.shape, str(name), model.name)
            if number == 0 and not quiet:
                typer.echo(f"live picture at {server.address} (Ctrl-C ends it)")
            view.show(frame)
    except KeyboardInterrupt:
        pass
    finally:
        view.end()
        server.shutdown()
        server.end()
    if not quiet:
        typer.echo(f"{view.n_seen} frames shown")


def _frames(source: str | None, camera: int | None, resize: Any, color: bool) -> Iterator[Array]:
    shown = 0
    try:
        for shown, frame in enumerate(_read(source, camera, resize, color), start=1):  # noqa: B007
            yield frame
    except ValueError as error:
        # FFmpeg cannot tell the end of a stream of unknown length from a line that broke.
        if shown == 0 or not isinstance(error.__cause__, import_av().FFmpegError):
            raise
        typer.echo(f"the stream ended: {error.__cause__.strerror}", err=True)


def _read(source: str | None, camera: int | None, resize: Any, color: bool) -> Iterator[Array]:
    if camera is None:
        yield from FrameSource(source, resize=resize, color=color)
        return
    kind, name = CAMERAS.get(sys.platform, CAMERAS["linux"])
    shape = FrameSource(np.zeros((1, 1, 1), np.uint8), resize=resize, color=color)
    for _, frame in decode_video(name.format(camera), color=color, format=kind):
        yield shape._shaped(frame)


def _jpeg(frame: Array, background: Array, mask: Array, boxes: Array, low_high: tuple[float, float]) -> bytes:
    """Return picture with boxes, background and mask beside each other."""
    parts = [
        draw_boxes(to_bytes(frame, *low_high), boxes),
        to_bytes(background, *low_high),
        mask.astype(np.uint8) * np.uint8(255),
    ]
    parts = [np.repeat(part[..., None], 3, axis=2) if part.ndim == 2 else part for part in parts]
    out = io.BytesIO()
    import_pillow().fromarray(np.concatenate(parts, axis=1)).save(out, format="JPEG", quality=80)
    return out.getvalue()
