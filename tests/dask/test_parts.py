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

from frpcag import DaskBackend
from frpcag.backends.base import power_of_two
from frpcag.dask import live as blocks
from frpcag.dask import parts as dask_parts
from frpcag.dask.parts import Gone, Numbers, PartLost, collect, place
from frpcag.dask.row_blocks import localize
from frpcag.losses import LOSSES
from support.oracles import random_problem

SIZES, STEP = [70, 3, 64, 43], 0.05


@pytest.fixture
def worker(monkeypatch):
    """A worker with two threads whose letters never leave this process."""
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
    numbers = Numbers(steps, (problem.loss, 1.0, -1.0, 1.0, np.ones(p)), p)
    return [
        place(
            blocks.join_rows(rows[a:b], graphs[a:b], (i, np.array(SIZES), firsts), 2 * problem.gamma1, STEP),
            features, None, (run, i, 1, n_parts), numbers, 0, 5.0,
        )
        for i, (a, b) in enumerate(pairwise(firsts))
    ]  # fmt: skip


def told(tokens, name, *arguments):
    """Let all parts do something at the same time."""
    parts = [dask_parts._PARTS[token.key] for token in tokens]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(lambda part: part.do(name, ["here"] * len(parts), arguments), parts))


@pytest.mark.parametrize("missing", [None, 0.2])
def test_steps_and_sums_are_the_same_bit_for_bit_in_any_number_of_parts(worker, missing):
    problem = random_problem(5, n=sum(SIZES), p=7, mask=missing)
    seen = []
    for firsts in ([0, 4], [0, 2, 4], [0, 1, 2, 3, 4]):
        tokens = placed(problem, firsts)
        (total, t, weights), *others = (said for _, said in told(tokens, "advance", 12, 1.0, True, None))
        assert all(np.array_equal(other[0], total) and other[1:] == (t, weights) for other in others)
        gap = [numbers for _, blocks in told(tokens, "gap") for block in blocks for part in block for numbers in part]
        U = np.concatenate([block for token in tokens for block in collect(token, "U", 12)])
        told(tokens, "slope")
        V = np.concatenate([block for token in tokens for block in collect(token, "V", 12)])
        seen.append((total, weights, np.array(gap), U, V))
    assert np.ptp(seen[0][3]) > 0
    assert all(np.array_equal(a, b) for more in seen[1:] for a, b in zip(seen[0], more, strict=True))


def test_a_part_that_is_gone_is_lost_to_the_others_at_once(worker):
    tokens = placed(random_problem(5, n=sum(SIZES), p=7), [0, 2, 4])
    assert [how for how, _ in told(tokens, "advance", 2, 1.0, True, None)] == ["done", "done"]
    parts = [dask_parts._PARTS[token.key] for token in tokens]
    del dask_parts._PARTS[tokens[1].key]
    how, why = parts[0].do("advance", ["here", "here"], (1, 1.0, True, None))
    assert (how, why) == ("lost", "here no longer holds its part")
    with pytest.raises(PartLost, match="a worker died"):
        collect(tokens[1], "U", 2)


def test_a_part_lives_as_long_as_its_token_also_when_that_goes_to_disk(worker):
    (token,) = placed(random_problem(5, n=sum(SIZES), p=7), [0, 4])
    key, stored = token.key, pickle.dumps(token)
    del token
    assert key in dask_parts._PARTS
    back = pickle.loads(stored)
    assert back.key == key
    del back
    assert key not in dask_parts._PARTS
    assert isinstance(pickle.loads(stored), Gone)


def test_steps_that_an_interrupt_hid_from_the_client_are_counted():
    problem = random_problem(5, n=40, p=7)
    backend = DaskBackend()
    state = backend.load(problem, step=STEP)
    backend.step(state, momentum=0.0)
    backend._call(state, "advance", (3, 1.0, True, None))  # the answer never came
    state.unsure = True
    ahead = backend.gap(state)
    assert (state.n_iter, state.unsure) == (4, False)
    state.tokens = None  # a worker dies: the same steps are done again
    assert backend.gap(state) == ahead
