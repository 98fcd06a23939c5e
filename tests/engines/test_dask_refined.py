"""Facts about solves on the graphs of the clean part, on a real cluster of two worker processes."""

import os
import signal

import numpy as np
import pytest
from numpy.testing import assert_allclose

pytest.importorskip("distributed", reason="Dask is not installed")

import dask.array as da

from frpcag import FRPCAG, build_graph
from frpcag.backends.dask import DaskBackend

pytestmark = [
    pytest.mark.dask,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]

CHUNKS = (10, 80, 70, 30, 50)
OPTIONS = {"n_refine": 1, "tol": 1e-2, "random_state": 0}
ROUND = 100  # steps; the second solve's are counted from here


def samples():
    """Rows around a curve, so many entries hit by gross errors that the graph is mostly noise."""
    rng = np.random.default_rng(0)
    X = np.sin(6 * rng.random((240, 1)) + np.linspace(0, 9, 12)) + 0.05 * rng.normal(size=(240, 12))
    X[rng.random(X.shape) < 0.2] += 3
    return X.astype(np.float32)


def chunked(chunks=CHUNKS):
    return da.from_array(samples(), chunks=(chunks, -1))


@pytest.fixture(scope="module")
def calm(client):
    model = FRPCAG(**OPTIONS).fit(chunked())
    return model, model.low_rank_.compute()


class Rounds:
    """A callback that calls ``do`` once, at a step of the second solve, and notes every step."""

    def __init__(self, step=0, do=None):
        self.step, self.do, self.seen = step, do, []

    def __call__(self, progress):
        before = self.seen[-1] if self.seen else 0
        self.seen.append(before - before % ROUND + progress.n_iter)
        if self.seen[-1] <= before:
            self.seen[-1] += ROUND
        if self.do is not None and self.seen[-1] == ROUND + self.step:
            self.do()


def kill_one(client):
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


def test_the_refined_fit_is_that_of_one_machine(calm):
    many, low_rank = calm
    one = FRPCAG(**OPTIONS).fit(samples())
    assert many.n_refine_ == one.n_refine_ == 1
    assert many.duality_gap_ <= 1e-2
    assert_allclose([many.gamma1_, many.gamma2_], [one.gamma1_, one.gamma2_], rtol=0.02)
    assert_allclose(many.objective_, one.objective_, rtol=2e-2)
    assert np.abs(low_rank - one.low_rank_).mean() < 0.05 * np.abs(one.low_rank_).mean()


def test_the_graph_is_that_of_the_clean_part_of_the_first_solve(calm):
    first = FRPCAG(**{**OPTIONS, "n_refine": 0}).fit(chunked())
    wanted = build_graph(first.low_rank_.compute() - first.center_.astype(np.float32))
    found = calm[0].sample_graph_
    assert (found.n_nodes, found.n_edges) == (wanted.n_nodes, wanted.n_edges)
    assert_allclose(found.sigma, wanted.sigma, rtol=1e-4)


def test_edges_kept_are_counted_whatever_the_order_of_the_nodes(calm):
    refined = calm[0].sample_graph_
    first = FRPCAG(**{**OPTIONS, "n_refine": 0}).fit(chunked((90, 150)))
    X = samples()
    clean = FRPCAG(**{**OPTIONS, "n_refine": 0}).fit(chunked()).low_rank_.compute()
    wanted = build_graph(X).edges_kept_by(build_graph(clean))
    assert_allclose(first.sample_graph_.edges_kept_by(refined), wanted, atol=0.01)
    assert refined.edges_kept_by(refined) == 1.0


def test_auto_refines_where_the_graph_was_noise_and_only_there(client):
    noisy = FRPCAG(**{**OPTIONS, "n_refine": "auto"}).fit(chunked())
    calm = np.sin(6 * np.random.default_rng(0).random((240, 1)) + np.linspace(0, 9, 12)).astype(np.float32)
    clean = FRPCAG(**{**OPTIONS, "n_refine": "auto"}).fit(da.from_array(calm, chunks=(80, -1)))
    assert (noisy.n_refine_, clean.n_refine_) == (1, 0)


@pytest.mark.parametrize("checkpoint", [True, False])
def test_a_worker_killed_in_the_second_solve_costs_no_bit(client, calm, tmp_path, checkpoint):
    watch = Rounds(5, lambda: kill_one(client))
    backend = DaskBackend(checkpoint=str(tmp_path / "run") if checkpoint else None, every=3)
    hurt = FRPCAG(**OPTIONS, backend=backend, callback=watch).fit(chunked())
    assert watch.seen[-1] > ROUND + 5
    assert np.array_equal(hurt.low_rank_.compute(), calm[1])
    assert (hurt.objective_, hurt.duality_gap_) == (calm[0].objective_, calm[0].duality_gap_)
    client.wait_for_workers(2, timeout=120)


def test_the_result_is_the_same_bit_for_bit_without_any_worker(calm, monkeypatch):
    from frpcag.runtime.tasks import Here

    monkeypatch.setattr("frpcag.engines.dask.stages.current_cluster", lambda patience: Here())
    alone = FRPCAG(**OPTIONS).fit(chunked())
    assert len(alone.sample_graph_.parts) > 2
    assert np.array_equal(alone.low_rank_.compute(), calm[1])


class _ClientDies(Exception):
    pass


def _die():
    raise _ClientDies


def test_the_same_call_goes_on_in_the_second_solve(client, calm, tmp_path):
    backend = DaskBackend(checkpoint=str(tmp_path / "run"), every=3)
    with pytest.raises(_ClientDies):
        FRPCAG(**OPTIONS, backend=backend, callback=Rounds(8, _die)).fit(chunked())
    watch = Rounds()
    resumed = FRPCAG(**OPTIONS, backend=backend, callback=watch).fit(chunked())
    assert watch.seen[0] > 3  # of the first solve, the steps since its last checkpoint
    assert next(step for step in watch.seen if step > ROUND) == ROUND + 7
    assert resumed.n_iter_ == calm[0].n_iter_
    assert np.array_equal(resumed.low_rank_.compute(), calm[1])


def test_a_longer_first_solve_does_not_go_on_from_the_graph_of_a_shorter_one(client, calm, tmp_path):
    backend = DaskBackend(checkpoint=str(tmp_path / "run"), every=3)
    with pytest.warns(UserWarning, match="no convergence"):
        FRPCAG(**{**OPTIONS, "max_iter": 4}, backend=backend).fit(chunked())
    whole = FRPCAG(**OPTIONS, backend=backend).fit(chunked())
    assert np.array_equal(whole.low_rank_.compute(), calm[1])
