"""frpcag bench: tables beside peers, resumed runs, and errors that say the way out."""

import json

import pytest

from frpcag.bench import measure
from frpcag.bench.run import RECORDS


def found(task, cell, **_):
    error = {"FRPCAG": 0.2}.get(cell["model"], 0.4)
    times = {"run": 0.5, "runs": [0.5], "cold": 1.0}
    return {"status": "ok", "limit": 60, "threads": 1, "shape": [4, 3], "times": times, "memory": 10**6} | {
        "scores": {"error": error},
        "versions": {},
    }


@pytest.fixture
def measured(monkeypatch):
    """Stand in for the processes, which tests/bench/test_peers.py starts; give the list of cells measured."""
    cells = []

    def noted(task, cell, **options):
        cells.append(cell)
        return found(task, cell)

    monkeypatch.setattr(measure, "measure", noted)
    return cells


def test_a_real_contender_is_measured_and_marked(frpcag, working_folder, monkeypatch):
    from frpcag.bench.peers import TASKS

    kept = {"FRPCAG": TASKS["transform"].contenders["FRPCAG"]}  # a process each is what takes the time
    monkeypatch.setitem(TASKS["transform"].__dict__, "contenders", kept)
    result = frpcag("bench", "transform", "--quick", "--threads", "1", "--output", "out")
    assert result.exit_code == 0, result.output
    assert "New corrupted rows" in result.stdout
    assert {one.name for one in (working_folder / "out").iterdir()} == {RECORDS, "transform.md", "transform.png"}


def test_a_second_run_measures_nothing(frpcag, measured):
    frpcag("bench", "recovery", "--quick")
    n = len(measured)
    result = frpcag("bench", "recovery", "--quick", "--json")
    assert n == len(measured) == len(json.loads(result.stdout)["records"])


def test_json_holds_every_record(frpcag, measured):
    told = json.loads(frpcag("bench", "recovery", "--quick", "--json").stdout)
    assert (told["command"], told["failed"], told["interrupted"]) == ("bench", [], False)
    assert told["records"][0]["cell"] == {
        "task": "recovery",
        "data": "synthetic-300x100",
        "corruption": "outliers5",
        "model": "FRPCAG",
    }


def test_the_smallest_error_is_marked(frpcag, measured):
    lines = frpcag("bench", "recovery", "--quick").stdout.splitlines()
    marked = next(line for line in lines if "0.200 *" in line)
    assert marked.split()[:3] == ["synthetic-300x100,", "outliers5", "FRPCAG"]


def test_ctrl_c_keeps_what_was_measured(frpcag, measured, monkeypatch, ctrl_c, working_folder):
    def second_is_interrupted(task, cell, **options):
        return found(task, cell) if cell["model"] == "FRPCAG" else ctrl_c()

    monkeypatch.setattr(measure, "measure", second_is_interrupted)
    result = frpcag("bench", "recovery", "--quick")
    assert result.exit_code == 1
    assert "Interrupted; what was measured is kept" in result.stdout
    assert len((working_folder / "frpcag-bench" / RECORDS).read_text().splitlines()) == 1


def test_a_failure_is_named_and_the_rest_goes_on(frpcag, monkeypatch):
    def first_fails(task, cell, **options):
        return {"error": "ValueError: no"} if cell["model"] == "FRPCAG" else found(task, cell)

    monkeypatch.setattr(measure, "measure", first_fails)
    result = frpcag("bench", "recovery", "--quick")
    assert result.exit_code == 1
    assert "failed: recovery, synthetic-300x100, outliers5, FRPCAG: ValueError: no" in result.stdout
    assert "TensorLy" in result.stdout


def test_render_draws_without_measuring(frpcag, measured, working_folder):
    frpcag("bench", "recovery", "--quick")
    (working_folder / "frpcag-bench" / "recovery.png").unlink()
    n = len(measured)
    assert frpcag("bench", "--render").exit_code == 0
    assert len(measured) == n
    assert (working_folder / "frpcag-bench" / "recovery.png").is_file()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing"], "TASK=nothing is unknown; choose among recovery, solver"),
        (["--limit", "0"], "'0' must be a number of seconds above 0"),
        (["--limit", "soon"], "'soon' must be a number of seconds above 0"),
        (["--render"], "holds no records to draw; run without --render"),
        (["--output", "file/folder"], "--output=file/folder cannot be written"),
    ],
)
def test_bad_words_are_refused_with_the_way_out(frpcag, working_folder, words, said):
    (working_folder / "file").write_text("")
    result = frpcag("bench", *words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert [one.name for one in working_folder.iterdir()] == ["file"]
