"""The explorer's server among idle, slow, broken and hostile connections: it answers 4xx, stays small, and ends."""

import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading

import numpy as np
import pytest

from frpcag.report.requests import RequestHandler
from frpcag.report.server import HOST, ExplorerServer
from frpcag.runtime import local_server

WAIT = 30  # seconds after which a test gives up; none takes that long


class Quick:
    """A session that answers at once, or waits until it is told to go on."""

    def __init__(self):
        self.started, self.go_on, self.text = threading.Event(), threading.Event(), "<title>page</title>"

    def page(self):
        return self.text

    def solve(self, move, check):
        if move.get("wait"):
            self.started.set()
            assert self.go_on.wait(WAIT)  # as a kernel would, which asks nobody
        if move.get("nan"):
            return {"sections": float("nan")}
        return {"sections": {}}

    def diagnose(self, move, check):
        return {"sections": {}}


@pytest.fixture
def session():
    return Quick()


@pytest.fixture
def server(session):
    server = ExplorerServer(session)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    session.go_on.set()
    server.shutdown()
    server.end()
    thread.join(WAIT)
    assert not thread.is_alive()


def connect(port):
    return socket.create_connection((HOST, port), timeout=WAIT)


def say(server, request):
    """Send bytes as they are; return all that comes back."""
    with connect(server.server_port) as connection:
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # hung up on already: the answer is still there to read
        return read_all(connection)


def read_all(connection):
    out = b""
    try:
        while chunk := connection.recv(65536):
            out += chunk
    except ConnectionResetError:
        pass
    return out


def request(server, method="POST", path="solve", body=b"{}", **headers):
    lines = {
        "Host": f"{HOST}:{server.server_port}",
        "Content-Type": "application/json",
        "Content-Length": len(body),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    text = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value is not None)
    return f"{method} /{server.secret}/{path} HTTP/1.1\r\n{text}\r\n".encode("latin-1") + body


def status(answer):
    found = re.match(rb"HTTP/1\.0 (\d{3}) ", answer)
    assert found, answer[:80]
    return int(found[1])


MALFORMED = {
    "empty line": lambda server: b"\r\n\r\n",
    "garbage": lambda server: bytes(range(256)) + b"\r\n\r\n",
    "one word": lambda server: b"GET\r\n\r\n",
    "two words": lambda server: b"POST /\r\n\r\n",
    "version of words": lambda server: b"GET / HTTP/one\r\n\r\n",
    "version 2": lambda server: b"GET / HTTP/2.0\r\n\r\n",
    "version 9999": lambda server: b"GET / HTTP/" + b"9" * 50 + b".1\r\n\r\n",
    "endless first line": lambda server: b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    "endless header": lambda server: b"GET / HTTP/1.1\r\nHost: " + b"a" * 70_000 + b"\r\n\r\n",
    "200 headers": lambda server: b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n",
    "no headers": lambda server: b"POST / HTTP/1.1\r\n\r\n",
    "unknown method": lambda server: request(server, "BREW"),
    "other method": lambda server: request(server, "PUT"),
    "HEAD": lambda server: request(server, "HEAD"),
    "OPTIONS": lambda server: request(server, "OPTIONS"),
    "other path": lambda server: request(server, path="../../etc/passwd"),
    "path with a NUL": lambda server: request(server, path="solve\x00"),
    "absolute address": lambda server: request(server).replace(b" /", b" http://evil.example/", 1),
    "other name": lambda server: request(server, Host="evil.example"),
    "name of another port": lambda server: request(server, Host=f"{HOST}:1"),
    "no name": lambda server: request(server, Host=None),
    "two names": lambda server: request(server).replace(b"Host", b"Host: evil.example\r\nHost", 1),
    "no length": lambda server: request(server, Content_Length=None),
    "negative length": lambda server: request(server, Content_Length=-5),
    "length of words": lambda server: request(server, Content_Length="many"),
    "other digits": lambda server: request(server, Content_Length="\xb2"),
    "5000 digits": lambda server: request(server, Content_Length="9" * 5000),
    "two lengths": lambda server: request(server, Content_Length="2\r\nContent-Length: 2"),
    "chunks": lambda server: request(server, Content_Length=None, Transfer_Encoding="chunked"),
    "short body": lambda server: request(server, Content_Length=300),
    "huge body": lambda server: request(server, body=b"[" * 900_000),
    "body to a GET of nothing": lambda server: request(server, "GET", "nothing", body=b"x" * 900_000),
    "no JSON": lambda server: request(server, body=b"{"),
    "no UTF-8": lambda server: request(server, body=b'{"a": "\xff\xfe"}'),
    "deep JSON": lambda server: request(server, body=b"[" * 4000),
    "list": lambda server: request(server, body=b"[1, 2]"),
    "null": lambda server: request(server, body=b"null"),
    "text": lambda server: request(server, body=b'"solve"'),
    "other type": lambda server: request(server, Content_Type="text/plain"),
    "no type": lambda server: request(server, Content_Type=None),
    "ticket that is a truth": lambda server: request(server, path="diagnose", body=b'{"ticket": true}'),
    "ticket of text": lambda server: request(server, path="diagnose", body=b'{"ticket": "1"}'),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_requests_get_4xx_and_leave_the_terminal_alone(server, name, capfd, caplog):
    answer = say(server, MALFORMED[name](server))
    assert 400 <= status(answer) < 500
    assert status(say(server, request(server))) == 200
    assert capfd.readouterr() == ("", "")
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]


