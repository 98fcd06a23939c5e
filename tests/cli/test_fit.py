import json

import numpy as np
import pandas as pd
import pytest
import scipy.io
from sklearn.datasets import load_wine

from frpcag import FRPCAG, FRPCAGClustering, load
from frpcag.cli.main import main
from frpcag.tables import read_matrix

ARRAYS = ("low_rank", "sparse", "embedding", "components", "singular_values")
FAST = ("--no-plots",)


def write_h5(path, X):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file["X"] = X


WRITERS = {
    "npy": lambda path, X: np.save(path, X),
    "npz": lambda path, X: np.savez(path, X=X),
    "csv": lambda path, X: np.savetxt(path, X, delimiter=",", fmt="%.17g"),
    "tsv": lambda path, X: np.savetxt(path, X, delimiter="\t", fmt="%.17g"),
    "parquet": lambda path, X: pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])]).to_parquet(path),
    "mat": lambda path, X: scipy.io.savemat(path, {"X": X}),
    "h5": write_h5,
}


def entries(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("suffix", WRITERS)
def test_every_format_gives_the_fit_of_its_matrix(suffix, working_folder, X, frpcag):
    path = working_folder / f"table.{suffix}"
    WRITERS[suffix](path, X)
    result = frpcag("fit", path, *FAST)
    assert result.exit_code == 0, result.stderr
    expected = FRPCAG(random_state=0).fit(X)
    for name in ARRAYS:
        saved = np.load(working_folder / "frpcag-run-table" / f"{name}.npy")
        np.testing.assert_allclose(saved, getattr(expected, f"{name}_"), rtol=1e-9, atol=1e-9)


def test_labels_are_those_of_the_clusterer(data, X, frpcag, working_folder):
    assert frpcag("fit", data, "--clusters", 3, "--seed", 4, *FAST).exit_code == 0
    run = working_folder / "frpcag-run-data"
    expected = FRPCAGClustering(3, random_state=4).fit_predict(X)
    np.testing.assert_array_equal(np.load(run / "labels.npy"), expected)
    table, names = read_matrix(run / "labels.csv")
    assert names == ["sample", "label"]
    np.testing.assert_array_equal(table[:, 1], expected)


@pytest.mark.parametrize("clusters", ["auto", 3])
def test_clusters_are_those_of_python_and_leave_the_decomposition_alone(clusters, frpcag, working_folder):
    X = load_wine().data
    np.save("wine.npy", X)
    assert frpcag("fit", "wine.npy", "--clusters", clusters, *FAST).exit_code == 0
    run = working_folder / "frpcag-run-wine"
    expected = FRPCAGClustering(clusters, random_state=0).fit_predict(X)
    np.testing.assert_array_equal(np.load(run / "labels.npy"), expected)
    with pytest.warns(UserWarning, match="spreads"):
        np.testing.assert_array_equal(np.load(run / "low_rank.npy"), FRPCAG(random_state=0).fit(X).low_rank_)


def test_options_reach_the_estimator(data, X, frpcag, working_folder):
    words = "--n-components 2 --feature-shape 4x6 --scale --jobs 1"
    settings = "gamma1=0.5 gamma2=2 n_neighbors=5 laplacian=combinatorial loss=huber feature_graph=grid center=false"
    settings += " tol=1e-4 max_iter=400 backend=numpy sample_graph=exact"
    chosen = [word for setting in settings.split() for word in ("--set", setting)]
    result = frpcag("fit", data, *words.split(), *chosen, *FAST)
    assert result.exit_code == 0, result.stderr
    expected = FRPCAG(
        2,
        gamma1=0.5,
        gamma2=2.0,
        n_neighbors=5,
        laplacian="combinatorial",
        loss="huber",
        feature_graph="grid",
        sample_graph="exact",
        feature_shape=(4, 6),
        center=False,
        scale=True,
        tol=1e-4,
        max_iter=400,
        n_jobs=1,
        backend="numpy",
    ).fit(X)
    np.testing.assert_array_equal(np.load(working_folder / "frpcag-run-data/low_rank.npy"), expected.low_rank_)


def test_graph_none_drops_the_term(data, frpcag, working_folder):
    assert frpcag("fit", data, "--set", "feature_graph=none", *FAST).exit_code == 0
    run = json.loads((working_folder / "frpcag-run-data/run.json").read_text())
    assert run["graphs"]["features"] is None
    assert run["gamma2"] == 0


def test_the_metric_is_passed_on_and_noted(data, X, frpcag, working_folder):
    assert frpcag("fit", data, "--set", "metric=auto", *FAST).exit_code == 0
    run = json.loads((working_folder / "frpcag-run-data/run.json").read_text())
    assert run["parameters"]["metric"] == "auto"
    assert run["graphs"]["samples"]["metric"] == FRPCAG(metric="auto").fit(X).sample_graph_.metric
    assert run["graphs"]["features"]["metric"] == "euclidean"


@pytest.mark.parametrize("clusters", [[], ["--clusters", "2"]])
def test_saved_models_are_those_that_were_fitted(clusters, data, frpcag, working_folder):
    assert frpcag("fit", data, "--save-model", *clusters, *FAST).exit_code == 0
    run = working_folder / "frpcag-run-data"
    np.testing.assert_array_equal(load(run / "model.npz").low_rank_, np.load(run / "low_rank.npy"))
    if clusters:
        np.testing.assert_array_equal(load(run / "clusters.npz").labels_, np.load(run / "labels.npy"))


def test_float32_is_computed_in_float32(data, frpcag, working_folder):
    assert frpcag("fit", data, "--float32", *FAST).exit_code == 0
    assert np.load(working_folder / "frpcag-run-data/low_rank.npy").dtype == np.float32


def test_run_json_holds_what_is_needed_to_repeat_and_trust_the_run(data, X, frpcag, working_folder):
    assert frpcag("fit", data, "--seed", 7, "--set", "tol=1e-5", *FAST).exit_code == 0
    run = json.loads((working_folder / "frpcag-run-data/run.json").read_text())
    expected = FRPCAG(tol=1e-5, random_state=7).fit(X)
    assert run["seed"] == 7
    assert run["parameters"]["gamma1"] == "auto"
    assert run["gamma1"] == expected.gamma1_
    assert run["data"]["file"] == "data.npy"
    assert (run["data"]["n_samples"], run["data"]["n_features"], run["data"]["dtype"]) == (60, 24, "float64")
    assert run["certificate"] == {
        "objective": expected.objective_,
        "relative_gap": expected.duality_gap_,
        "tol": 1e-5,
        "converged": True,
        "n_iter": expected.n_iter_,
        "status": "converged",
    }
    assert {"read", "sample_graph", "solve", "factorize", "write"} <= set(run["timings"])
    assert run["versions"]["numpy"] == np.__version__


def test_a_run_has_its_report_with_images_where_the_shape_is_given(data, frpcag, working_folder):
    assert frpcag("fit", data, "--clusters", 3, "--feature-shape", "4x6").exit_code == 0
    run = working_folder / "frpcag-run-data"
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "<h1>data.npy</h1>" in page
    assert 'href="low_rank.npy" download' in page
    assert 'id="browser-data"' in page
    assert "report.html" in json.loads((run / "run.json").read_text())["files"]


def test_json_is_the_run_json_and_nothing_else(data, frpcag, working_folder):
    result = frpcag("fit", data, "--json", "--set", "max_iter=1", *FAST)
    assert result.exit_code == 0
    assert json.loads(result.stdout) == json.loads((working_folder / "frpcag-run-data/run.json").read_text())
    assert result.stderr == ""


def test_quiet_prints_nothing(data, frpcag):
    result = frpcag("fit", data, "--quiet", *FAST)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_the_summary_says_what_is_proved_and_where_the_files_are(data, frpcag):
    result = frpcag("fit", data, *FAST)
    assert "proved to be within" in " ".join(result.stdout.split())
    assert "frpcag-run-data/" in result.stdout
    assert "low_rank.npy" in result.stdout


def test_reaching_the_step_limit_is_one_readable_line(data, frpcag):
    result = frpcag("fit", data, "--set", "max_iter=2", *FAST)
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: no convergence in max_iter=2 steps")
    assert result.stderr.count("\n") == 1
    assert "ConvergenceWarning" not in result.stderr


def test_overwrite_replaces_a_run(data, frpcag, working_folder):
    frpcag("fit", data, "--clusters", 3, *FAST)
    assert frpcag("fit", data, "--overwrite", *FAST).exit_code == 0
    assert "labels.npy" not in entries(working_folder / "frpcag-run-data")


def test_a_failure_while_writing_leaves_nothing(data, frpcag, working_folder, monkeypatch):
    def full_disk(path, array):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full_disk)
    result = frpcag("fit", data, *FAST)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: --output=frpcag-run-data cannot be written (No space left on device)")
    assert entries(working_folder) == ["data.npy"]


