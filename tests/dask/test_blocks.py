"""Facts about row blocks: input, cells, halo, sums. In this process; tests/test_dask.py has the cluster."""

import logging
import sys
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone

pytest.importorskip("dask.array", reason="Dask is not installed")

import dask.array as da

from frpcag import FRPCAG, FRPCAGCV, build_graph, solve
from frpcag.backends import select_backend
from frpcag.dask import DaskBackend, on_client
from frpcag.dask.cells import View, group_cells, order_rows
from frpcag.dask.feature_graph import column_products, graph_from_products
from frpcag.dask.row_blocks import Cut, join_graphs, localize
from frpcag.dask.row_chunks import as_row_chunks
from frpcag.dask.sample_graph import given_graph, search_graph
from frpcag.dask.tasks import Here, Layout, Maximum, add_up, exchange, split_rows, tree_sum
from frpcag.graphs import find_metric
from frpcag.graphs.metric import mean_deviation
from support.oracles import random_laplacian, random_problem


def points(n=300, p=8, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return (np.sin(6 * rng.random((n, 1)) + np.linspace(0, 9, p)) + 0.05 * rng.normal(size=(n, p))).astype(dtype)


def ordered(X, sizes, seed=0, width=None):
    chunks = np.split(X, np.cumsum(sizes)[:-1])
    return order_rows(Here(), chunks, sizes, n_blocks=len(sizes), seed=seed, width=width)[:5]


def whole_laplacian(layout, ids, graph):
    """Put the blocks' rows of a Laplacian together, nodes in the caller's order."""
    n, bounds = int(layout.bounds[-1]), layout.bounds
    L = np.zeros((n, n))
    for j, part in enumerate(graph.parts):
        outside = [bounds[i] + rows for i, rows in part.needs.items()]
        columns = np.concatenate([np.arange(bounds[j], bounds[j + 1]), *outside])
        L[bounds[j] : bounds[j + 1], columns] = part.rows.toarray()
    order = np.concatenate(ids)
    out = np.zeros((n, n))
    out[np.ix_(order, order)] = L
    return out


def test_every_row_is_in_one_block_and_blocks_are_about_equal():
    X = points(1000)
    layout, blocks, ids, _, _ = ordered(X, [300, 500, 100, 100])
    assert sorted(np.concatenate(ids)) == list(range(1000))
    assert_allclose(np.concatenate(blocks), X[np.concatenate(ids)])
    assert max(layout.sizes) <= 1.5 * 250


def test_equal_rows_fill_several_blocks():
    view = View(np.zeros(2), None, None, 0)
    cells = group_cells(np.zeros((3, 2)), np.array([1000, 0, 8]), sp.csr_array((3, 3)), 4, view=view)
    assert cells.n_blocks == 4
    counts = np.bincount(cells.block_of[cells.pieces(np.zeros(1000, int), np.arange(1000))], minlength=4)
    assert counts.max() <= 400


@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
@pytest.mark.parametrize("sizes", [[300], [100, 200], [10, 90, 80, 50, 70]])
def test_the_graph_over_blocks_is_the_graph_of_one_machine(kind, sizes):
    X = points()
    layout, blocks, ids, visits, cells = ordered(X, sizes)
    graph = search_graph(
        layout,
        blocks,
        ids,
        visits,
        cells,
        n_neighbors=7,
        n_features=X.shape[1],
        sigma="auto",
        normalized=kind == "normalized",
        method="auto",
        seed=0,
    )
    reference = build_graph(X, n_neighbors=7, laplacian=kind)
    assert graph.recall == 1.0
    assert graph.n_edges == reference.n_edges
    assert_allclose(graph.sigma, reference.sigma, rtol=1e-5)
    assert_allclose(whole_laplacian(layout, ids, graph), reference.laplacian.toarray(), atol=1e-4)
    true = np.linalg.eigvalsh(reference.laplacian.toarray())[-1]
    assert true <= graph.lmax <= 1.05 * true


def cut_in(sizes, X, **options):
    """Return the graph of rows that look at the lists near them, in blocks of some sizes."""
    chunks = np.split(X, np.cumsum(sizes)[:-1])
    layout, blocks, ids, near, cells = order_rows(Here(), chunks, sizes, n_blocks=len(sizes), seed=0, lists=True)[:5]
    known = {"n_neighbors": 7, "n_features": X.shape[1], "sigma": "auto", "normalized": True, "seed": 0}
    graph = search_graph(layout, blocks, ids, near, cells, method="approximate", **known, **options)
    return layout, ids, graph


MADE = {
    "near a curve": lambda: points(2400),
    "far from zero": lambda: points(2400, dtype=np.float64) + 1e6,
    "equal in tens": lambda: np.repeat(points(240), 10, axis=0),
    "of many features": lambda: points(2400, p=200),
}


@pytest.mark.parametrize("sizes", [[1000, 1400], [240] * 10], ids=str)
@pytest.mark.parametrize("rows", MADE)
def test_rows_find_their_neighbours_in_the_lists_of_all_blocks(rows, sizes):
    X = MADE[rows]()
    layout, ids, graph = cut_in(sizes, X)
    assert len(layout.sizes) == len(sizes)
    assert graph.recall >= 0.97
    reference = build_graph(X, n_neighbors=7)
    assert_allclose(graph.n_edges, reference.n_edges, rtol=0.01)
    assert_allclose(graph.sigma, reference.sigma, rtol=0.01)
    kept = whole_laplacian(layout, ids, graph)[reference.weights.toarray() > 0] != 0
    assert kept.mean() >= 0.97


def test_rows_that_are_all_equal_are_spread_over_the_blocks_and_have_neighbours():
    layout, _, graph = cut_in([300] * 8, np.ones((2400, 3), np.float32))
    assert max(layout.sizes) <= 1.5 * min(layout.sizes)
    assert min(np.diff(part.rows.indptr).min() for part in graph.parts) > 7


def test_blocks_are_cut_between_clusters():
    rng = np.random.default_rng(0)
    X = np.float32(20 * rng.normal(size=(16, 12))[rng.integers(16, size=2400)] + rng.normal(size=(2400, 12)))
    assert cut_in([600] * 4, X)[2].n_halo < 0.15 * len(X)


@pytest.mark.parametrize("name", ["l1", "truncated"])
def test_blocks_find_robust_neighbours_under_gross_errors(name):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 100))[rng.integers(30, size=1600)] + 0.3 * rng.normal(size=(1600, 100))
    X[rng.random(X.shape) < 0.1] += 30
    metric = find_metric(name, X)
    options = {"n_neighbors": 7, "n_features": 100, "sigma": "auto", "normalized": True, "method": "auto", "seed": 0}
    graph = search_graph(*ordered(X, [400] * 4, width=2 * mean_deviation(X)), metric=metric, **options)
    assert graph.metric == name
    assert graph.recall >= 0.9
    assert_allclose(graph.sigma, build_graph(X, n_neighbors=7, metric=name).sigma, rtol=0.01)


