"""Ctrl-C and SIGTERM at seeded moments of real runs: what is on disk afterwards is whole, or is not there.

The moments are calls of the library's own functions, counted; no clock is looked at.
"""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from frpcag.data import make_low_rank_on_graphs

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals and fork are those of POSIX")

# Imports once, then forks a child for each moment; the first one runs to its end and counts.
CHILD = """
import json, os, random, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell has its children ignore it
import frpcag
from frpcag.cli import main as cli
import matplotlib.pyplot  # what a command imports late
root, (seed, words, signals) = os.path.dirname(frpcag.__file__), json.loads(sys.argv[1])

def run(number, at, sent):
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
        cli.main()
    except SystemExit as end:
        code = end.code or 0
    sys.setprofile(None)
    return code, seen

def forked(number, at, sent):
    here, there = os.pipe()
    if os.fork() == 0:
        result = (70, 0)
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            result = run(number, at, sent)
        finally:
            os.write(there, json.dumps(result).encode())
            os._exit(0)
    os.close(there)
    with os.fdopen(here) as pipe:
        said = pipe.read()
    os.wait()
    return json.loads(said)

code, total = forked(0, 0, 0)
print(json.dumps([0, code, 0, total]), flush=True)
draw = random.Random(seed)
for number, sent in enumerate(signals, start=1):
    # Half of them in the last quarter of the calls, where files are written.
    at = draw.randrange(1, total) if number % 2 else draw.randrange(3 * total // 4, total)
    code, seen = forked(number, at, sent)
    print(json.dumps([number, code, at, seen]), flush=True)
"""

INT, TERM = int(signal.SIGINT), int(signal.SIGTERM)


def interrupted(words, signals, *, seed=0):
    """Return (number, exit code, moment, calls seen) of a whole run and of one for each signal."""
    command = [sys.executable, "-c", CHILD, json.dumps([seed, words, signals])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(runs) == 1 + len(signals), done.stderr
    assert runs[0][1] == 0, done.stderr
    assert "Traceback" not in done.stderr
    return runs


def check_folders(folder, runs, signals, extra=()):
    """Assert that every run folder is whole or absent, and that nothing else is there."""
    names = {path.name for path in folder.iterdir()} - set(extra)
    assert names <= {f"run-{number}" for number, *_ in runs}, names
    for (number, code, *_), sent in zip(runs, [0, *signals], strict=True):
        run = folder / f"run-{number}"
        assert code in ((0, 1) if sent != TERM else (0, 1, 128 + TERM)), (number, code)
        assert run.exists() or code != 0
        if run.exists():
            record = json.loads((run / "run.json").read_text())
            assert sorted(path.name for path in run.iterdir() if path.name != "run.json") == record["files"]
            for array in run.glob("*.npy"):
                assert np.isfinite(np.load(array)).all()


def test_an_interrupted_fit_leaves_a_whole_run_or_none(working_folder, data):
    signals = [INT, INT, TERM, TERM, INT, TERM]
    runs = interrupted(["fit", "data.npy", "--output", "run-{}", "--clusters", "3", "--no-plots", "--quiet"], signals)
    check_folders(working_folder, runs, signals, extra=["data.npy"])


def test_an_interrupted_overwrite_leaves_the_old_run_or_the_new_one(working_folder, data):
    # Run 0 makes the folder, the others replace it, and each finds it whole.
    signals = [INT, TERM, INT, TERM, INT, TERM]
    words = ["fit", "data.npy", "--output", "run-0", "--overwrite", "--no-plots", "--quiet"]
    runs = interrupted(words, signals, seed=1)
    check_folders(working_folder, runs[:1], [], extra=["data.npy"])


def test_an_interrupted_video_leaves_a_whole_run_or_none(working_folder):
    pytest.importorskip("av")
    clip = np.random.default_rng(0).normal(100, 3, (24, 16, 16)).clip(0, 255).astype(np.uint8)
    np.save(working_folder / "clip.npy", clip)
    signals = [INT, TERM, INT, TERM]
    runs = interrupted(["video", "clip.npy", "--output", "run-{}", "--quiet"], signals, seed=2)
    check_folders(working_folder, runs, signals, extra=["clip.npy"])


def test_an_interrupted_reproduction_goes_on_where_it_stopped(working_folder, monkeypatch):
    monkeypatch.delenv("FRPCAG_DATA", raising=False)
    signals = [INT, TERM, INT, TERM]
    interrupted(["reproduce", "alignment", "--smoke", "--jobs", "1", "--output", "run-{}"], signals, seed=3)
    whole = (working_folder / "run-0" / "alignment" / "records.jsonl").read_text().splitlines()
    for number in range(1, len(signals) + 1):
        folder = working_folder / f"run-{number}" / "alignment"
        records = folder / "records.jsonl"
        lines = records.read_text().splitlines() if records.exists() else []
        assert len(lines) <= len(whole)
        assert all(isinstance(json.loads(line), dict) for line in lines)
        for arrays in folder.glob("arrays/*"):
            assert arrays.suffix == ".npz"
            with np.load(arrays) as stored:
                assert all(stored[name].size for name in stored.files)


def test_an_interrupted_save_leaves_the_old_model_or_the_new_one(working_folder):
    X = make_low_rank_on_graphs(30, 8, n_sample_clusters=3, n_feature_clusters=2, random_state=0)[0]
    np.save("X.npy", X)
    script = (
        CHILD.replace("cli.main()", "save(number)")
        .replace(
            "def run(",
            "def save(number):\n    import numpy\n    frpcag.FRPCAG(gamma1=float(number)).fit(numpy.load('X.npy'))"
            ".save('model.npz')\n\ndef run(",
            1,
        )
        .replace(
            "    except SystemExit as end:",
            "    except KeyboardInterrupt:\n        code = 1\n    except SystemExit as end:",
        )
    )
    signals = [INT] * 6
    command = [sys.executable, "-c", script, json.dumps([4, [], signals])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 7, done.stderr
    assert sorted(path.name for path in working_folder.iterdir()) == ["X.npy", "model.npz"]

    import frpcag

    assert frpcag.load("model.npz").gamma1 in range(7)