def test_a_failure_while_overwriting_keeps_the_earlier_run(data, frpcag, working_folder, monkeypatch):
    frpcag("fit", data, *FAST)
    before = entries(working_folder / "frpcag-run-data")
    monkeypatch.setattr("frpcag.cli.runs._written", lambda *_: 1 / 0)
    assert frpcag("fit", data, "--overwrite", *FAST).exit_code == 1
    assert entries(working_folder) == ["data.npy", "frpcag-run-data"]
    assert entries(working_folder / "frpcag-run-data") == before


def at_step(step, act, monkeypatch):
    """Act while a solver step is shown."""
    monkeypatch.setattr("frpcag.cli.progress.Bar.__call__", lambda self, at: act() if at.n_iter == step else None)


def test_ctrl_c_in_the_solve_writes_a_certified_result(data, X, frpcag, working_folder, monkeypatch, ctrl_c):
    at_step(3, ctrl_c, monkeypatch)
    result = frpcag("fit", data, "--set", "tol=1e-9", *FAST)
    assert result.exit_code == 130
    assert result.stderr.startswith("warning: interrupted after 3 steps; the result is valid")
    run = json.loads((working_folder / "frpcag-run-data/run.json").read_text())
    assert (run["certificate"]["status"], run["certificate"]["n_iter"]) == ("interrupted", 3)
    assert 0 < run["certificate"]["relative_gap"] < 1
    U, S = (np.load(working_folder / f"frpcag-run-data/{name}.npy") for name in ("low_rank", "sparse"))
    np.testing.assert_allclose(U + S, X)


