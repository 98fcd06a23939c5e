"""Warnings that point at the user's line, however deep in the library they are raised."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Packages whose frames are not the user's.
_LIBRARIES = ("frpcag", "sklearn", "joblib", "contextlib")
_MUTED: ContextVar[tuple[type[Warning], ...]] = ContextVar("muted", default=())


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest line that is not in this library or one that calls it for the user.

    Examples
    --------
    >>> import warnings
    >>> from frpcag.runtime.warn import warn_user
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_user("too hot")
    >>> str(caught[0].message)
    'too hot'
    """
    if issubclass(category, _MUTED.get()):
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARIES:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def muted(category: type[Warning]) -> Iterator[None]:
    """Leave out what `warn_user` would say of a category in the block, in this thread alone.

    The filters of `warnings` are those of the whole process: fits in other threads would lose their warnings, and get
    these back too early.
    """
    token = _MUTED.set((*_MUTED.get(), category))
    try:
        yield
    finally:
        _MUTED.reset(token)
