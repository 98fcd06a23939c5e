"""The pages of the site: their Python runs, their tables come from results/, the API names every public name."""

import importlib
import json
import re
import runpy
from pathlib import Path

import matplotlib
import pytest

import frpcag
from frpcag.cli.main import COMMANDS

DOCS = Path(__file__).resolve().parent.parent / "docs"
# Pages whose code needs what a test machine may lack.
NOT_RUN = {
    "gpu.md": "a GPU",
    "report.md": "photographs of faces",
    "scaling.md": "a Dask cluster",
    "versioning.md": "nothing: it shows how code of the library is written",
    "video.md": "a video file",
}
# Packages whose ``__all__`` is public.
ROOMS = ("anndata", "graphs", "data", "solvers", "baselines", "insight", "plots")


def snippets(path):
    """Return the Python blocks of a page."""
    return re.findall(r"^```python\n(.*?)^```", path.read_text(), flags=re.MULTILINE | re.DOTALL)


PAGES = sorted(
    path for path in [*DOCS.glob("*.md"), *DOCS.glob("guide/*.md")] if path.name not in NOT_RUN and snippets(path)
)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_code_of_a_page_runs_from_top_to_bottom(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    names = {}
    for code in snippets(path):
        exec(compile(code, path.name, "exec"), names)


def test_pages_with_code_are_found():
    assert {"start", "clusters", "cleaning", "missing"} <= {path.stem for path in PAGES}


def test_the_api_lists_every_public_name():
    page = (DOCS / "api.rst").read_text()
    listed = set(re.findall(r"^   (\w+)$|``(?:[a-z.]+\.)?([A-Z]+)``", page, flags=re.MULTILINE))
    listed = {name for pair in listed for name in pair}
    rooms = [frpcag, *(importlib.import_module(f"frpcag.{room}") for room in ROOMS)]
    assert sorted({name for room in rooms for name in room.__all__} - listed) == []


def test_the_page_of_the_command_line_has_every_command():
    shown = re.findall(r"^```{cli-help} (\w+)$", (DOCS / "cli.md").read_text(), flags=re.MULTILINE)
    assert set(shown) == set(COMMANDS)


def test_measured_tables_have_a_cell_for_every_column():
    tables = runpy.run_path(str(DOCS / "_ext" / "tables.py"))
    for name, table in tables["TABLES"].items():
        head, rows = table(json.loads((tables["RESULTS"] / f"{name.partition(':')[0]}.json").read_text()))
        assert rows, name
        assert all(len(row) == len(head) for row in rows), name


def test_figures_of_the_pages_are_those_of_their_records(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    check = runpy.run_path(str(DOCS / "check_figures.py"))
    found = list(check["check_pages"]())
    assert len(found) > 500
    assert [line for right, line in found if not right] == []


@pytest.mark.parametrize(
    "line",
    [
        "error 15 % <!-- = front('ours') -->",
        "error 15 %",
        "1 and 2 <!-- = _ -->",
        "| .35 | 1,500 | <!-- = *[0.35, 1600] -->",
        "1e-4 <!-- = 2e-4 -->",
    ],
)
def test_a_figure_that_is_off_or_has_no_source_is_told(line, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    check = runpy.run_path(str(DOCS / "check_figures.py"))
    assert [right for right, _ in check["check"]("page", line)].count(False) == 1


def test_a_row_that_no_script_wrote_is_told(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    check = runpy.run_path(str(DOCS / "check_figures.py"))
    row = next(line for line in (DOCS.parent / "results/peers/solver.md").read_text().splitlines() if "0." in line)
    text = f"{row}\n{row.replace('0.', '1.')}"
    assert [right for right, _ in check["check_rows"]("page", text, "results/peers/*.md")] == [True, False]


@pytest.mark.parametrize(
    ("page", "line", "told"),
    [
        ("docs/cost.md", "It takes 15 ms a row.", ["15"]),
        ("docs/cost.md", "The error is .35 instead of 0.4, with 1000 rows.", [".35", "0.4"]),
        ("docs/cost.md", "RPCA takes 1,200.5 s and 8 GB, 30 times as long, for 50 %.", ["1,200.5", "8", "30", "50"]),
        ("docs/cost.md", "At most 1000 rows of 8 x 8 pixels, and 12 names.", []),
        ("docs/cost.md", "It takes 15 ms a row. <!-- = _ -->", []),
        ("docs/decisions/cleaning.md", "It took 15 ms a row.", []),
        ("results/RESULTS.md", "It takes 15 ms a row.", ["15"]),
    ],
)
def test_a_figure_of_performance_needs_a_source_on_every_page_but_the_decisions(page, line, told, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    check = runpy.run_path(str(DOCS / "check_figures.py"))
    found = list(check["check"](page, line, every=False))
    assert found == ([(False, f"{page}:1: {', '.join(told)}: no source")] if told else [])


@pytest.mark.parametrize(("page", "row"), [("video.md", "| mall "), ("scaling.md", "| plain | 1864400 ")])
def test_a_figure_that_is_off_in_a_table_of_a_record_is_told(page, row, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    check = runpy.run_path(str(DOCS / "check_figures.py"))
    text, rows = (DOCS / page).read_text(), list(check["TABLES"][f"docs/{page}"]())
    (line,) = (line for line in text.splitlines() if line.startswith(row))
    figure = re.findall(r"0\.\d+", line)[-2 if page == "video.md" else 0]  # no level of RPCA, which has no record
    bad = text.replace(line, line.replace(figure, f"{float(figure) + 0.001:.3f}"))
    assert [right for right, _ in check["check_table"](page, text, rows)] == [True] * len(rows)
    assert [right for right, _ in check["check_table"](page, bad, rows)].count(False) == 1
    gone = [right for right, _ in check["check_table"](page, text.replace(line, ""), rows)]
    assert gone.count(False) == 1


STORIES = sorted((DOCS / "stories").glob("*.py"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_a_story_runs_and_draws_its_picture(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    told = {"sensors": "39 of them in sensor 2", "photographs": "found wrong", "cells": "[50, 50, 50]"}[path.stem]
    assert told in capsys.readouterr().out
    assert (tmp_path / f"{path.stem}.png").stat().st_size < 150_000
    assert (DOCS / "images" / f"start-{path.stem}.png").stat().st_size < 150_000
    assert f"images/start-{path.stem}.png" in (DOCS / "start.md").read_text()


def test_a_story_is_told_in_under_ten_lines():
    page = (DOCS / "start.md").read_text().partition("## 3.")[0]
    told = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)[1::2]
    assert [len([line for line in code.splitlines() if line.strip()]) < 10 for code in told] == [True] * 3
