"""The memory guard: a fit that cannot fit says so before it starts, with the bytes; one that fits is let through."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from frpcag import (
    FRPCAG,
    BackgroundSeparator,
    FRPCAGClustering,
    Problem,
    RobustGraphCleaner,
    regularization_path,
    solve,
)
from frpcag.engines.memory import fit_bytes, needed_bytes
from frpcag.runtime import memory

GIB = 2**30
FITS = {
    "fit": lambda X: FRPCAG().fit(X),
    "clustering": lambda X: FRPCAGClustering(2).fit(X),
    "path": lambda X: list(regularization_path(X, [1.0], [1.0])),
}


@pytest.mark.parametrize("fit", FITS)
def test_a_huge_sparse_matrix_is_refused_at_once_with_the_bytes(fit):
    # 745 GiB once dense; the sparse matrix itself holds nothing.
    X = sp.csr_array((10**6, 10**5))
    with pytest.raises(
        MemoryError, match=r"shape \(1000000, 100000\) in float64 .* needs about \d\.\d TiB, but .* free"
    ):
        FITS[fit](X)


def test_the_message_names_the_way_out(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 20 * GIB)
    for dtype, words in ((np.float64, "float32, fewer rows"), (np.float32, "fewer rows")):
        X = np.broadcast_to(dtype(0), (10**6, 10**4))  # no memory of its own
        for model in (FRPCAG(), RobustGraphCleaner()):
            with pytest.raises(MemoryError, match=rf"20\.0 GiB are free; pass {words} .* or a Dask array"):
                model.fit(X)


def test_frames_and_problems_are_guarded_too(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 80 * 2**20)
    with pytest.raises(MemoryError, match=r"frames with shape \(150, 200, 200\)"):
        BackgroundSeparator().fit(np.zeros((150, 200, 200), np.uint8))
    X = np.zeros((60_000, 100))
    with pytest.raises(MemoryError, match=r"solving for X with shape \(60000, 100\) in float64"):
        solve(Problem(X, None, None, 0.0, 0.0))


def test_new_rows_are_guarded_too(monkeypatch):
    model = FRPCAG(tol=0.5).fit(np.random.default_rng(0).normal(size=(40, 20)))
    monkeypatch.setattr(memory, "available_bytes", lambda: 80 * 2**20)
    with pytest.raises(MemoryError, match=r"cleaning X with shape \(1000000, 20\) against 40 fitted rows needs about"):
        model.transform(sp.csr_array((10**6, 20)))


def test_tensors_on_the_host_are_guarded_too(monkeypatch):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if torch.cuda.is_available():
        pytest.skip("the fit would go to the GPU, which has a guard of its own")
    monkeypatch.setattr(memory, "available_bytes", lambda: 80 * 2**20)
    with pytest.raises(MemoryError, match=r"the fit on PyTorch's device cpu needs about"):
        FRPCAG(backend="torch").fit(sp.csr_array((10**6, 100)))


@pytest.mark.parametrize("shape", [(30_000, 20), (3000, 2000)])
def test_clusterings_are_guarded_before_the_fit(shape, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 140 * 2**20)
    X = np.random.default_rng(0).normal(size=shape)
    # Of many rows with few features it is the labels that take most.
    fits = fit_bytes(X, FRPCAG()) < 140 * 2**20
    assert fits == (shape == (30_000, 20))
    what = f"clustering X with shape {shape} in float64 needs about"
    with pytest.raises(MemoryError, match=re.escape(what)):
        FRPCAGClustering(3).fit(X)


def test_small_fits_do_not_look_at_the_machine(monkeypatch):
    def look():
        raise AssertionError("looked")

    monkeypatch.setattr(memory, "available_bytes", look)
    FRPCAG(tol=0.5).fit(np.random.default_rng(0).normal(size=(50, 20)))


def test_nothing_is_refused_where_the_system_does_not_say(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    memory.require_memory(10**18, "much")


def test_the_command_line_says_it_in_one_line(monkeypatch, tmp_path):
    from support.cli import invoke

    np.save(tmp_path / "X.npy", np.zeros((8000, 400)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(memory, "available_bytes", lambda: 2**20)
    result = invoke("fit", "X.npy")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "out of memory (a fit of X with shape (8000, 400)" in result.stderr
    assert "pass --float32" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["X.npy"]


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({"max": "max", "current": "5", "stat": "inactive_file 0"}, None),
        ({"max": "1000", "current": "700", "stat": "anon 1\ninactive_file 50"}, 350),
        ({"max": "1000", "current": "2000", "stat": "inactive_file 0"}, 0),
        ({}, None),
    ],
)
def test_the_limit_of_a_container_counts_without_its_cache(files, free, tmp_path):
    for name, text in files.items():
        (tmp_path / f"memory.{name}").write_text(text)
    assert memory._group_left(tmp_path, "memory.max", "memory.current", "inactive_file") == free


def test_a_system_without_proc_gives_its_memory_or_none(monkeypatch):
    def missing():
        raise FileNotFoundError

    monkeypatch.setattr(memory, "_meminfo", missing)
    monkeypatch.setattr(memory.os, "sysconf", {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}.get, raising=False)
    assert memory.available_bytes() == 1000 * 4096
    monkeypatch.delattr(memory.os, "sysconf")
    assert memory.available_bytes() is None


# Imports once; each fit has a child of its own, whose memory no other fit has grown.
MEASURE = """
import json, os, sys, numpy as np
from frpcag import FRPCAG

def status(name):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(name))

for n, p, dtype in json.loads(sys.argv[1]):
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        continue
    rng = np.random.default_rng(0)
    FRPCAG(tol=0.5).fit(rng.normal(size=(50, 20)).astype(dtype))
    X = rng.standard_normal((n, p), dtype=dtype)
    open("/proc/self/clear_refs", "w").write("5")  # forget the peak
    before = status("VmRSS")
    FRPCAG(tol=0.5, n_jobs=2).fit(X)
    print(status("VmHWM") - before, flush=True)
    os._exit(0)
"""
CASES = [(10_000, 400, "float32"), (300, 8000, "float32"), (1500, 1500, "float64")]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")
def test_the_formula_is_about_what_a_fit_takes():
    done = subprocess.run([sys.executable, "-c", MEASURE, json.dumps(CASES)], capture_output=True, text=True)
    if "clear_refs" in done.stderr:
        pytest.skip("the peak of this process cannot be reset here")
    assert done.returncode == 0, done.stderr
    for case, peak in zip(CASES, done.stdout.split(), strict=True):
        # The peak moves with the allocator, and by some 9 MB with each thread.
        assert 0.7 <= needed_bytes(*case) / int(peak) <= 1.6, case
