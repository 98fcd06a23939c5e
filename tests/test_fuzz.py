"""Odd inputs through the public API and the command line: a few hundred seeded cases, and what the fuzzer once found.

``benchmarks/fuzz.py`` runs 10,000 cases of the same generator; results/fuzz.md tells what they found.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from reproduction import missing_pixels
from reproduction.evaluate import clustering_scores, outlier_scores, relative_error
from reproduction.evaluate.foreground import mask_scores

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
from frpcag.linalg.factorize import gram_svd
from frpcag.solvers.stopping import CertificateWarning
from support.cli import invoke
from support.fuzz_arrays import KINDS, low_rank
from support.fuzz_cases import ENTRIES, Case, run_case, working_folder
from support.fuzz_oracles import require

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


def _refuse(given):
    raise ValueError(f"X={given!r} must be a matrix; pass one.")


# A case that must fail: what it does with its input, and what was expected of it.
FAULTS = {
    "wrong answer": (lambda given: require(False, "U has another shape"), "either"),
    "the input was changed": (lambda given: given.__setitem__(0, 7.0), "ok"),
    "accepted what must be refused": (lambda given: None, "error"),
    "refused a valid input": (_refuse, "ok"),
    "RuntimeWarning: divide by zero": (lambda given: given / 0, "ok"),
    "ZeroDivisionError": (lambda given: 1 / 0, "either"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault, tmp_path, monkeypatch):
    act, expect = FAULTS[fault]
    given = np.ones(3)
    monkeypatch.setattr("support.fuzz_cases.case", lambda *_: Case("fit", "plain", lambda: act(given), expect, [given]))
    record = run_case(0, tmp_path)
    assert record["outcome"] == "FAIL"
    assert fault in record["said"]


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
    "a word for delta": (
        lambda: FRPCAG(loss="huber", huber_delta="one").fit(X()),
        "huber_delta='one' must be a positive",
    ),
    "a word for n_clusters": (
        lambda: FRPCAGClustering("three").fit(X()),
        "n_clusters='three' must be 'auto' or an integer",
    ),
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
    "labels that are measurements": (
        lambda: clustering_scores([0.5, 1.2], [0, 1]),
        "y_true holds float64 that cannot be labels",
    ),
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


ARGUMENTS = pytest.mark.parametrize("params", [{}, {"scale": True}, {"gamma1": 1.0, "gamma2": 1.0}], ids=str)


@ARGUMENTS
@pytest.mark.parametrize(("dtype", "factor"), [(np.float64, 1e307), (np.float32, 1e37)])
def test_entries_at_the_upper_end_of_the_range_are_refused_in_words(dtype, factor, params):
    with pytest.raises(ValueError, match=r"[dD]ivide X"):
        FRPCAG(max_iter=50, tol=0.9, **params).fit((X() * factor).astype(dtype))


@ARGUMENTS
@pytest.mark.parametrize(("dtype", "factor"), [(np.float64, 1e-320), (np.float32, 1e-44)])
def test_entries_at_the_lower_end_of_the_range_are_fitted_or_refused_in_words(dtype, factor, params):
    try:
        with warnings.catch_warnings():
            # Entries that have one or two bits are rounded to nothing; the warning says so, and so does the model.
            warnings.simplefilter("ignore", CertificateWarning)
            model = FRPCAG(max_iter=50, tol=0.9, **params).fit((X() * factor).astype(dtype))
    except ValueError as error:
        assert "gamma1" not in params, "given gammas are not too large"
        assert any(word in str(error) for word in ("multiply X", "divide X", "Divide X"))  # noqa: PT017
    else:
        assert np.isfinite(model.low_rank_).all()
        assert np.isfinite(model.embedding_).all()
        assert model.converged_ == (model.duality_gap_ <= 0.9)


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
        solve(Problem(X() * 1e200, L, None, 1.0, 0.0, loss="l2"), tol=1e-6)


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
    said = invoke("fit", tmp_path / "data.npy", "--output", tmp_path / "run").stderr
    assert "numpy.save(file, X.astype(float))" in said


def test_new_rows_as_small_as_float32_can_be_are_cleaned():
    data = (X() * 1e-40).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        model = FRPCAG(max_iter=50, tol=0.9).fit(data)
    assert np.isfinite(model.denoise(data[:3] * np.float32(1.01))).all()
    assert np.isfinite(model.transform(data[:3] * np.float32(1.01))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_solution_beyond_the_range_is_refused(dtype):
    largest = np.where(X() > 0, 1.0, -1.0).astype(dtype) * np.finfo(dtype).max
    L = build_graph(X()).laplacian
    with pytest.raises(ValueError, match=r"are too large together.*Divide X by its largest entry"):
        solve(Problem(largest, L, None, gamma1=1e4, gamma2=0.0))
