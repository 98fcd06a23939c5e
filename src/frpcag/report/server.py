"""A page that answers: an HTTP server on this machine only, one solve at a time, the latest move wins."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any, Protocol

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
# A move is four numbers.
_MAX_BODY = 4096


class Superseded(Exception):
    """A newer move has come, or the server is ending; the result is of no use."""


class Session(Protocol):
    """What the server serves.

    Both ``solve`` and ``diagnose`` take the move of the sliders and a function to call now and then, which raises
    :class:`Superseded` when the work may stop, and return what the page gets as JSON. A ValueError is told to the page.
    """

    def page(self) -> str:
        """Return the page."""
        ...

    def solve(self, move: dict[str, Any], check: Callable[[], None]) -> dict[str, Any]:
        """Return the sections to redraw at once."""
        ...

    def diagnose(self, move: dict[str, Any], check: Callable[[], None]) -> dict[str, Any]:
        """Return the sections that take longer, for the same move."""
        ...


class ExplorerServer(ThreadingHTTPServer):
    """Serves one session at ``address``, to pages of its own only.

    It listens on 127.0.0.1. The address holds a secret, so that other users of this machine and other web sites cannot
    guess it. Requests are refused whose ``Host`` is another name (rebound DNS), or whose ``Origin`` or
    ``Sec-Fetch-Site`` say that they come from another site.

    Parameters
    ----------
    session : Session
        The work; called by one thread at a time.
    port : int, default=0
        Where to listen; 0 picks a free one.
    """

    daemon_threads = False  # server_close waits for the last answer

    def __init__(self, session: Session, *, port: int = 0) -> None:
        super().__init__((HOST, port), _Handler)
        self.session = session
        self.secret = secrets.token_urlsafe(24)
        self._page: bytes | None = None
        self._working, self._counting = Lock(), Lock()
        self._latest, self._ending = 0, False

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
        """Stop the work under way and close; call from a thread other than the one that serves, or after it."""
        self._ending = True
        self.server_close()

    def page(self) -> bytes:
        """Return the page, drawn when it is first asked for; a page opened again starts anew."""
        with self._working:
            if self._page is None:
                self._page = self.session.page().encode()
            return self._page

    def solve(self, move: dict[str, Any]) -> dict[str, Any]:
        """Answer a move, unless a newer one comes before it is done."""
        with self._counting:
            self._latest += 1
            ticket = self._latest
        return {**self._work(self.session.solve, move, ticket), "ticket": ticket}

    def diagnose(self, move: dict[str, Any]) -> dict[str, Any]:
        """Give the rest for a move that was solved, while it is the latest."""
        ticket = move.get("ticket")
        if not isinstance(ticket, int):
            raise ValueError("ticket is missing; send the one that solve gave.")
        return self._work(self.session.diagnose, move, ticket)

    def _work(self, work: Callable, move: dict[str, Any], ticket: int) -> dict[str, Any]:
        def check() -> None:
            if self._ending or ticket != self._latest:
                raise Superseded

        with self._working:
            check()  # others may have come while this one waited
            return work(move, check)


class _Handler(BaseHTTPRequestHandler):
    server: ExplorerServer
    server_version, sys_version = "frpcag", ""

    def do_GET(self) -> None:
        """Serve the page."""
        if self._refused():
            return
        if self.path != f"/{self.server.secret}/":
            self._json(404, {"error": "there is nothing here; open the address that frpcag explore printed."})
            return
        self._send(200, self.server.page(), "text/html; charset=utf-8")

    def do_POST(self) -> None:
        """Answer a move of the sliders."""
        if self._refused():
            return
        actions = {f"/{self.server.secret}/{name}": name for name in ("solve", "diagnose")}
        if self.path not in actions:
            self._json(404, {"error": "there is nothing here."})
            return
        try:
            answer = getattr(self.server, actions[self.path])(self._move())
        except Superseded:
            self._json(409, {"error": "a newer move has come."})
        except ValueError as error:
            self._json(400, {"error": str(error)})
        except Exception:
            logger.exception("%s failed", actions[self.path])
            self._json(500, {"error": "the solve failed; the reason is in the terminal."})
        else:
            self._json(200, answer)

    def _refused(self) -> bool:
        """Answer 403 to whoever is not this page, or a person who typed its address."""
        names = {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}
        host, origin = self.headers.get("Host"), self.headers.get("Origin")
        site = self.headers.get("Sec-Fetch-Site", "none")
        if host in names and origin in (None, f"http://{host}") and site in ("none", "same-origin"):
            return False
        self._json(403, {"error": "requests from other sites and under other names are refused."})
        return True

    def _move(self) -> dict[str, Any]:
        if self.headers.get_content_type() != "application/json":
            raise ValueError("the request must be application/json.")
        length = self.headers.get("Content-Length", "")
        if not (length.isdecimal() and int(length) <= _MAX_BODY):
            raise ValueError(f"the request must have a length of at most {_MAX_BODY} bytes.")
        try:
            move = json.loads(self.rfile.read(int(length)))
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ValueError("the request is not JSON.") from error
        if not isinstance(move, dict):
            raise ValueError("the request must be a JSON object.")
        return move

    def _json(self, status: int, answer: dict[str, Any]) -> None:
        self._send(status, json.dumps(answer, allow_nan=False).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Referrer-Policy", "no-referrer"),
        ):
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            logger.debug("the page has gone")

    def log_message(self, format: str, *args: Any) -> None:
        """Log to the library's logger, not to stderr."""
        logger.debug(format, *args)
