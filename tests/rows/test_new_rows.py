"""New rows against a fitted model: cleaned one by one, from what is prepared once."""

import copy
import gc
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from frpcag import FRPCAG
from frpcag.graphs import find_metric
from frpcag.losses import LOSSES
from frpcag.rows import RowModel, known
from frpcag.rows import model as row_model


def subspace(n=260, p=40, rank=3, *, noise=0.02, seed=0, dtype=np.float64):
    """Rows near a subspace, those to fit on and new ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, p)) + noise * rng.normal(size=(n, p)) + 3
    return X[:200].astype(dtype), X[200:].astype(dtype)


def fitted(X, **params):
    return FRPCAG(n_neighbors=6, max_iter=200, tol=0.3, n_components=3, random_state=0, **params).fit(X)


def count_preparations(monkeypatch):
    made, prepare = [], known.KnownRows.__init__

    def spy(self, *args, **options):
        made.append(self)
        prepare(self, *args, **options)

    monkeypatch.setattr(known.KnownRows, "__init__", spy)
    return made


def test_wrong_cells_of_new_rows_are_repaired_and_right_ones_stay():
    train, new = subspace()
    hit = np.random.default_rng(1).random(new.shape) < 0.1
    damaged = np.where(hit, new + 15, new)
    found = fitted(train).denoise(damaged)
    assert np.abs(found - new)[hit].max() < 1.0
    assert np.abs(found - new)[~hit].max() < 0.1


def test_missing_cells_of_new_rows_are_predicted():
    train, new = subspace()
    hidden = np.random.default_rng(1).random(new.shape) < 0.4
    found = fitted(train).denoise(np.where(hidden, np.nan, new))
    assert np.abs(found - new)[hidden].mean() < 0.15 * np.abs(new - train.mean(axis=0))[hidden].mean()
    assert_allclose(found[~hidden], new[~hidden], atol=0.05)


def test_a_value_that_a_row_repeats_is_wrong_though_it_is_plausible():
    train, new = subspace()
    stuck = new.copy()
    stuck[:, :12] = 3.0  # the middle of the data, no outlier anywhere
    found = fitted(train).denoise(stuck)
    assert np.abs(found - new)[:, :12].mean() < 0.25 * np.abs(stuck - new)[:, :12].mean()


def test_values_that_right_rows_repeat_are_left_alone():
    train, new = subspace()
    for rows in (train, new):
        rows[:, :12] = np.round(rows[:, :12] > 3)  # two values, half of the cells each
    found = fitted(train).denoise(new)
    assert (np.abs(found - new)[:, :12] > 0.5).mean() < 0.1


def test_dense_noise_is_taken_off_by_a_squared_loss():
    train, new = subspace(noise=0.0)
    noisy = new + 0.5 * np.random.default_rng(2).normal(size=new.shape)
    rough = train + 0.5 * np.random.default_rng(3).normal(size=train.shape)
    found = fitted(rough, loss="l2").denoise(noisy)
    assert np.linalg.norm(found - new) < 0.6 * np.linalg.norm(noisy - new)


@pytest.mark.parametrize("laplacian", ["normalized", "combinatorial"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("method", ["transform", "denoise"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_alone_is_the_row_in_a_batch_to_the_last_bit(method, missing, laplacian, dtype):
    train, new = subspace(dtype=dtype)
    new[np.random.default_rng(4).random(new.shape) < missing] = np.nan
    model = fitted(train, laplacian=laplacian)
    together = getattr(model, method)(new)
    assert_array_equal(np.vstack([getattr(model, method)(row[None]) for row in new]), together)
    assert_array_equal(getattr(model, method)(new[::-1])[::-1], together)


def test_threads_do_not_change_a_bit():
    train, new = subspace()
    one, two = (fitted(train, n_jobs=n).denoise(new) for n in (1, 2))
    assert_array_equal(one, two)


def test_training_rows_get_what_the_fit_gave_them_also_with_gaps():
    train, new = subspace()
    train[np.random.default_rng(5).random(train.shape) < 0.1] = np.nan
    model = fitted(train)
    assert_allclose(model.denoise(train), model.low_rank_, atol=1e-9)
    assert_allclose(model.transform(train), model.embedding_, atol=1e-9)
    mixed = model.denoise(np.vstack([new[:3], train[7:9]]))
    assert_allclose(mixed[3:], model.low_rank_[7:9], atol=1e-9)


@pytest.mark.parametrize(
    ("metric", "name"), [("euclidean", "truncated"), ("l1", "l1"), ("truncated", "truncated"), ("cosine", "cosine")]
)
def test_new_rows_are_near_by_the_metric_of_the_fit(metric, name):
    train, new = subspace()
    model = fitted(train, metric=metric)
    model.denoise(new)
    found = RowModel.of(model).known.metric
    assert found.name == name
    assert_allclose(found.cut, find_metric(name, train - train.mean(axis=0)).cut, rtol=1e-6)


def test_what_is_prepared_is_prepared_once_and_again_after_a_fit(monkeypatch):
    train, new = subspace()
    made = count_preparations(monkeypatch)
    model = fitted(train)
    assert not made
    first = model.denoise(new)
    model.transform(new)
    assert len(made) == 1
    model.fit(2 * train)
    assert_allclose(model.denoise(2 * new), 2 * first, atol=1e-2)
    assert len(made) == 2


def test_copies_prepare_their_own_and_answer_alike(monkeypatch, tmp_path):
    train, new = subspace()
    model = fitted(train)
    expected = model.denoise(new)
    assert "prepared" not in str(vars(model))
    size = len(pickle.dumps(model))
    made = count_preparations(monkeypatch)
    model.save(tmp_path / "model.npz")
    others = pickle.loads(pickle.dumps(model)), copy.deepcopy(model), FRPCAG.load(tmp_path / "model.npz")
    for number, other in enumerate(others, start=1):
        assert_array_equal(other.denoise(new), expected)
        assert len(made) == number
    assert len(pickle.dumps(model)) == size
    assert not hasattr(clone(model), "low_rank_")


def test_what_is_prepared_goes_with_the_model():
    train, new = subspace()
    gc.collect()
    before = len(row_model._PREPARED)
    model = fitted(train)
    model.denoise(new)
    assert len(row_model._PREPARED) == before + 1
    del model
    gc.collect()
    assert len(row_model._PREPARED) == before


@pytest.mark.parametrize("factor", [1e-25, 1e25])
def test_extreme_units_change_nothing_else(factor):
    train, new = subspace()
    damaged = new.copy()
    damaged[:, ::7] += 15
    assert_allclose(
        fitted(factor * train).denoise(factor * damaged) / factor, fitted(train).denoise(damaged), atol=0.05
    )


def test_a_row_of_huge_errors_is_finite_and_its_other_cells_decide():
    train, new = subspace()
    damaged = new.copy()
    damaged[:, 3] = 1e300
    damaged[:, 5] = -1e300
    found = fitted(train).denoise(damaged)
    assert np.abs(found - new).max() < 0.5


@pytest.mark.filterwarnings("ignore:n_neighbors")
@pytest.mark.parametrize("shape", [(2, 1), (3, 2), (2, 50), (8, 300), (30, 1), (25, 4)])
def test_few_rows_or_columns_are_enough(shape):
    rng = np.random.default_rng(0)
    model = FRPCAG().fit(rng.normal(size=shape))
    for rows in (rng.normal(size=(4, shape[1])), np.zeros((1, shape[1])), np.full((1, shape[1]), 1e6)):
        found = model.denoise(rows)
        assert found.shape == rows.shape
        assert np.isfinite(found).all()


def test_constant_data_know_new_rows():
    model = FRPCAG().fit(np.full((30, 12), 4.0))
    assert np.isfinite(model.denoise(np.full((2, 12), 5.0))).all()
    assert_allclose(model.denoise(np.full((2, 12), 4.0)), 4.0)


def blobs(seed=0):
    """Three groups of rows about a centre each, those to fit on and new ones, and the group of each."""
    rng = np.random.default_rng(seed)
    centres, group = 4 * rng.normal(size=(3, 40)), np.arange(150) % 3
    X = centres[group] + 0.5 * rng.normal(size=(150, 40))
    return X[:120], X[120:], group[:120], group[120:]


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("loss", LOSSES)
def test_new_rows_lie_where_fitted_rows_of_their_kind_lie(loss, missing):
    train, new, group, group_of_new = blobs()
    rng = np.random.default_rng(7)
    damaged = np.where(rng.random(new.shape) < 0.1, 20.0, new)
    damaged[rng.random(new.shape) < missing] = np.nan
    model = fitted(train, loss=loss)
    means = np.array([model.embedding_[group == k].mean(axis=0) for k in range(3)])
    apart = min(np.linalg.norm(means[i] - means[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    off = np.linalg.norm(model.transform(damaged) - means[group_of_new], axis=1)
    assert off.max() < 0.3 * apart


def test_transform_smooths_and_denoise_does_not():
    train, new, _, group_of_new = blobs()
    model = fitted(train)
    within = [
        np.std(Z[group_of_new == 0], axis=0).mean()
        for Z in (model.inverse_transform(model.transform(new)), model.denoise(new), new)
    ]
    assert within[0] < 0.6 * within[2]
    assert within[1] > 0.9 * within[2]


def test_without_a_sample_graph_the_row_meets_its_features_alone():
    train, new = subspace()
    model = fitted(train, sample_graph=None)
    assert_allclose(model.transform(train), model.embedding_, atol=1e-9)
    assert np.isfinite(model.transform(new)).all()


def test_a_far_row_is_not_blown_up_by_fitted_rows_of_hardly_any_degree():
    rng = np.random.default_rng(5)
    train = np.vstack([rng.normal(size=(60, 20)), 30 + rng.normal(size=(2, 20))])
    model = fitted(train)
    far = 40 + rng.normal(size=(3, 20))
    assert (
        np.linalg.norm(model.transform(far), axis=1).max() < 3 * np.linalg.norm(far - train.mean(axis=0), axis=1).max()
    )


@pytest.mark.parametrize(
    "params", [{}, {"loss": "l2", "laplacian": "combinatorial"}, {"loss": "huber", "metric": "l1"}]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_model_of_tensors_gives_the_same_answers(dtype, params):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    train, new = subspace(dtype=dtype)
    new[np.random.default_rng(4).random(new.shape) < 0.2] = np.nan
    new[:20, :8] = 3.0
    rows = np.vstack([new, train[:3]])
    host, device = fitted(train, **params), fitted(torch.from_numpy(train), **params)
    for name in ("low_rank_", "sparse_", "components_", "mean_"):  # fits agree to their gap, answers to rounding
        setattr(device, name, torch.from_numpy(getattr(host, name)))
    for method in ("denoise", "transform"):
        expected, found = getattr(host, method)(rows), getattr(device, method)(torch.from_numpy(rows))
        assert found.numpy().dtype == expected.dtype
        assert_allclose(found, expected, atol=5e-3)
        assert np.abs(found.numpy() - expected).mean() < 1e-4
        assert_array_equal(getattr(device, method)(rows), found)  # arrays are put on the device


def test_tensors_are_refused_as_arrays_are():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    train, new = subspace()
    model, reference = fitted(torch.from_numpy(train)), fitted(train)
    for spoilt in (new[:, :-1], np.where(new > 4, np.inf, new), np.full_like(new, np.nan), new[0]):
        with pytest.raises(ValueError) as ours:
            model.transform(torch.from_numpy(spoilt))
        with pytest.raises(ValueError) as theirs:
            reference.transform(spoilt)
        assert str(ours.value) == str(theirs.value)


def test_tensors_find_the_values_that_rows_repeat():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from frpcag.backends.numba.robust_rows import repeated
    from frpcag.backends.torch.robust_rows import repeated as on_tensors

    rows = np.random.default_rng(0).integers(0, 6, size=(40, 15)).astype(np.float64)
    rows[::3, :6] = np.nan
    expected = np.empty((40, 2))
    repeated(rows, 4, expected)
    assert_array_equal(on_tensors(torch.from_numpy(rows), 4), expected)


def test_training_rows_get_their_embedding_where_rounding_their_level_leaves_little():
    train, _ = subspace(dtype=np.float32)
    train += np.float32(1e6)
    model = fitted(train)
    assert_array_equal(model.transform(train), model.embedding_)
    assert_array_equal(model.denoise(train), model.low_rank_)


@pytest.mark.filterwarnings("ignore:columns of X have different units", "ignore:no convergence")
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_new_rows_are_no_training_rows_however_far_from_zero_they_lie(kind, wide):
    train, _ = subspace()
    X = train if wide else train + 1e6
    if wide:
        X[:, 3] = np.linspace(0, 1e6, len(X))
    rows = X[:20] + 3 * (np.arange(40) >= 30)
    put = pytest.importorskip("torch").from_numpy if kind == "tensor" else np.asarray
    model = fitted(put(X), center=False, laplacian="combinatorial")
    for method, own in (("denoise", model.low_rank_), ("transform", model.embedding_)):
        found = np.asarray(getattr(model, method)(put(rows)))
        assert not (found[:, None] == np.asarray(own)[None]).all(axis=2).any()
        assert_array_equal(getattr(model, method)(put(X)), own)


@pytest.mark.parametrize("level", [0.0, 1e6])
@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_a_copy_in_float32_and_one_with_negative_zeros_are_the_training_row(kind, level):
    train, _ = subspace()
    train[:, 0] = level + np.round(train[:, 0] - 3)
    train[:, 1:] += level
    put = pytest.importorskip("torch").from_numpy if kind == "tensor" else np.asarray
    model = fitted(put(train), center=False, laplacian="combinatorial")
    copies = train.astype(np.float32)
    copies[copies == 0] = -0.0
    for rows in (copies, np.where(train == 0, -0.0, train)):
        assert_array_equal(model.denoise(put(rows)), np.asarray(model.low_rank_).astype(rows.dtype))
        assert_allclose(model.transform(put(rows)), model.embedding_, rtol=1e-6)


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1e30, 1e299])
def test_rows_of_any_size_are_repaired_alike(size):
    train, new = subspace()
    train, new = train - 3, new - 3
    hit = np.random.default_rng(1).random(new.shape) < 0.1
    damaged = np.where(hit, np.nan, new)
    expected = fitted(train).denoise(damaged)
    assert_allclose(fitted(train * size).denoise(damaged * size) / size, expected, atol=1e-3)


def test_a_level_that_is_not_taken_off_hides_no_wrong_cell():
    train, new = subspace()
    hit = np.random.default_rng(1).random(new.shape) < 0.1
    damaged = np.where(hit, new + 15, new)
    found = fitted(train + 1e6, center=False, laplacian="combinatorial").denoise(damaged + 1e6) - 1e6
    assert np.abs(found - new)[hit].mean() < 0.02


@pytest.mark.filterwarnings("ignore:columns of X have different units", "ignore:no convergence")
def test_an_entry_near_the_end_of_the_range_leaves_answers_finite():
    train, new = np.split(np.random.default_rng(0).normal(size=(25, 28)).astype(np.float32), [19])
    train[2, 1] = 1e30
    model = FRPCAG(gamma2=3.0).fit(train)
    assert np.isfinite(model.denoise(new)).all()
    assert np.isfinite(model.transform(new)).all()


def test_missing_cells_start_as_predicted_where_no_sample_graph_says_more():
    train, new = subspace()
    options = {"sample_graph": None, "gamma2": 1.0, "loss": "huber", "laplacian": "combinatorial"}
    model = fitted(train, **options)
    gaps = np.where(np.random.default_rng(0).random(new.shape) < 0.2, np.nan, new)
    found = model.inverse_transform(model.transform(gaps))
    moved = fitted(train + 1e4, **options)
    assert_allclose(moved.inverse_transform(moved.transform(gaps + 1e4)), found + 1e4, atol=1e-2)


@pytest.mark.parametrize("n_neighbors", [np.int64(5), np.int32(5)])
def test_numbers_of_neighbours_may_be_numpys(n_neighbors):
    train, new = subspace()
    expected, found = (
        FRPCAG(n_neighbors=k, n_components=2, tol=0.3).fit(train).transform(new) for k in (5, n_neighbors)
    )
    assert_array_equal(found, expected)