def test_neighbouring_cells_in_a_block_keep_the_halo_small():
    X = points(1200)
    layout, _, ids, _, _ = ordered(X, [300] * 4)
    A = build_graph(X).weights
    near = given_graph(layout, ids, A, sigma=None, normalized=True, method="precomputed").n_halo
    as_they_come = [np.arange(300) + 300 * j for j in range(4)]
    far = given_graph(
        Layout.spread(Here(), [300] * 4), as_they_come, A, sigma=None, normalized=True, method="precomputed"
    ).n_halo
    assert near < far / 10  # cells dealt to blocks at random give a quarter


def test_a_block_sees_its_own_rows_and_its_halo_only():
    L = random_laplacian(np.random.default_rng(0), 9, density=0.3)
    bounds, y = np.array([0, 4, 6, 9]), np.random.default_rng(1).normal(size=9)
    for j in range(3):
        part = localize(L[bounds[j] : bounds[j + 1]], bounds, j)
        halo = [y[bounds[i] + rows] for i, rows in part.needs.items()]
        seen = np.concatenate([y[bounds[j] : bounds[j + 1]], *halo])
        assert_allclose(part.rows @ seen, (L @ y)[bounds[j] : bounds[j + 1]], atol=1e-14)
        assert j not in part.needs


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_feature_graph_from_sums_over_blocks_is_the_exact_one(missing):
    rng = np.random.default_rng(0)
    X = points(90, 15, dtype=np.float64)
    X[rng.random(X.shape) < missing] = np.nan
    sums = add_up([column_products(part) for part in np.split(X, [20, 50])])
    graph = graph_from_products(sums, 90, n_neighbors=4, sigma="auto", laplacian="normalized")
    reference = build_graph(X, axis=1, n_neighbors=4)
    assert_allclose(graph.laplacian.toarray(), reference.laplacian.toarray(), atol=1e-5)


