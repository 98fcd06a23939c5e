"""CompressiveFRPCAG: a sample solved, its clean rows and labels carried over to all others."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from frpcag import FRPCAG, CompressiveFRPCAG, FRPCAGClustering
from frpcag.data import row_source
from frpcag.rows import RowModel
from frpcag.rows.linked import LinkedRows


def corrupted(n=600, p=30, k=4, seed=0):
    """Return rows around ``k`` centres with gross errors, the rows without them, and their labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    clean = 3 * rng.normal(size=(k, p))[labels] + 0.3 * rng.normal(size=(n, p))
    return np.where(rng.random((n, p)) < 0.05, clean + 10, clean), clean, labels


@pytest.mark.filterwarnings("ignore:n_neighbors=10 is not smaller")  # the checks fit ten rows
@parametrize_with_checks([CompressiveFRPCAG(n_samples_kept=0.6)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_all_rows_kept_is_the_model_itself():
    X, _, _ = corrupted(200)
    full = FRPCAG(3, random_state=0).fit(X)
    model = CompressiveFRPCAG(FRPCAG(3, random_state=0), n_samples_kept=1.0).fit(X)
    assert_allclose(model.low_rank_, full.low_rank_, rtol=1e-10, atol=1e-10)
    assert_allclose(model.singular_values_, full.singular_values_, rtol=1e-8)
    assert_allclose(np.abs(model.embedding_), np.abs(full.embedding_), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("loss", ["l1", "l2", "huber"])
def test_carried_rows_minimise_their_own_problem(loss):
    """Against a search over a grid of values around the answer, entry by entry."""
    X, _, _ = corrupted(80, 6)
    model = CompressiveFRPCAG(FRPCAG(loss=loss, random_state=0), n_samples_kept=50, random_state=0).fit(X)
    carrier = RowModel.of(model.estimator_)
    others = np.setdiff1d(np.arange(len(X)), model.sample_indices_)
    rows = model._as_solved(X[others])
    near = carrier.near(rows)
    q, links = carrier.carried.links(*near[:2])
    b = links @ carrier.carried.U

    def phi(r):
        r = np.abs(r)
        return {"l1": r, "l2": r**2, "huber": np.where(r < 1, r**2 / 2, r - 0.5)}[loss]

    def cost(u):
        return phi(rows - u) + model.estimator_.gamma1_ * (q[:, None] * u**2 - 2 * u * b)

    at = carrier.carry(rows, near)
    for step in np.concatenate([-np.logspace(-6, 1, 30), np.logspace(-6, 1, 30)]):
        assert (cost(at) <= cost(at + step) + 1e-9).all()


def test_rows_outside_the_sample_are_cleaner_than_given():
    X, clean, _ = corrupted()
    model = CompressiveFRPCAG(n_samples_kept=150, random_state=0).fit(X)
    others = np.setdiff1d(np.arange(len(X)), model.sample_indices_)
    error = np.abs(model.low_rank_ - clean)[others].mean()
    assert error < 0.7 * np.abs(X - clean)[others].mean()


def test_heldout_error_tells_a_coarse_sample_from_a_fine_one():
    X, _, _ = corrupted(1500, 10, k=40)
    coarse, fine = (CompressiveFRPCAG(n_samples_kept=m, random_state=0).fit(X).heldout_error_ for m in (60, 1200))
    assert 0 < fine < coarse < 1.5
    assert np.isnan(CompressiveFRPCAG(n_samples_kept=1.0).fit(X[:50]).heldout_error_)


def test_gaps_are_filled():
    X, clean, _ = corrupted()
    gaps = np.random.default_rng(1).random(X.shape) < 0.2
    model = CompressiveFRPCAG(n_samples_kept=200, random_state=0).fit(np.where(gaps, np.nan, X))
    assert np.isfinite(model.low_rank_).all()
    assert np.abs(model.low_rank_ - clean)[gaps].mean() < np.abs(clean - clean.mean(axis=0))[gaps].mean() / 2


def test_embedding_reconstructs_the_clean_part():
    X, _, _ = corrupted()
    model = CompressiveFRPCAG(FRPCAG(30, random_state=0), n_samples_kept=300, random_state=0).fit(X)
    assert_allclose(model.inverse_transform(model.embedding_), model.low_rank_, atol=1e-8)
    assert_allclose(model.components_ @ model.components_.T, np.eye(30), atol=1e-8)
    assert_allclose(np.linalg.norm(model.embedding_, axis=0), model.singular_values_, rtol=1e-8)
    assert_allclose(model.transform(X), model.embedding_, atol=1e-6)


@pytest.mark.parametrize("level", [0.0, 1e6])
@pytest.mark.parametrize("center", [True, False])
def test_rows_outside_the_sample_are_no_copies_of_it_however_far_from_zero_they_lie(center, level):
    X = corrupted(250, 12)[0] + level
    inner = FRPCAG(center=center, laplacian="combinatorial", random_state=0)
    model = CompressiveFRPCAG(inner, n_samples_kept=100, random_state=0).fit(X)
    others = np.setdiff1d(np.arange(len(X)), model.sample_indices_)
    sample = model.estimator_.low_rank_
    copies = (model.denoise(X[others])[:, None] == model.denoise(X[model.sample_indices_])[None]).all(axis=2)
    assert not copies.any()
    for rows in (X, X.astype(np.float32)):
        own = model.denoise(rows[model.sample_indices_])
        assert_allclose(own, sample, atol=1e-5 + 0.1 * level * np.finfo(rows.dtype).eps)


def test_saving_prepares_nothing(tmp_path, monkeypatch):
    X = corrupted(200)[0]
    model = CompressiveFRPCAG(n_samples_kept=50, random_state=0).fit(X)
    expected = model.denoise(X)
    with monkeypatch.context() as patch:
        patch.setattr(LinkedRows, "__init__", None)
        model.save(tmp_path / "model.npz")
        loaded = CompressiveFRPCAG.load(tmp_path / "model.npz")
    assert_array_equal(loaded.denoise(X), expected)


def test_lists_of_a_large_sample_find_what_brute_force_finds(monkeypatch):
    from frpcag.graphs import METRICS, index

    rng = np.random.default_rng(0)
    X, rows = rng.normal(size=(1500, 8)), rng.normal(size=(300, 8))
    for metric in METRICS.values():
        exact = index.Index(X, metric, method="exact").query(rows, 10)
        with monkeypatch.context() as patch:
            patch.setattr(index, "LISTED", 100)
            found = index.Index(X, metric, random_state=0).query(rows, 10)
        shared = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(exact[0], found[0], strict=True)])
        assert shared > 0.9


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_a_memory_map_in_blocks_gives_what_the_array_gives(tmp_path, monkeypatch, dtype):
    X = np.clip(20 * corrupted()[0] + 100, 0, 255).astype(dtype)
    np.save(tmp_path / "X.npy", X)
    settings = {"n_samples_kept": 150, "random_state": 0}
    whole = CompressiveFRPCAG(**settings).fit(X)
    monkeypatch.setattr(row_source, "BLOCK", 30 * 64)
    model = CompressiveFRPCAG(**settings, output=tmp_path / "out").fit(tmp_path / "X.npy")
    assert isinstance(model.low_rank_, np.memmap)
    assert isinstance(model.embedding_, np.memmap)
    assert_allclose(model.low_rank_, whole.low_rank_, rtol=1e-5, atol=1e-4)
    assert_allclose(np.load(tmp_path / "out" / "embedding.npy"), whole.embedding_, rtol=1e-3, atol=1e-2)
    assert model.low_rank_.dtype == (np.float32 if dtype == np.float32 else np.float64)


def test_scattered_rows_of_a_memory_map_let_its_pages_go(tmp_path, monkeypatch):
    X = corrupted()[0]
    np.save(tmp_path / "X.npy", X)
    source = row_source.RowSource(tmp_path / "X.npy", FRPCAG())
    freed = []
    monkeypatch.setattr(row_source, "let_go", lambda A: freed.append(A.shape))
    monkeypatch.setattr(row_source, "_SCATTERED", 10)
    rows = np.arange(0, 600, 20)
    assert_array_equal(source.take(rows), X[rows])
    assert freed == [X.shape] * 3


def test_the_number_of_threads_changes_no_bit():
    X = corrupted(n=6000)[0]  # three blocks of rows
    one, two = (
        CompressiveFRPCAG(FRPCAG(tol=0.1, n_jobs=n_jobs), n_samples_kept=100, random_state=0).fit(X)
        for n_jobs in (1, 2)
    )
    for name in ("low_rank_", "embedding_", "components_", "mean_", "heldout_error_"):
        assert_array_equal(getattr(one, name), getattr(two, name))


def test_a_fit_that_fails_leaves_files_and_model(tmp_path, monkeypatch):
    X, _, _ = corrupted()
    model = CompressiveFRPCAG(n_samples_kept=150, output=tmp_path, random_state=0).fit(X)
    before = np.array(model.low_rank_)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(RowModel, "carry", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X + 1)
    assert_array_equal(model.low_rank_, before)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["embedding.npy", "low_rank.npy"]


def test_ctrl_c_in_the_solve_is_carried_over_then_raised():
    X, _, _ = corrupted()

    def stop(at):
        raise KeyboardInterrupt

    model = CompressiveFRPCAG(FRPCAG(callback=stop), n_samples_kept=150, random_state=0)
    with pytest.raises(KeyboardInterrupt, match="duality gap"):
        model.fit(X)
    assert model.status_ == "interrupted"
    assert model.low_rank_.shape == X.shape


def test_low_rank_is_left_out_where_not_asked_for():
    model = CompressiveFRPCAG(n_samples_kept=150, keep_low_rank=False, random_state=0).fit(corrupted()[0])
    assert not hasattr(model, "low_rank_")
    assert len(model.embedding_) == 600


def test_too_little_memory_is_said_before_the_fit(monkeypatch):
    monkeypatch.setattr("frpcag.runtime.memory.available_bytes", lambda: 2**27)
    X = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (10**6, 500), (0, 0))
    with pytest.raises(MemoryError, match="output=folder"):
        CompressiveFRPCAG().fit(X)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_samples_kept": 1}, "n_samples_kept=1 must"),
        ({"n_samples_kept": "most"}, "n_samples_kept='most' must"),
        ({"n_samples_kept": 1.5}, "n_samples_kept=1.5 must"),
        ({"output": 3}, "output=3 must"),
        ({"keep_low_rank": "no"}, "keep_low_rank='no' must"),
        ({"estimator": FRPCAG(sample_graph=None)}, "sample_graph must be a search"),
        ({"estimator": FRPCAG(sample_graph=sp.eye_array(600))}, "sample_graph must be a search"),
        ({"estimator": 3}, "estimator=3 must be an FRPCAG"),
    ],
)
def test_refusals_name_argument_and_value(settings, words):
    with pytest.raises(ValueError, match=words):
        CompressiveFRPCAG(**settings).fit(corrupted()[0])


