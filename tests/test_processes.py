"""Fits in several threads and processes, at once and one by one: the answer is always the same."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import GridSearchCV

from frpcag import FRPCAG, FRPCAGClustering, RobustGraphImputer

SEEDS = range(8)
pytestmark = pytest.mark.usefixtures("two_threads")


def data(seed, n=1000, p=80):
    # Large enough that graphs and solver use their threads.
    rng = np.random.default_rng(seed)
    X = 3 * rng.normal(size=(3, p))[rng.integers(0, 3, n)] + rng.normal(size=(n, p))
    X[rng.random(X.shape) < 0.02] += 9
    return X


def clean(seed, n_jobs=2):
    return FRPCAG(tol=1e-2, n_jobs=n_jobs).fit(data(seed)).low_rank_


@pytest.fixture(scope="module")
def serial():
    """Return the answers of one fit after the other; that also leaves this process with pools of threads."""
    return [clean(seed) for seed in SEEDS]


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert_array_equal(one, other)


def test_these_fits_compute_in_threads():
    before, during = threading.active_count(), []
    FRPCAG(tol=1e-2, n_jobs=2, callback=lambda at: during.append(threading.active_count())).fit(data(0))
    assert max(during) > before


@pytest.mark.parametrize("graph", ["exact", "approximate"])
def test_results_do_not_depend_on_the_number_of_threads(graph):
    X = data(0, 2500, 150).astype(np.float32)
    one, *others = (FRPCAG(sample_graph=graph, random_state=0, n_jobs=n_jobs, tol=1e-2).fit(X) for n_jobs in (1, 2, 3))
    for other in others:
        assert_array_equal(other.low_rank_, one.low_rank_)
        assert other.duality_gap_ == one.duality_gap_


def test_eight_threads_at_once_give_the_serial_answers(serial):
    with ThreadPoolExecutor(8) as pool:
        assert_same(pool.map(clean, SEEDS), serial)


def test_eight_threads_may_cluster_and_fill_in_at_once():
    X = data(0, 60, 10)
    holed = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)

    def both(_):
        labels = FRPCAGClustering(3, n_init=1, random_state=0).fit_predict(X)
        return labels, RobustGraphImputer(FRPCAG()).fit_transform(holed)

    alone = both(0)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(both, SEEDS))
    assert len(found) == 8
    for labels, filled in found:
        assert_array_equal(labels, alone[0])
        assert_array_equal(filled, alone[1])


# In a process of its own: PyTorch, held to one thread in the tests, shares the pool of OpenMP that would hang.
FORK = """
import multiprocessing, warnings
from test_processes import assert_same, clean, clusters

warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, of forks where there are threads
alone = [clean(0), clean(1), clusters(0), clusters(1)]
with multiprocessing.get_context("fork").Pool(2) as pool:  # ends children that wait for ever
    fits, labels = pool.map_async(clean, [0, 1]), pool.map_async(clusters, [0, 1])
    assert_same(fits.get(timeout=60) + labels.get(timeout=60), alone)
"""


def clusters(seed):
    return FRPCAGClustering(3, FRPCAG(tol=1e-2), n_init=1, random_state=0).fit_predict(data(seed))


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="fork is not safe with the system libraries there")
def test_forked_processes_fit_and_cluster_as_their_parent_has():
    # The parent has done both: its threads, locks and pools are what a child must not wait for.
    env = {**os.environ, "OMP_NUM_THREADS": "2"}  # one thread waits for nobody
    done = subprocess.run(
        [sys.executable, "-c", FORK], cwd=Path(__file__).parent, env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_joblib_gives_the_serial_answers_from_two_processes(serial):
    # Interpreters of their own, as spawned ones are.
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(clean)(seed) for seed in range(4))
    assert_same(found, serial[:4])


def test_a_grid_search_in_two_processes_gives_the_serial_choice():
    X = data(1, 60, 10)
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


COMPILE = """
import hashlib
import numpy as np
from frpcag import FRPCAG
X = np.load("X.npy")
for metric in ("euclidean", "truncated"):
    for rows in (X, np.where(np.abs(X) > 2, np.nan, X)):
        model = FRPCAG(n_components=2, metric=metric).fit(rows[:100])
        for found in (model.low_rank_, model.denoise(rows[100:])):
            print(hashlib.sha256(found.tobytes()).hexdigest())
"""


def test_the_process_that_compiles_has_the_bits_of_the_next_one(tmp_path):
    rng = np.random.default_rng(1)
    np.save(tmp_path / "X.npy", (rng.normal(size=(130, 3)) @ rng.normal(size=(3, 40))).astype(np.float32))
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    first, second = (
        subprocess.run(
            [sys.executable, "-c", COMPILE], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
        )
        for _ in range(2)
    )
    assert list((tmp_path / "kernels").rglob("*.nbc"))
    assert first.stdout == second.stdout


def test_a_pickled_and_a_joblib_dumped_model_transform_alike(tmp_path):
    X = data(2, 60, 10)
    model = FRPCAG().fit(X)
    joblib.dump(model, tmp_path / "model.joblib")
    assert_array_equal(joblib.load(tmp_path / "model.joblib").transform(X + 0.1), model.transform(X + 0.1))
