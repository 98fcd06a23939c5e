"""Signals that end the process at seeded moments of real runs: what is on disk afterwards is whole, or is not there.

The moments are calls of the library's own functions, counted; no clock is looked at.
"""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from reproduction.__main__ import main as reproduce

import frpcag
from frpcag.data import make_low_rank_on_graphs

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals and fork are those of POSIX")

# Imports once, then forks a child for each moment of each job; the first child of a job runs to its end and counts.
SERVER = """
import json, os, random, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell has its children ignore it
import numpy
import frpcag
from frpcag.cli import main as cli
from reproduction.__main__ import main as reproduce
import matplotlib.pyplot  # what a command imports late
root = os.path.dirname(frpcag.__file__)
for kind in ("float32", "float64"):  # kernels are compiled or read once, not in every child
    frpcag.FRPCAGClustering(2, n_init=1).fit(numpy.random.default_rng(0).normal(size=(40, 12)).astype(kind))

def save(number):
    frpcag.FRPCAG(gamma1=float(number)).fit(numpy.load("X.npy")).save("model.npz")
    return 0

def run(number, at, sent, words):
    seen = 0
    def count(frame, event, arg):
        nonlocal seen
        if event == "call" and frame.f_code.co_filename.startswith(root):
            seen += 1
            if seen == at:
                os.kill(os.getpid(), sent)
    sys.argv = ["frpcag"] + [word.format(number) for word in words]
    code = 0
    sys.setprofile(count)
    try:
        if words[0] == "reproduce":
            code = reproduce(sys.argv[2:])
        else:
            code = save(number) if words == ["save"] else cli.main()
    except KeyboardInterrupt:
        code = 130
    except SystemExit as end:
        code = end.code or 0
    sys.setprofile(None)
    return code, seen

def forked(*job):
    here, there = os.pipe()
    if os.fork() == 0:
        result = (70, 0)
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            result = run(*job)
        finally:
            os.write(there, json.dumps(result).encode())
            os._exit(0)
    os.close(there)
    with os.fdopen(here) as pipe:
        said = pipe.read()
    os.wait()
    return json.loads(said)

for line in sys.stdin:
    folder, seed, words, signals = json.loads(line)
    os.chdir(folder)
    code, total = forked(0, 0, 0, words)
    runs = [[0, code, 0, total]]
    draw = random.Random(seed)
    for number, sent in enumerate(signals, start=1):
        # Half of them in the last quarter of the calls, where files are written.
        at = draw.randrange(1, total) if number % 2 else draw.randrange(3 * total // 4, total)
        code, seen = forked(number, at, sent, words)
        runs.append([number, code, at, seen])
    print(json.dumps(runs), flush=True)
"""

