"""Checkpoints: only the fit that wrote one goes on from it; whatever else is found there is one clear error."""

import json
import shutil
import warnings
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

pytest.importorskip("distributed", reason="Dask is not installed")

import dask.array as da

from frpcag import FRPCAG, DaskBackend, build_graph
from frpcag.dask.checkpoint import Checkpoint
from frpcag.dask.prepared import _FREE, fingerprint
from frpcag.dask.tasks import Here, Layout


def table(seed=0, n=60, p=5):
    """Whole numbers in two chunks: sums over rows in another order are the same to the last bit."""
    rng = np.random.default_rng(seed)
    return np.round(3 * rng.normal(size=(6, p))[rng.integers(0, 6, n)] + rng.normal(size=(n, p))).astype("f4")


def fit(X, place=None, *, seen=None, every=2, **options):
    """Fit for six steps in blocks in this process; ``seen`` gets the steps done."""
    given = {"max_iter": 6, "tol": 0.0, "random_state": 0, "center": False, **options}
    callback = given.pop("callback", None) or (lambda progress: seen is not None and seen.append(progress.n_iter))
    backend = DaskBackend(checkpoint=None if place is None else str(place), every=every)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # six steps are no convergence
        return FRPCAG(backend=backend, callback=lambda progress: callback(progress) and None, **given).fit(
            da.from_array(X, chunks=(30, -1))
        )


def ring(n, weight=1.0):
    A = sp.coo_array((np.full(n, weight), (np.arange(n), np.roll(np.arange(n), 1))), shape=(n, n)).tocsr()
    return sp.csr_array(A + A.T)


@pytest.fixture(scope="module")
def four_steps(tmp_path_factory):
    place = tmp_path_factory.mktemp("checkpoint") / "run"
    fit(X, place, max_iter=4)
    return place


@pytest.fixture
def run(four_steps, tmp_path):
    """A folder with a fit of X after four steps."""
    return shutil.copytree(four_steps, tmp_path / "run")