@pytest.mark.parametrize("firsts", [[0, 4], [0, 1, 4], [0, 2, 3, 4]])
def test_entries_of_a_row_keep_their_order_however_blocks_are_dealt(firsts):
    sizes, heights, firsts = np.array([3, 5, 2, 6]), np.array([4, 8, 4, 8]), np.array(firsts)
    bounds, tops = (np.concatenate([[0], np.cumsum(rows)]) for rows in (sizes, heights))
    rng = np.random.default_rng(0)
    A = sp.csr_array(np.where(rng.random((16, 16)) < 0.4, rng.normal(size=(16, 16)), 0.0))
    blocks = [localize(A[a:b], bounds, j) for j, (a, b) in enumerate(pairwise(bounds))]
    place = np.concatenate([tops[j] + np.arange(size) for j, size in enumerate(sizes)])  # of every row, with padding
    padded = np.zeros(heights.sum())
    padded[place] = v = rng.normal(size=16)
    got, order = [], []
    for i, (a, b) in enumerate(pairwise(firsts)):
        cut = Cut(i, sizes, heights, firsts)
        L, needs = join_graphs(blocks[a:b], cut)
        start, stop = tops[a], tops[b]
        halo = [padded[tops[firsts[j]] + rows] for j, rows in sorted(needs.items())]
        everyone = np.concatenate([padded[start:stop], *halo])
        at = np.concatenate([np.arange(start, stop), *(tops[firsts[j]] + rows for j, rows in sorted(needs.items()))])
        own = np.concatenate([np.arange(rows.start, rows.stop) for rows in cut.rows])
        got.append((L @ everyone)[own])
        order.append(at[L.indices])
    assert_allclose(np.concatenate(got), A @ v, atol=1e-12)
    assert np.array_equal(np.concatenate(order), place[A.indices])


def test_rows_go_where_they_are_sent():
    A = np.arange(6)
    sources = [split_rows((A,), np.array([0, 1, 1, 5]), np.array([1, 0, 1, 1]), 2), split_rows((A,), A, A % 2, 2)]
    (even,), (odd,) = exchange(Here(), sources, [None, None])
    assert even.tolist() == [1, 0, 2, 4]
    assert odd.tolist() == [0, 1, 5, 1, 3, 5]


def test_a_tree_of_sums_adds_tuples_and_takes_maxima():
    parts = [(np.full(2, float(i)), i, Maximum(-i)) for i in range(40)]
    total, count, largest = tree_sum(Here(), parts)
    assert total.tolist() == [780.0, 780.0]
    assert (count, largest.value) == (780, 0)


def test_a_numpy_problem_is_solved_in_blocks_too():
    problem = random_problem(3, n=40, p=10)
    blocks, whole = solve(problem, backend="dask", tol=1e-6), solve(problem, backend="numba", tol=1e-6)
    assert_allclose(blocks.objective, whole.objective, rtol=1e-9)
    assert blocks.n_iter == whole.n_iter


def test_stores_are_read_by_rows(tmp_path):
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
    X = points(40)
    np.save(tmp_path / "x.npy", X)
    stored = zarr.open_array(str(tmp_path / "x.zarr"), mode="w", shape=X.shape, chunks=(7, 3), dtype=X.dtype)
    stored[:] = X
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["data"] = X
    with h5py.File(tmp_path / "x.h5", "r") as file:
        sources = [str(tmp_path / "x.npy"), np.load(tmp_path / "x.npy", mmap_mode="r"), file["data"], stored]
        sources.append(str(tmp_path / "x.zarr"))
        for source in sources:
            dx = as_row_chunks(source, chunk_rows=15)
            assert dx.chunks == ((15, 15, 10), (8,))
            assert np.array_equal(dx.compute(scheduler="synchronous"), X)


