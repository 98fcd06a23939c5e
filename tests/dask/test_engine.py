"""Facts about fits on row blocks, on a real cluster of two worker processes."""

import os
import signal
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

pytest.importorskip("distributed", reason="Dask is not installed")

import dask.array as da
from distributed import Client

import dask
from frpcag import FRPCAG, build_graph
from frpcag.dask import DaskBackend, DaskEngine
from frpcag.dask.cluster import Cluster

pytestmark = [
    pytest.mark.dask,
    # Of distributed's own sockets and loops while a process it watches dies; nobody here can act on them.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]

UNEVEN = [(240,), (90, 150), (10, 80, 70, 30, 50)]
TOL = 1e-2  # eleven steps; each is a few dozen tasks


def samples(missing=0.0, n=240, p=12, seed=0):
    """Noisy rows around a curve in p dimensions, in random order, some entries hit by gross errors, some missing."""
    rng = np.random.default_rng(seed)
    X = np.sin(6 * rng.random((n, 1)) + np.linspace(0, 9, p)) + 0.05 * rng.normal(size=(n, p))
    X[rng.random((n, p)) < 0.1] += 3
    X[: n // 3][rng.random((n // 3, p)) < missing] = np.nan
    return X.astype(np.float32)


def chunked(X, chunks):
    return da.from_array(X, chunks=(chunks, -1))


@pytest.fixture(scope="module")
def calm(client):
    """Return the fit of `samples` in some chunks that nobody disturbs, its arrays on this machine; once for each."""

    @cache
    def fit(chunks):
        model = FRPCAG(tol=TOL, random_state=0).fit(chunked(samples(), chunks))
        arrays = {name: getattr(model, name) for name in ("low_rank_", "sparse_", "embedding_")}
        return model, {name: A.compute() for name, A in arrays.items()}

    return fit


@pytest.mark.parametrize("chunks", UNEVEN)
def test_a_fit_in_chunks_equals_the_fit_on_one_machine(calm, chunks):
    X = samples()
    one = FRPCAG(tol=TOL).fit(X)
    many, arrays = calm(chunks)
    assert many.backend_ == "dask"
    assert many.duality_gap_ <= TOL
    assert many.sample_graph_.recall == 1.0
    assert_allclose(many.objective_, one.objective_, rtol=1e-4)
    assert_allclose([many.gamma1_, many.gamma2_], [one.gamma1_, one.gamma2_], rtol=1e-5)
    assert many.low_rank_.chunks == many.sparse_.chunks == (chunks, (12,))
    low_rank, sparse, embedding = arrays.values()
    assert_allclose(low_rank, one.low_rank_, atol=5e-3)
    assert_allclose(low_rank + sparse, X, atol=1e-5)
    assert_allclose(np.abs(embedding[:, :2]), np.abs(one.embedding_[:, :2]), atol=2e-2)
    assert_allclose(many.singular_values_, one.singular_values_, rtol=1e-3)
    assert isinstance(many.components_, np.ndarray)


def test_missing_entries_in_one_chunk_are_predicted_and_certified_as_on_one_machine(client):
    X = samples(missing=0.3)
    graph = build_graph(X)
    one = FRPCAG(tol=TOL, sample_graph=graph).fit(X)
    many = FRPCAG(tol=TOL, sample_graph=graph).fit(chunked(X, (80, 100, 60)))
    assert np.isnan(X[:80]).any()
    assert not np.isnan(X[80:]).any()
    assert many.duality_gap_ <= TOL
    assert_allclose(many.objective_, one.objective_, rtol=1e-3)
    assert_allclose(many.low_rank_.compute(), one.low_rank_, atol=2e-2)
    assert not many.sparse_.compute()[np.isnan(X)].any()


def test_a_worker_killed_in_mid_run_costs_no_bit_of_the_result(client, calm, tmp_path):
    undisturbed, arrays = calm((90, 150))
    victims = []

    def kill_once(progress):
        if progress.n_iter == 7 and not victims:
            victims.append(next(iter(client.run(os.getpid).values())))
            os.kill(victims[0], signal.SIGKILL)

    backend = DaskBackend(checkpoint=str(tmp_path / "run"), every=5)
    model = FRPCAG(tol=TOL, random_state=0, backend=backend, callback=kill_once)
    hurt = model.fit(chunked(samples(), (90, 150)))
    assert victims
    assert hurt.n_iter_ == undisturbed.n_iter_
    assert np.array_equal(hurt.low_rank_.compute(), arrays["low_rank_"])
    assert hurt.objective_ == undisturbed.objective_
    client.wait_for_workers(2, timeout=120)


def _wait_for(path):
    while not os.path.exists(path):
        pass
    return path


def test_tasks_with_a_home_outlive_all_workers_there_were(client, tmp_path):
    cluster, go = Cluster(client, patience=120), tmp_path / "go"
    waiting = cluster.map(_wait_for, [(str(go),), (str(go),)], cluster.workers())
    for victim in client.run(os.getpid).values():
        os.kill(victim, signal.SIGKILL)
    go.touch()
    assert cluster.gather(waiting) == [str(go), str(go)]
    client.wait_for_workers(2, timeout=120)


def test_workers_are_found_while_the_client_refreshes_what_it_knows(client):
    often = dask.config.set({"distributed.client.scheduler-info-interval": "1 ms"})
    with often, Client(client.scheduler.address, set_as_default=False) as restless:
        assert {len(Cluster(restless).workers()) for _ in range(200)} == {2}


def test_a_worker_that_joins_late_gets_blocks_and_changes_no_bit(client, calm, tmp_path):
    chunks = UNEVEN[2]
    undisturbed, arrays = calm(chunks)
    held = {}

    def scale_up(progress):
        if progress.n_iter == 3:
            held["before"] = set(client.nthreads())
            client.cluster.scale(3)
            client.wait_for_workers(3, timeout=120)
        if progress.n_iter == 8:
            held["after"] = {worker for worker, keys in client.has_what().items() if keys}

    backend = DaskBackend(checkpoint=str(tmp_path / "run"), every=5)
    try:
        model = FRPCAG(tol=TOL, random_state=0, backend=backend, callback=scale_up)
        joined = model.fit(chunked(samples(), chunks))
    finally:
        client.cluster.scale(2)
    assert held["after"] - held["before"]
    assert np.array_equal(joined.low_rank_.compute(), arrays["low_rank_"])
    assert joined.n_iter_ == undisturbed.n_iter_


_FIT = """
import sys
import numpy as np
import dask.array as da
from dask.distributed import Client
from frpcag import FRPCAG
from frpcag.dask import DaskBackend

address, data, folder = sys.argv[1:]
client = Client(address)
X = np.load(data)
backend = DaskBackend(checkpoint=folder, every=3)
say = lambda progress: print(progress.n_iter, flush=True)
FRPCAG(tol=1e-2, backend=backend, callback=say).fit(da.from_array(X, chunks=((90, 150), X.shape[1])))
"""


def test_a_client_killed_in_mid_solve_is_taken_over_by_the_same_call(client, tmp_path):
    X, seen, folder = samples(), [], str(tmp_path / "run")
    np.save(tmp_path / "X.npy", X)
    command = [sys.executable, "-c", _FIT, client.scheduler.address, str(tmp_path / "X.npy"), folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout:
            if int(line) == 8:
                child.kill()
    options = {"tol": TOL, "backend": DaskBackend(checkpoint=folder, every=3)}
    resumed = FRPCAG(**options, callback=lambda progress: seen.append(progress.n_iter)).fit(chunked(X, (90, 150)))
    assert seen[0] > 6
    assert resumed.duality_gap_ <= TOL


class _ClientDies(Exception):
    pass


def test_the_same_call_goes_on_from_the_checkpoint_of_a_client_that_died(client, tmp_path):
    X, seen = samples(), []

    def die(progress):
        if progress.n_iter == 8:
            raise _ClientDies

    def note(progress):
        seen.append(progress.n_iter)

    options = {"tol": 1e-4, "random_state": 0, "backend": DaskBackend(checkpoint=str(tmp_path / "run"), every=3)}
    with pytest.raises(_ClientDies):
        FRPCAG(**options, callback=die).fit(chunked(X, (90, 150)))
    assert [path.name[:11] for path in (tmp_path / "run").glob("step-*")] == ["step-000006"]
    resumed = FRPCAG(**options, callback=note).fit(chunked(X, (90, 150)))
    assert seen[0] == 7
    whole = FRPCAG(**{**options, "backend": "dask"}).fit(chunked(X, (90, 150)))
    assert resumed.n_iter_ == whole.n_iter_
    assert resumed.duality_gap_ == whole.duality_gap_ <= 1e-4
    assert np.array_equal(resumed.low_rank_.compute(), whole.low_rank_.compute())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_store_is_a_clear_error_and_leaves_the_earlier_checkpoint(client, tmp_path, monkeypatch):
    run = tmp_path / "run"
    monkeypatch.setattr("secrets.token_hex", lambda n_bytes: "ab" * n_bytes)

    def fill(progress):
        if progress.n_iter == 9:
            (run / "step-000010-abababab").mkdir()
            (run / "step-000010-abababab" / "1.npz").symlink_to("/dev/full")

    model = FRPCAG(tol=1e-4, backend=DaskBackend(checkpoint=str(run), every=5), callback=fill)
    with pytest.raises(OSError, match=r"could not be written .*No space left.*checkpoint of step 5 is intact"):
        model.fit(chunked(samples(), (90, 150)))
    (block,) = run.glob("step-*/1.npz")
    with np.load(block) as arrays:
        assert np.isfinite(arrays["U"]).all()
    assert model.set_params(tol=TOL, callback=None).fit(chunked(samples(), (90, 150))).duality_gap_ <= TOL


def test_two_clients_on_one_folder_find_the_same(client, calm, tmp_path):
    options = {"tol": TOL, "random_state": 0, "backend": DaskBackend(checkpoint=str(tmp_path / "run"), every=5)}
    found = []

    def another(progress):
        if progress.n_iter == 7:
            with Client(client.scheduler.address):
                found.append(FRPCAG(**options).fit(chunked(samples(), (90, 150))).low_rank_.compute())

    found.append(FRPCAG(**options, callback=another).fit(chunked(samples(), (90, 150))).low_rank_.compute())
    assert all(np.array_equal(U, calm((90, 150))[1]["low_rank_"]) for U in found)
    assert len(found) == 2


def test_results_go_to_a_zarr_store_when_asked(client, tmp_path):
    import zarr

    X = samples()
    out = str(tmp_path / "out.zarr")
    model = FRPCAG(backend=DaskBackend(output=out), tol=TOL).fit(chunked(X, (10, 80, 150)))
    stored = zarr.open_group(out, mode="r")
    assert_allclose(stored["low_rank"][:] + stored["sparse"][:], X, atol=1e-5)
    assert stored["embedding"].shape == model.embedding_.shape
    assert np.array_equal(model.low_rank_.compute(), stored["low_rank"][:])


def test_the_result_is_the_same_bit_for_bit_without_any_worker(calm, monkeypatch):
    from frpcag.dask.tasks import Here

    chunks = UNEVEN[2]
    many, arrays = calm(chunks)
    monkeypatch.setattr("frpcag.dask.engine.current_cluster", lambda patience: Here())
    alone = FRPCAG(tol=TOL, random_state=0, backend="dask").fit(chunked(samples(), chunks))
    assert len(many.sample_graph_.parts) == len(alone.sample_graph_.parts) > 2
    assert np.array_equal(alone.low_rank_.compute(), arrays["low_rank_"])
    assert (alone.n_iter_, alone.duality_gap_) == (many.n_iter_, many.duality_gap_)


def test_a_worker_killed_without_a_checkpoint_costs_no_bit_either(client, calm):
    undisturbed, arrays = calm((90, 150))
    victims = []

    def kill_once(progress):
        if progress.n_iter == 5 and not victims:
            victims.append(next(iter(client.run(os.getpid).values())))
            os.kill(victims[0], signal.SIGKILL)

    hurt = FRPCAG(tol=TOL, random_state=0, callback=kill_once).fit(chunked(samples(), (90, 150)))
    assert victims
    assert np.array_equal(hurt.low_rank_.compute(), arrays["low_rank_"])
    assert hurt.objective_ == undisturbed.objective_
    client.wait_for_workers(2, timeout=120)


@pytest.mark.parametrize("checkpoint", [True, False])
def test_the_task_graph_does_not_grow_with_the_number_of_steps(client, tmp_path, checkpoint):
    counts = []

    def count(progress):
        counts.append(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))

    backend = DaskBackend(checkpoint=str(tmp_path / "run") if checkpoint else None, every=4)
    with pytest.warns(UserWarning, match="no convergence"):
        FRPCAG(backend=backend, tol=0, max_iter=20, callback=count).fit(chunked(samples(), (90, 150)))
    # Twelve steps more would be some 36 tasks more; a few may be on their way to being forgotten.
    assert max(counts[-8:]) < max(counts[:8]) + 6


def test_workers_killed_before_the_factors_cost_no_bit(client, calm, monkeypatch):
    undisturbed, arrays = calm((90, 150))
    whole, victims = DaskEngine.factors, []

    def factors(engine, U):
        if not victims:
            victims.extend(client.run(os.getpid).values())
            for victim in victims:
                os.kill(victim, signal.SIGKILL)
        return whole(engine, U)

    monkeypatch.setattr(DaskEngine, "factors", factors)
    hurt = FRPCAG(tol=TOL, random_state=0).fit(chunked(samples(), (90, 150)))
    assert victims
    assert np.array_equal(hurt.low_rank_.compute(), arrays["low_rank_"])
    assert np.array_equal(hurt.singular_values_, undisturbed.singular_values_)
    assert hurt.duality_gap_ == undisturbed.duality_gap_
    client.wait_for_workers(2, timeout=120)


def _twice(X):
    """Fit two times in one task, and return both gaps."""
    model = FRPCAG(tol=TOL, random_state=0)
    return [model.fit(da.from_array(X, chunks=((90, 150), -1))).duality_gap_ for _ in range(2)]


def test_fits_in_tasks_on_every_thread_of_the_cluster_end(client, calm):
    tasks = client.map(_twice, [samples()] * 3, pure=False)
    gap = calm((90, 150))[0].duality_gap_
    assert client.gather(client.submit(list, tasks), direct=False) == [[gap, gap]] * 3
