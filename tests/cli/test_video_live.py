"""frpcag video --live: a page on this machine, fed by a stream."""

import io
import json
import re
import socket
import threading
import urllib.error
import urllib.request

import numpy as np
import pytest
from PIL import Image

from frpcag import BackgroundSeparator
from frpcag.cli.video_live import LiveServer, LiveView
from frpcag.runtime import local_server
from frpcag.runtime.local_server import LocalHandler
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
    server = LiveServer(view)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield view, server
    view.end()
    server.shutdown()
    server.end()


def get(address, **headers):
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=30) as answer:
        return answer.headers["Content-Type"], answer.read()


def test_the_page_shows_picture_background_and_mask_and_names_the_boxes(served):
    view, server = served
    frames = walk(45)
    for frame in frames:
        view.show(frame)
    kind, page = get(server.address)
    assert kind.startswith("text/html")
    assert b'src="stream"' in page
    (box,) = json.loads(get(f"{server.address}boxes.json")[1])
    assert json.loads(get(f"{server.address}status.json")[1]) == {"frame": 44, "boxes": 1, "to_learn": 0}
    left = int(np.flatnonzero(frames[-1][12] == 220)[0])
    assert abs(box["x"] - left) <= 3
    assert abs(box["w"] - 12) <= 6
    view.end()
    kind, stream = get(f"{server.address}stream")
    assert kind.startswith("multipart/x-mixed-replace")
    picture = np.asarray(Image.open(io.BytesIO(stream[stream.index(b"\xff\xd8") :])))
    assert picture.shape == (32, 3 * 48, 3)
    mask = picture[:, 96:].mean(axis=2) > 127
    assert mask[10:18, left + 2 : left + 10].all()
    assert mask.mean() < 0.3


PLACES = ["", "stream", "boxes.json", "status.json"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}], ids=str
)
def test_other_names_and_other_sites_see_nothing(served, place, headers):
    _, server = served
    with pytest.raises(urllib.error.HTTPError, match="403"):
        get(server.address + place, **headers)


@pytest.mark.parametrize("place", PLACES)
def test_without_the_secret_there_is_no_picture(served, place):
    _, server = served
    assert server.server_address[0] == "127.0.0.1"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(f"http://127.0.0.1:{server.server_port}/{place}")


def test_a_viewer_who_does_not_read_is_hung_up_on(served, monkeypatch):
    view, server = served
    monkeypatch.setattr(LocalHandler, "timeout", 0.01)
    view.jpeg, view.n_seen = b"x" * 50_000_000, 1  # more than the sockets hold
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as deaf:
        deaf.sendall(f"GET /{server.secret}/stream HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode())
        assert deaf.recv(1) == b"H"
        with server._changed:
            assert server._changed.wait_for(lambda: not server._open, 30)


def test_viewers_are_counted(served, monkeypatch):
    _, server = served
    monkeypatch.setattr(local_server, "_MOST_CONNECTIONS", 1)
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as first:
        first.sendall(f"GET /{server.secret}/stream HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode())
        assert first.recv(1) == b"H"
        with pytest.raises(urllib.error.HTTPError, match="503"):
            get(server.address)


def test_a_port_in_use_is_one_line(frpcag, served):
    _, server = served
    result = frpcag("video", "--camera", 97, "--port", server.server_port)
    assert result.exit_code == 2
    assert f"--port={server.server_port} cannot be used" in result.stderr


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
    (address,) = re.findall(r"live picture at (\S+) ", result.stdout)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32,}/", address)
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
