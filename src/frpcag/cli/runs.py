"""The run folder: checked before the work starts, written whole at its end, with all about the run in it."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from time import perf_counter
from typing import Any

import frpcag
from frpcag.cli.errors import InputError
from frpcag.estimators.whole import fit_as_far_as_possible
from frpcag.runtime.atomic import RUN_FILE, atomic_folder

# What a fitted model says of a solve that Ctrl-C ended.
INTERRUPTED = "interrupted"
# The report of a run, in its folder.
PAGE = "report.html"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "faiss-cpu", "matplotlib")


class _Rehearsed(Exception):
    """Ends the rehearsal of a run folder."""


def check_output(output: Path, *, overwrite: bool) -> None:
    """Raise InputError unless a run folder can be written there; leave nothing behind."""
    with suppress(_Rehearsed), run_folder(output, overwrite=overwrite):
        raise _Rehearsed


@contextmanager
def run_folder(output: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a folder that becomes ``output`` if the block ends well; errors speak of ``--output``."""
    if os.path.lexists(output):
        if not overwrite:
            raise InputError(
                f"--output={output} exists; pass another --output, or --overwrite to replace an earlier run."
            )
        if output.is_symlink() or not (output / RUN_FILE).is_file():
            raise InputError(
                f"--output={output} is not the folder of an earlier run (it holds no {RUN_FILE}), so it is "
                "not replaced; pass another --output, or delete it yourself."
            )
    try:
        with atomic_folder(output, overwrite=overwrite) as folder:
            yield folder
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"--output={output} cannot be written ({reason}), and nothing was left there; pass a folder that "
            "you may write to and that has room."
        ) from error


def read_run(output: Path) -> dict[str, Any]:
    """Return what the run.json of a folder says; nothing where there is none."""
    try:
        record = json.loads((output / RUN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def to_json(record: dict[str, Any]) -> str:
    """Return a record as strict JSON."""
    return json.dumps(record, indent=2, allow_nan=False)


def write_run(folder: Path, record: dict[str, Any]) -> None:
    """Write run.json."""
    (folder / RUN_FILE).write_text(to_json(record) + "\n", encoding="utf-8")


def print_json(record: dict[str, Any]) -> None:
    """Print a record on stdout."""
    sys.stdout.write(to_json(record) + "\n")


def library_versions() -> dict[str, str | None]:
    """Return the versions of this library, of Python and of what the numbers come from."""
    versions: dict[str, str | None] = {"frpcag": frpcag.__version__, "python": platform.python_version()}
    for name in LIBRARIES:
        versions[name] = None
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def fit_or_partial(estimator: Any, X: Any) -> Any:
    """Fit, and return the fitted FRPCAG; Ctrl-C in the solve gives the certified result so far.

    Parameters
    ----------
    estimator : FRPCAG or FRPCAGClustering
    X : ndarray of shape (n_samples, n_features)

    Returns
    -------
    FRPCAG
        ``estimator`` itself or its ``estimator_``; ``status_`` tells whether it was interrupted.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C came before there was a result.
    """
    fit_as_far_as_possible(estimator, X)
    return getattr(estimator, "estimator_", estimator)


def certificate(model) -> dict[str, Any]:
    """Return the proof that a fitted FRPCAG carries, and why it ended."""
    return {
        "objective": float(model.objective_),
        "relative_gap": float(model.duality_gap_),
        "tol": model.tol,
        "converged": bool(model.converged_),
        "n_iter": int(model.n_iter_),
        "status": model.status_,
    }


def certificate_in_words(proof: dict[str, Any]) -> str:
    """Return the certificate as a sentence.

    Examples
    --------
    >>> from frpcag.cli.runs import certificate_in_words
    >>> certificate_in_words({"relative_gap": 8e-4, "tol": 1e-3, "n_iter": 17, "status": "converged"})
    'within 0.08 % of the optimum, proved (asked for 0.1 %; 17 steps)'
    """
    ends = {"max_iter": ", the limit", "interrupted": ", then interrupted"}
    steps = f"{proof['n_iter']} step{'s' if proof['n_iter'] != 1 else ''}{ends.get(proof['status'], '')}"
    asked = f"asked for {percent(proof['tol'])}; {steps}"
    return f"within {percent(proof['relative_gap'])} of the optimum, proved ({asked})"


def percent(share: float) -> str:
    """Return a share in per cent, with two digits that count."""
    return f"{100 * share:.2g} %" if share < 0.0995 else f"{100 * share:.0f} %"


def seconds_in_words(timings: dict[str, float]) -> str:
    """Return the sum of the seconds, and the stages that took a hundredth or more."""
    stages = ", ".join(f"{stage.replace('_', ' ')} {s:.2f}" for stage, s in timings.items() if s >= 0.005)
    return f"{sum(timings.values()):.1f} s" + (f" ({stages})" if stages else "")


class Timer:
    """Seconds per stage."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self.seconds: dict[str, float] = {}
        self._clock, self._last = clock, clock()

    def lap(self, stage: str) -> float:
        """Note the seconds since the last lap under a name, and return them."""
        now = self._clock()
        self.seconds[stage], self._last = now - self._last, now
        return self.seconds[stage]
