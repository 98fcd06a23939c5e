"""Symmetries and limits of the whole flow, through the public names: what is known about an answer without solving."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from frpcag import FRPCAG, BackgroundSeparator, FRPCAGClustering, Problem, RobustGraphImputer, build_graph, solve
from frpcag.problem import certificate, objective
from support.oracles import cvxpy_optimum, random_problem
from support.strategies import problems

# A few cheap examples each; the fuzzer goes further.
few = settings(max_examples=15, deadline=None)
seeds = st.integers(0, 2**32 - 1)
# Tight enough that two runs which round differently agree; the minimiser is not unique, its neighbourhood is small.
TIGHT = {"tol": 1e-7, "max_iter": 5000}


def clusters(seed, n=30, p=12):
    """Return three clusters with noise and gross errors; no two distances agree."""
    rng = np.random.default_rng(seed)
    X = 3 * rng.normal(size=(3, p))[rng.integers(0, 3, n)] + rng.normal(size=(n, p))
    X[rng.random((n, p)) < 0.05] += 8
    return X


# ------------------------------------------------------------------------------------------- symmetries of the problem


@few
@given(problems(losses=("l1", "huber")))
def test_a_transposed_problem_has_the_transposed_solution(problem):
    # Compared by objective: the minimiser of the l1 problem need not be unique.
    options = {"tol": 1e-5, "max_iter": 3000} if problem.X.dtype == np.float64 else {"tol": 1e-3, "max_iter": 500}
    one, other = solve(problem, **options), solve(problem.transpose(), **options)
    assert_allclose(objective(problem, other.U.T), one.objective, rtol=2.5 * options["tol"], atol=1e-4)


@few
@given(seeds, st.floats(0.01, 100))
def test_solutions_scale_with_the_data(seed, c):
    problem = random_problem(seed)
    scaled = Problem(c * problem.X, problem.L1, problem.L2, problem.gamma1 / c, problem.gamma2 / c)
    assert_allclose(solve(scaled, **TIGHT).objective, c * solve(problem, **TIGHT).objective, rtol=1e-6)


@few
@given(problems(dtypes=(np.float64,)), seeds)
def test_no_bound_exceeds_the_optimum_wherever_it_is_taken(problem, seed):
    # Weak duality: the bound at any point is below the objective at any other.
    rng = np.random.default_rng(seed)
    best = solve(problem, tol=1e-6, max_iter=3000).objective
    for scale in (0.1, 1.0, 10.0):
        at = certificate(problem, problem.X + scale * rng.normal(size=problem.X.shape))
        assert at.bound <= best * (1 + 1e-9) + 1e-9
        assert at.objective >= at.bound


def test_the_bound_at_the_solution_meets_the_optimum_of_another_solver():
    problem = random_problem(3, n=9, p=6)
    solution = solve(problem, tol=1e-8, max_iter=5000)
    assert_allclose(certificate(problem, solution.U).bound, cvxpy_optimum(problem), rtol=1e-6)


@few
@given(problems(dtypes=(np.float64,)))
def test_a_mask_of_nothing_is_no_mask(problem):
    masked = Problem(
        problem.X,
        problem.L1,
        problem.L2,
        problem.gamma1,
        problem.gamma2,
        loss=problem.loss,
        huber_delta=problem.huber_delta,
        mask=np.ones(problem.X.shape, dtype=bool),
    )
    assert_array_equal(solve(masked, max_iter=30, tol=0.3).U, solve(problem, max_iter=30, tol=0.3).U)


@pytest.mark.parametrize("laplacian", ["normalized", "combinatorial"])
def test_isolated_samples_keep_their_values(laplacian):
    X = clusters(0)
    A = build_graph(X, n_neighbors=4).weights
    lonely = np.random.default_rng(1).normal(size=(3, X.shape[1])) * 50
    joined = sp.block_diag([A, sp.csr_array((3, 3))], format="csr")
    model = FRPCAG(sample_graph=joined, feature_graph=None, laplacian=laplacian, gamma1=1.0, center=False)
    U = model.fit(np.vstack([X, lonely])).low_rank_
    assert_array_equal(U[-3:], lonely)
    alone = FRPCAG(sample_graph=A, feature_graph=None, laplacian=laplacian, gamma1=1.0, center=False).fit(X)
    assert_allclose(U[:-3], alone.low_rank_, atol=1e-2)


# ------------------------------------------------------------------------------------------- symmetries of a fit


@few
@given(seeds)
def test_permuted_samples_give_permuted_clean_rows(seed):
    X = clusters(seed)
    order = np.random.default_rng(seed + 1).permutation(len(X))
    one, other = FRPCAG(**TIGHT).fit(X), FRPCAG(**TIGHT).fit(X[order])
    assert_allclose(other.gamma1_, one.gamma1_, rtol=1e-6)
    assert_allclose(other.low_rank_, one.low_rank_[order], atol=1e-3)


@few
@given(seeds)
def test_permuted_features_give_permuted_clean_columns(seed):
    X = clusters(seed)
    order = np.random.default_rng(seed + 1).permutation(X.shape[1])
    one, other = FRPCAG(**TIGHT).fit(X), FRPCAG(**TIGHT).fit(X[:, order])
    assert_allclose(other.low_rank_, one.low_rank_[:, order], atol=1e-3)


@few
@given(seeds, st.sampled_from([2.0**-20, 0.125, 8.0, 2.0**20]))
def test_data_in_other_units_give_the_clean_part_in_these_units(seed, c):
    # A power of two: nothing rounds differently, so the answer is the same to the last bits.
    X = clusters(seed)
    assert_allclose(FRPCAG().fit(c * X).low_rank_, c * FRPCAG().fit(X).low_rank_, rtol=1e-9, atol=1e-9 * c)


@few
@given(seeds)
def test_a_constant_row_added_to_centred_data_is_added_to_the_clean_part(seed):
    X = clusters(seed)
    shift = 10 * np.random.default_rng(seed + 1).normal(size=X.shape[1])
    moved = FRPCAG(**TIGHT).fit(X + shift)
    assert_allclose(moved.low_rank_, FRPCAG(**TIGHT).fit(X).low_rank_ + shift, atol=1e-3)


@pytest.mark.parametrize("backend", ["numpy", "numba", "torch"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_level_that_no_graph_sees_costs_no_digits(backend, missing):
    # The square of the level is some 10^7 times that of the spread: one over the rounding of float32.
    if backend == "torch":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    rng = np.random.default_rng(0)
    X = (clusters(0, 60, 20) + 10_000).astype(np.float32)
    X[rng.random(X.shape) < missing] = np.nan
    model = FRPCAG(center=False, laplacian="combinatorial", backend=backend).fit(X)
    laplacians = (model.sample_graph_.laplacian, model.feature_graph_.laplacian)
    level = Problem(X.astype(float) - 10_000, *laplacians, model.gamma1_, model.gamma2_)
    best = solve(level, tol=1e-6, max_iter=5000)
    assert model.converged_
    assert_allclose(objective(level, model.low_rank_.astype(float) - 10_000), model.objective_, rtol=1e-4)
    assert best.objective >= model.objective_ * (1 - model.duality_gap_) * (1 - 1e-4)
    assert (model.low_rank_ == X).mean() > 0.1


def test_a_level_near_the_end_of_the_range_is_no_other_error():
    X = 1e200 * (1 + 1e-3 * np.random.default_rng(0).random((30, 8)))
    path = sp.diags_array([-np.ones(29), np.full(30, 2.0), -np.ones(29)], offsets=[-1, 0, 1]).tolil()
    path[0, 0] = path[29, 29] = 1.0
    assert solve(Problem(X, path.tocsr(), None, 1e-200, 0.0)).converged


def test_duplicate_rows_get_equal_clean_rows():
    # Each row nearly twice and K = 1: the twin is the one neighbour, the graph is made of pairs, and no tie is broken.
    # At the optimum |2 gamma1 w (u - u')| <= 1, so that twins differ by 1 / (2 gamma1 w) at most.
    X = np.repeat(clusters(2, 20), 2, axis=0)
    X[::2] += 1e-3 * np.random.default_rng(0).normal(size=X[::2].shape)
    model = FRPCAG(n_neighbors=1, gamma1=1e3, feature_graph=None, laplacian="combinatorial", **TIGHT).fit(X)
    weights = model.sample_graph_.weights[np.arange(0, 40, 2), np.arange(1, 40, 2)]
    apart = np.abs(model.low_rank_[::2] - model.low_rank_[1::2])
    assert model.sample_graph_.n_edges == 20
    assert (apart * weights[:, None] <= 1.001 / 2e3).all()


def test_duplicates_of_few_rows_give_a_certified_fit():
    # Neighbours that agree leave only edges of the least weight to pull; gamma must not make up for that.
    X = clusters(4, 4)[np.arange(36) % 4]
    model = FRPCAG().fit(X)
    assert model.converged_
    assert model.gamma1_ < 1e3


@pytest.mark.parametrize("seed", [0, 1])
def test_permuted_samples_get_the_same_clusters(seed):
    X = clusters(seed, 45)
    order = np.random.default_rng(seed).permutation(len(X))
    fit = FRPCAGClustering(3, random_state=0)
    assert adjusted_rand_score(fit.fit_predict(X)[order], fit.fit_predict(X[order])) == 1


def test_permuted_samples_are_filled_in_alike():
    X = clusters(5)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    order = np.random.default_rng(1).permutation(len(X))
    imputer = RobustGraphImputer(FRPCAG(**TIGHT))
    assert_allclose(imputer.fit_transform(X[order]), imputer.fit_transform(X)[order], atol=1e-3)


def test_a_mirrored_clip_has_the_mirrored_background():
    rng = np.random.default_rng(0)
    clip = rng.normal(100, 2, (20, 10, 12))
    clip[np.arange(20), 3:6, :] += 60 * (rng.random((20, 1, 1)) < 0.3)
    one, other = BackgroundSeparator().fit(clip), BackgroundSeparator().fit(clip[:, ::-1])
    assert_allclose(other.background_[:, ::-1], one.background_, atol=1e-3)


def test_a_permuted_graph_is_the_graph_of_permuted_rows():
    X = clusters(6)
    order = np.random.default_rng(0).permutation(len(X))
    one, other = build_graph(X), build_graph(X[order])
    assert_allclose(other.weights.toarray(), one.weights.toarray()[np.ix_(order, order)], rtol=1e-5)


# ------------------------------------------------------------------------------------------- the same data, otherwise


def test_sparse_and_dense_input_give_the_same_fit():
    X = np.where(clusters(7) > 2, clusters(7), 0.0)
    assert_allclose(FRPCAG().fit(sp.csr_array(X)).low_rank_, FRPCAG().fit(X).low_rank_, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("order", ["F", "reversed", "strided", "read-only", "big-endian", "memory map"])
def test_the_layout_of_the_input_does_not_matter(order, tmp_path):
    X = clusters(8)
    if order == "F":
        odd = np.asfortranarray(X)
    elif order == "reversed":
        odd = X[::-1, ::-1].copy()[::-1, ::-1]
    elif order == "strided":
        odd = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    elif order == "read-only":
        odd = X.copy()
        odd.flags.writeable = False
    elif order == "big-endian":
        odd = X.astype(">f8")
    else:
        np.save(tmp_path / "X.npy", X)
        odd = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert_allclose(FRPCAG().fit(odd).low_rank_, FRPCAG().fit(X).low_rank_, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.longdouble, bool, object])
def test_other_dtypes_are_taken_for_float64(dtype):
    X = np.clip(np.rint(10 * clusters(9) + 100), 0, 255) if dtype is not bool else clusters(9) > 1
    assert_array_equal(FRPCAG().fit(X.astype(dtype)).low_rank_, FRPCAG().fit(X.astype(dtype).astype(float)).low_rank_)


def test_float32_agrees_with_float64():
    X = clusters(10).astype(np.float32)
    one, other = (FRPCAG(tol=1e-4, gamma1=0.3, gamma2=0.3).fit(A) for A in (X, X.astype(np.float64)))
    assert_allclose(one.objective_, other.objective_, rtol=2e-4)


@pytest.mark.parametrize("backend", ["numba", "torch"])
def test_backends_agree_with_the_reference(backend):
    pytest.importorskip("torch" if backend == "torch" else "numba")
    X = clusters(12)
    one, other = (FRPCAG(backend=name, tol=1e-5, max_iter=3000).fit(X) for name in ("numpy", backend))
    assert_allclose(other.objective_, one.objective_, rtol=2e-5)
