"""What becomes of a fit on Dask when parts of the cluster die: the same bits, or one clear error.

Run with ``python benchmarks/faults.py [WORDS...]``; words pick the faults whose names contain one of them. The
scheduler and two workers are processes of this machine; a fault strikes when the tasks of a stage are on their way. The
result must be that of an undisturbed fit to the last bit, or a clear error, one of ``CLEAR``, within ``PATIENCE``
seconds of the last sign of work. Writes results/faults.json and results/faults.md; exits with 1 if a fit hangs, gives
other bits or ends with another error.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TookTooLong
from contextlib import ExitStack, contextmanager
from pathlib import Path

import dask.array as da
import numpy as np
from distributed import Client
from machine import RESULTS

from frpcag import FRPCAG, DaskBackend
from frpcag.dask import DaskEngine
from frpcag.dask.cluster import Cluster

PATIENCE = 20.0  # of the fits here; the default is 300
HANG = 240.0
CLEAR = (ValueError, MemoryError, RuntimeError)  # what the library raises on purpose
GOOD, HANGS, OTHER, UNCLEAR = "same bits", "HANGS", "OTHER BITS", "UNCLEAR "
STAGES = {
    "reading": "centre",
    "graph": "graph",
    "gammas": "scale_free_gamma",
    "solve": None,
    "restoring": "restore",
    "factors": "factors",
}
BALLAST = "frpcag_ballast"


def samples(n: int = 3000, p: int = 16) -> np.ndarray:
    """Return noisy rows around a curve, some entries hit by gross errors."""
    rng = np.random.default_rng(0)
    X = np.sin(6 * rng.random((n, 1)) + np.linspace(0, 9, p)) + 0.05 * rng.normal(size=(n, p))
    X[rng.random((n, p)) < 0.1] += 3
    return X.astype(np.float32)


class Processes:
    """A scheduler and two workers, each in a process of its own."""

    def __init__(self, *, nanny: bool = True, limit: str = "0") -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.address_file = Path(self.folder.name) / "scheduler.json"
        shared = ["--scheduler-file", str(self.address_file), "--no-dashboard"]
        common = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
        self.scheduler = subprocess.Popen([*command, *shared], **common)
        while not self.address_file.exists():
            time.sleep(0.1)
        command = [sys.executable, "-m", "distributed.cli.dask_worker", "--host", "127.0.0.1", "--nthreads", "1"]
        more = ["--nanny" if nanny else "--no-nanny", "--memory-limit", limit, "--death-timeout", "60"]
        self.workers = [subprocess.Popen([*command, *more, *shared], **common) for _ in range(2)]

    def client(self) -> Client:
        client = Client(scheduler_file=str(self.address_file), timeout="60s")
        client.wait_for_workers(2, timeout=120)
        return client

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.terminate()
        for process in (*self.workers, self.scheduler):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.folder.cleanup()


@contextmanager
def striking(stage: str, fault):
    """Call ``fault`` once, in the given stage, when its first tasks have been sent and are waited for."""
    inside, fired = threading.Event(), threading.Event()
    method, gather = STAGES[stage], Cluster.gather

    def watched(self, results):
        if inside.is_set() and not fired.is_set():
            fired.set()
            fault()
        return gather(self, results)

    def entered(engine, *arguments, **options):
        inside.set()
        try:
            return before(engine, *arguments, **options)
        finally:
            inside.clear()

    before = None if method is None else getattr(DaskEngine, method)
    if before is not None:
        setattr(DaskEngine, method, entered)
    Cluster.gather = watched
    try:
        yield inside, fired
    finally:
        Cluster.gather = gather
        if before is not None:
            setattr(DaskEngine, method, before)


def fit(stage: str = "", fault=None, checkpoint: str | None = None) -> np.ndarray:
    """Fit, struck by a fault, and return the clean part."""
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        callback = None
        if fault is not None:
            inside, _ = stack.enter_context(striking(stage, fault))
            if stage == "solve":
                callback = lambda progress: inside.set() if progress.n_iter == 7 else None  # noqa: E731
        backend = DaskBackend(checkpoint=checkpoint, every=5, patience=PATIENCE)
        X = da.from_array(samples(), chunks=(1000, -1))
        model = FRPCAG(n_components=3, tol=1e-2, random_state=0, backend=backend, callback=callback).fit(X)
        return model.low_rank_.compute()


def pids(client: Client) -> list[int]:
    """Return the processes of the workers that answer."""
    return list(client.run(os.getpid, on_error="ignore").values())


def kill(*victims: int) -> None:
    for pid in victims:
        os.kill(pid, signal.SIGKILL)


def one_by_one(client: Client) -> None:
    """Kill every worker, each when the one before has been replaced."""
    for victim in pids(client):
        kill(victim)
        while victim in (now := pids(client)) or len(now) < 2:
            time.sleep(0.2)


def fill(share: float, dask_worker=None) -> None:
    """Take memory on a worker up to a share of its limit: it pauses at 0.8."""
    import builtins

    import psutil

    limit = dask_worker.memory_manager.memory_limit  # `Client.run` passes the worker by this name
    missing = int(share * limit) - psutil.Process().memory_info().rss
    setattr(builtins, BALLAST, np.ones(max(missing, 0), np.uint8))


def free() -> None:
    import builtins

    setattr(builtins, BALLAST, None)


def pause(client: Client, n: int, *, freed_after: float | None = None) -> None:
    """Fill the memory of some workers until they are paused."""
    chosen = sorted(client.nthreads())[:n]
    client.run(fill, 0.86, workers=chosen)
    while sum(info["status"] == "paused" for info in client.scheduler_info()["workers"].values()) < n:
        time.sleep(0.2)
    if freed_after is not None:
        threading.Timer(freed_after, lambda: client.run(free, workers=chosen)).start()


CHILD = """
import sys, os
sys.path.insert(0, sys.argv[1])
import faults
with faults.Client(scheduler_file=sys.argv[2]):
    faults.fit("solve", lambda: os.kill(os.getpid(), 9), sys.argv[3])
