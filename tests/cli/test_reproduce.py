"""frpcag reproduce: tables beside the paper's, resumed runs, and errors that say the way out."""

import json

import pytest
from typer.testing import CliRunner

from frpcag.cli.main import app


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FRPCAG_DATA", raising=False)
    return lambda *args: CliRunner().invoke(app, ["reproduce", *args])


def test_a_small_run_prints_its_table_and_keeps_its_records(run, tmp_path):
    result = run("subspaces", "--smoke", "--jobs", "1")
    assert result.exit_code == 0, result.output
    assert "| both gammas |" in result.stdout
    folder = tmp_path / "frpcag-reproduce" / "subspaces"
    assert {one.name for one in folder.iterdir()} == {"records.jsonl", "arrays", "subspaces.md", "subspaces.png"}


def test_a_second_run_adds_no_record(run, tmp_path):
    run("alignment", "--smoke", "--jobs", "1")
    file = tmp_path / "frpcag-reproduce" / "alignment" / "records.jsonl"
    before = file.read_bytes()
    result = run("alignment", "--smoke", "--jobs", "1", "--json")
    assert file.read_bytes() == before
    assert json.loads(result.stdout)["tables"]["alignment"].startswith("| digits |")


def test_the_results_page_gets_the_tables(run, tmp_path):
    page = tmp_path / "out" / "RESULTS.md"
    page.parent.mkdir()
    page.write_text("<!-- begin alignment -->\n<!-- end alignment -->\n")
    run("alignment", "--smoke", "--jobs", "1", "--output", "out")
    assert "| digits | paper |" in page.read_text()


def test_an_unknown_name_is_refused_with_those_there_are(run):
    result = run("nothing")
    assert result.exit_code == 2
    assert "NAME=nothing is unknown; choose among clustering, nuclear" in result.stderr


def test_missing_data_sets_are_reported_with_the_way_out(run, tmp_path):
    result = run("times")
    assert result.exit_code == 2
    assert "set FRPCAG_DATA" in result.stderr
    assert list(tmp_path.iterdir()) == []
