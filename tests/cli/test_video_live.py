"""frpcag video --live: a page on this machine, fed by a stream."""

import io
import json
import threading
import urllib.request

import numpy as np
import pytest
from PIL import Image

from frpcag import BackgroundSeparator
from frpcag.cli.video_live import LiveView, live_server
from frpcag.video.encode import video_writer

pytest.importorskip("av")


def walk(n, h=32, w=48):
    rng = np.random.default_rng(0)
    frames = np.clip(rng.normal(100, 3, (n, h, w)), 0, 255).astype(np.uint8)
    for frame in frames:
        left = rng.integers(0, w - 12)
        frame[8:20, left : left + 12] = 220
    return frames


@pytest.fixture
def served():
    view = LiveView(BackgroundSeparator(), learn_frames=20)
    server = live_server(view, 0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield view, f"http://127.0.0.1:{server.server_address[1]}"
    view.end()
    server.shutdown()
    server.server_close()


def get(address):
    with urllib.request.urlopen(address, timeout=30) as answer:
        return answer.headers["Content-Type"], answer.read()


def test_the_page_shows_picture_background_and_mask_and_names_the_boxes(served):
    view, address = served
    frames = walk(45)
    for frame in frames:
        view.show(frame)
    kind, page = get(address)
    assert kind.startswith("text/html")
    assert b"/stream" in page
    (box,) = json.loads(get(f"{address}/boxes.json")[1])
    assert json.loads(get(f"{address}/status.json")[1]) == {"frame": 44, "boxes": 1, "to_learn": 0}
    left = int(np.flatnonzero(frames[-1][12] == 220)[0])
    assert abs(box["x"] - left) <= 3
    assert abs(box["w"] - 12) <= 6
    view.end()
    kind, stream = get(f"{address}/stream")
    assert kind.startswith("multipart/x-mixed-replace")
    picture = np.asarray(Image.open(io.BytesIO(stream[stream.index(b"\xff\xd8") :])))
    assert picture.shape == (32, 3 * 48, 3)
    mask = picture[:, 96:].mean(axis=2) > 127
    assert mask[10:18, left + 2 : left + 10].all()
    assert mask.mean() < 0.3


def test_the_server_is_open_to_this_machine_alone(served):
    view, _ = served
    server = live_server(view, 0)
    assert server.server_address[0] == "127.0.0.1"
    server.server_close()


def test_what_a_viewer_holds_does_not_grow(served):
    view, _ = served
    for frame in walk(60):
        view.show(frame)
    assert view._held == []
    assert view.separator.drift_.shape == (32, 48)
    assert view.n_seen == 60


def test_the_command_watches_a_stream_over_http_until_it_ends(frpcag, working_folder):
    with video_writer(working_folder / "walk.mp4") as write:
        for frame in walk(50):
            write(frame)
    import functools
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(working_folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/walk.mp4"
        result = frpcag("video", address, "--port", 0, "--fit-frames", 10)
        server.shutdown()
    assert result.exit_code == 0, result.stderr
    assert "live picture at http://127.0.0.1:" in result.stdout
    assert "50 frames shown" in result.stdout


def test_a_stream_that_breaks_off_ends_the_view_with_one_line(frpcag, working_folder):
    with video_writer(working_folder / "walk.mp4") as write:
        for frame in walk(50):
            write(frame)
    av = pytest.importorskip("av")
    with av.open(str(working_folder / "walk.mp4")) as clip, av.open(str(working_folder / "walk.ts"), "w") as stream:
        copy = stream.add_stream_from_template(clip.streams.video[0])
        for packet in clip.demux(clip.streams.video[0]):
            if packet.dts is not None:
                packet.stream = copy
                stream.mux(packet)
    sent = (working_folder / "walk.ts").read_bytes()
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Camera(BaseHTTPRequestHandler):
        def do_GET(self):  # no length: the viewer cannot know where the stream ends
            self.send_response(200)
            self.send_header("Content-Type", "video/mp2t")
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Camera) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        result = frpcag("video", f"http://127.0.0.1:{server.server_address[1]}/", "--port", 0, "--fit-frames", 10)
        server.shutdown()
    assert result.exit_code == 0, result.stderr
    assert "the stream ended" in result.stderr
    shown = int(result.stdout.split("\n")[1].split()[0])
    assert 40 <= shown <= 50  # the decoder holds a few


def test_a_camera_that_is_not_there_is_one_line(frpcag):
    result = frpcag("video", "--camera", 97, "--port", 0)
    assert result.exit_code == 2
    assert "cannot be read as video" in result.stderr
    assert "check the number of the camera" in result.stderr
    assert result.stdout == ""  # no page to look at


def test_a_stream_that_is_not_there_says_what_to_check(frpcag):
    result = frpcag("video", "rtsp://127.0.0.1:1/none", "--port", 0)
    assert result.exit_code == 2
    assert "check the address" in result.stderr


def test_a_stream_of_another_size_than_the_model_says_how_to_resize_it(frpcag, working_folder):
    BackgroundSeparator().fit(walk(8)).save("model.npz")
    np.save("large.npy", np.zeros((3, 40, 50), np.uint8))
    result = frpcag("video", "large.npy", "--live", "--port", 0, "--model", "model.npz")
    assert result.exit_code == 2
    assert "pass --resize 48x32" in result.stderr


def test_neither_clip_nor_camera_is_refused(frpcag):
    result = frpcag("video")
    assert result.exit_code == 2
    assert "--camera 0" in result.stderr
