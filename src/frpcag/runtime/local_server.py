"""An HTTP server for the pages of one person: this machine only, a secret address, bounded connections."""

from __future__ import annotations

import json
import logging
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition
from time import monotonic
from typing import Any

logger = logging.getLogger(__name__)

HOST, HOSTS = "127.0.0.1", ("127.0.0.1", "localhost")
# Connections at a time: a browser opens six to a server.
_MOST_CONNECTIONS = 32
# Seconds that a request may take to come in, and that the last answers get when the server ends.
_MOST_SECONDS, _GRACE = 10.0, 2.0
_BUSY = b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
# Bytes of a refused request that are read and thrown away, and for how many seconds.
_MOST_DISCARDED, _DISCARD_SECONDS = 2**20, 2.0
# What http.server calls a fault of the server, and is one of the request.
_CLIENT_FAULTS = {501: 405, 505: 400}


class LocalServer(ThreadingHTTPServer):
    """Answers at ``address``, to pages of its own only.

    It listens on 127.0.0.1. The address holds a secret, so that other users of this machine and other web sites cannot
    guess it. Requests are refused whose ``Host`` is another name (rebound DNS), or whose ``Origin`` or
    ``Sec-Fetch-Site`` say that they come from another site. A connection carries one request, which must come in within
    ten seconds; when 32 are open, the oldest that has not sent its request makes room for the next.

    Parameters
    ----------
    handler : type of LocalHandler
        What answers a request.
    port : int, default=0
        Where to listen; 0 picks a free one.
    """

    daemon_threads, block_on_close = True, False  # end() waits for them itself, and not for ever
    request_queue_size = 128

    def __init__(self, handler: type[LocalHandler], *, port: int = 0) -> None:
        super().__init__((HOST, port), handler)
        self.secret = secrets.token_urlsafe(24)
        self._ending = False
        # When each connection was opened, and those whose request is still coming in.
        self._open: dict[socket.socket, float] = {}
        self._reading: set[socket.socket] = set()
        self._changed = Condition()

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_port}/{self.secret}/"

    def run(self, ready: Callable[[], None]) -> None:
        """Call ``ready``, serve until Ctrl-C, then end cleanly."""
        try:
            ready()  # in here: whoever reads that it serves may end it at once
            self.serve_forever(poll_interval=0.1)
        except KeyboardInterrupt:
            logger.info("interrupted")
        finally:
            self.end()

    def end(self) -> None:
        """Stop the work under way and close; call from a thread other than the one that serves, or after it.

        Whoever has not sent a request is hung up on; answers under way get two seconds.
        """
        self._ending = True
        self.server_close()
        with self._changed:
            for request in self._reading:
                _hang_up(request, socket.SHUT_RD)
            if not self._changed.wait_for(lambda: not self._open, _GRACE):
                for request in self._open:
                    _hang_up(request, socket.SHUT_RDWR)
                self._changed.wait_for(lambda: not self._open, _GRACE)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread of its own, if there is room for it."""
        with self._changed:
            if len(self._open) >= _MOST_CONNECTIONS:
                waiting = [other for other in self._open if other in self._reading]
                if not waiting:
                    request.setblocking(False)
                    with suppress(OSError):
                        request.send(_BUSY)
                    super().shutdown_request(request)
                    return
                self._drop(waiting[0])
            self._open[request] = monotonic()
            self._reading.add(request)
        super().process_request(request, client_address)

    def request_read(self, request: socket.socket) -> None:
        """Note that all of a request has come: from here on its answer takes the time it takes."""
        with self._changed:
            self._reading.discard(request)

    def service_actions(self) -> None:
        """Hang up on those whose request takes too long; called between connections."""
        now = monotonic()
        with self._changed:
            for request in [other for other in self._reading if now - self._open[other] > _MOST_SECONDS]:
                self._drop(request)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        super().shutdown_request(request)
        with self._changed:
            self._open.pop(request, None)
            self._reading.discard(request)
            self._changed.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log what broke a connection; a client that leaves is no news for the terminal."""
        logger.debug("a connection from %s broke", client_address, exc_info=True)

    def _drop(self, request: socket.socket) -> None:
        """Hang up, and let the thread that reads find out; call with ``_changed`` held."""
        self._reading.discard(request)
        self._open.pop(request, None)
        _hang_up(request, socket.SHUT_RDWR)


