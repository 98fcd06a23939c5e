"""One contender on one task, measured in a fresh process: seconds, memory, scores."""

from __future__ import annotations

import gc
import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import mean, median
from time import perf_counter
from typing import Any

from reproduction.paper.run import RECORDS, cell_key, end_with_parent, read_records, store_record

from contest.contenders import QUICK, REPEATS, Contender, Timed
from contest.tasks import Task, shrink
from frpcag import __version__
from frpcag.runtime.atomic import atomic_file

SETUP_LIMIT = 300.0  # seconds for imports, data, compilation and what a contender prepares
THREAD_VARIABLES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
    *("NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT"),
)
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "tensorly", "pyunlocbox", "umap-learn")
OK, OVER, NOT_INSTALLED = "ok", "over", "not installed"


def run_task(
    task: Task, folder: Path, *, quick: bool = False, limit: float = 60.0, threads: int = 1
) -> Iterator[dict[str, Any]]:
    """Measure the missing cells of a task, one at a time, and yield each record once it is on disk.

    Parameters
    ----------
    task : Task
        What to compare.
    folder : Path
        Where its records lie; made where missing.
    quick : bool, default=False
        The small version, on data that come with scikit-learn.
    limit : float, default=60
        Seconds that a run may take; it is then ended and recorded as over the limit.
    threads : int, default=1
        Threads of every contender.

    Yields
    ------
    dict
        ``cell``; ``status``: "ok", "over" or "not installed"; what :func:`measure` found. A contender that fails yields
        a record with ``"error"``, which is not stored. It, what was not installed and what was over a lower limit are
        tried again by the next run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    done = read_records(folder)
    too_slow = set()
    for cell in task.cells(quick):
        record = done.get(cell_key(cell))
        if record is None or _worth_another_try(record, limit):
            start = perf_counter()
            if task.grows and cell["model"] in too_slow:
                found = {"status": OVER, "limit": limit, "note": "not run: over the limit with fewer samples"}
            else:
                found = measure(task, cell, limit=limit, threads=threads)
            record = store_record(
                folder, cell, {"cell": cell, **found, "seconds": round(perf_counter() - start, 3)}, {}
            )
            yield record
        if record.get("status") == OVER:
            too_slow.add(cell["model"])


def forget_records(folder: Path, names: list[str]) -> None:
    """Drop the records of these tasks from a folder, so that they are measured again."""
    kept = [record for record in read_records(folder).values() if record["cell"]["task"] not in names]
    with atomic_file(folder / RECORDS) as partial:
        partial.write_text("".join(json.dumps(record) + "\n" for record in kept))


def _worth_another_try(record: dict, limit: float) -> bool:
    return record["status"] == NOT_INSTALLED or (record["status"] == OVER and record["limit"] < limit)


def measure(task: Task, cell: dict, *, limit: float, threads: int) -> dict[str, Any]:
    """Return what one contender does on one task, in a process of its own.

    Returns
    -------
    dict
        ``status`` and ``limit``; then ``shape``, ``threads``, ``times`` (``run``: seconds, the median of ``runs``;
        ``cold``: the first call in the process on a few rows, with imports and compilation), ``memory`` (peak bytes of
        resident memory during the first run beyond those before it, with the data loaded and the contender warm; None
        where the system does not tell), ``scores`` (means over the seeds) and ``versions``.
    """
    contender = task.contenders[cell["model"]]
    if contender.needs is not None and find_spec(contender.needs) is None:
        return {
            "status": NOT_INSTALLED,
            "note": f"{contender.needs} is not installed: pip install 'frpcag[benchmarks]'",
        }
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, task, contender, cell, threads), daemon=True)
    with _thread_limits(threads):
        process.start()
    sender.close()  # so that the end of the process is the end of what can be read
    try:
        wait, word = SETUP_LIMIT, "setup"
        while word != "record":
            if not receiver.poll(wait):
                return {"status": OVER, "limit": wait, "threads": threads, "note": f"stopped in its {word}"}
            word, content = receiver.recv()
            wait = limit
            if word == "error":
                return {"error": content}
    except EOFError:
        process.join()
        return {"error": f"the process ended with code {process.exitcode}, for want of memory perhaps"}
    finally:
        process.kill()
        process.join()
        receiver.close()
    return {"status": OK, "limit": limit, "threads": threads, **content, "versions": _versions()}


def _work(out: Connection, task: Task, contender: Contender, cell: dict, threads: int) -> None:
    """Measure in this process and send what was found; a word after every step lets the other side keep the time."""
    end_with_parent()
    warnings.simplefilter("ignore")  # graphs in several pieces, steps that ran out: the scores tell
    try:
        out.send(("record", _measure_here(out, task, contender, cell, threads)))
    except Exception as error:
        out.send(("error", f"{type(error).__name__}: {error}"))


def _measure_here(out: Connection, task: Task, contender: Contender, cell: dict, threads: int) -> dict[str, Any]:
    given, truth = task.load(cell)
    given = replace(given, threads=threads)
    _, cold = _timed(contender, _state(contender, shrink(given, contender.warm_rows)), seed=0)
    state = _state(contender, given)
    runs: list[float] = []
    scores: list[dict] = []
    memory = None
    while len(runs) < task.n_seeds or (sum(runs) / len(runs) < QUICK and len(runs) < REPEATS):
        gc.collect()
        before = _reset_peak() if not runs else None
        out.send(("run", None))
        output, seconds = _timed(contender, state, seed=len(runs))
        if before is not None:
            memory = max(_peak() - before, 0)
        runs.append(seconds)
        if len(runs) <= task.n_seeds:
            scores.append(task.score(output, truth))
        del output
    return {
        "shape": list(given.X.shape),
        "times": {"run": median(runs), "runs": runs, "cold": cold},
        "memory": memory,
        "scores": {key: mean(one[key] for one in scores) for key in scores[0]},
    }


def _state(contender: Contender, given: Any) -> Any:
    return given if contender.prepare is None else contender.prepare(given)


def _timed(contender: Contender, state: Any, *, seed: int) -> tuple[Any, float]:
    start = perf_counter()
    output = contender.run(state, seed)
    seconds = perf_counter() - start
    return output if isinstance(output, Timed) else (output, seconds)


def _reset_peak() -> int | None:
    """Forget the peak of resident memory so far and return what is resident now; None where that cannot be done."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:  # not Linux, or not allowed
        return None
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM")


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))


@contextmanager
def _thread_limits(threads: int) -> Iterator[None]:
    """Set how many threads a process started in this block may use: libraries read it once, at import."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _versions() -> dict[str, str]:
    found = {"frpcag": __version__}  # that of the code itself: an editable install may say an older one
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
