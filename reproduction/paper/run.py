"""Run the cells of an experiment, one JSON record each; cells with a record do not run again."""

from __future__ import annotations

import json
import os
import platform
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from time import perf_counter
from typing import Any, BinaryIO

import numpy as np
from threadpoolctl import threadpool_limits

from frpcag.runtime.atomic import atomic_file

RECORDS = "records.jsonl"
Measure = Callable[[dict], tuple[dict, dict[str, np.ndarray]]]


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper.

    ``measure`` takes a cell to a record (plain numbers and text) and arrays for the pictures; ``render`` takes all
    records and the folder to Markdown. Experiments of one ``records`` name share their cells.
    """

    name: str
    title: str
    cells: Callable[[bool], list[dict]]
    measure: Measure
    render: Callable[[list[dict], Path], str]
    records: str
    timed: bool = False  # cells that take the time run alone, on every core


def cell_key(cell: dict) -> str:
    """Return one text for a cell, which does not depend on the order of its entries."""
    return json.dumps(cell, sort_keys=True)


def arrays_file(folder: Path, cell: dict) -> Path:
    """Return where the arrays of a cell lie."""
    return folder / "arrays" / f"{sha256(cell_key(cell).encode()).hexdigest()[:12]}.npz"


def read_records(folder: Path) -> dict[str, dict]:
    """Return the records of a folder by cell; a line cut short by a crash counts as not there."""
    file = folder / RECORDS
    records = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        records[cell_key(record["cell"])] = record
    return records


def run_cells(experiment: Experiment, folder: Path, *, smoke: bool = False, n_jobs: int = 1) -> Iterator[dict]:
    """Run the missing cells and yield each record once it is on disk.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    folder : Path
        Where its records lie; made where missing.
    smoke : bool, default=False
        The small version, on data that come with scikit-learn.
    n_jobs : int, default=1
        Processes, of one thread each. Timed experiments ignore it and run alone.

    Yields
    ------
    dict
        A record. A cell that fails yields a record with ``"error"``, which is not stored, so that the next run
        tries it again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    done = read_records(folder)
    todo = [cell for cell in experiment.cells(smoke) if cell_key(cell) not in done]
    if experiment.timed or n_jobs == 1:
        for cell in todo:
            yield store_record(folder, cell, *run_cell(experiment.measure, cell, one_thread=not experiment.timed))
        return
    # Spawned, not forked: a forked child would inherit locks held by threads that it does not have.
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        futures = {pool.submit(run_cell, experiment.measure, cell): cell for cell in todo}
        try:
            for future in as_completed(futures):
                yield store_record(folder, futures[future], *future.result())
        finally:
            pool.shutdown(cancel_futures=True)


def run_cell(measure: Measure, cell: dict, *, one_thread: bool = True) -> tuple[dict, dict[str, np.ndarray]]:
    """Return the record and the arrays of one cell."""
    start = perf_counter()
    try:
        with threadpool_limits(1 if one_thread else None), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # graphs in several pieces, k-means with fewer distinct points
            record, arrays = measure(cell)
    except Exception as error:
        return {"cell": cell, "error": f"{type(error).__name__}: {error}"}, {}
    return {"cell": cell, **record, "seconds": round(perf_counter() - start, 3)}, arrays


def store_record(folder: Path, cell: dict, record: dict, arrays: dict[str, np.ndarray]) -> dict:
    """Append a record to those of a folder, its arrays beside it, and return it; one of a failure is not stored."""
    if "error" in record:
        return record
    if arrays:
        file = arrays_file(folder, cell)
        file.parent.mkdir(exist_ok=True)
        with atomic_file(file) as partial:
            np.savez_compressed(partial, **arrays)  # type: ignore[arg-type]
    with (folder / RECORDS).open("a+b") as out:
        if out.tell() and not _ends_with_newline(out):  # cut short by a crash
            out.write(b"\n")
        out.write(json.dumps(record).encode() + b"\n")
    return record


def end_with_parent() -> None:
    """End this process when its parent is gone, so that a killed run leaves no process behind."""
    parent = parent_process()

    def watch() -> None:
        parent.join()  # type: ignore[union-attr]
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _ends_with_newline(file: BinaryIO) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def machine() -> dict[str, Any]:
    """Return what a reader must know to weigh the times."""
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("frpcag", "numpy", "scipy", "scikit-learn", "numba")},
    }