def test_a_memory_map_reaches_the_workers_by_name_not_by_value(tmp_path):
    np.save(tmp_path / "x.npy", points(2000))
    dx = as_row_chunks(np.load(tmp_path / "x.npy", mmap_mode="r"), chunk_rows=500)
    import pickle

    assert len(pickle.dumps(dx)) < 20_000 < points(2000).nbytes


X = np.zeros((6, 4))
BAD = [
    (da.from_array(X, chunks=(3, 2)), {}, r"2 chunks along its features.*rechunk"),
    (da.from_array(X, chunks=(3, 4))[da.from_array(X[:, 0] == 0, chunks=3)], {}, "unknown sizes.*compute_chunk_sizes"),
    (da.from_array(X.astype(object), chunks=(3, 4)), {}, "dtype object"),
    (da.from_array(X, chunks=(3, 4)), {"sample_graph": sp.eye_array(5)}, "5 nodes but X has 6"),
    (
        da.from_array(X, chunks=(3, 4)),
        {"sample_graph": build_graph(points(5), n_neighbors=2)},
        "5 nodes but X has n_samples=6",
    ),
    (da.from_array(X, chunks=(3, 4)), {"feature_graph": sp.eye_array(3)}, "3 nodes but X has 4"),
    (da.from_array(X, chunks=(3, 4)), {"n_refine": 2}, "n_refine=2 is not done by backend='dask'.*pass n_refine=0"),
    (da.zeros((3, 16_385), chunks=(3, -1)), {}, "n_features=16385; backend='dask' takes at most 16384.*fewer features"),
    (da.from_array(X, chunks=(3, 4)), {"tol": -1.0}, "tol=-1.0"),
    (da.from_array(X, chunks=(3, 4)), {"gamma1": -1.0}, "gamma1=-1.0"),
    (da.from_array(X, chunks=(3, 4)), {"backend": "numba"}, "backend='numba' does not take Dask arrays"),
    ("matrix.csv", {"backend": "dask"}, "X='matrix.csv' is not the path"),
]


@pytest.mark.parametrize(("dx", "options", "message"), BAD, ids=[message for _, _, message in BAD])
def test_bad_input_is_refused_before_any_work(dx, options, message, monkeypatch):
    monkeypatch.setattr(Here, "chunks", lambda *_: pytest.fail("work has begun"))
    with pytest.raises(ValueError, match=message):
        FRPCAG(**options).fit(dx)


@pytest.mark.parametrize(
    ("row", "column", "value", "message"),
    [(4, 1, np.inf, "1 infinite"), (4, slice(None), np.nan, "row 4 of X"), (slice(None), 2, np.nan, "column 2 of X")],
)
def test_rows_and_columns_without_data_are_named(row, column, value, message):
    A = points(9, 4)
    A[row, column] = value
    with pytest.raises(ValueError, match=message):
        FRPCAG().fit(da.from_array(A, chunks=(4, -1)))


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"install frpcag\[dask\]"):
        select_backend("dask")


def test_a_model_with_a_dask_backend_can_be_cloned():
    backend = clone(FRPCAG(backend=DaskBackend(checkpoint="folder", every=3))).backend
    assert (backend.checkpoint, backend.every) == ("folder", 3)
    with pytest.raises(ValueError, match="every=0"):
        DaskBackend(every=0)


def test_new_chunks_are_transformed_by_a_model_of_one_machine():
    model = FRPCAG(n_components=2).fit(points(100))
    new = points(20, seed=1)
    lazy = model.transform(da.from_array(new, chunks=(8, -1)))
    assert lazy.shape == (20, 2)
    assert_allclose(lazy.compute(scheduler="synchronous"), model.transform(new), atol=1e-5)


@pytest.fixture(scope="module")
def both():
    """Return a model of one machine and one of row chunks, fitted to the same rows and graph."""
    X = points(60, dtype=np.float64)
    options = {"n_components": 2, "n_neighbors": 5, "sample_graph": build_graph(X, n_neighbors=5), "tol": 1e-6}
    return FRPCAG(**options).fit(X), FRPCAG(**options).fit(da.from_array(X, chunks=(30, -1)))


