"""Signals that end the process: they end it as exceptions do, and wait while files are put in place."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Hang-up and quit are those of POSIX.
ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name))
HELD = (*ENDING, signal.SIGINT)
# Seconds until a Ctrl-C that was swallowed comes again.
_AGAIN = 0.05


def end_on_signals() -> None:
    """Have SIGTERM, SIGHUP and SIGQUIT raise SystemExit with 128 plus their number, so that blocks are left in order.

    The first one counts; those that follow are ignored, or they would break off the clean-up. A signal that whoever
    started the process had it ignore stays ignored, as ``nohup`` asks. A Ctrl-C that a callback of C code swallows, as
    while kernels are loaded, comes again.
    """

    def end(number: int, _: object) -> None:
        for other in ENDING:
            signal.signal(other, lambda *_: None)  # not SIG_IGN: Python complains of those that are on their way
        sys.exit(128 + number)

    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)
    sys.unraisablehook = _interrupt_again


def _interrupt_again(swallowed: Any) -> None:
    """Send Ctrl-C again soon, until Python code hears it; show any other exception that nobody can catch."""
    if not issubclass(swallowed.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(swallowed)
        return
    again = threading.Timer(_AGAIN, _thread.interrupt_main)
    again.daemon = True  # a process that ends meanwhile does not wait for it
    again.start()


@contextmanager
def hold_signals() -> Iterator[None]:
    """Let signals that would end the block wait for its end; there the first of them acts as it would have.

    For a few renames or deletions that must not be left half done. In threads other than the main one, where Python
    handles no signals, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    # Only what Python handles: the others either end the process at once or are ignored.
    before = {number: handler for number in HELD if callable(handler := signal.getsignal(number))}
    try:
        for number in before:
            signal.signal(number, lambda number, _: came.append(number))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
