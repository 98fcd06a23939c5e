"""Models on disk: they come back as they were, and nothing else comes back at all."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsTransformer

import frpcag
from frpcag import FRPCAG, BackgroundSeparator
from frpcag.graphs import Graph
from frpcag.saving import MODELS
from frpcag.saving.archive import write_archive
from frpcag.saving.fields import to_fields


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    X = np.repeat(3 * rng.normal(size=(3, 8)), 12, axis=0) + rng.normal(size=(36, 8))
    X[rng.random(X.shape) < 0.05] = np.nan
    return X


@pytest.fixture
def frames():
    return np.random.default_rng(1).normal(100, 2, (8, 9, 10))


def assert_same(a, b):
    """Every number of two results is the same, to the last bit."""
    assert type(a) is type(b)
    if isinstance(a, Graph):
        assert_same(vars(a)["weights"], vars(b)["weights"])
        assert_same(vars(a)["laplacian"], vars(b)["laplacian"])
        assert (a.sigma, a.method, a.normalized) == (b.sigma, b.method, b.normalized)
    elif sp.issparse(a):
        for part in ("data", "indices", "indptr"):
            assert_array_equal(getattr(a, part), getattr(b, part))
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert_array_equal(a, b)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_same(one, other)
    elif to_fields(a) is not None:
        assert_same(*(to_fields(part)[1] for part in (a, b)))
    elif hasattr(a, "get_params"):
        assert_same_model(a, b)
    elif isinstance(a, np.random.RandomState):
        assert a.get_state(legacy=False)["state"]["pos"] == b.get_state(legacy=False)["state"]["pos"]
    else:
        assert a == b or (a != a and b != b)


def assert_same_model(a, b):
    results = {name: value for name, value in vars(a).items() if name.endswith("_") and name not in a._unsaved}
    assert results.keys() == {name for name in vars(b) if name.endswith("_")}
    for name, value in {**a.get_params(deep=False), **results}.items():
        assert_same(value, getattr(b, name))


def fitted(name, X, frames):
    if name == "BackgroundSeparator":
        return BackgroundSeparator(max_iter=2).fit(frames)
    options = {
        "CompressiveFRPCAG": {"n_samples_kept": 20, "random_state": 0},
        "FRPCAG": {"n_components": 2, "random_state": np.random.RandomState(3)},
        "FRPCAGCV": {"multiples1": (0.1, 1.0), "multiples2": [1.0], "random_state": 0},
        "FRPCAGClustering": {"n_clusters": 3, "random_state": 0},
        "RobustGraphCleaner": {"random_state": 0},
        "RobustGraphImputer": {"estimator": FRPCAG()},
    }
    return getattr(frpcag, name)(**options[name]).fit(X)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_as_it_was(name, X, frames, tmp_path):
    model = fitted(name, X, frames)
    model.save(tmp_path / "model.npz")
    assert_same_model(model, frpcag.load(tmp_path / "model.npz"))
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]


def test_every_public_estimator_can_be_saved():
    estimators = {name for name in frpcag.__all__ if hasattr(getattr(frpcag, name), "get_params")}
    assert estimators == set(MODELS)


def test_a_loaded_model_cleans_new_rows_alike(X, tmp_path):
    model = FRPCAG(n_components=2, feature_graph=None).fit(X.astype(np.float32))
    model.save(tmp_path / "model.npz")
    rows = np.nan_to_num(X[:4]) + 1
    assert_array_equal(FRPCAG.load(tmp_path / "model.npz").denoise(rows), model.denoise(rows))


def test_the_metric_of_the_graph_comes_back(X, tmp_path):
    FRPCAG(n_components=2, metric="l1").fit(X).save(tmp_path / "model.npz")
    model = FRPCAG.load(tmp_path / "model.npz")
    assert (model.metric, model.sample_graph_.metric, model.feature_graph_.metric) == ("l1", "l1", "euclidean")


def test_names_of_features_come_back(X, tmp_path):
    pd = pytest.importorskip("pandas")
    model = FRPCAG().fit(pd.DataFrame(X, columns=[f"gene{i}" for i in range(8)]))
    model.save(tmp_path / "model.npz")
    assert list(frpcag.load(tmp_path / "model.npz").feature_names_in_) == [f"gene{i}" for i in range(8)]


def test_a_graph_that_was_given_comes_back(X, tmp_path):
    A = sp.csr_array(np.ones((36, 36)) - np.eye(36))
    FRPCAG(sample_graph=A).fit(X).save(tmp_path / "model.npz")
    assert_array_equal(frpcag.load(tmp_path / "model.npz").sample_graph.toarray(), A.toarray())


def test_a_model_of_tensors_is_stored_as_arrays(X, tmp_path):
    torch = pytest.importorskip("torch")
    model = FRPCAG(n_components=2).fit(torch.from_numpy(X))
    model.save(tmp_path / "model.npz")
    assert_array_equal(frpcag.load(tmp_path / "model.npz").low_rank_, model.low_rank_.numpy())


def test_a_parameter_of_another_library_is_left_out_with_a_warning(X, tmp_path):
    model = FRPCAG(sample_graph=KNeighborsTransformer(n_neighbors=4)).fit(np.nan_to_num(X))
    with pytest.warns(UserWarning, match="sample_graph=KNeighborsTransformer.*is not stored"):
        model.save(tmp_path / "model.npz")
    back = frpcag.load(tmp_path / "model.npz")
    assert back.sample_graph == "auto"
    assert_same(back.sample_graph_, model.sample_graph_)


def test_a_callback_is_left_out_silently(X, tmp_path):
    FRPCAG(callback=lambda progress: False).fit(X).save(tmp_path / "model.npz")
    assert frpcag.load(tmp_path / "model.npz").callback is None


def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        FRPCAG().save(tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_class_of_somebody_else_is_not_saved(X, tmp_path):
    class Mine(FRPCAG):
        pass

    with pytest.raises(ValueError, match="Mine is not one of frpcag's own models"):
        Mine().fit(X).save(tmp_path / "model.npz")


def test_the_wrong_class_is_named(X, tmp_path):
    FRPCAG().fit(X).save(tmp_path / "model.npz")
    with pytest.raises(ValueError, match=r"holds a FRPCAG, not a BackgroundSeparator; call FRPCAG\.load"):
        BackgroundSeparator.load(tmp_path / "model.npz")


@pytest.fixture
def saved(X, tmp_path):
    path = tmp_path / "model.npz"
    FRPCAG(n_components=2).fit(X).save(path)
    return path


def contents(path):
    with np.load(path) as stored:
        return {name: stored[name] for name in stored.files}


def forge(path, change):
    """Rewrite a file with a changed header and a digest that fits it, as somebody with bad intent would."""
    parts = contents(path)
    header = json.loads(str(parts.pop("header")))
    parts.pop("digest")
    change(header, parts)
    with path.open("wb") as file:
        write_archive(file, json.dumps(header), parts)


def test_a_changed_number_is_refused(saved):
    parts = contents(saved)
    parts["array_0"] = parts["array_0"] + 1
    np.savez(saved, **parts)
    with pytest.raises(ValueError, match="was changed or damaged after it was saved"):
        frpcag.load(saved)


def test_a_changed_parameter_is_refused(saved):
    parts = contents(saved)
    parts["header"] = str(parts["header"]).replace('"max_iter": 500', '"max_iter": 501')
    np.savez(saved, **parts)
    with pytest.raises(ValueError, match="was changed or damaged after it was saved"):
        frpcag.load(saved)


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_a_truncated_file_is_refused(saved, keep):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: keep if isinstance(keep, int) else int(keep * len(whole))])
    with pytest.raises(ValueError, match="is not a saved frpcag model"):
        frpcag.load(saved)


def test_flipped_bytes_are_refused_or_do_no_harm(saved):
    whole, model = saved.read_bytes(), frpcag.load(saved)
    rng = np.random.default_rng(0)
    refused = 0
    for position in rng.integers(len(whole), size=60):
        broken = bytearray(whole)
        broken[position] ^= 1 << int(rng.integers(8))
        saved.write_bytes(bytes(broken))
        try:
            assert_same_model(model, frpcag.load(saved))  # a byte that says nothing, such as a date in the archive
        except ValueError:
            refused += 1
    assert refused > 40


def test_foreign_files_are_refused(tmp_path):
    np.savez(tmp_path / "arrays.npz", X=np.zeros(3))
    np.savez(tmp_path / "pickle.npz", header=np.array([{}], object))
    np.save(tmp_path / "array.npy", np.zeros(3))
    (tmp_path / "text.npz").write_text("no archive")
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(ValueError, match="is not a saved frpcag model"):
            frpcag.load(path)


def test_a_file_that_is_not_there_says_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        frpcag.load(tmp_path / "none.npz")


@pytest.mark.parametrize("version", [99, 2, 0, "3", True, None])
def test_a_file_of_another_version_asks_for_the_library_that_wrote_it(saved, version):
    forge(saved, lambda header, parts: header.update(version=version, writer="9.9.0"))
    words = rf"written by frpcag 9\.9\.0 in file version {version}; .* load it with the version that wrote it"
    with pytest.raises(ValueError, match=words):
        frpcag.load(saved)


def no_such_class(header, parts):
    header["model"] = "Pipeline"


def no_results(header, parts):
    header["results"] = {}


def method_replaced(header, parts):
    header["results"]["transform"] = 1


def unknown_kind(header, parts):
    header["results"]["mean_"] = {"_class__": 1}


def unknown_parameter(header, parts):
    header["params"]["n_magic"] = 1


def result_left_out(header, parts):
    del header["results"]["low_rank_"]


def short_mean(header, parts):
    name = header["results"]["mean_"]["array"]
    parts[name] = parts[name][:-1]


def index_outside(header, parts):
    name = header["results"]["sample_graph_"]["graph"]["laplacian"]["sparse"]["indices"]
    parts[name][0] = 1_000_000


def other_graph(header, parts):
    header["results"]["sample_graph_"] = header["results"]["feature_graph_"]


def no_such_metric(header, parts):
    header["results"]["sample_graph_"]["graph"]["metric"] = "rounded"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (no_such_metric, "sample_graph_.metric='rounded' is not a metric"),
        (no_such_class, "model 'Pipeline' is unknown"),
        (no_results, "not fitted"),
        (method_replaced, "transform is not a result"),
        (unknown_kind, "'_class__' is not a known kind of value"),
        (unknown_parameter, "n_magic"),
        (result_left_out, "low_rank_"),
        (short_mean, r"mean_ has shape \(7,\), not \(8,\)"),
        (index_outside, "indices"),
        (other_graph, "sample_graph_ has 8 nodes, not 36"),
    ],
)
def test_a_forged_file_that_makes_no_sense_is_refused(saved, change, words):
    forge(saved, change)
    with pytest.raises(ValueError, match=f"does not hold a whole model: .*{words}"):
        frpcag.load(saved)


def test_a_save_that_fails_leaves_the_earlier_file(saved, X, monkeypatch):
    before = saved.read_bytes()

    def full_disk(file, **arrays):
        file.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(OSError, match="no space left"):
        FRPCAG().fit(X).save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["model.npz"]