def test_random_bytes_get_4xx_or_the_page(server, capfd):
    draw = random.Random(0)
    good = [request(server), request(server, "GET", "", body=b""), request(server, path="diagnose")]
    seen = set()
    for _ in range(200):
        words = bytearray(draw.choice(good))
        for _ in range(draw.randrange(1, 6)):
            at = draw.randrange(len(words))
            words[at : at + draw.randrange(3)] = draw.randbytes(draw.randrange(4))
        answer = say(server, bytes(words))
        seen.add(status(answer))
    assert seen <= {200, *range(400, 500)}
    assert {200, 400, 403, 404} <= seen
    assert capfd.readouterr() == ("", "")


def test_an_answer_that_json_does_not_have_is_a_failure_of_ours(server, caplog):
    assert status(say(server, request(server, body=b'{"nan": 1}'))) == 500
    assert "JSON does not have" in caplog.text


def test_a_slow_request_is_hung_up_on(server, monkeypatch):
    monkeypatch.setattr(RequestHandler, "timeout", None)  # as if a byte came now and then
    monkeypatch.setattr(local_server, "_MOST_SECONDS", 0.0)
    with connect(server.server_port) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert read_all(slow) == b""


def test_a_client_that_does_not_send_is_timed_out(server, monkeypatch):
    monkeypatch.setattr(RequestHandler, "timeout", 0.01)
    with connect(server.server_port) as slow:
        slow.sendall(request(server, Content_Length=300))
        assert status(read_all(slow)) == 408


def test_a_long_request_can_be_sent_to_its_end_before_its_refusal_is_read(server):
    with socket.socket() as wordy:
        wordy.settimeout(WAIT)
        wordy.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # or the system would take all of it at once
        wordy.connect((HOST, server.server_port))
        wordy.sendall(request(server, body=b"[" * 900_000))
        assert status(read_all(wordy)) == 400


def test_a_connection_that_breaks_is_no_news_for_the_terminal(server, capfd):
    with connect(server.server_port) as broken:
        broken.sendall(b"GET /")
        broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, not an end
    assert status(say(server, request(server))) == 200  # came after it, so both have been accepted
    with server._changed:
        assert server._changed.wait_for(lambda: not server._open, WAIT)
    assert capfd.readouterr() == ("", "")


def test_a_body_that_does_not_come_is_hung_up_on(server, monkeypatch):
    monkeypatch.setattr(local_server, "_MOST_SECONDS", 0.0)
    with connect(server.server_port) as slow:
        slow.sendall(request(server, Content_Length=300))
        answer = read_all(slow)
    assert answer == b"" or status(answer) == 400