@pytest.mark.parametrize("stage", ["fit.read_input", "fit.record_of", "runs.to_json"])
def test_ctrl_c_outside_the_solve_leaves_nothing(stage, data, frpcag, working_folder, monkeypatch, ctrl_c):
    monkeypatch.setattr(f"frpcag.cli.{stage}", ctrl_c)
    result = frpcag("fit", data, *FAST)
    assert result.exit_code == 130
    assert result.stderr == "error: interrupted before there was a result; nothing was written.\n"
    assert entries(working_folder) == ["data.npy"]


def test_a_second_ctrl_c_leaves_nothing(data, frpcag, working_folder, monkeypatch, ctrl_c):
    at_step(3, ctrl_c, monkeypatch)
    monkeypatch.setattr("frpcag.cli.runs.to_json", ctrl_c)
    assert frpcag("fit", data, "--set", "tol=1e-9", *FAST).exit_code == 130
    assert entries(working_folder) == ["data.npy"]


def test_progress_goes_to_a_terminal_on_stderr_only(data, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes any stream for a terminal then
    monkeypatch.setenv("TERM", "xterm")
    assert main(["fit", str(data), *FAST]) == 0
    out, err = capsys.readouterr()
    assert "━" in err
    assert "━" not in out
    assert "proved" in out


def test_no_progress_where_stderr_is_not_a_terminal(data, frpcag):
    assert frpcag("fit", data, *FAST).stderr == ""
