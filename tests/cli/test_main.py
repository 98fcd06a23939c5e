import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import frpcag as package
from frpcag.cli import demo as demo_module
from frpcag.cli.demo import Cell
from frpcag.cli.options import COMMANDS, parse
from frpcag.cli.progress import Bar, share_done
from frpcag.solvers import Progress


def test_version_is_that_of_the_package(frpcag):
    assert frpcag("--version").stdout == f"frpcag {package.__version__}\n"


def test_no_command_shows_the_commands(frpcag):
    result = frpcag()
    assert result.exit_code == 0
    assert all(command in result.stdout for command in ("demo", "fit", "info"))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_has_an_example_that_its_options_take(name, frpcag):
    shown = frpcag(name, "--help")
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert COMMANDS[name]["help"] in " ".join(shown.stdout.split())
    program, command, *words = shlex.split(shown.stdout.partition("example:")[2])
    assert (program, command) == ("frpcag", name)
    assert parse(name, words).command == name


def test_every_command_has_its_module():
    folder = Path(package.__file__).parent / "cli"
    assert all((folder / f"{name}.py").is_file() for name in COMMANDS)


def test_info_lists_backends_and_extras(frpcag):
    info = json.loads(frpcag("info", "--json").stdout)
    assert info["backends"]["numpy"] is True
    assert set(info["extras"]) == {"io", "video", "graphs", "anndata", "gpu", "dask"}
    assert info["versions"]["numpy"] == np.__version__
    assert "frpcag[io]" in frpcag("info").stdout


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


@pytest.fixture
def small_demo(monkeypatch):
    """Let the demo look at fewer rows."""
    for name in ("wrong_cells", "missing_values"):
        cells = getattr(demo_module, name)()
        first = {key: Cell(cell.X[:300], cell.truth[:300], cell.hit[:300], cell.y[:300]) for key, cell in cells.items()}
        monkeypatch.setattr(demo_module, name, lambda first=first: first)


def test_the_demo_comes_nearest_to_the_truth_and_ends_with_a_page_that_loads_nothing(
    frpcag, working_folder, small_demo
):
    result = frpcag("demo")
    assert result.exit_code == 0, result.stderr
    run = json.loads((working_folder / "frpcag-demo/run.json").read_text())
    ours = run["cleaning"].pop("frpcag")
    assert ours.pop(demo_module.RIGHT) == 0
    assert all(value < row[name] for row in run["cleaning"].values() for name, value in ours.items())
    page = (working_folder / "frpcag-demo/demo.html").read_text()
    assert all(f"{100 * value:.1f}" in page for row in run["clustering"].values() for value in row.values())
    assert all(f"{100 * value:.1f}" in result.stdout for row in run["clustering"].values() for value in row.values())
    assert not re.search(r"""(?:src|href)="(?!data:)""", page)
    assert demo_module.where_not_first(run["clustering"]) in page
    assert "frpcag-demo/" in result.stdout


def test_the_demo_replaces_its_own_folder_and_no_other(frpcag, working_folder, small_demo, monkeypatch):
    for tools in ("CLEANERS", "IMPUTERS"):
        monkeypatch.setattr(
            demo_module, tools, dict.fromkeys(getattr(demo_module, tools), lambda cell: np.nan_to_num(cell.X))
        )
    monkeypatch.setattr(demo_module, "CLUSTERERS", {"none": lambda X, k: np.zeros(len(X))})
    assert json.loads(frpcag("demo", "--json").stdout)["command"] == "demo"
    assert frpcag("demo", "--json").exit_code == 0
    run = working_folder / "frpcag-demo/run.json"
    (run.parent / "demo.html").unlink()
    result = frpcag("demo")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: --output=frpcag-demo exists; pass another --output")
    assert run.is_file()
