"""Odd inputs through the public API and the command line: a few hundred seeded cases, and what the fuzzer once found.

``benchmarks/fuzz.py`` runs 10,000 cases of the same generator; results/fuzz.md tells what they found.
"""

import multiprocessing
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

from frpcag import (
    FRPCAG,
    FRPCAGCV,
    BackgroundSeparator,
    FRPCAGClustering,
    Problem,
    build_graph,
    regularization_path,
    solve,
)
from frpcag.cli.main import app
from frpcag.data import missing_pixels
from frpcag.evaluate import clustering_scores, outlier_scores, relative_error
from frpcag.evaluate.foreground import mask_scores
from frpcag.factorize import gram_svd
from fuzz_arrays import KINDS, low_rank
from fuzz_cases import ENTRIES, run_case, working_folder

# Not those of benchmarks/fuzz.py, so that CI adds to them.
FIRST, PER_BATCH, BATCHES = 1_000_000, 25, 12


@pytest.mark.parametrize("batch", range(BATCHES))
def test_odd_input_gives_a_right_answer_or_a_clear_error(batch, tmp_path):
    failures = []
    for seed in range(FIRST + batch * PER_BATCH, FIRST + (batch + 1) * PER_BATCH):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with working_folder(folder):
            record = run_case(seed, folder)
        if record["outcome"] == "FAIL":
            failures.append(record)
    assert failures == []


def test_a_seed_is_one_case(tmp_path):
    records = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        records.append(run_case(FIRST + 5, tmp_path / name))
    assert records[0] == records[1]


def test_every_entry_point_and_kind_has_its_share():
    assert sum(share for share, _ in ENTRIES.values()) == pytest.approx(1)
    assert {kind.expect for kind in KINDS.values()} == {"ok", "error", "either"}


# ------------------------------------------------------------------------------------------- found and fixed


def X(seed=0):
    return low_rank(np.random.default_rng(seed), 16, 8)


