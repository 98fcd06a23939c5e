"""Live and long video: time a frame on one core, ten minutes of a live stream, an hour-long clip in bounded memory.

    python benchmarks/video_live.py --speed          # 640 x 480, processor time a frame on one thread
    python benchmarks/video_live.py --soak 10        # minutes of `frpcag video http://...` on a generated stream
    python benchmarks/video_live.py --long 90000     # `frpcag video` on a generated clip of so many frames

Records go to results/video_live.json. The scene: a textured wall with noise, light that rises and falls by 12 grey
levels in five minutes, a bright square that walks. The soak reads the memory of the live process from /proc (Linux).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic, perf_counter, process_time, sleep

import numpy as np
from machine import RESULTS, write_result

FRPCAG = (sys.executable, "-c", "from frpcag.cli.main import main; main()")
FPS, LEARN = 5, 60
SOAK_SIZE, LONG_SIZE = (480, 640), (120, 160)


class Scene:
    """Frames of a walk in front of a wall whose light changes slowly; ``at(t)`` is frame ``t``."""

    def __init__(self, size: tuple[int, int], *, fps: float, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        h, w = self.size = size
        rough = rng.normal(0, 12, (h // 8 + 1, w // 8 + 1)).repeat(8, axis=0).repeat(8, axis=1)[:h, :w]
        self.wall = (110 + rough + np.linspace(-20, 20, w)).astype(np.float32)
        self.noise = rng.normal(0, 2, (7, h, w)).astype(np.float32)
        self.side, self.fps = h // 5, fps

    def place(self, t: int) -> tuple[int, int]:
        """Return row and column of the square: it crosses the picture in 16 seconds, each time somewhat lower."""
        step, (h, w) = t / self.fps, self.size
        free = h - self.side
        return int(step / 16 * free / 5) % free, int(step / 16 * w) % (w - self.side)

    def at(self, t: int) -> np.ndarray:
        light = 12 * np.sin(2 * np.pi * t / self.fps / 300)
        shift = 37 * t % self.size[1]
        frame = self.wall + np.float32(light) + np.roll(self.noise[t % len(self.noise)], shift, axis=1)
        y, x = self.place(t)
        frame[y : y + self.side, x : x + self.side] = 225
        return np.clip(frame, 0, 255).astype(np.uint8)


def measure_speed(n: int) -> dict:
    """Return milliseconds of processor time a frame, of one thread."""
    from frpcag import BackgroundSeparator
    from frpcag.cli.video_live import LiveView

    scene = Scene(SOAK_SIZE, fps=25)
    model = BackgroundSeparator(n_jobs=1).fit(np.stack([scene.at(25 * t) for t in range(40)]))
    frames = [scene.at(1000 + t) for t in range(n)]
    view = LiveView(model)
    out: dict = {"size": list(SOAK_SIZE), "frames": n, "references": len(model.references_)}
    for name, step in (("transform", model.transform), ("follow", model.follow), ("live page", view.show)):
        step(frames[0])
        start, cpu = perf_counter(), process_time()
        for frame in frames:
            step(frame)
        out[name] = {"cpu_ms": 1000 * (process_time() - cpu) / n, "ms": 1000 * (perf_counter() - start) / n}
    return out


def stream_server(minutes: float, size: tuple[int, int]) -> ThreadingHTTPServer:
    """Return a server that gives any viewer an MPEG stream of the scene, as fast as a camera of 5 frames a second."""
    import av

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "video/mp2t")
            self.send_header("Connection", "close")  # the end of the stream is then no error
            self.end_headers()
            scene, start = Scene(size, fps=FPS), monotonic()
            with av.open(self.wfile, "w", format="mpegts") as container:
                stream = container.add_stream("mpeg2video", rate=25)  # MPEG-2 knows no slower rate
                stream.height, stream.width, stream.pix_fmt, stream.bit_rate = *size, "yuv420p", 8_000_000
                for t in range(int(60 * FPS * minutes)):
                    sleep(max(0.0, start + t / FPS - monotonic()))
                    picture = av.VideoFrame.from_ndarray(scene.at(t), format="gray").reformat(format="yuv420p")
                    picture.pts = t
                    container.mux(stream.encode(picture))
                container.mux(stream.encode())

        def log_message(self, *_) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def measure_soak(minutes: float) -> dict:
    """Watch the live tool for some minutes: memory, processor time, frames shown, boxes, what it says at the end."""
    server = stream_server(minutes, SOAK_SIZE)
    address = f"http://127.0.0.1:{server.server_address[1]}/"
    command = [*FRPCAG, "video", address, "--port", "0", "--fit-frames", str(LEARN), "--jobs=1"]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    start = monotonic()
    live = subprocess.Popen(command, env=one_thread, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    page = live.stdout.readline().split(" at ")[1].split()[0]
    pictures = [0]
    threading.Thread(target=count_pictures, args=(page, pictures), daemon=True).start()
    readings = []
    while live.poll() is None:
        sleep(5)
        try:
            with urllib.request.urlopen(f"{page}boxes.json", timeout=20) as answer:
                boxes = json.load(answer)
            readings.append({"s": round(monotonic() - start), "boxes": len(boxes), **status(live.pid)})
        except OSError:
            break  # the stream has ended
    said, errors = live.communicate(timeout=120)
    server.shutdown()
    learned = [row for row in readings if row["s"] > 60 + 2 * LEARN / FPS]  # the fit and its peak are over
    half = [row["mb"] for row in learned[len(learned) // 2 :]]
    return {
        "minutes": minutes,
        "size": list(SOAK_SIZE),
        "frames_a_second": FPS,
        "exit_code": live.returncode,
        "errors": errors,
        "said": said.strip().splitlines(),
        "pictures_seen": pictures[0],
        "cpu_seconds": readings[-1]["cpu_seconds"],
        "mb_after_learning": learned[0]["mb"],
        "mb_halfway": half[0],
        "mb_end": half[-1],
        "mb_largest": max(row["mb"] for row in readings),
        "share_of_readings_with_one_box": float(np.mean([row["boxes"] == 1 for row in learned])),
        "most_boxes": max(row["boxes"] for row in learned),
        "readings": readings[::6],
    }


def count_pictures(page: str, pictures: list[int]) -> None:
    """Count the pictures of the live page as a browser gets them."""
    with urllib.request.urlopen(f"{page}stream") as answer:
        while line := answer.readline():
            pictures[0] += line.startswith(b"--frame")


def status(pid: int) -> dict[str, float]:
    """Return the memory that a process holds, and the processor time it has taken."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    held = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    ticks = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return {"mb": held / 1024, "cpu_seconds": sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")}


