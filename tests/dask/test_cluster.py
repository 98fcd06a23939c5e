"""A cluster that no longer moves ends the wait with words; nothing hangs."""

import logging
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

import dask.array as da
from distributed import Client, LocalCluster
from distributed.client import ClosedClientError, FutureCancelledError
from distributed.comm import CommClosedError
from distributed.core import Status
from distributed.scheduler import KilledWorker

from frpcag import FRPCAG, DaskBackend
from frpcag.dask.cluster import Cluster
from frpcag.dask.memory import require_worker_memory, worker_bytes

pytestmark = [
    pytest.mark.dask,
    # Of distributed's own sockets and loops while what they serve goes away.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]


@pytest.fixture
def start():
    """Start a cluster in this process, with some workers."""
    opened = []

    def start(n_workers, **options):
        cluster = LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL, **options,
        )  # fmt: skip
        opened.append(cluster)
        opened.append(Client(cluster))
        return cluster, opened[-1]

    yield start
    for what in reversed(opened):
        with suppress(TimeoutError, OSError):  # the scheduler may be gone
            what.close(timeout=5)


def test_a_cluster_without_workers_is_an_error_in_words(start):
    _, client = start(0)
    cluster = Cluster(client, patience=0.3)
    for wait in (cluster.workers, lambda: cluster.gather(client.submit(int))):
        with pytest.raises(RuntimeError, match=r"has had no workers for 0\.3 s; start some"):
            wait()


def test_workers_paused_by_their_memory_are_a_memory_error_with_the_bytes_needed(start):
    local, _ = start(2, memory_limit="2GB")
    for worker in local.workers.values():
        worker.memory_manager.memory_limit = 2  # whatever it holds is too much
    X = da.from_array(np.random.default_rng(0).normal(size=(80, 6)), chunks=(20, -1))
    words = r"2 of 2 workers are paused by their memory limits .*shape \(80, 6\) in chunks of 20 .* needs about 3.*MiB"
    local.sync(_pause, local)
    with pytest.raises(MemoryError, match=words):
        FRPCAG(backend=DaskBackend(patience=0.5)).fit(X)


async def _pause(local):
    for worker in local.workers.values():
        worker.status = Status.paused


def _raise(error):
    raise error


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (
            FutureCancelledError("task", "scheduler-connection-lost"),
            "connecting",
            "scheduler or its results were lost.*checkpoint=",
        ),
        (CommClosedError("in <TCP>: closed"), "running", "scheduler or its results were lost.*checkpoint="),
        (ClosedClientError("client is closed"), "closed", "scheduler or its results were lost.*checkpoint="),
        (KilledWorker("task", SimpleNamespace(address="tcp://a"), 3), "running", "4 workers died .* at tcp://a.*8 GiB"),
    ],
)
def test_what_dask_says_of_a_lost_cluster_comes_in_words(error, status, words):
    cluster = Cluster(SimpleNamespace(gather=list, sync=lambda *_: _raise(error), status=status))
    cluster.needs = "The fit needs 8 GiB."
    with pytest.raises(RuntimeError, match=words) as raised:
        cluster.gather([])
    assert raised.value.__cause__ is error


def test_a_function_that_fails_on_every_worker_is_not_called_for_ever(start):
    _, client = start(1)
    calls = []

    def fail():
        calls.append(1)
        raise ValueError("no such setting")

    with pytest.raises(ValueError, match="no such setting"):
        Cluster(client).on_each_worker(fail)
    assert len(calls) <= 5


def test_an_error_of_a_task_comes_as_it_is():
    cluster = Cluster(SimpleNamespace(gather=list, sync=lambda *_: _raise(ValueError("row 3")), status="running"))
    with pytest.raises(ValueError, match="row 3"):
        cluster.gather([])


def test_workers_smaller_than_a_block_are_refused_at_once():
    limits = {"a": (1, 12 * 10**8), "b": (4, 12 * 10**8)}
    cluster = SimpleNamespace(memory=lambda: limits, needs="")
    require_worker_memory(cluster, (10**6, 64), [10**5] * 10, 4, 10)
    assert cluster.needs.startswith("A fit of X with shape (1000000, 64) in chunks of 100000 rows needs about 1.7 GiB")
    with pytest.raises(MemoryError, match=r"at least 1\.5 GiB on a worker of 4 threads; the limit of b is 1\.1 GiB"):
        require_worker_memory(cluster, (10**6, 64), [500_000] * 2, 4, 10)
    with pytest.raises(MemoryError, match=r"at least 1\.4 GiB on a worker of 1 threads; the limit of a is 1\.1 GiB"):
        require_worker_memory(cluster, (14 * 10**5, 64), [10**5] * 14, 4, 10)
    require_worker_memory(SimpleNamespace(memory=lambda: {"a": (1, 0)}), (10**9, 64), [10**9], 4, 10)


PEAKS = [(100_000, 1, 2, 562), (400_000, 1, 4, 1292), (700_000, 2, 6, 1306), (1_000_000, 1, 8, 2527)]
PEAKS += [(200_000, 2, 2, 608), (1_000_000, 2, 8, 1601), (1_864_400, 2, 15, 2802)]


@pytest.mark.parametrize(("n", "workers", "blocks", "peak"), PEAKS)
def test_the_bytes_of_a_worker_are_about_what_was_measured(n, workers, blocks, peak):
    # Peaks in results/dask.json, in units of 2**20 bytes.
    assert 0.97 <= worker_bytes(n, 64, 4, 10, n_workers=workers, n_blocks=blocks) / (peak * 2**20) <= 1.25
