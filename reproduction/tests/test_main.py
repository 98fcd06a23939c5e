"""python -m reproduction: tables beside the paper's, resumed runs, and errors that say the way out."""

import pytest
from reproduction.__main__ import main


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FRPCAG_DATA", raising=False)
    return lambda *args: main(list(args))


def test_a_small_run_prints_its_table_and_keeps_its_records(run, tmp_path, capsys):
    assert run("subspaces", "--smoke", "--jobs", "1") == 0
    assert "| both gammas |" in capsys.readouterr().out
    folder = tmp_path / "frpcag-reproduce" / "subspaces"
    assert {one.name for one in folder.iterdir()} == {"records.jsonl", "arrays", "subspaces.md", "subspaces.png"}


def test_a_second_run_adds_no_record(run, tmp_path, capsys):
    run("alignment", "--smoke", "--jobs", "1")
    file = tmp_path / "frpcag-reproduce" / "alignment" / "records.jsonl"
    before = file.read_bytes()
    capsys.readouterr()
    run("alignment", "--smoke", "--jobs", "1")
    assert file.read_bytes() == before
    told = capsys.readouterr()
    assert "| digits |" in told.out
    assert told.err == ""


def test_the_results_page_gets_the_tables(run, tmp_path):
    page = tmp_path / "out" / "RESULTS.md"
    page.parent.mkdir()
    page.write_text("<!-- begin alignment -->\n<!-- end alignment -->\n")
    run("alignment", "--smoke", "--jobs", "1", "--output", "out")
    assert "| digits | paper |" in page.read_text()


def test_an_unknown_name_is_refused_with_those_there_are(run, capsys):
    with pytest.raises(SystemExit):
        run("nothing")
    assert "NAME=nothing is unknown; choose among clustering, nuclear" in capsys.readouterr().err


def test_missing_data_sets_are_reported_with_the_way_out(run, tmp_path, capsys):
    with pytest.raises(SystemExit):
        run("times")
    assert "set FRPCAG_DATA" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
