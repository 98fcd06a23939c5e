"""One request to the explorer: who may ask, what may be asked, and an answer of 4xx to everything else."""

from __future__ import annotations

import json
import logging
import secrets
import socket
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frpcag.report.server import ExplorerServer

logger = logging.getLogger(__name__)

HOSTS = ("127.0.0.1", "localhost")
# A move is four numbers.
_MOST_BODY = 4096
# Bytes of a refused request that are read and thrown away, and for how many seconds.
_MOST_DISCARDED, _DISCARD_SECONDS = 2**20, 2.0
# What http.server calls a fault of the server, and is one of the request.
_CLIENT_FAULTS = {501: 405, 505: 400}


class Superseded(Exception):
    """A newer move has come, or the server is ending; the result is of no use."""


class RequestHandler(BaseHTTPRequestHandler):
    """Answers one connection, which carries one request."""

    server: ExplorerServer
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

    def do_GET(self) -> None:
        """Serve the page."""
        self.server.request_read(self.connection)
        if self._refused():
            return
        if self._asks_for(""):
            self._answer(lambda: (self.server.page(), "text/html; charset=utf-8"))
        else:
            self._json(404, {"error": "there is nothing here; open the address that frpcag explore printed."})

    def do_POST(self) -> None:
        """Answer a move of the sliders, or the question for wrong cells."""
        if self._refused():
            return
        action = next((name for name in ("solve", "diagnose", "cells") if self._asks_for(name)), None)
        if action is None:
            self._json(404, {"error": "there is nothing here."})
            return
        try:
            move = self._move()
        except TimeoutError:
            self._json(408, {"error": "the request did not come in time."})
        except ValueError as error:
            self._json(400, {"error": str(error)})
        else:
            self.server.request_read(self.connection)
            self._answer(lambda: (_to_json(getattr(self.server, action)(move)), "application/json"))

    def _answer(self, work: Callable[[], tuple[bytes, str]]) -> None:
        """Send what the session makes of a request, or why it does not."""
        try:
            body, kind = work()
        except Superseded:
            self._json(409, {"error": "a newer move has come."})
        except ValueError as error:
            self._json(400, {"error": str(error)})
        except Exception:
            logger.exception("%s failed", self.command)
            self._json(500, {"error": "the solve failed; the reason is in the terminal."})
        else:
            self._send(200, body, kind)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what http.server cannot parse or does not know."""
        self.log_error("code %d, message %s", code, message)
        status = _CLIENT_FAULTS.get(code, code)
        self._json(status, {"error": "the request is malformed, or none that the page sends."})

    def _refused(self) -> bool:
        """Answer 403 to whoever is not this page, or a person who typed its address."""
        names = {f"{name}:{self.server.server_port}" for name in HOSTS}
        hosts, origin = self.headers.get_all("Host", []), self.headers.get("Origin")
        site = self.headers.get("Sec-Fetch-Site", "none")
        known = len(hosts) == 1 and hosts[0] in names
        if known and origin in (None, f"http://{hosts[0]}") and site in ("none", "same-origin"):
            return False
        self._json(403, {"error": "requests from other sites and under other names are refused."})
        return True

    def _asks_for(self, name: str) -> bool:
        return secrets.compare_digest(self.path.encode(), f"/{self.server.secret}/{name}".encode())

    def _move(self) -> dict[str, Any]:
        if self.headers.get_content_type() != "application/json":
            raise ValueError("the request must be application/json.")
        length = self.headers.get_all("Content-Length", [])
        plain = len(length) == 1 and length[0].isascii() and length[0].isdecimal() and len(length[0]) < 10
        if not plain or int(length[0]) > _MOST_BODY or "Transfer-Encoding" in self.headers:
            raise ValueError(f"the request must have a length of at most {_MOST_BODY} bytes.")
        body = self.rfile.read(int(length[0]))
        if len(body) < int(length[0]):
            raise ValueError("the request ended before its length.")
        self._unread = False
        try:
            move = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ValueError("the request is not JSON.") from error
        if not isinstance(move, dict):
            raise ValueError("the request must be a JSON object.")
        return move

    def _json(self, status: int, answer: dict[str, Any]) -> None:
        self._send(status, _to_json(answer), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.close_connection = True
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Referrer-Policy", "no-referrer"),
        ):
            self.send_header(name, value)
        try:
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
            self._discard()
        except OSError:
            logger.debug("the page has gone")

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


def _to_json(answer: dict[str, Any]) -> bytes:
    try:
        return json.dumps(answer, allow_nan=False).encode()
    except ValueError as error:  # which would be told to the page as a fault of its own
        raise RuntimeError("the answer holds numbers that JSON does not have") from error
