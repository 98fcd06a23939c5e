"""Facts about the parts of a solve that live on workers, here all in this process, each in a thread."""

import asyncio
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import SimpleNamespace
from uuid import uuid4

import numpy as np
import pytest

pytest.importorskip("distributed", reason="Dask is not installed")
pytest.importorskip("numba", reason="Numba is not installed")

from frpcag import DaskBackend, solve
from frpcag.backends.base import power_of_two
from frpcag.dask import live as blocks
from frpcag.dask import parts as dask_parts
from frpcag.dask.parts import Numbers, PartLost, collect, place, retry_when_lost
from frpcag.dask.row_blocks import localize
from frpcag.losses import LOSSES
from support.oracles import random_problem

SIZES, STEP = [70, 3, 64, 43], 0.05


@pytest.fixture
def worker(monkeypatch):
    """A worker with two threads whose messages never leave this process."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def ncores():
        return {"here": 2}

    fake = SimpleNamespace(
        address="here", handlers={}, state=SimpleNamespace(nthreads=2), loop=SimpleNamespace(asyncio_loop=loop),
        scheduler=SimpleNamespace(ncores=ncores),
    )  # fmt: skip
    monkeypatch.setattr(dask_parts, "_this_worker", lambda: fake)
    yield fake
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def placed(problem, firsts):
    """Cut a problem into blocks of some sizes, and deal them to parts."""
    bounds, firsts = np.concatenate([[0], np.cumsum(SIZES)]), np.array(firsts)
    graphs = [localize(problem.L1[a:b], bounds, j) for j, (a, b) in enumerate(pairwise(bounds))]
    rows = [problem.X[a:b] for a, b in pairwise(bounds)]
    p, run, n_parts = problem.X.shape[1], uuid4().hex, len(firsts) - 1
    features = blocks.feature_lists(problem.L2, 2 * problem.gamma2, problem.X.dtype, p, STEP)
    steps = (problem.loss, STEP / power_of_two(STEP), LOSSES[problem.loss].numbers(STEP, problem.huber_delta))
    numbers = Numbers(steps, (problem.loss, 1.0, -1.0, 1.0, np.ones(p)), p, 5.0)
    tokens = [
        place(
            blocks.join_rows(rows[a:b], graphs[a:b], (i, np.array(SIZES), firsts), 2 * problem.gamma1, STEP),
            features, None, (run, i, n_parts), numbers,
        )
        for i, (a, b) in enumerate(pairwise(firsts))
    ]  # fmt: skip
    told(tokens, "exchange_halo_lists")
    return tokens


def told(tokens, name, *arguments):
    """Let all parts do something at the same time."""
    parts = [token.part for token in tokens]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(lambda part: part.do(name, ["here"] * len(parts), arguments), parts))


@pytest.mark.parametrize("missing", [None, 0.2])
def test_steps_and_sums_are_the_same_bit_for_bit_in_any_number_of_parts(worker, missing):
    problem = random_problem(5, n=sum(SIZES), p=7, mask=missing)
    seen = []
    for firsts in ([0, 4], [0, 2, 4], [0, 1, 2, 3, 4]):
        tokens = placed(problem, firsts)
        (total, t), *others = (said for _, said in told(tokens, "advance", 12, 1.0, True, None))
        assert all(np.array_equal(other[0], total) and other[1] == t for other in others)
        gap = [numbers for _, blocks in told(tokens, "gap") for block in blocks for part in block for numbers in part]
        U = np.concatenate([block for token in tokens for block in collect(token, "U")])
        told(tokens, "slope")
        V = np.concatenate([block for token in tokens for block in collect(token, "V")])
        seen.append((total, t, np.array(gap), U, V))
    assert np.ptp(seen[0][3]) > 0
    assert all(np.array_equal(a, b) for more in seen[1:] for a, b in zip(seen[0], more, strict=True))


def test_a_part_that_is_gone_is_lost_to_the_others_at_once(worker):
    tokens = placed(random_problem(5, n=sum(SIZES), p=7), [0, 2, 4])
    assert [how for how, _ in told(tokens, "advance", 2, 1.0, True, None)] == ["done", "done"]
    tokens[1].part = None
    how, why = tokens[0].part.do("advance", ["here", "here"], (1, 1.0, True, None))
    assert (how, why) == ("lost", "here no longer holds its part")
    with pytest.raises(PartLost, match="a worker died"):
        collect(tokens[1], "U")


def test_a_part_that_dask_made_again_has_not_done_the_steps_and_says_so(worker):
    (token,) = placed(random_problem(5, n=sum(SIZES), p=7), [0, 4])
    token.part.sends = None  # as `place` leaves it
    assert told([token], "advance", 1, 1.0, True, None) == [("lost", "this part was made again elsewhere")]
    with pytest.raises(PartLost, match="a worker died"):
        collect(token, "U")


def test_a_part_lives_as_long_as_its_token_also_when_that_goes_to_disk(worker):
    (token,) = placed(random_problem(5, n=sum(SIZES), p=7), [0, 4])
    key, stored = (token.part.run, 0), pickle.dumps(token)
    del token
    assert key in dask_parts._PARTS
    back = pickle.loads(stored)
    assert back.part is dask_parts._PARTS[key]
    del back
    assert key not in dask_parts._PARTS
    assert pickle.loads(stored).part is None


def test_steps_that_an_interrupt_hid_from_the_client_are_in_the_result():
    problem = random_problem(5, n=40, p=7)
    backend = DaskBackend()
    state = backend.load(problem, step=STEP)
    backend.step(state, momentum=0.0)
    backend._call(state, "advance", 3, 1.0, True, None)  # the answer never came
    known = backend.load(problem, step=STEP)
    backend.step(known, momentum=0.0)
    backend.run_on_device(known, 3, t=1.0, restart=True)
    assert backend.gap(state) == backend.gap(known)
    assert np.array_equal(backend.unload(state), backend.unload(known))


def test_a_solve_of_arrays_begins_again_when_a_worker_dies(monkeypatch):
    problem, whole, lost = random_problem(5, n=40, p=7), DaskBackend.gap, []

    def gap(backend, state):
        if len(lost) < 2:
            lost.append(state)
            raise PartLost("a worker died")
        return whole(backend, state)

    undisturbed = solve(problem, backend="dask", tol=1e-6)
    monkeypatch.setattr(DaskBackend, "gap", gap)
    found = solve(problem, backend="dask", tol=1e-6)
    assert (len(lost), found.n_iter, found.gap) == (2, undisturbed.n_iter, undisturbed.gap)
    assert np.array_equal(found.U, undisturbed.U)


def test_workers_that_die_at_the_same_steps_for_ever_end_the_fit():
    tries, kept = [], iter([0, 3, 6, 6, 6, 6, 6, 6])

    def do():
        tries.append(1)
        raise PartLost("tcp://a has died")

    with pytest.raises(RuntimeError, match=r"workers died 5 times while they did the same steps, .*tcp://a.* 8 GiB"):
        retry_when_lost(do, kept=lambda: next(kept), needs=lambda: "It needs 8 GiB.")
    assert len(tries) == 6  # two checkpoints were written on the way
