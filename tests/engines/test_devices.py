"""When a fit goes to a GPU by itself, and what an array larger than the GPU does."""

import sys

import numpy as np
import pytest

from frpcag import FRPCAG
from frpcag.engines import devices
from frpcag.engines.base import engine_for

FAST = devices.Gpu(free=10**12, bandwidth=4e12)


def shaped(n, p):
    """Return an array of a size without its memory."""
    return np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (n, p), (0, 0))


@pytest.fixture
def gpu(monkeypatch):
    """Return what sets the GPU that is found."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    return lambda found: monkeypatch.setattr(devices, "query_gpu", lambda: found)


def test_large_arrays_go_to_a_gpu_and_small_ones_do_not(gpu):
    gpu(FAST)
    assert devices.takes_gpu(shaped(200_000, 784), FRPCAG(n_jobs=2))
    assert not devices.takes_gpu(shaped(1000, 784), FRPCAG(n_jobs=2))


@pytest.mark.parametrize("found", [None, FAST._replace(free=10**8), FAST._replace(bandwidth=1e10)])
def test_no_gpu_or_a_small_or_a_slow_one_is_not_taken(gpu, found):
    gpu(found)
    assert not devices.takes_gpu(shaped(200_000, 784), FRPCAG(n_jobs=2))


def test_small_fits_do_not_look_for_a_gpu(monkeypatch):
    monkeypatch.setattr(devices, "query_gpu", lambda: pytest.fail("asked"))
    assert not devices.takes_gpu(np.zeros((100, 20)), FRPCAG())
    assert not devices.takes_gpu([[1.0, 2.0], [3.0, 4.0]], FRPCAG())


def test_the_environment_switches_the_gpu_off(monkeypatch):
    monkeypatch.setattr(devices, "find_spec", lambda name: pytest.fail("asked"))
    for word in ("0", "off", " No "):
        monkeypatch.setenv("FRPCAG_GPU", word)
        assert devices.query_gpu() is None


def test_without_a_driver_pytorch_is_not_imported(monkeypatch):
    monkeypatch.delenv("FRPCAG_GPU", raising=False)
    monkeypatch.setattr(devices.os.path, "exists", lambda path: False)
    monkeypatch.setattr(devices.shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "torch", None)  # an import would raise
    assert devices.query_gpu() is None


@pytest.mark.parametrize("backend", ["auto", "numba"])
def test_only_auto_takes_a_gpu_that_is_there(gpu, monkeypatch, backend):
    gpu(FAST)
    monkeypatch.setattr(devices, "_START", 0.0)
    monkeypatch.setattr(devices, "_TRANSFER", 1e30)
    X = np.random.default_rng(0).normal(size=(40, 6))
    model = FRPCAG(backend=backend).fit(X)
    assert model.backend_ == ("torch" if backend == "auto" else "numba")
    assert isinstance(model.low_rank_, np.ndarray)
    assert type(engine_for(shaped(200_000, 784), FRPCAG(backend=backend))).__name__.startswith(
        "Torch" if backend == "auto" else "Host"
    )


def test_an_array_larger_than_the_gpu_is_refused_with_both_sizes_and_the_way_out(monkeypatch):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from frpcag.backends.torch import backend

    X = np.random.default_rng(0).normal(size=(40, 8))
    monkeypatch.setattr(backend, "free_bytes", lambda device: 5 * X.nbytes)
    with pytest.raises(MemoryError, match=r"but 12,800 are free .* use backend='numba'"):
        FRPCAG(backend="torch", random_state=0).fit(X)