class LocalHandler(BaseHTTPRequestHandler):
    """Answers one connection, which carries one request; a subclass has ``do_GET`` or ``do_POST``."""

    server: LocalServer
    raw_requestline: bytes
    server_version, sys_version = "frpcag", ""
    timeout = 10.0  # seconds for each wait; the server bounds the whole
    default_request_version = "HTTP/1.0"  # or a malformed first line would be answered without a status
    _unread = True  # something may still come that nobody has read

    def parse_request(self) -> bool:
        """Read first line and headers; a body stays unread for now."""
        if not super().parse_request():
            if not self.raw_requestline.strip():  # http.server would close without a word
                self.send_error(400)
            return False
        self._unread = "Content-Length" in self.headers or "Transfer-Encoding" in self.headers
        return True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what http.server cannot parse or does not know."""
        self.log_error("code %d, message %s", code, message)
        status = _CLIENT_FAULTS.get(code, code)
        self.answer_json(status, {"error": "the request is malformed, or none that the page sends."})

    def refused(self) -> bool:
        """Answer 403 to whoever is not this page, or a person who typed its address."""
        names = {f"{name}:{self.server.server_port}" for name in HOSTS}
        hosts, origin = self.headers.get_all("Host", []), self.headers.get("Origin")
        site = self.headers.get("Sec-Fetch-Site", "none")
        known = len(hosts) == 1 and hosts[0] in names
        if known and origin in (None, f"http://{hosts[0]}") and site in ("none", "same-origin"):
            return False
        self.answer_json(403, {"error": "requests from other sites and under other names are refused."})
        return True

    def asks_for(self, name: str) -> bool:
        """Say whether the request is for a name below the secret."""
        return secrets.compare_digest(self.path.encode(), f"/{self.server.secret}/{name}".encode())

    def read_json(self, most: int) -> dict[str, Any]:
        """Return the body, a JSON object of at most so many bytes; raise ValueError with the reason otherwise."""
        if self.headers.get_content_type() != "application/json":
            raise ValueError("the request must be application/json.")
        length = self.headers.get_all("Content-Length", [])
        plain = len(length) == 1 and length[0].isascii() and length[0].isdecimal() and len(length[0]) < 10
        if not plain or int(length[0]) > most or "Transfer-Encoding" in self.headers:
            raise ValueError(f"the request must have a length of at most {most} bytes.")
        body = self.rfile.read(int(length[0]))
        if len(body) < int(length[0]):
            raise ValueError("the request ended before its length.")
        self._unread = False
        try:
            content = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ValueError("the request is not JSON.") from error
        if not isinstance(content, dict):
            raise ValueError("the request must be a JSON object.")
        return content

    def answer_json(self, status: int, answer: Any) -> None:
        """Send an answer as JSON."""
        self.answer(status, to_json(answer), "application/json")

    def answer(self, status: int, body: bytes, kind: str) -> None:
        """Send an answer; who is not there any more is no error."""
        try:
            self.send_head(status, kind, length=len(body))
            if self.command != "HEAD":
                self.wfile.write(body)
            self._discard()
        except OSError:
            logger.debug("the page has gone")

    def send_head(self, status: int, kind: str, *, length: int | None = None) -> None:
        """Send the head of an answer; without a length it goes on until the connection ends."""
        self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in (
            ("Connection", "close"),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Referrer-Policy", "no-referrer"),
        ):
            self.send_header(name, value)
        self.end_headers()

    def _discard(self) -> None:
        """Read what is left of a request that was refused: closing before would take the answer back."""
        if not self._unread:
            return
        self._unread, left, end = False, _MOST_DISCARDED, monotonic() + _DISCARD_SECONDS
        self.connection.shutdown(socket.SHUT_WR)  # the answer is complete
        self.connection.settimeout(_DISCARD_SECONDS)
        while left > 0 and monotonic() < end and (chunk := self.rfile.read1(min(left, 2**16))):
            left -= len(chunk)

    def log_message(self, format: str, *args: Any) -> None:
        """Log to the library's logger, not to stderr."""
        logger.debug(format, *args)


def to_json(answer: Any) -> bytes:
    """Return an answer as JSON; raise RuntimeError where it has numbers that JSON does not."""
    try:
        return json.dumps(answer, allow_nan=False).encode()
    except ValueError as error:  # which would be told to the page as a fault of its own
        raise RuntimeError("the answer holds numbers that JSON does not have") from error


def _hang_up(request: socket.socket, how: int) -> None:
    with suppress(OSError):  # the other side was faster
        request.shutdown(how)