INT, TERM, HUP, QUIT = (int(getattr(signal, f"SIG{name}", 0)) for name in ("INT", "TERM", "HUP", "QUIT"))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Start a process that has imported the library, and forks a child for every run."""
    said = tmp_path_factory.mktemp("server") / "stderr"
    env = {name: value for name, value in os.environ.items() if name != "FRPCAG_DATA"}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    env["OMP_NUM_THREADS"] = "1"  # children of a process with threads of OpenMP would wait for them
    with said.open("w") as stderr:
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": stderr, "text": True, "env": env}
        with subprocess.Popen([sys.executable, "-c", SERVER], **options) as process:
            yield process, said
            process.stdin.close()


@pytest.fixture
def interrupted(server, working_folder):
    """Run a command whole, and once for each signal; return (number, exit code, moment, calls seen) of each run."""
    process, said = server

    def run(words, signals, *, seed):
        process.stdin.write(json.dumps([str(working_folder), seed, words, signals]) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        assert line, said.read_text()
        runs = json.loads(line)
        assert runs[0][1] == 0, said.read_text()
        assert "Traceback" not in said.read_text()
        assert len(runs) == 1 + len(signals)
        for number, code, at, seen in runs[1:]:
            assert code in (0, 128 + signals[number - 1]), (number, code)
            assert seen >= at, f"run {number} was over before its signal"
        assert {code for _, code, *_ in runs} != {0}, "no signal was heard"
        return runs

    return run


def check_folders(folder, runs, extra):
    """Assert that every run folder is whole or absent, and that nothing else is there."""
    names = {path.name for path in folder.iterdir()} - {extra}
    assert names <= {f"run-{number}" for number, *_ in runs}, names
    for number, code, *_ in runs:
        run = folder / f"run-{number}"
        assert run.exists() or code != 0
        if run.exists():
            assert_whole(run)


def assert_whole(run):
    record = json.loads((run / "run.json").read_text())
    assert record["files"]
    assert sorted(path.name for path in run.iterdir() if path.name != "run.json") == record["files"]
    for array in run.glob("*.npy"):
        assert np.isfinite(np.load(array)).all()


def test_an_interrupted_fit_leaves_a_whole_run_or_none(working_folder, data, interrupted):
    words = ["fit", "data.npy", "--output", "run-{}", "--clusters", "3", "--no-plots", "--quiet"]
    runs = interrupted(words, [INT, HUP, TERM, QUIT, INT, HUP], seed=0)
    check_folders(working_folder, runs, extra="data.npy")


def test_an_interrupted_overwrite_leaves_the_old_run_or_the_new_one(working_folder, data, interrupted):
    # Run 0 makes the folder; the others replace it.
    words = ["fit", "data.npy", "--output", "run-0", "--overwrite", "--no-plots", "--quiet"]
    interrupted(words, [INT, TERM, QUIT, HUP, INT, TERM], seed=1)
    assert sorted(path.name for path in working_folder.iterdir()) == ["data.npy", "run-0"]
    assert_whole(working_folder / "run-0")


def test_an_interrupted_video_leaves_a_whole_run_or_none(working_folder, interrupted):
    pytest.importorskip("av")
    clip = np.random.default_rng(0).normal(100, 3, (24, 16, 16)).clip(0, 255).astype(np.uint8)
    np.save(working_folder / "clip.npy", clip)
    runs = interrupted(["video", "clip.npy", "--output", "run-{}", "--quiet"], [INT, TERM, INT, TERM], seed=2)
    check_folders(working_folder, runs, extra="clip.npy")


def test_an_interrupted_reproduction_goes_on_where_it_stopped(working_folder, interrupted, monkeypatch):
    monkeypatch.delenv("FRPCAG_DATA", raising=False)
    words = ["reproduce", "alignment", "--smoke", "--jobs", "1", "--output"]
    runs = interrupted([*words, "run-{}"], [INT] * 4, seed=3)
    whole = cells(working_folder / "run-0")
    assert whole
    for number, *_ in runs[1:]:
        folder = working_folder / f"run-{number}" / "alignment"
        before = lines(folder)
        assert reproduce([*words[1:], f"run-{number}"]) == 0
        assert lines(folder)[: len(before)] == before  # what was measured is kept
        assert cells(working_folder / f"run-{number}") == whole
        arrays = list(folder.glob("arrays/*"))
        assert len(arrays) == len(whole)
        for file in arrays:
            with np.load(file) as stored:
                assert stored.files
                assert all(stored[name].size for name in stored.files)


def lines(folder):
    records = folder / "records.jsonl"
    return records.read_text().splitlines() if records.exists() else []


def cells(run):
    """Return the cells that were measured, in any order, each once."""
    return sorted(json.dumps(json.loads(line)["cell"], sort_keys=True) for line in lines(run / "alignment"))


def test_an_interrupted_save_leaves_the_old_model_or_the_new_one(working_folder, interrupted):
    X = make_low_rank_on_graphs(30, 8, n_sample_clusters=3, n_feature_clusters=2, random_state=0)[0]
    np.save("X.npy", X)
    interrupted(["save"], [INT] * 6, seed=4)
    assert sorted(path.name for path in working_folder.iterdir()) == ["X.npy", "model.npz"]
    assert frpcag.load("model.npz").gamma1 in range(7)