@pytest.mark.parametrize("method", ["transform", "denoise", "inverse_transform"])
def test_a_model_of_chunks_cleans_new_rows_as_one_of_one_machine(both, method):
    one, many = both
    new = points(4, seed=1, dtype=np.float64) if method != "inverse_transform" else np.ones((4, 2))
    flip = np.sign(np.diag(one.components_ @ many.components_.T)) if method == "transform" else 1
    given = new * np.sign(np.diag(one.components_ @ many.components_.T)) if new.shape[1] == 2 else new
    assert_allclose(getattr(many, method)(given) * flip, getattr(one, method)(new), atol=1e-4)
    lazy = getattr(many, method)(da.from_array(given, chunks=(3, -1)))
    assert_allclose(lazy.compute(scheduler="synchronous"), getattr(many, method)(given), atol=1e-12)


def test_new_rows_find_their_neighbours_among_some_rows_of_many(monkeypatch):
    monkeypatch.setattr("frpcag.dask.kept.MOST_ROWS", 20)
    monkeypatch.setattr("frpcag.dask.kept.LEAST_ROWS", 20)
    X = points(90)
    model = FRPCAG(n_neighbors=5, n_components=2).fit(da.from_array(X, chunks=(30, -1)))
    kept = on_client(model)
    assert kept is on_client(model)
    assert kept.low_rank_.shape == (20, 8)
    assert kept.sample_graph_.n_nodes == 20
    assert np.abs(model.denoise(X) - model.low_rank_.compute()).mean() < np.abs(X - model.low_rank_.compute()).mean()


def test_new_rows_meet_the_last_fit_also_where_both_went_to_the_same_store(tmp_path):
    pytest.importorskip("zarr")
    model = FRPCAG(n_neighbors=5, n_components=2, backend=DaskBackend(output=str(tmp_path / "out.zarr")))
    model.fit(da.from_array(points(60), chunks=(30, -1)))
    on_client(model)
    model.fit(da.from_array(points(60) + 7, chunks=(30, -1)))
    assert np.array_equal(on_client(model).low_rank_, model.low_rank_.compute())


def test_gammas_are_chosen_on_some_rows_of_many(monkeypatch):
    monkeypatch.setattr("frpcag.dask.kept.LEAST_ROWS", 20)
    monkeypatch.setattr("frpcag.estimators.heldout.CLIENT_ROWS", 30)
    model = FRPCAGCV(FRPCAG(n_neighbors=4), multiples1=(0.3, 1.0), multiples2=(0.3,), random_state=0)
    model.fit(da.from_array(points(60), chunks=(30, -1)))
    chosen = model.cv_results_["multiple1"][model.best_index_]
    plain = FRPCAG(n_neighbors=4, random_state=0).fit(da.from_array(points(60), chunks=(30, -1)))
    assert_allclose(model.gamma1_, chosen * plain.gamma1_, rtol=1e-6)
    assert model.low_rank_.shape == (60, 8)


def test_recall_of_the_sample_graph_is_logged(caplog):
    with caplog.at_level(logging.INFO, logger="frpcag"):
        FRPCAG(tol=1e-1, random_state=0).fit(da.from_array(points(), chunks=(100, -1)))
    assert "recall 1.000 of the 10 nearest neighbours" in caplog.text


def test_importing_the_backend_does_not_import_dask():
    import subprocess

    code = "import sys, frpcag.dask; print('dask' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("center", [True, False])
def test_neighbours_that_agree_get_no_weight_as_on_one_machine(center):
    X = np.repeat(points(p=1), 5, axis=1)  # five equal features
    blocks = FRPCAG(center=center, backend="dask").fit(da.from_array(X, chunks=(100, -1)))
    assert blocks.gamma2_ == FRPCAG(center=center).fit(X).gamma2_ == 0


@pytest.mark.parametrize("laplacian", ["normalized", "combinatorial"])
def test_a_grid_of_features_has_the_laplacian_asked_for(laplacian):
    options = {"feature_graph": "grid", "feature_shape": (2, 3), "laplacian": laplacian, "sample_graph": None}
    model = FRPCAG(**options).fit(da.from_array(points(40, 6), chunks=(20, -1)))
    expected = build_graph(np.zeros((1, 6)), axis=1, method="grid", feature_shape=(2, 3), laplacian=laplacian)
    assert_allclose(model.feature_graph_.laplacian.toarray(), expected.laplacian.toarray())