"""


def after_a_dead_client(cluster: Processes, folder: str) -> np.ndarray:
    """Fit in a child that is killed, then make the same call here."""
    here = str(Path(__file__).resolve().parent)
    child = subprocess.run([sys.executable, "-c", CHILD, here, str(cluster.address_file), folder], check=False)
    assert child.returncode == -signal.SIGKILL
    return fit(checkpoint=folder)


def outcome(job, truth: np.ndarray) -> tuple[str, float]:
    """Return what became of a fit, and its seconds."""
    start = time.perf_counter()
    pool = ThreadPoolExecutor(1)
    running = pool.submit(job)
    try:
        U = running.result(HANG)
        said = GOOD if np.array_equal(U, truth) else OTHER
    except TookTooLong:
        said = HANGS
    except Exception as error:
        said = f"{'' if isinstance(error, CLEAR) else UNCLEAR}{type(error).__name__}: {error}"
        traceback.print_exc()
    pool.shutdown(wait=False)
    return said, time.perf_counter() - start


def faults():
    """Yield name, stage, options of the cluster, and the job to run on it."""
    for stage in STAGES:
        yield "one worker", stage, {}, lambda c, client, d, s=stage: fit(s, lambda: kill(pids(client)[0]))
    for stage in STAGES:
        yield "all workers at once", stage, {}, lambda c, client, d, s=stage: fit(s, lambda: kill(*pids(client)))
    for stage in ("graph", "solve"):
        yield "workers one by one", stage, {}, lambda c, client, d, s=stage: fit(s, lambda: one_by_one(client))
    yield (
        "all workers at once, checkpoint", "solve", {},
        lambda c, client, d: fit("solve", lambda: kill(*pids(client)), d),
    )  # fmt: skip
    yield "client, the same call again", "solve", {}, lambda c, client, d: after_a_dead_client(c, d)
    for stage in ("graph", "solve"):
        alone = {"nanny": False}
        yield (
            "all workers, none comes back",
            stage,
            alone,
            lambda c, client, d, s=stage: fit(s, lambda: kill(*pids(client))),
        )
    for stage in ("graph", "solve"):
        small = {"limit": "700MB"}
        yield "one worker paused for good", stage, small, lambda c, client, d, s=stage: fit(s, lambda: pause(client, 1))
        yield (
            "all workers paused for good",
            stage,
            small,
            lambda c, client, d, s=stage: fit(s, lambda: pause(client, 2)),
        )
    yield (
        "all workers paused for 10 s",
        "solve",
        small,
        lambda c, client, d: fit("solve", lambda: pause(client, 2, freed_after=10)),
    )
    for stage in ("graph", "solve", "restoring"):
        yield "scheduler", stage, {}, lambda c, client, d, s=stage: fit(s, lambda: kill(c.scheduler.pid))


def write(rows: list[dict]) -> None:
    """Write the results so far, as numbers and as a page."""
    (RESULTS / "faults.json").write_text(json.dumps({"patience": PATIENCE, "rows": rows}, indent=1) + "\n")
    lines = ["| what died | in which stage | what came of it | seconds |", "|---|---|---|---|"]
    lines += [
        f"| {row['fault']} | {row['when']} | {' '.join(row['result'].split())} | {row['seconds']} |" for row in rows
    ]
    head = (
        "# Faults\n\nMade by `python benchmarks/faults.py`: two workers of one thread on one machine, "
        f"`patience={PATIENCE:g}`. Seconds are those of the whole fit, on a busy machine.\n\n"
    )
    (RESULTS / "faults.md").write_text(head + "\n".join(lines) + "\n")


def main() -> None:
    words = sys.argv[1:]
    rows, truth, last, cluster, client = [], None, None, None, None
    for name, stage, options, job in faults():
        if words and not any(word in f"{name} {stage}" for word in words):
            continue
        if cluster is None or options != last or options or rows[-1]["fault"] == "scheduler":
            if cluster is not None:
                client.close()
                cluster.close()
            cluster, last = Processes(**options), options
            client = cluster.client()
        client.wait_for_workers(2, timeout=120)
        if truth is None:
            truth = fit()
        with tempfile.TemporaryDirectory() as folder:
            said, seconds = outcome(lambda c=cluster, k=client, d=folder, do=job: do(c, k, d), truth)
        rows.append({"fault": name, "when": stage, "result": said, "seconds": round(seconds, 1)})
        print(f"{name:34s} {stage:10s} {seconds:6.1f} s  {said}", flush=True)
        if not words:
            write(rows)
    client.close(timeout=5)
    cluster.close()
    failed = sum(row["result"].startswith((HANGS, OTHER, UNCLEAR)) for row in rows)
    print(f"{failed} of {len(rows)} hang, give other bits or end without a clear error")
    sys.stdout.flush()
    os._exit(int(failed > 0))  # a fit that hangs has a thread that never ends


if __name__ == "__main__":
    main()
