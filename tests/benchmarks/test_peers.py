"""benchmarks/peers.py: tables beside peers, resumed runs, and errors that say the way out."""

import json

import peers as door
import pytest
from contest import measure
from contest.tasks import TASKS
from reproduction.paper.run import RECORDS


def found(task, cell, **_):
    error = {"RobustGraphCleaner": 0.2}.get(cell["model"], 0.4)
    times = {"run": 0.5, "runs": [0.5], "cold": 1.0}
    return {"status": "ok", "limit": 60, "threads": 1, "shape": [4, 3], "times": times, "memory": 10**6} | {
        "scores": {"error": error},
        "versions": {},
    }


@pytest.fixture
def measured(monkeypatch):
    """Stand in for the processes, which tests/benchmarks/test_contest.py starts; give the list of cells measured."""
    cells = []

    def noted(task, cell, **options):
        cells.append(cell)
        return found(task, cell)

    monkeypatch.setattr(measure, "measure", noted)
    return cells


def test_a_real_contender_is_measured_and_marked(peers, working_folder, monkeypatch):
    kept = {"FRPCAG": TASKS["transform"].contenders["FRPCAG"]}  # a process each is what takes the time
    monkeypatch.setitem(TASKS["transform"].__dict__, "contenders", kept)
    code, out, _ = peers("transform", "--quick", "--threads", "1", "--output", "out")
    assert code == 0, out
    assert "New corrupted rows" in out
    assert {one.name for one in (working_folder / "out").iterdir()} == {RECORDS, "transform.md", "transform.png"}


def test_a_second_run_measures_nothing(peers, measured):
    peers("recovery", "--quick")
    n = len(measured)
    assert peers("recovery", "--quick")[0] == 0
    assert len(measured) == n > 0


def test_a_fresh_run_measures_everything_again(peers, measured):
    peers("recovery", "--quick")
    n = len(measured)
    peers("recovery", "--quick", "--fresh")
    assert len(measured) == 2 * n


def test_a_fresh_run_keeps_the_records_of_other_tasks(peers, measured, working_folder):
    peers("recovery", "missing", "--quick")
    n = len(measured)
    peers("missing", "--quick", "--fresh")
    assert {cell["task"] for cell in measured[n:]} == {"missing"}
    lines = (working_folder / "peers-quick" / RECORDS).read_text().splitlines()
    assert len(lines) == n


def test_the_quick_version_has_a_folder_of_its_own(peers, measured, working_folder):
    assert peers("recovery", "--quick")[0] == 0
    lines = (working_folder / "peers-quick" / RECORDS).read_text().splitlines()
    assert len(lines) == len(measured)
    assert json.loads(lines[0])["cell"] == {
        "task": "recovery",
        "data": "synthetic-300x100",
        "corruption": "outliers5",
        "model": "RobustGraphCleaner",
    }


def test_the_smallest_error_is_marked(peers, measured):
    _, out, _ = peers("recovery", "--quick")
    marked = next(line for line in out.splitlines() if "0.200 *" in line)
    assert marked.split()[:3] == ["synthetic-300x100,", "outliers5", "RobustGraphCleaner"]


def test_ctrl_c_keeps_what_was_measured(peers, monkeypatch, ctrl_c, working_folder):
    def second_is_interrupted(task, cell, **options):
        return found(task, cell) if cell["model"] == "RobustGraphCleaner" else ctrl_c()

    monkeypatch.setattr(measure, "measure", second_is_interrupted)
    code, out, _ = peers("recovery", "--quick")
    assert code == 1
    assert "Interrupted; what was measured is kept" in out
    assert len((working_folder / "peers-quick" / RECORDS).read_text().splitlines()) == 1


def test_a_failure_is_named_and_the_rest_goes_on(peers, monkeypatch):
    def first_fails(task, cell, **options):
        return {"error": "ValueError: no"} if cell["model"] == "FRPCAG" else found(task, cell)

    monkeypatch.setattr(measure, "measure", first_fails)
    code, out, _ = peers("recovery", "--quick")
    assert code == 1
    assert "failed: recovery, synthetic-300x100, outliers5, FRPCAG: ValueError: no" in out
    assert "TensorLy" in out


def test_render_draws_without_measuring(peers, measured, working_folder):
    peers("recovery", "--quick")
    (working_folder / "peers-quick" / "recovery.png").unlink()
    n = len(measured)
    assert peers("--render", "--quick")[0] == 0
    assert len(measured) == n
    assert (working_folder / "peers-quick" / "recovery.png").is_file()


def test_the_page_of_results_gets_the_tables_of_its_own_folder_alone(peers, measured, working_folder, monkeypatch):
    page = working_folder / "peers.md"
    page.write_text("<!-- begin recovery -->\n<!-- end recovery -->\n")
    monkeypatch.setattr(door, "PAGE", page)
    monkeypatch.setattr(door, "FOLDER", working_folder / "peers")
    peers("recovery", "--quick")
    assert "TensorLy" not in page.read_text()
    peers("recovery", "--quick", "--output", working_folder / "peers")
    assert "TensorLy" in page.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing"], "TASK=nothing is unknown; choose among recovery, solver"),
        (["--limit", "0"], "'0' must be a number of seconds above 0"),
        (["--limit", "soon"], "'soon' must be a number of seconds above 0"),
        (["--render", "--quick"], "holds no records to draw; run without --render"),
        (["--output", "file/folder"], "--output=file/folder cannot be written"),
    ],
)
def test_bad_words_are_refused_with_the_way_out(peers, working_folder, words, said):
    (working_folder / "file").write_text("")
    code, _, err = peers(*words)
    assert code == 2
    assert said in err
    assert [one.name for one in working_folder.iterdir()] == ["file"]