@pytest.mark.parametrize("hole", ["infinite", "row", "column"])
def test_bad_entries_of_a_memory_map_are_refused(tmp_path, hole):
    X = corrupted()[0]
    X[slice(5, 6) if hole == "row" else slice(None), 3 if hole == "column" else slice(None)] = np.nan
    if hole == "infinite":
        X = np.where(np.arange(X.size).reshape(X.shape) == 7, np.inf, 1.0)
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match={"infinite": "1 infinite", "row": "row 5", "column": "column 3"}[hole]):
        CompressiveFRPCAG().fit(tmp_path / "X.npy")


def test_labels_of_the_sample_are_carried_over():
    X, _, labels = corrupted()
    model = FRPCAGClustering(4, CompressiveFRPCAG(n_samples_kept=200, random_state=0), random_state=0).fit(X)
    assert adjusted_rand_score(labels, model.labels_) > 0.99


def test_nested_parameters_reach_the_model():
    model = clone(FRPCAGClustering(3, CompressiveFRPCAG(FRPCAG())))
    model.set_params(estimator__estimator__gamma1=2.0, estimator__n_samples_kept=100)
    assert model.fit(corrupted()[0]).estimator_.estimator_.gamma1_ == 2.0


def test_progress_of_the_carrying_over_is_told_at_every_tenth(capsys, monkeypatch):
    monkeypatch.setattr(row_source, "BLOCK", 30 * 10)  # blocks of ten rows
    CompressiveFRPCAG(FRPCAG(verbose=1), n_samples_kept=150, random_state=0).fit(corrupted()[0])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("carrying over: ")]
    assert [line.split()[2] for line in lines] == [str(60 * tenth) for tenth in range(1, 11)]
