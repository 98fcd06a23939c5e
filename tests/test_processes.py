"""Fits at the same time: in threads, in forked and spawned processes, under joblib; the answer is always the same."""

import multiprocessing
import subprocess
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import GridSearchCV

from frpcag import FRPCAG, FRPCAGClustering, RobustGraphImputer

SEEDS = range(8)


def data(seed):
    # Large enough that graphs and solver use their threads.
    rng = np.random.default_rng(seed)
    X = 3 * rng.normal(size=(3, 70))[rng.integers(0, 3, 700)] + rng.normal(size=(700, 70))
    X[rng.random(X.shape) < 0.02] += 9
    return X


def clean(seed, n_jobs=2):
    return FRPCAG(tol=1e-2, n_jobs=n_jobs).fit(data(seed)).low_rank_


@pytest.fixture(scope="module")
def serial():
    """Return the answers of one fit after the other; that also leaves this process with pools of threads."""
    return [clean(seed) for seed in SEEDS]


def assert_same(found, serial):
    for one, other in zip(found, serial, strict=False):
        assert_array_equal(one, other)


def test_eight_threads_at_once_give_the_serial_answers(serial):
    with ThreadPoolExecutor(8) as pool:
        assert_same(pool.map(clean, SEEDS), serial)


def test_eight_threads_may_cluster_and_fill_in_at_once():
    X = data(0)[:60, :10]
    holed = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)

    def both(_):
        labels = FRPCAGClustering(3, n_init=1, random_state=0).fit_predict(X)
        return labels, RobustGraphImputer(FRPCAG()).fit_transform(holed)

    alone = both(0)
    with ThreadPoolExecutor(8) as pool:
        for labels, filled in pool.map(both, SEEDS):
            assert_array_equal(labels, alone[0])
            assert_array_equal(filled, alone[1])


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="fork is not safe with the system libraries there")
def test_forked_processes_give_the_serial_answers(serial):
    # The parent has fitted: its threads, locks and pools are what a child must not wait for.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, of forks where there are threads
        with multiprocessing.get_context("fork").Pool(2) as pool:  # ends children that wait for ever
            assert_same(pool.map_async(clean, range(3)).get(timeout=120), serial)


_CLUSTER_AND_FORK = """
import multiprocessing, sys, warnings
from test_processes import clusters

warnings.simplefilter("ignore", DeprecationWarning)
alone = clusters(0)
with multiprocessing.get_context("fork").Pool(1) as pool:
    sys.exit(not (pool.map_async(clusters, [0]).get(timeout=60)[0] == alone).all())
"""


def clusters(seed):
    return FRPCAGClustering(3, n_init=1, random_state=0).fit_predict(data(seed))


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="fork is not safe with the system libraries there")
def test_a_forked_process_may_cluster_after_its_parent():
    # In a process of its own: PyTorch, held to one thread in the tests, shares the pool of OpenMP that would hang.
    command = [sys.executable, "-c", _CLUSTER_AND_FORK]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr


def test_spawned_processes_give_the_serial_answers(serial):
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert_same(pool.map(clean, range(2), timeout=240), serial)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib_gives_the_serial_answers(backend, serial):
    parallel = joblib.Parallel(n_jobs=2, backend=backend)
    assert_same(parallel(joblib.delayed(clean)(seed) for seed in range(4)), serial)


def test_a_grid_search_in_two_processes_gives_the_serial_choice():
    X = data(1)[:60, :10]
    scores = []
    for n_jobs in (1, 2):
        search = GridSearchCV(
            FRPCAG(n_components=2),
            {"gamma1": [0.1, 1.0], "n_neighbors": [3, 6]},
            scoring=_negative_error,
            cv=3,
            n_jobs=n_jobs,
        )
        scores.append(search.fit(X).cv_results_["mean_test_score"])
    assert_array_equal(*scores)


def _negative_error(model, X, y=None):
    return -np.abs(model.denoise(X) - X).mean()


def test_a_pickled_and_a_joblib_dumped_model_transform_alike(tmp_path):
    X = data(2)[:60, :10]
    model = FRPCAG().fit(X)
    joblib.dump(model, tmp_path / "model.joblib")
    assert_array_equal(joblib.load(tmp_path / "model.joblib").transform(X + 0.1), model.transform(X + 0.1))
