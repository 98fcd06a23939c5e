"""Cells run once, survive crashes, and give the same records in one process or several."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from reproduction.paper.run import RECORDS, Experiment, arrays_file, cell_key, read_records, run_cells


def square(cell):
    if cell["x"] < 0:
        raise ValueError("negative")
    return {"square": cell["x"] ** 2}, {"row": np.arange(cell["x"])}


def forbidden(cell):
    raise AssertionError("ran again")


def experiment(xs, measure=square):
    return Experiment("squares", "Squares", lambda smoke: [{"x": x} for x in xs], measure, lambda r, f: "", "squares")


def test_a_cell_that_is_on_disk_is_not_run_again(tmp_path):
    list(run_cells(experiment([1, 2]), tmp_path))
    assert list(run_cells(experiment([1, 2], forbidden), tmp_path)) == []
    assert [one["square"] for one in read_records(tmp_path).values()] == [1, 4]


def test_only_the_missing_cells_are_run(tmp_path):
    list(run_cells(experiment([1, 2]), tmp_path))
    assert [one["cell"]["x"] for one in run_cells(experiment([1, 2, 3]), tmp_path)] == [3]


def test_a_line_cut_short_by_a_crash_is_run_again(tmp_path):
    list(run_cells(experiment([1, 2]), tmp_path))
    file = tmp_path / RECORDS
    file.write_text(file.read_text()[:-10])
    assert [one["cell"]["x"] for one in run_cells(experiment([1, 2]), tmp_path)] == [2]
    assert sorted(one["square"] for one in read_records(tmp_path).values()) == [1, 4]


def test_a_failing_cell_is_reported_and_not_stored(tmp_path):
    records = list(run_cells(experiment([-1, 2]), tmp_path))
    assert [one.get("error") for one in records] == ["ValueError: negative", None]
    assert [one["cell"]["x"] for one in read_records(tmp_path).values()] == [2]


def test_two_processes_give_the_records_of_one(tmp_path):
    for name, n_jobs in (("one", 1), ("two", 2)):
        list(run_cells(experiment([1, 2, 3]), tmp_path / name, n_jobs=n_jobs))
    one, two = (
        {key: record["square"] for key, record in read_records(tmp_path / name).items()} for name in ("one", "two")
    )
    assert one == two


def test_arrays_lie_beside_the_records(tmp_path):
    list(run_cells(experiment([3]), tmp_path))
    with np.load(arrays_file(tmp_path, {"x": 3}), allow_pickle=False) as stored:
        np.testing.assert_array_equal(stored["row"], [0, 1, 2])


def test_the_key_of_a_cell_does_not_depend_on_its_order():
    assert cell_key({"a": 1, "b": 2}) == cell_key({"b": 2, "a": 1})


def test_a_record_is_one_line_of_json(tmp_path):
    list(run_cells(experiment([1, 2]), tmp_path))
    lines = Path(tmp_path / RECORDS).read_text().splitlines()
    assert [json.loads(line)["cell"] for line in lines] == [{"x": 1}, {"x": 2}]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_was_measured_before_an_interrupt_is_kept(tmp_path, n_jobs):
    run = run_cells(experiment([1, 2, 3]), tmp_path, n_jobs=n_jobs)
    next(run)
    run.close()
    assert len(read_records(tmp_path)) == 1


def test_workers_end_when_their_parent_is_killed(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(
        "import os, sys, time\n"
        "from pathlib import Path\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
        "from reproduction.paper.run import Experiment, run_cells\n"
        "def wait(cell):\n"
        "    os.write(1, b'%d\\n' % os.getpid())\n"  # one write: lines of two processes do not mix
        "    if cell['x']:\n"
        "        time.sleep(600)\n"
        "    return {}, {}\n"
        "if __name__ == '__main__':\n"
        "    cells = lambda smoke: [{'x': x} for x in range(3)]\n"
        "    list(run_cells(Experiment('w', 'W', cells, wait, None, 'w'), Path(sys.argv[1]), n_jobs=2))\n"
    )
    with subprocess.Popen([sys.executable, script, tmp_path / "out"], stdout=subprocess.PIPE, text=True) as parent:
        workers = {int(parent.stdout.readline()) for _ in range(3)}
        parent.kill()
        # Their end of the pipe closes when the last of them has ended.
        assert parent.stdout.read() == ""
    assert len(workers) == 2