def test_work_is_not_hung_up_on(server, session, monkeypatch):
    rounds = threading.Semaphore(0)
    original = server.service_actions

    def count_rounds():
        original()
        rounds.release()

    with connect(server.server_port) as asking:
        asking.sendall(request(server, body=b'{"wait": 1}'))
        assert session.started.wait(WAIT)
        monkeypatch.setattr(local_server, "_MOST_SECONDS", 0.0)
        monkeypatch.setattr(server, "service_actions", count_rounds)
        assert rounds.acquire(timeout=WAIT)
        assert rounds.acquire(timeout=WAIT)
        session.go_on.set()
        assert status(read_all(asking)) == 200


def test_idle_connections_make_room(server):
    idle = [connect(server.server_port) for _ in range(100)]
    try:
        assert status(say(server, request(server))) == 200
        assert len(server._open) <= local_server._MOST_CONNECTIONS
        assert read_all(idle[0]) == b""  # the oldest has gone
    finally:
        for connection in idle:
            connection.close()


def test_one_connection_too_many_is_told_that_the_server_is_busy(server, session, monkeypatch):
    monkeypatch.setattr(local_server, "_MOST_CONNECTIONS", 1)
    with connect(server.server_port) as working:
        working.sendall(request(server, body=b'{"wait": 1}'))
        assert session.started.wait(WAIT)
        with connect(server.server_port) as late:
            assert status(read_all(late)) == 503
        session.go_on.set()
        assert status(read_all(working)) == 200


def open_all_kinds(port, secret):
    """Return connections that are idle, half-way, broken, and one that asks for the page and does not read it."""
    idle, slow, broken, deaf = (connect(port) for _ in range(4))
    slow.sendall(b"POST / HTTP/1.1\r\nContent-Le")
    broken.sendall(b"GET /")
    broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    broken.close()  # a reset, not an end
    deaf.sendall(f"GET /{secret}/ HTTP/1.1\r\nHost: {HOST}:{port}\r\n\r\n".encode())
    return [idle, slow, deaf]


def test_the_end_does_not_wait_for_connections(session, monkeypatch):
    monkeypatch.setattr(local_server, "_GRACE", 0.1)
    monkeypatch.setattr(RequestHandler, "timeout", None)
    session.text = "x" * 50_000_000  # more than the sockets hold: nobody reads it
    server = ExplorerServer(session)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    kinds = open_all_kinds(server.server_port, server.secret)
    assert kinds[-1].recv(1) == b"H"  # the page is on its way
    with connect(server.server_port) as asking:
        asking.sendall(request(server, body=b'{"wait": 1}'))
        assert session.started.wait(WAIT)
        server.shutdown()
        server.end()
        thread.join(WAIT)
        assert not thread.is_alive()
        for connection in kinds:
            assert len(read_all(connection)) < len(session.text)  # and every one was closed, or this would not return
            connection.close()
        session.go_on.set()


def test_idle_connections_cost_the_end_no_grace(server, monkeypatch):
    monkeypatch.setattr(local_server, "_MOST_SECONDS", 1e6)
    monkeypatch.setattr(local_server, "_GRACE", 1e6)
    monkeypatch.setattr(RequestHandler, "timeout", None)
    with connect(server.server_port) as idle, connect(server.server_port) as slow:
        slow.sendall(b"POST / HTTP/1.1\r\nContent-Le")
        assert status(say(server, request(server))) == 200  # came after them, so all have been accepted
        ending = threading.Thread(target=server.end, daemon=True)
        ending.start()
        ending.join(WAIT)
        assert not ending.is_alive()
        assert read_all(idle) == b""


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_one_signal_ends_the_command_among_open_connections(sent, code, tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(60, 12)))
    # A shell that starts a process in the background has it ignore Ctrl-C, which is inherited.
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    words = [sys.executable, "-c", f"{listen}from frpcag.cli.main import main; main()", "explore", "x.npy"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        found = re.search(r"127\.0\.0\.1:(\d+)/(\S+)/", line := process.stdout.readline())
        assert found, line
        kinds = open_all_kinds(int(found[1]), found[2])
        process.send_signal(sent)
        try:
            out, err = process.communicate(timeout=WAIT)
        finally:
            process.kill()
        for connection in kinds:
            connection.close()
    assert (process.returncode, err) == (code, "")
    assert out.strip() == ("ended" if sent == signal.SIGINT else "")