REFUSED = {
    "a word for center": (lambda: FRPCAG(center="no").fit(X()), "center='no' must be True or False"),
    "a number for scale": (lambda: FRPCAG(scale=2).fit(X()), "scale=2 must be True or False"),
    "infinitely many neighbours": (lambda: FRPCAG(n_neighbors=np.inf).fit(X()), "n_neighbors=inf must be an integer"),
    "a word for tol": (lambda: FRPCAG(tol="small").fit(X()), "tol='small' must be a finite number"),
    "a list for max_iter": (lambda: FRPCAG(max_iter=[10]).fit(X()), r"max_iter=\[10\] must be an integer"),
    "endless max_iter": (lambda: FRPCAG(max_iter=np.inf).fit(X()), "max_iter=inf must be an integer"),
    "a callback that cannot be called": (lambda: FRPCAG(callback=3).fit(X()), "callback=3 must be None or a function"),
    "a list for backend": (lambda: FRPCAG(backend=["numpy"]).fit(X()), r"backend=\['numpy'\] is unknown"),
    "a word for delta": (lambda: FRPCAG(loss="huber", huber_delta="one").fit(X()), "delta='one' must be a positive"),
    "a word for n_clusters": (lambda: FRPCAGClustering("three").fit(X()), "n_clusters='three' must be an integer"),
    "no multiples": (lambda: FRPCAGCV(multiples1=[]).fit(X()), r"multiples1=\[\] must be a sequence"),
    "a word for holdout": (lambda: FRPCAGCV(holdout="tenth").fit(X()), "holdout='tenth' must be a share"),
    "one gamma for a path": (lambda: list(regularization_path(X(), 1.0, [1.0])), "gammas1=1.0 must be a sequence"),
    "a word for a gamma": (lambda: Problem(X(), None, None, "big", 0.0), "gamma1='big' must be a finite number"),
    "complex numbers": (lambda: Problem(X() + 1j, None, None, 0.0, 0.0), "X has dtype complex128"),
    "a word for L1": (lambda: Problem(X(), "graph", None, 1.0, 0.0), "L1='graph' must be None or a sparse or dense"),
    "zero threads of NumPy": (
        lambda: FRPCAG(backend="numpy", n_jobs=0, sample_graph=None, feature_graph=None).fit(X()),
        "n_jobs=0 must be a non-zero integer",
    ),
    "labels that are measurements": (lambda: clustering_scores([0.5, 1.2], [0, 1]), "y_true holds float64 that are no"),
    "missing entries in S": (lambda: outlier_scores([[np.nan]], [[True]]), "S, float64, has entries that are missing"),
    "infinite errors": (lambda: relative_error([[np.inf]], [[1.0]]), "U, float64, has entries that are missing"),
    "a sparse mask": (lambda: mask_scores(sp.eye_array(3), sp.eye_array(3)), "pass dense arrays|must agree"),
    "a word for fraction": (lambda: missing_pixels(X(), "half"), r"fraction='half' must lie in \[0, 1\]"),
    "a value beyond float32": (
        lambda: missing_pixels(X().astype(np.float32), 0.5, value=1e300),
        "value=1e[+]300 cannot",
    ),
    "frames beyond float32": (lambda: BackgroundSeparator().fit(np.full((4, 3, 3), 1e300)), "frames reaches 1e[+]300"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused_by_name(what):
    call, message = REFUSED[what]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("dtype", "factor"), [(np.float64, 1e307), (np.float32, 1e37), (np.float64, 1e-320), (np.float32, 1e-44)]
)
def test_the_ends_of_the_range_give_a_clear_error_or_an_answer_without_warnings(dtype, factor):
    data = (X() * factor).astype(dtype)
    for params in ({}, {"scale": True}, {"gamma1": 1.0, "gamma2": 1.0}):
        try:
            model = FRPCAG(max_iter=50, tol=0.9, **params).fit(data)
        except ValueError as error:
            assert any(word in str(error) for word in ("divide X", "multiply X", "Divide X"))  # noqa: PT017
        else:
            assert np.isfinite(model.low_rank_).all()
            assert np.isfinite(model.embedding_).all()


@pytest.mark.parametrize("factor", [1e-300, 1e200])
def test_factors_of_extreme_matrices_are_those_of_plain_ones(factor):
    W, Sigma, V = gram_svd(X(), 3)
    Ws, Sigmas, Vs = gram_svd(X() * factor, 3)
    np.testing.assert_allclose(Sigmas / factor, Sigma, rtol=1e-9)
    np.testing.assert_allclose(Ws, W, atol=1e-9)
    np.testing.assert_allclose(Vs, V, atol=1e-9)


def test_distances_beyond_the_range_are_refused():
    with pytest.raises(ValueError, match="distances of such points leave the range"):
        build_graph(np.where(X() > 0, 1.0, -1.0) * np.finfo(np.float64).max)


def test_sums_beyond_the_range_are_refused_by_the_solver():
    L = build_graph(X()).laplacian
    with pytest.raises(ValueError, match=r"are too large together.*Divide X by its largest entry"):
        solve(Problem((X() * 1e30).astype(np.float32), L, None, 1e9, 0.0), tol=1e-6)


def test_features_that_agree_get_no_weight_from_rounding():
    # One over a pull of 1e-16 was a gamma of 1e15, with a negative objective and a gap of zero.
    model = FRPCAG().fit(np.repeat(X()[:, :1], 6, axis=1))
    assert model.gamma2_ == 0
    assert model.objective_ >= 0


def test_a_clip_that_is_all_foreground_keeps_its_background():
    clip = np.random.default_rng(0).normal(100, 3, (8, 5, 6))
    model = BackgroundSeparator(threshold=0).fit(clip)
    assert np.isfinite(model.background_).all()
    assert model.mask_.all()


def test_a_path_takes_what_a_fit_takes():
    one = list(regularization_path(X()[:, :1].tolist(), [1.0], [1.0]))  # one feature: no graph of it
    assert one[0].solution.U.shape == (16, 1)


def test_float32_tensors_are_clustered_in_float32():
    torch = pytest.importorskip("torch")
    model = FRPCAGClustering(2, n_init=1, random_state=0).fit(torch.tensor(X(), dtype=torch.float32))
    assert model.estimator_.low_rank_.dtype == np.float32


def test_a_message_keeps_its_code_whole(tmp_path):
    np.save(tmp_path / "data.npy", X().astype(object), allow_pickle=True)
    said = CliRunner().invoke(app, ["fit", str(tmp_path / "data.npy"), "--output", str(tmp_path / "run")]).stderr
    assert "numpy.save(file, X.astype(float))" in said


def _cluster(pipe):
    data = np.random.default_rng(0).normal(size=(600, 40))
    pipe.send(FRPCAGClustering(3, n_init=1, random_state=0, tol=1e-2).fit_predict(data))


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="fork is not safe with the system libraries there")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_a_forked_child_clusters_after_its_parent_has():
    # k-means on OpenMP waited in the child for threads that only the parent has.
    context = multiprocessing.get_context("fork")
    answers = []
    for start in (lambda pipe: _cluster(pipe), lambda pipe: context.Process(target=_cluster, args=(pipe,)).start()):
        here, there = context.Pipe(duplex=False)
        start(there)
        assert here.poll(60), "no answer"
        answers.append(here.recv())
    np.testing.assert_array_equal(*answers)
    for child in multiprocessing.active_children():
        child.join(60)
