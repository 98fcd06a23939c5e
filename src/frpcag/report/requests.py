"""One request to the explorer: what may be asked, and an answer of 4xx to everything else."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from frpcag.runtime.local_server import LocalHandler, to_json

if TYPE_CHECKING:
    from frpcag.report.server import ExplorerServer

logger = logging.getLogger(__name__)

# A move is four numbers.
_MOST_BODY = 4096


class Superseded(Exception):
    """A newer move has come, or the server is ending; the result is of no use."""


class RequestHandler(LocalHandler):
    """Answers the page and the moves of its sliders."""

    server: ExplorerServer

    def do_GET(self) -> None:
        """Serve the page."""
        self.server.request_read(self.connection)
        if self.refused():
            return
        if self.asks_for(""):
            self._answer_with(lambda: (self.server.page(), "text/html; charset=utf-8"))
        else:
            self.answer_json(404, {"error": "there is nothing here; open the address that frpcag explore printed."})

    def do_POST(self) -> None:
        """Answer a move of the sliders, or the question for wrong cells."""
        if self.refused():
            return
        action = next((name for name in ("solve", "diagnose", "cells") if self.asks_for(name)), None)
        if action is None:
            self.answer_json(404, {"error": "there is nothing here."})
            return
        try:
            move = self.read_json(_MOST_BODY)
        except TimeoutError:
            self.answer_json(408, {"error": "the request did not come in time."})
        except ValueError as error:
            self.answer_json(400, {"error": str(error)})
        else:
            self.server.request_read(self.connection)
            self._answer_with(lambda: (to_json(getattr(self.server, action)(move)), "application/json"))

    def _answer_with(self, work: Callable[[], tuple[bytes, str]]) -> None:
        """Send what the session makes of a request, or why it does not."""
        try:
            body, kind = work()
        except Superseded:
            self.answer_json(409, {"error": "a newer move has come."})
        except ValueError as error:
            self.answer_json(400, {"error": str(error)})
        except Exception:
            logger.exception("%s failed", self.command)
            self.answer_json(500, {"error": "the solve failed; the reason is in the terminal."})
        else:
            self.answer(200, body, kind)
