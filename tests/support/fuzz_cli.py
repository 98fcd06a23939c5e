"""Commands for the fuzzer: ``frpcag fit`` on whole and damaged files with right and wrong options, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from support import fuzz_files
from support.cli import invoke
from support.fuzz_arrays import KINDS, dense, low_rank, make
from support.fuzz_oracles import require

Generator = np.random.Generator

_VALID = (
    ["--float32"],
    ["--set", "center=false", "--scale"],
    ["--clusters", "2"],
    ["--n-components", "1"],
    ["--set", "gamma1=0.5", "--set", "gamma2=0"],
    ["--set", "n_neighbors=2"],
    ["--set", "sample_graph=exact", "--set", "feature_graph=none"],
    ["--set", "laplacian=combinatorial", "--set", "loss=huber"],
    ["--set", "tol=1e-2", "--set", "max_iter=5"],
    ["--jobs", "1", "--set", "backend=numpy"],
    ["--json"],
    ["--quiet"],
)
_INVALID = (
    ["--clusters", "0"],
    ["--clusters", "100000"],
    ["--n-components", "0"],
    ["--n-components", "nine"],
    ["--set", "gamma1=nan"],
    ["--set", "gamma2=-1"],
    ["--set", "n_neighbors=0"],
    ["--set", "sample_graph=grid"],
    ["--set", "feature_graph=grid"],
    ["--feature-shape", "7by7"],
    ["--feature-shape", "99x99"],
    ["--set", "tol=inf"],
    ["--set", "max_iter=0"],
    ["--jobs", "0"],
    ["--set", "backend=cuda"],
    ["--key", "nothing-of-this-name"],
    ["--seed", "-1"],
    ["--set", "loss=l3"],
    ["--no-such-option"],
)


def command(rng: Generator, folder: Path) -> tuple[str, Callable[[], None], str]:
    """Return a kind, a call that judges what the command line does, and what must come of it."""
    suffix = str(rng.choice(fuzz_files.FORMATS))
    what = int(rng.integers(3))
    kind, damage, words, X = "plain", "none", [], low_rank(rng)
    if what == 0:
        kind = str(rng.choice(fuzz_files.KINDS))
        X = make(rng, kind)
        suffix = suffix if np.ndim(X) == 2 else "npy"
    elif what == 1:
        damage = str(rng.choice(fuzz_files.DAMAGES[1:]))
    else:
        words = [word for group in rng.permutation(len(_VALID))[:2] for word in _VALID[group]]
        if rng.random() < 0.4:
            words, kind = list(_INVALID[int(rng.integers(len(_INVALID)))]), "invalid option"
    try:
        path = fuzz_files.write(rng, folder, suffix, X)
    except Exception:
        for half in folder.iterdir():
            half.unlink()
        suffix, path = "npy", fuzz_files.write(rng, folder, "npy", X)
    path = fuzz_files.damage(rng, path, damage)
    refused = damage not in ("none", "flipped", "cut", "renamed") or kind == "invalid option"
    expect = "error" if refused else KINDS[kind].expect if what == 0 else "either" if damage != "none" else "ok"
    if suffix == "npy" and kind.startswith("objects"):
        expect = "error"  # a pickle
    elif suffix in ("csv", "tsv", "mat") and what == 0:
        expect = "either"  # text has no dtype, and mat files no vectors
    elif suffix == "parquet" and kind == "missing-column":
        expect = "either"  # the column is carried along, if there are others
    return f"{suffix} {damage} {kind}", lambda: _judge(path, words, folder, expect, X), "ok"


def _judge(path: Path, words: list[str], folder: Path, expect: str, X: Any) -> None:
    before = path.read_bytes() if path.is_file() else None
    result = invoke("fit", path, "--no-plots", "--output", folder / "run", *words)
    after = path.read_bytes() if path.is_file() else None
    require(after == before, "the file was changed")
    left = sorted(entry.name for entry in folder.iterdir() if entry != path)
    lines = result.stderr.strip().splitlines()
    if result.exit_code == 0:
        require(expect != "error", f"accepted what must be refused: {path.name} {words}")
        require(left == ["run"], f"left {left}")
        record = json.loads((folder / "run" / "run.json").read_text())
        clean = np.load(folder / "run" / "low_rank.npy")
        require(clean.shape == (record["data"]["n_samples"], record["data"]["n_features"]), "shape of low_rank.npy")
        require(np.isfinite(clean).all(), "low_rank.npy is not finite")
        if expect == "ok" and path.suffix in (".npy", ".npz", ".h5", ".parquet"):
            require(clean.shape == dense(X).shape, f"{clean.shape} for {dense(X).shape}")
        known = ("no convergence", "n_neighbors", "columns of X have different units", "note: not used but")
        require(all(line.removeprefix("warning: ").startswith(known) for line in lines), f"said {lines[:1]}")
        return
    require(result.exit_code == 2, f"exit code {result.exit_code}: {lines[-1:]}")
    require(expect != "ok", f"refused a valid input: {lines[-1:]}")
    require(left == [], f"left {left}")
    require(len(lines) == 1 and lines[0].startswith("error: ") and len(lines[0]) > 30, f"said {lines}")
