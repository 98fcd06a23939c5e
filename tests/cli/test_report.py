"""frpcag report: run folders in, one page out."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from frpcag import FRPCAG
from frpcag.cli.report import load_run
from frpcag.problem import objective
from frpcag.report.diagnostics import diagnose
from support.browser import Browser, needs_browser


@pytest.fixture
def run(data, frpcag, working_folder):
    assert frpcag("fit", data, "--clusters", 3, "--feature-shape", "4x6", "--no-plots").exit_code == 0
    return working_folder / "frpcag-run-data"


@pytest.fixture
def clip(working_folder, frpcag):
    """A square that moves in front of noise, separated."""
    pytest.importorskip("av")
    frames = np.random.default_rng(0).normal(100, 2, (12, 32, 48))
    for t in range(12):
        frames[t, 8:20, 3 * t : 3 * t + 12] = 220
    np.save(working_folder / "<i>clip.npy", frames.astype(np.uint8))
    result = frpcag("video", working_folder / "<i>clip.npy", "--output", "clip")
    assert result.exit_code == 0, result.stderr
    return working_folder / "clip"


def edit(run, **changes):
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**record, **changes}))


def test_page_is_written_into_the_run_folder(run, frpcag):
    result = frpcag("report", run)
    assert result.exit_code == 0, result.stderr
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "data.npy" in page
    assert 'href="low_rank.npy" download' in page
    assert 'id="browser-data"' in page
    assert "Theorem 1, both sides" in page


def test_json_tells_where_the_page_is(run, frpcag, working_folder, monkeypatch):
    monkeypatch.setattr("frpcag.report.render.draw_figures", lambda *_, **__: [])
    result = frpcag("report", run, "--output", "page.html", "--json")
    told = json.loads(result.stdout)
    assert told["bytes"] == (working_folder / "page.html").stat().st_size
    assert 'href="frpcag-run-data/sparse.npy"' in (working_folder / "page.html").read_text(encoding="utf-8")


def test_graphs_built_again_are_those_of_the_fit(run):
    fit = load_run(run, page=run / "report.html")
    record = json.loads((run / "run.json").read_text())
    assert objective(fit.problem, fit.clean) == pytest.approx(record["certificate"]["objective"], rel=1e-9)
    assert diagnose(fit).gap == pytest.approx(record["certificate"]["relative_gap"], rel=1e-6, abs=1e-9)


def test_graphs_that_were_not_kept_and_come_out_otherwise_are_left_out(run):
    (run / "graphs.npz").unlink()
    graphs = json.loads((run / "run.json").read_text())["graphs"]
    graphs["samples"]["n_edges"] += 1
    edit(run, graphs=graphs)
    fit = load_run(run, page=run / "report.html")
    assert fit.sample_graph is None
    assert fit.feature_graph is None
    assert "graph of the samples could not be built again" in fit.no_graphs


def test_a_run_with_missing_entries_keeps_its_graphs(working_folder, X, frpcag):
    X[3, 4] = np.nan
    np.save(working_folder / "gaps.npy", X)
    assert frpcag("fit", "gaps.npy", "--no-plots").exit_code == 0
    fit = load_run(working_folder / "frpcag-run-gaps", page=working_folder / "report.html")
    assert fit.has_missing
    X_clean = FRPCAG(random_state=0).fit(X)
    assert_array_equal(fit.sample_graph.weights.toarray(), X_clean.sample_graph_.weights.toarray())
    assert_array_equal(fit.feature_graph.weights.toarray(), X_clean.feature_graph_.weights.toarray())


def test_a_missing_folder_is_called_a_missing_folder(frpcag):
    result = frpcag("report", "nowhere")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: there is no folder nowhere; check the path")


def test_names_and_history_in_the_record_are_shown(run):
    history = {"n_iter": [1, 2], "gap": [0.1, 0.01], "objective": [3.0, 2.0]}
    edit(run, feature_names=[f"sensor {j}" for j in range(24)], history=history)
    fit = load_run(run, page=run / "report.html")
    assert fit.feature_names[3] == "sensor 3"
    assert fit.history == history


def test_arrays_stay_on_disk(run):
    fit = load_run(run, page=run / "report.html")
    assert isinstance(fit.U, np.memmap)
    assert isinstance(fit.S, np.memmap)


@pytest.mark.parametrize("spoil", [lambda run: (run / "run.json").unlink(), lambda run: edit(run, command="other")])
def test_what_is_no_run_is_refused(run, frpcag, spoil):
    spoil(run)
    result = frpcag("report", run)
    assert result.exit_code == 2
    assert "is not a folder that frpcag fit or frpcag video has written" in result.stderr


def test_damaged_arrays_are_refused(run, frpcag):
    (run / "sparse.npy").write_bytes(b"not an array")
    result = frpcag("report", run)
    assert result.exit_code == 2
    assert "sparse.npy cannot be read" in result.stderr


def test_a_page_that_cannot_be_written_is_an_input_error(run, frpcag):
    result = frpcag("report", run, "--output", run / "no" / "such" / "page.html")
    assert result.exit_code == 2
    assert "--output=" in result.stderr


def test_a_video_run_has_its_frames(clip):
    fit = load_run(clip, page=clip / "report.html")
    assert fit.is_video
    assert list(fit.pictures.stacks) == ["frame", "background", "foreground", "mask"]
    assert len(fit.pictures) == fit.pictures.total == 12
    mask = fit.pictures.stacks["mask"]
    assert mask[6, 14, 24]
    assert not mask[6, 2, 2]
    assert fit.shares.share == pytest.approx(mask.mean())
    assert fit.shares.samples[6] == pytest.approx(mask[6].mean())
    assert abs(float(fit.pictures.stacks["background"][6, 14, 24]) - 100) < 15


def test_a_video_run_without_its_videos_is_refused(clip, frpcag):
    (clip / "mask.mp4").unlink()
    result = frpcag("report", clip)
    assert result.exit_code == 2
    assert "videos cannot be read" in result.stderr


@needs_browser
def test_frames_of_a_video_run_open_in_a_browser(clip, frpcag, tmp_path):
    assert frpcag("report", clip).exit_code == 0
    browser = Browser(tmp_path / "profile")
    try:
        browser.open((clip / "report.html").as_uri())
        browser.run("document.getElementById('position').focus()")
        browser.press("End")
        assert browser.run("document.getElementById('caption').textContent").startswith("frame 11: ")
        assert browser.run("document.querySelector('h1').textContent") == "<i>clip.npy"
        assert browser.errors == []
    finally:
        browser.close()


@pytest.mark.parametrize(
    "changes",
    [{"gamma1": "x"}, {"parameters": 3}, {"parameters": {"feature_shape": [1]}}, {"data": []}, {"warnings": 1}],
    ids=str,
)
def test_a_run_file_that_lies_is_one_line(run, frpcag, changes):
    edit(run, **changes)
    result = frpcag("report", run)
    assert result.exit_code == 2
    assert "run.json does not say what a run says" in result.stderr


def test_a_run_file_of_endless_brackets_is_one_line(run, frpcag):
    (run / "run.json").write_text("[" * 200_000)
    result = frpcag("report", run)
    assert result.exit_code == 2
    assert "run.json does not say so" in result.stderr
