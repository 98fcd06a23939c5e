"""What the machine can do, measured in the same run as what is compared with it."""

from __future__ import annotations

import json
import platform
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

import numba
import numpy as np

RESULTS = Path(__file__).resolve().parent.parent / "results"


@numba.njit(nogil=True, cache=True)
def _triad(a, b, c, s):
    for i in range(a.size):
        a[i] = b[i] + s * c[i]


def triad_bandwidth(n_threads: int) -> float:
    """Return the bytes per second of ``a = b + s c``, the best of several array sizes beyond a core's cache."""
    return max(_bandwidth(n_threads, n) for n in (5_000_000, 20_000_000, 60_000_000))


def _bandwidth(n_threads: int, n: int, *, repeats: int = 10) -> float:
    a, b, c = (np.ones(n, np.float32) for _ in range(3))
    edges = np.linspace(0, n, n_threads + 1, dtype=int)
    best = np.inf
    with ThreadPoolExecutor(n_threads) as pool:
        for _ in range(repeats):
            start = perf_counter()
            list(pool.map(lambda lo, hi: _triad(a[lo:hi], b[lo:hi], c[lo:hi], np.float32(2)), edges[:-1], edges[1:]))
            best = min(best, perf_counter() - start)
    return 3 * a.nbytes / best


def best_of(function, repeats: int) -> float:
    """Return the shortest of several times, in seconds."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        function()
        times.append(perf_counter() - start)
    return min(times)


def write_result(name: str, record: dict) -> None:
    """Write ``results/<name>.json`` with the machine it was measured on."""
    RESULTS.mkdir(exist_ok=True)
    record = {"machine": {"cpu": _cpu(), "cores": numba.config.NUMBA_DEFAULT_NUM_THREADS}, **record}
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    names = (
        [line.split(":")[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        if info.exists()
        else []
    )
    return names[0] if names else platform.processor()
