"""A page that answers: one solve at a time, the latest move wins."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Lock
from typing import Any, Protocol

from frpcag.report.requests import RequestHandler, Superseded
from frpcag.runtime.local_server import HOST, LocalServer

__all__ = ["HOST", "ExplorerServer", "Session", "Superseded"]


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


class ExplorerServer(LocalServer):
    """Serves one session.

    Parameters
    ----------
    session : Session
        The work; called by one thread at a time, and by one more for the wrong cells.
    port : int, default=0
        Where to listen; 0 picks a free one.
    """

    def __init__(self, session: Session, *, port: int = 0) -> None:
        super().__init__(RequestHandler, port=port)
        self.session = session
        self._page: bytes | None = None
        self._working, self._counting, self._finding = Lock(), Lock(), Lock()
        self._latest = 0

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
