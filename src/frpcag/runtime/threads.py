"""Work on fixed blocks in threads, such that the number of threads cannot change the result.

Each block is computed by one thread, with BLAS and OpenMP inside it single-threaded: a threaded matrix
product rounds differently for every number of threads. Block sizes are constants.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from numbers import Integral
from typing import TypeVar

import joblib
from threadpoolctl import ThreadpoolController

Block = TypeVar("Block")
Result = TypeVar("Result")


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads ``n_jobs`` stands for: None and -1 are all cores open to the process."""
    if n_jobs is None:
        return joblib.cpu_count()
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r} must be a non-zero integer or None; pass None to use all cores.")
    return int(n_jobs) if n_jobs > 0 else max(1, joblib.cpu_count() + 1 + int(n_jobs))


_LIMIT = threading.Lock()
_forked = False
_found: tuple[int, ThreadpoolController] | None = None


def _libraries() -> ThreadpoolController:
    """Return what controls the threads of BLAS and OpenMP, looked for again whenever modules have been imported.

    The search takes some ten milliseconds, more than a small fit.
    """
    global _found
    n_modules = len(sys.modules)
    if _found is None or _found[0] != n_modules:
        _found = n_modules, ThreadpoolController()
    return _found[1]


def _after_fork() -> None:
    """Note in a forked child that it is one, and that no other thread of its own holds the lock."""
    global _LIMIT, _forked
    _LIMIT, _forked = threading.Lock(), True


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def openmp_after_fork() -> Iterator[None]:
    """Hold OpenMP at one thread in a forked child: GNU's runtime waits there for threads that only the parent has."""
    if not _forked:
        yield
        return
    with _libraries().limit(limits=1, user_api="openmp"):
        yield


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS at one thread, then give it back the number it had.

    The number belongs to the process. Two threads that both set and restore it would, when they overlap,
    leave the other's limit behind for good; so only one does, and a second one that comes meanwhile does
    without. It may then see BLAS threaded after the first has left, which costs speed, and rounding in the
    scores that choose candidates, but not in the distances.
    """
    if not _LIMIT.acquire(blocking=False):
        yield
        return
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            yield
    finally:
        _LIMIT.release()


def _limit_openmp_of_this_thread() -> None:
    # OpenMP keeps this number per calling thread: nothing to give back, the thread ends with the pool.
    _libraries().select(user_api="openmp").limit(limits=1)


@contextmanager
def block_pool(
    n_jobs: int | None,
) -> Iterator[Callable[[Callable[[Block], Result], Iterable[Block]], list[Result]]]:
    """Give ``run(function, blocks)``, which maps in ``n_jobs`` threads and returns the results in order.

    Examples
    --------
    >>> from frpcag.runtime.threads import block_pool
    >>> with block_pool(2) as run:
    ...     run(lambda block: block + 1, range(3))
    [1, 2, 3]
    """
    if count_threads(n_jobs) == 1:  # no thread to start; the caller's own OpenMP limit is left alone
        with single_threaded_blas():
            yield lambda function, blocks: [function(block) for block in blocks]
        return
    workers = ThreadPoolExecutor(count_threads(n_jobs), initializer=_limit_openmp_of_this_thread)
    with single_threaded_blas(), workers as pool:

        def run(function: Callable[[Block], Result], blocks: Iterable[Block]) -> list[Result]:
            blocks = list(blocks)
            if len(blocks) > 1:
                return list(pool.map(function, blocks))
            with _libraries().limit(limits=1, user_api="openmp"):  # a thread would cost more than a small block
                return [function(block) for block in blocks]

        yield run
