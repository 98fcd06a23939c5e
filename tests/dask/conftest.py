"""A Dask cluster for the tests of engines."""

import logging
import warnings

import pytest


@pytest.fixture(scope="module")
def client():
    """Return a client of two worker processes, those of one module's tests."""
    dask, distributed = (pytest.importorskip(name, reason="Dask is not installed") for name in ("dask", "distributed"))
    settings = {
        # A worker that was killed may take long to come back on a busy machine; the cluster must not give it up.
        "distributed.deploy.lost-worker-timeout": "1 hour",
        # Workers that watch themselves take a third of the time of these fits.
        "distributed.worker.profile.enabled": False,
        "distributed.admin.system-monitor.interval": "10 s",
        "distributed.worker.memory.monitor-interval": "10 s",
    }
    with dask.config.set(settings), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None,
            silence_logs=logging.CRITICAL,
        )  # fmt: skip
        with cluster, distributed.Client(cluster) as client:
            yield client
