"""Whether ``backend="auto"`` takes a GPU: is there one, is there room on it, is it predicted to be faster?

The prediction counts the bytes of the steps on either side, and what the GPU has to do first:

    CPU:  steps * traffic / (12 GB/s for each core, 60 GB/s at most)
    GPU:  start + 4 arrays / (3 GB/s) + steps * traffic / (half of the memory's bandwidth)

with ``traffic = (2 K + 5) n p`` numbers for K neighbours. The search of neighbours and the factors are left out: they
gain more than the steps do, so a fit that is sent to the GPU is faster there.
"""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from frpcag.runtime.threads import count_threads

# Steps of a usual fit.
_STEPS = 60
# Seconds until a GPU has loaded libraries and kernels; bytes per second to and from it, pages as they are.
_START, _TRANSFER = 1.0, 3e9
# Bytes per second that a step of the CPU gets from memory: of each core, and of all.
_CORE, _ALL_CORES = 12e9, 60e9
# Share of the bandwidth of a GPU that a step gets, and the bandwidth of one that does not say.
_SHARE, _BANDWIDTH = 0.5, 4e11


class Gpu(NamedTuple):
    """A GPU.

    Attributes
    ----------
    free : int
        Bytes free.
    bandwidth : float
        Bytes per second of its memory.
    """

    free: int
    bandwidth: float


def query_gpu() -> Gpu | None:
    """Return the current GPU; None where there is none, PyTorch is missing, or ``FRPCAG_GPU=0`` says no."""
    if os.environ.get("FRPCAG_GPU", "").strip().lower() in ("0", "no", "off", "false"):
        return None
    # PyTorch takes seconds to import: it is asked only where the driver is there.
    if not find_spec("torch") or not (os.path.exists("/dev/nvidiactl") or shutil.which("nvidia-smi")):
        return None
    import torch

    try:
        if not torch.cuda.is_available() or not find_spec("triton"):
            return None
        from frpcag.backends.torch.backend import free_bytes

        device = torch.device("cuda", torch.cuda.current_device())
        about, free = torch.cuda.get_device_properties(device), free_bytes(device)
    except RuntimeError:  # a forked process, a driver that does not fit
        return None
    clock, width = (getattr(about, name, 0) for name in ("memory_clock_rate", "memory_bus_width"))
    return Gpu(free or 0, 2e3 * clock * width / 8 or _BANDWIDTH)  # kHz, twice a cycle; bits


def takes_gpu(X: Any, model: Any) -> bool:
    """Say whether a fit of an array goes to a GPU where nobody chose: it fits there, and is predicted to be faster."""
    shape = getattr(X, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2 or not all(isinstance(size, Integral) for size in shape):
        return False
    n, p = (int(size) for size in shape)
    k = int(model.n_neighbors) if isinstance(model.n_neighbors, Integral) else 10
    itemsize = 4 if getattr(X, "dtype", None) == np.float32 else 8
    on_cpu = cpu_seconds(n, p, itemsize, k, n_threads=count_threads(model.n_jobs))
    if on_cpu <= _START:  # no GPU can win, so none is looked for
        return False
    gpu = query_gpu()
    if gpu is None or gpu_seconds(n, p, itemsize, k, bandwidth=gpu.bandwidth) >= on_cpu:
        return False
    from frpcag.engines.torch import fit_bytes

    return fit_bytes((n, p), itemsize, k) <= gpu.free


def cpu_seconds(n: int, p: int, itemsize: int, n_neighbors: int, *, n_threads: int) -> float:
    """Return about how long the steps of a fit take on the CPU.

    Examples
    --------
    >>> from frpcag.engines.devices import cpu_seconds, gpu_seconds
    >>> round(cpu_seconds(70_000, 784, 4, 10, n_threads=2))
    14
    >>> round(gpu_seconds(70_000, 784, 4, 10, bandwidth=4.2e12), 1)
    1.4
    """
    return _STEPS * _traffic(n, p, itemsize, n_neighbors) / min(_CORE * n_threads, _ALL_CORES)


def gpu_seconds(n: int, p: int, itemsize: int, n_neighbors: int, *, bandwidth: float) -> float:
    """Return about how long a GPU takes for the same, start and transfers included."""
    steps = _STEPS * _traffic(n, p, itemsize, n_neighbors) / (_SHARE * bandwidth)
    return _START + 4 * n * p * itemsize / _TRANSFER + steps


def _traffic(n: int, p: int, itemsize: int, n_neighbors: int) -> float:
    return (2.0 * n_neighbors + 5) * n * p * itemsize
