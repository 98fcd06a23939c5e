import json
from pathlib import Path

import numpy as np
import pytest

import frpcag as package
from frpcag.cli import demo as demo_module
from frpcag.cli.main import COMMANDS, load_command
from frpcag.cli.progress import Bar, share_done
from frpcag.data import missing_pixels
from frpcag.solvers import Progress


def test_version_is_that_of_the_package(frpcag):
    assert frpcag("--version").stdout == f"frpcag {package.__version__}\n"


def test_no_command_shows_the_commands(frpcag):
    result = frpcag()
    assert result.exit_code == 0
    assert all(command in result.stdout for command in ("demo", "fit", "info"))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_the_command_says_of_itself(name):
    assert COMMANDS[name] == load_command(name).help.splitlines()[0]


def test_every_module_of_a_command_is_listed():
    shared = {"__init__", "main", "options", "errors", "progress", "runs", "pictures", "tables"}
    assert {path.stem for path in Path(package.__file__).parent.glob("cli/*.py")} - shared == set(COMMANDS)


def test_info_lists_backends_data_sets_and_extras(frpcag, monkeypatch, working_folder):
    (working_folder / "orl.npz").write_bytes(b"")
    monkeypatch.setenv("FRPCAG_DATA", str(working_folder))
    info = json.loads(frpcag("info", "--json").stdout)
    assert info["backends"]["numpy"] is True
    assert info["datasets"] == ["digits", "orl"]
    assert info["data_folder"] == str(working_folder)
    assert set(info["extras"]) == {"io", "ann", "video", "graphs", "anndata", "gpu", "dask", "reproduce"}
    assert info["versions"]["numpy"] == np.__version__


def test_info_says_where_data_are_not_set(frpcag, monkeypatch):
    monkeypatch.delenv("FRPCAG_DATA", raising=False)
    result = frpcag("info")
    assert result.exit_code == 0
    assert "not set" in result.stdout
    assert "frpcag[io]" in result.stdout


def test_the_bar_is_full_when_the_gap_meets_the_tolerance():
    assert [share_done(1.0, gap, 1e-3) for gap in (2.0, 1.0, 1e-3, 1e-9)] == [0.0, 0.0, 1.0, 1.0]
    assert share_done(float("nan"), float("nan"), 1e-3) == 0.0


def test_the_bar_shows_the_step_and_the_gap_on_stderr(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes any stream for a terminal then
    monkeypatch.setenv("TERM", "xterm")
    with Bar(shown=True) as bar:
        bar(Progress(n_iter=1, max_iter=9, change=1.0, gap=1.0, objective=1.0, tol=1e-2))
        bar(Progress(n_iter=7, max_iter=9, change=1.0, gap=0.1, objective=1.0, tol=1e-2))
    out, err = capsys.readouterr()
    assert out == ""
    assert "step 7, gap 1.0e-01 -> 1e-02" in err
    assert "50%" in err


def test_the_demo_shows_where_the_clusters_are_better_than_those_of_k_means(frpcag, working_folder, monkeypatch):
    monkeypatch.setattr(demo_module, "SEEDS", range(1))
    fewer = {name: kind for name, kind in demo_module.CORRUPTIONS.items() if name != "25 % zero"}
    monkeypatch.setattr(demo_module, "CORRUPTIONS", fewer)
    result = frpcag("demo")
    assert result.exit_code == 0, result.stderr
    run = json.loads((working_folder / "frpcag-demo/run.json").read_text())
    errors = run["clustering"]["error"]
    raw, ours = (errors[name] for name in ("k-means on the pixels", "FRPCAGClustering (default)"))
    assert ours["none"] < raw["none"]
    assert ours["40 % zero"] < raw["40 % zero"]
    assert all(f"{100 * value:.1f}" in result.stdout for row in errors.values() for value in row.values())
    distance = {name: row["25 % black or white"] for name, row in run["cleaning"]["distance"].items()}
    assert min(distance, key=distance.get) == "FRPCAG"
    assert run["certificate"]["relative_gap"] <= run["certificate"]["tol"]
    assert "of the optimum, proved" in result.stdout
    assert {path.name for path in (working_folder / "frpcag-demo").glob("*.png")} == set(run["files"])
    assert len(run["files"]) == 4


def test_the_demo_replaces_its_own_folder_and_no_other(frpcag, working_folder, monkeypatch):
    monkeypatch.setattr(demo_module, "SEEDS", range(1))
    monkeypatch.setattr(demo_module, "CORRUPTIONS", {"zero": (missing_pixels, 0.25)})
    monkeypatch.setattr(demo_module, "METHODS", {"none": lambda X, hit, seed: np.zeros(len(X))})
    assert json.loads(frpcag("demo", "--json").stdout)["command"] == "demo"
    assert frpcag("demo", "--json").exit_code == 0
    run = working_folder / "frpcag-demo/run.json"
    run.write_text(json.dumps({"command": "fit"}))
    result = frpcag("demo")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: --output=frpcag-demo exists and is not the folder of a demo")
    assert json.loads(run.read_text()) == {"command": "fit"}