X = table()
RING, KINDS = (
    ring(60),
    [build_graph(table(), n_neighbors=4, laplacian=kind) for kind in ("normalized", "combinatorial")],
)
OTHERS = {
    "data": (table(1), {}, {}),
    "rows in another order": (X[::-1].copy(), {}, {}),
    "dtype": (X.astype("f8"), {}, {}),
    "one entry of the last chunk": (np.where(np.arange(60)[:, None] == 59, X + np.eye(5, dtype="f4")[0], X), {}, {}),
    "kind of a graph given": (X, {"sample_graph": KINDS[0]}, {"sample_graph": KINDS[1]}),
    "weights of a graph given": (X, {"sample_graph": RING}, {"sample_graph": ring(60, 2.0)}),
    "no graph": (X, {}, {"sample_graph": None}),
    "graphs the other way round": (X, {"feature_graph": None}, {"sample_graph": None}),
    "laplacian": (X, {}, {"laplacian": "combinatorial"}),
    "gamma": (X, {"gamma1": 1.0}, {"gamma1": 1.5}),
    "random_state": (X, {}, {"random_state": 1}),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_checkpoint_of_another_fit_is_refused(what, run, tmp_path):
    other, first, second = OTHERS[what]
    if first:
        fit(X, run := tmp_path / "first", max_iter=2, **first)
    with pytest.raises(ValueError, match="holds a fit of other data, chunks or parameters"):
        fit(other, run, **second)


def test_every_parameter_that_shapes_the_problem_is_in_the_fingerprint():
    dx, given = da.from_array(X, chunks=(30, -1)), (None, None)

    def mark(params):
        model = SimpleNamespace(get_params=lambda deep: params)
        return fingerprint(model, dx, [X[:30], X[30:]], Here(), given, (1.0, 1.0))

    params = {**FRPCAG().get_params(deep=False), "a_new_one": None}
    graphs = {"sample_graph", "feature_graph"}  # these come as the problem has them
    told = {name for name in params if mark(params) != mark({**params, name: "something else"})}
    assert told == set(params) - _FREE - graphs


def test_what_changes_no_iterate_goes_on(run):
    seen = []
    model = fit(X, run, seen=seen, max_iter=6, n_components=2, tol=1e-9)
    assert seen == [5, 6]
    assert_array_equal(model.low_rank_.compute(), fit(X).low_rank_.compute())


@pytest.mark.parametrize("rule", [{"stop": "gap", "tol": 1e-2}, {"stop": "change", "tol": 3e-4}])
@pytest.mark.parametrize("every", [1, 3])
def test_a_run_that_goes_on_ends_where_a_whole_one_does(rule, every, tmp_path):
    class ClientDies(Exception):
        pass

    def die(progress):
        if progress.n_iter == whole.n_iter_ - 1:
            raise ClientDies

    whole = fit(X, max_iter=100, **rule)
    assert whole.converged_
    with pytest.raises(ClientDies):
        fit(X, tmp_path / "run", every=every, max_iter=100, callback=die, **rule)
    again = fit(X, tmp_path / "run", every=every, max_iter=100, **rule)
    assert again.n_iter_ == whole.n_iter_
    for key, values in whole.history_.items():
        assert_array_equal(again.history_[key], values, err_msg=key)
    # A run that was saved at its last step ends there again.
    assert fit(X, tmp_path / "run", every=every, max_iter=100, **rule).n_iter_ == whole.n_iter_


@pytest.mark.parametrize("metric", ["euclidean", "truncated"])
def test_graphs_are_those_of_a_fit_without_a_checkpoint_at_any_size_of_the_entries(metric, tmp_path):
    huge, options = 1e160 * table().astype("f8"), {"metric": metric, "max_iter": 2}
    whole = fit(huge, **options).feature_graph_
    for _ in range(2):  # from the start, and from the checkpoint
        graph = fit(huge, tmp_path / "run", **options).feature_graph_
        assert_array_equal(graph.weights.toarray(), whole.weights.toarray())
        assert graph.sigma == whole.sigma


def test_fewer_steps_than_were_saved_are_honoured_and_the_save_stays(run):
    short, seen = fit(X, run, max_iter=3), []
    assert short.n_iter_ == 3
    assert_array_equal(short.low_rank_.compute(), fit(X, max_iter=3).low_rank_.compute())
    fit(X, run, seen=seen)
    assert seen == [5, 6]  # the save of step 4 was left alone


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path):
    text = bytearray(path.read_bytes())
    text[len(text) // 2] ^= 1
    path.write_bytes(bytes(text))


def change(path):
    whole = json.loads(path.read_text())
    whole["content"]["note"]["t"] = 1.0
    path.write_text(json.dumps(whole))


def of_another_version(path):
    content = {**json.loads(path.read_text())["content"], "version": 99}
    path.write_text(json.dumps({"content": content, "digest": joblib.hash(json.dumps(content))}))


def elsewhere(path):
    """Name a folder of somebody else: it would be read now and deleted after the next save."""
    content = json.loads(path.read_text())["content"]
    content["folder"] = "../precious"
    path.write_text(json.dumps({"content": content, "digest": joblib.hash(json.dumps(content))}))


def test_a_manifest_that_names_another_folder_deletes_nothing(run):
    precious = run.parent / "precious"
    shutil.copytree(next(run.glob("step-*")), precious)
    elsewhere(run / "step.json")
    with pytest.raises(ValueError, match=r"is damaged \(step.json does not describe a save\)"):
        fit(X, run)
    assert list(precious.iterdir())


DAMAGE = [
    *((pattern, do) for pattern in ("prepared-*/1.npz", "step-*/0.npz") for do in (truncate, flip, type(X), None)),
    *((name, do) for name in ("prepared.json", "step.json") for do in (truncate, flip)),
    ("step.json", change),
    ("step.json", of_another_version),
]


@pytest.mark.parametrize(("pattern", "do"), DAMAGE)
def test_damage_is_one_clear_error(pattern, do, run):
    (path,) = run.glob(pattern)
    if do is None:
        path.unlink()
    elif do is type(X):  # a whole file, of other numbers
        with np.load(path) as arrays:
            np.savez(path, **{name: arrays[name] + 1 for name in arrays.files})
    else:
        do(path)
    with pytest.raises(ValueError, match=r"checkpoint=.*(is damaged \(|was written by another version).*delete"):
        fit(X, run)


def test_a_save_that_broke_off_is_swept_and_other_files_stay(run):
    seen = []
    for name in ("step-000006-0123abcd", "mine"):
        (run / name).mkdir()
        (run / name / "0.npz").write_bytes(b"half")
    fit(X, run, seen=seen)
    assert seen == [5, 6]
    assert sorted(path.name[:6] for path in run.iterdir()) == sorted(
        ["clean-", "clean.", "mine", "prepar", "prepar", "step-0", "step.j"]
    )


def test_a_manifest_that_cannot_be_written_leaves_the_one_before(run, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("frpcag.dask.checkpoint.os.fsync", full)
    with pytest.raises(OSError, match=r"No space left on device.*checkpoint of step 4 is intact"):
        fit(X, run)
    monkeypatch.undo()
    seen = []
    fit(X, run, seen=seen)
    assert seen == [5, 6]


def test_a_file_in_place_of_a_folder_is_a_clear_error(tmp_path):
    (tmp_path / "run").write_text("a letter")
    with pytest.raises(OSError, match=r"checkpoint=.* could not be written"):
        fit(X, tmp_path / "run")


def test_two_fits_in_one_folder_find_the_same(tmp_path):
    later = []

    def another(progress):
        if progress.n_iter == 3:
            later.append(fit(X, tmp_path / "run"))

    earlier = fit(X, tmp_path / "run", callback=another)
    for model in (earlier, *later):
        assert_array_equal(model.low_rank_.compute(), fit(X).low_rank_.compute())


def test_other_fits_are_refused_by_a_folder_that_is_in_use(tmp_path):
    layout, place = Layout.spread(Here(), [2, 2]), str(tmp_path / "run")
    first, second = Checkpoint(place, "a"), Checkpoint(place, "b")
    first.claim()
    second.claim()
    saved = second.save("prepared", layout, [{"A": np.full(2, 7.0)} for _ in range(2)], step=0, note={})
    with pytest.raises(ValueError, match="holds a fit of other data"):
        first.save("prepared", layout, [{"A": np.zeros(2)} for _ in range(2)], step=0, note={})
    assert [block["A"].tolist() for block in second.load(saved, layout)] == [[7.0, 7.0]] * 2


def test_a_block_of_one_row_is_read_back_however_it_lay_in_memory(tmp_path):
    layout, store = Layout.spread(Here(), [1]), Checkpoint(str(tmp_path / "run"), "a")
    store.claim()
    row = np.arange(24.0).reshape(3, 8)[:1, :5]
    saved = store.save("step", layout, [{"U": row}], step=1, note={})
    assert_array_equal(store.load(saved, layout)[0]["U"], row)


def test_a_given_graph_that_has_worked_out_more_since_is_the_same_graph(tmp_path):
    graph, seen = build_graph(X, n_neighbors=4), []
    fit(X, tmp_path / "run", max_iter=4, sample_graph=graph)
    assert graph.laplacian.has_sorted_indices
    assert graph.null_vector.shape == (60,)
    fit(X, tmp_path / "run", seen=seen, sample_graph=graph)
    assert seen == [5, 6]
