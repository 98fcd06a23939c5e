"""A page that answers: an HTTP server on this machine only, one solve at a time, the latest move wins."""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from http.server import ThreadingHTTPServer
from threading import Condition, Lock
from time import monotonic
from typing import Any, Protocol

from frpcag.report.requests import RequestHandler, Superseded

__all__ = ["HOST", "ExplorerServer", "Session", "Superseded"]

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
# Connections at a time: a browser opens six to a server.
_MOST_CONNECTIONS = 32
# Seconds that a request may take to come in, and that the last answers get when the server ends.
_MOST_SECONDS, _GRACE = 10.0, 2.0
_BUSY = b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


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

    def cells(self, move: dict[str, Any], drawing: AbstractContextManager) -> dict[str, Any]:
        """Return the section about wrong cells, which no move changes; draw it within ``drawing``, others draw too."""
        ...


class ExplorerServer(ThreadingHTTPServer):
    """Serves one session at ``address``, to pages of its own only.

    It listens on 127.0.0.1. The address holds a secret, so that other users of this machine and other web sites cannot
    guess it. Requests are refused whose ``Host`` is another name (rebound DNS), or whose ``Origin`` or
    ``Sec-Fetch-Site`` say that they come from another site. A connection carries one request, which must come in within
    ten seconds; when 32 are open, the oldest that has not sent its request makes room for the next.

    Parameters
    ----------
    session : Session
        The work; called by one thread at a time, and by one more for the wrong cells.
    port : int, default=0
        Where to listen; 0 picks a free one.
    """

    daemon_threads, block_on_close = True, False  # end() waits for them itself, and not for ever
    request_queue_size = 128

    def __init__(self, session: Session, *, port: int = 0) -> None:
        super().__init__((HOST, port), RequestHandler)
        self.session = session
        self.secret = secrets.token_urlsafe(24)
        self._page: bytes | None = None
        self._working, self._counting, self._finding = Lock(), Lock(), Lock()
        self._latest, self._ending = 0, False
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

    def page(self) -> bytes:
        """Return the page, drawn when it is first asked for; a page opened again starts anew."""
        with self._working:
            if self._ending:
                raise Superseded
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
        if type(ticket) is not int:
            raise ValueError("ticket is missing; send the one that solve gave.")
        return self._work(self.session.diagnose, move, ticket)

    def cells(self, move: dict[str, Any]) -> dict[str, Any]:
        """Find wrong cells; whoever asks again waits for the first answer."""
        with self._finding:
            if self._ending:
                raise Superseded
            return self.session.cells(move, self._working)

    def _work(self, work: Callable, move: dict[str, Any], ticket: int) -> dict[str, Any]:
        def check() -> None:
            if self._ending or ticket != self._latest:
                raise Superseded

        with self._working:
            check()  # others may have come while this one waited
            return work(move, check)


def _hang_up(request: socket.socket, how: int) -> None:
    with suppress(OSError):  # the other side was faster
        request.shutdown(how)
