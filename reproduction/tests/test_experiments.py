"""Every experiment of the paper runs on small data and gives its table and figure."""

import numpy as np
import pytest
from reproduction.evaluate import clustering_error
from reproduction.paper import EXPERIMENTS, clustering, render, run_cells, write_results
from reproduction.paper.clustering import label_tries, low_rank_points
from reproduction.paper.grid import CORRUPTIONS, PAPER_MODELS, LabelledSet, clustering_cells, corrupt, load_set
from reproduction.paper.speed import patches


@pytest.fixture
def short_ranges(monkeypatch):
    """Try two values of each parameter and two runs of k-means: 1250 runs a model are for tables, not for tests."""
    for name in ("GAMMAS", "BETAS", "GRAPH_WEIGHTS", "SPARSE_WEIGHTS", "LOW_RANK_COMPONENTS"):
        monkeypatch.setattr(clustering, name, getattr(clustering, name)[:2])
    monkeypatch.setattr(clustering, "N_RUNS", 2)
    monkeypatch.setattr(clustering, "N_SEEDS", 2)


@pytest.mark.usefixtures("short_ranges")
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_small_version_runs_and_renders(name, tmp_path):
    experiment = EXPERIMENTS[name]
    records = list(run_cells(experiment, tmp_path, smoke=True))
    assert [one["error"] for one in records if "error" in one] == []
    assert len(records) == len(experiment.cells(True))
    table = render(experiment, tmp_path, smoke=True)
    assert table.startswith(("|", "Smallest"))
    assert table == (tmp_path / f"{name}.md").read_text()


def test_nothing_is_rendered_without_records(tmp_path):
    assert render(EXPERIMENTS["times"], tmp_path) is None


def test_the_grid_has_every_model_on_every_data_set_that_the_paper_gives_it():
    cells = clustering_cells()
    assert len({(one["data"], one["corruption"]) for one in cells}) == 6 * len(CORRUPTIONS) + 5
    orl = {one["model"] for one in cells if one["data"] == "orl" and one["corruption"] == "clean"}
    assert set(PAPER_MODELS) <= orl
    assert not [one for one in cells if one["data"] == "usps" and one["model"] in ("NMF", "GNMF")]


def test_pixels_hit_in_every_image_are_left_out_for_the_model_that_is_told():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    X = (3.0 * y[:, None] + rng.normal(size=(40, 9))).astype(np.float32)
    hit = np.zeros(X.shape, bool)
    hit[:, 4] = True
    ((_, runs),) = label_tries("FRPCAGClustering, NaN", np.where(hit, 0, X), hit, LabelledSet(X, y, (3, 3)))
    assert clustering_error(y, runs[0]) == 0


def test_a_corruption_hits_the_share_that_it_names():
    data = load_set("digits")
    X, hit = corrupt(data.X, data.shape, "missing40")
    assert hit.mean() == pytest.approx(0.4, abs=0.01)
    assert (X[hit] == 0).all()
    np.testing.assert_array_equal(X[~hit], data.X[~hit])


def test_blocks_are_refused_for_data_that_are_no_images():
    with pytest.raises(ValueError, match="'block25' needs images"):
        corrupt(np.ones((3, 4), np.float32), None, "block25")


def test_the_points_of_k_means_keep_the_distances_of_the_rows():
    U = np.random.default_rng(0).normal(size=(20, 6)) * [9, 8, 7, 6, 5, 4]
    Z = low_rank_points(U)
    distances = (np.linalg.norm(A[:, None] - A[None], axis=2) for A in (U, Z))
    np.testing.assert_allclose(*distances, atol=1e-9)


def test_patches_are_windows_of_the_frames():
    class Video:
        shape = (9, 12)
        X = np.arange(2 * 9 * 12, dtype=np.float32).reshape(2, -1)

    found = patches(Video, size=4, stride=4)
    assert found.shape == (2 * 2 * 3, 16)
    np.testing.assert_array_equal(found[1], Video.X[0].reshape(9, 12)[:4, 4:8].ravel())


def test_tables_replace_what_is_between_their_marks(tmp_path):
    page = tmp_path / "RESULTS.md"
    page.write_text("a\n<!-- begin times -->\nold\n<!-- end times -->\nb\n")
    for _ in range(2):
        write_results(page, {"times": "| new |\n"})
    assert page.read_text() == "a\n<!-- begin times -->\n| new |\n<!-- end times -->\nb\n"