def measure_long(n_frames: int) -> dict:
    """Separate a generated clip of some length; return the largest memory and the time."""
    with tempfile.TemporaryDirectory() as folder:
        clip, run = Path(folder) / "clip.mp4", Path(folder) / "run"
        write_clip(clip, n_frames)
        command = [*FRPCAG, "video", str(clip), "--json", "--no-side-by-side", "--output", str(run)]
        start = perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        largest = 0.0
        while child.poll() is None:
            try:
                largest = max(largest, status(child.pid)["mb"])
            except (OSError, StopIteration):
                break
            sleep(0.2)
        said, _ = child.communicate()
        record = json.loads(said)
        return {
            "frames": n_frames,
            "size": list(LONG_SIZE),
            "clip_mb": clip.stat().st_size / 2**20,
            "megabytes": largest,
            "seconds": perf_counter() - start,
            "timings": record["timings"],
            "fitted_frames": record["fitted_frames"],
            "foreground": record["foreground"],
            "separator_kb": (run / "separator.npz").stat().st_size / 1024,
            "boxes_mb": (run / "boxes.json").stat().st_size / 2**20,
        }


def write_clip(path: Path, n_frames: int) -> None:
    import av

    scene = Scene(LONG_SIZE, fps=25)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.height, stream.width, stream.pix_fmt, stream.options = *LONG_SIZE, "yuv420p", {"qscale": "4"}
        for t in range(n_frames):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(scene.at(t), format="gray")))
        container.mux(stream.encode())


def save(name: str, record: dict) -> None:
    path = RESULTS / "video_live.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    kept.pop("machine", None)
    if name == "long":
        record = {**kept.get("long", {}), str(record["frames"]): record}
    write_result("video_live", {**kept, name: record})
    print(json.dumps(record if name != "soak" else {**record, "readings": "..."}, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--soak", type=float, metavar="MINUTES")
    parser.add_argument("--long", type=int, metavar="FRAMES")
    asked = parser.parse_args()
    if asked.speed:
        save("speed", measure_speed(100))
    if asked.soak:
        save("soak", measure_soak(asked.soak))
    if asked.long:
        save("long", measure_long(asked.long))
