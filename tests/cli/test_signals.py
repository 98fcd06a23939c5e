"""Signals while a run is written: the command ends with their number, and no half-written folder stays behind."""

import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from frpcag import FRPCAG

if os.name == "nt":
    pytest.skip("signals are those of POSIX", allow_module_level=True)

# Imports once all that a fit loads, then forks a process for each case, in a folder of its own. Each sends itself
# signals when its first array has been written; others when a folder is renamed, and others when one is removed, after
# that.
CHILD = """
import gc, json, os, pathlib, shutil, signal, sys
import numpy
import frpcag.backends.numpy, frpcag.cli.fit, frpcag.engines.host, frpcag.report
from frpcag.cli import main as cli

save, rmtree, rename = numpy.save, shutil.rmtree, pathlib.Path.rename

def hit(numbers):
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    for number in numbers:
        os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)  # all of them at once

def run(number, words, writing=(), renaming=(), removing=(), ignored=()):
    def save_and_be_hit(path, *more, **options):
        save(path, *more, **options)
        numpy.save, shutil.rmtree, pathlib.Path.rename = save, be_hit_and_remove, rename_and_be_hit
        hit(writing)

    def rename_and_be_hit(path, target):
        pathlib.Path.rename = rename
        rename(path, target)
        hit(renaming)

    def be_hit_and_remove(path, *more, **options):
        shutil.rmtree = rmtree
        hit(removing)
        rmtree(path, *more, **options)

    os.chdir(str(number))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    # A background shell has its children ignore some of them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
    numpy.save = save_and_be_hit
    words = ["--set", "backend=numpy", *words]
    sys.argv = ["frpcag", "fit", "data.npy", "--output", "run", "--no-plots", "--quiet", *words]
    sys.exit(cli.main())

gc.freeze()  # or each child would copy all of it when it ends
for number, (words, hits) in enumerate(json.loads(sys.argv[1])):
    if os.fork() == 0:
        run(number, words, **hits)
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""
INT, TERM, HUP, QUIT = (int(getattr(signal, f"SIG{name}", 0)) for name in ("INT", "TERM", "HUP", "QUIT"))


def run(folder, data, *cases):
    """Return the exit codes of fits with some words on the command line, hit by signals at some points."""
    for number in range(len(cases)):
        (folder / str(number)).mkdir(exist_ok=True)
        shutil.copy(data, folder / str(number) / "data.npy")
    command = [sys.executable, "-c", CHILD, json.dumps(cases)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert "Traceback" not in done.stderr
    codes = [int(line) for line in done.stdout.splitlines()]
    assert len(codes) == len(cases), done.stderr
    return codes


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_signals_while_writing_leave_nothing(working_folder, data):
    hits = [{"writing": [number]} for number in (HUP, QUIT, TERM, INT)]
    hits += [{"writing": [HUP, TERM]}, {"writing": [TERM], "removing": [INT]}, {"writing": [INT], "removing": [HUP]}]
    codes = run(working_folder, data, *(([], hit) for hit in hits))
    for number, (code, hit) in enumerate(zip(codes, hits, strict=True)):
        assert names(working_folder / str(number)) == ["data.npy"], hit
        # What comes while the folder is removed has its turn afterwards, unless the process is ending anyway.
        assert code in {128 + sent for sent in (*hit["writing"], *hit.get("removing", []))}, hit


def test_a_signal_that_the_shell_ignores_stays_ignored(working_folder, data):
    assert run(working_folder, data, ([], {"writing": [HUP], "ignored": [HUP]})) == [0]
    assert (working_folder / "0" / "run" / "run.json").is_file()


def test_signals_while_an_old_run_is_replaced_leave_the_new_one(working_folder, data):
    assert run(working_folder, data, ([], {}), ([], {})) == [0, 0]
    again = ["--overwrite", "--set", "max_iter=1"]
    codes = run(working_folder, data, (again, {"removing": [TERM, INT]}), (again, {"renaming": [TERM, INT]}))
    for number, code in enumerate(codes):
        assert code in (128 + TERM, 128 + INT)
        assert names(working_folder / str(number)) == ["data.npy", "run"]
        record = json.loads((working_folder / str(number) / "run" / "run.json").read_text())
        assert record["certificate"]["n_iter"] == 1


SWALLOWED = """
import ctypes, os, signal, sys
from frpcag.cli import fit, main as cli

def read(*args, **options):
    hit()
    while True:  # until Ctrl-C is heard
        pass

hit = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGINT))
signal.signal(signal.SIGINT, signal.default_int_handler)
fit.read_input = read
sys.argv = ["frpcag", "fit", "data.npy"]
sys.exit(cli.main())
"""


def test_ctrl_c_within_a_callback_of_c_code_ends_the_run(working_folder, data):
    done = subprocess.run([sys.executable, "-c", SWALLOWED], capture_output=True, text=True, timeout=60)
    assert done.returncode == 130
    assert done.stderr == "error: interrupted before there was a result; nothing was written.\n"
    assert names(working_folder) == ["data.npy"]


def test_ctrl_c_in_the_solve_writes_the_result_whoever_raises_it(data, frpcag, working_folder, monkeypatch):
    original = FRPCAG.fit

    def fit(self, X, y=None):
        original(self, X)
        self.status_ = "interrupted"
        raise KeyboardInterrupt

    monkeypatch.setattr(FRPCAG, "fit", fit)
    result = frpcag("fit", data, "--output", "run", "--no-plots", "--json")
    assert result.exit_code == 130
    assert json.loads(result.stdout)["certificate"]["status"] == "interrupted"
    assert np.isfinite(np.load(working_folder / "run" / "low_rank.npy")).all()
