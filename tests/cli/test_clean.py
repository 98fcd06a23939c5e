"""frpcag clean: the table in its own format, the wrong cells as a list, the map, the report, one folder."""

import csv
import json

import numpy as np
import pytest

import frpcag as library
from frpcag.cells.rounds import CellRounds
from frpcag.tables import read_table
from support.cli import invoke

FILES = {"cell_map.png", "cleaned.csv", "model.npz", "probability.csv", "report.html", "run.json", "wrong_cells.csv"}


def plant():
    """Return readings of 80 days, where they were hit, and one day that is wrong as a whole."""
    rng = np.random.default_rng(1)
    truth = (rng.normal(size=(80, 2)) @ rng.normal(size=(2, 6)) + 0.05 * rng.normal(size=(80, 6))).round(3)
    hit = rng.random(truth.shape) < 0.05
    hit[40] = False
    X = truth + 6 * hit
    X[40] = 40 * rng.normal(size=6)
    return X.round(3), hit


def write_csv(path, X):
    with path.open("w", encoding="utf-8") as file:
        file.write("id;day;" + ";".join(f"temp {j}" for j in range(X.shape[1])) + ";remark\n")
        for i, row in enumerate(X):
            cells = ";".join("" if np.isnan(x) else f"{x:.3f}".replace(".", ",") for x in row)
            file.write(f"A{i:03d};2024-01-{1 + i % 28:02d};{cells};it is {i}\n")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Clean a table with ids, dates, remarks, semicolons and decimal commas; return folder, data, hits, result."""
    folder = tmp_path_factory.mktemp("clean")
    X, hit = plant()
    X[7, 3], hit[7, 3] = np.nan, False
    write_csv(folder / "plant.csv", X)
    words = ["clean", folder / "plant.csv", "--decimal", ",", "--output", folder / "run", "--save-model", "--fill"]
    result = invoke(*words)
    assert result.exit_code == 0, result.stderr
    return folder / "run", X, hit, result


def test_one_folder_holds_everything(run):
    folder, _, _, result = run
    assert {path.name for path in folder.iterdir()} == FILES
    assert "probably wrong and were repaired" in " ".join(result.stdout.split())
    assert "1 sample is wrong as a whole (A040)" in " ".join(result.stdout.split())


def test_the_table_comes_back_in_its_own_format_with_wrong_cells_repaired(run):
    folder, X, hit, _ = run
    lines = (folder / "cleaned.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == (folder.parent / "plant.csv").read_text(encoding="utf-8").splitlines()[0]
    assert lines[1].startswith("A000;2024-01-01;")
    assert lines[1].endswith(";it is 0")
    table = read_table(folder / "cleaned.csv", decimal=",")
    assert list(table.ids[:2]) == ["A000", "A001"]
    changed = table.X != X
    assert np.mean(changed == (hit | np.isnan(X))) > 0.99
    assert changed[7, 3]
    np.testing.assert_array_equal(table.X[40], X[40])


def test_wrong_cells_are_listed_by_id_and_name(run):
    folder, X, _, _ = run
    rows = list(csv.DictReader((folder / "wrong_cells.csv").read_text(encoding="utf-8").splitlines()))
    record = json.loads((folder / "run.json").read_text())
    assert len(rows) == record["cells"]["wrong"] > 10
    cleaned = read_table(folder / "cleaned.csv", decimal=",").X
    for row in rows:
        i, j = int(row["row"]) - 1, int(row["column"].removeprefix("temp "))
        assert row["id"] == f"A{i:03d}"
        assert float(row["value"]) == X[i, j]
        assert float(row["repaired"]) == cleaned[i, j]
        assert float(row["probability"]) > 0.5


def test_the_record_says_what_was_decided(run):
    folder, X, _, _ = run
    record = json.loads((folder / "run.json").read_text())
    assert record["command"] == "clean"
    assert record["cells"]["filled"] == 1
    assert record["cells"]["wrong_rows"] == ["A040"]
    assert sum(record["cells"]["by_feature"].values()) == record["cells"]["wrong"]
    assert record["decisions"]
    assert set(record["files"]) | {"run.json"} == FILES
    model = library.load(folder / "model.npz")
    written = read_table(folder / "cleaned.csv", decimal=",").X  # repairs have the three decimals of the table
    np.testing.assert_array_equal(np.round(model.transform(X), 3), written)


def test_probabilities_are_those_of_the_cells(run):
    folder, X, hit, _ = run
    table = read_table(folder / "probability.csv", decimal=",")
    assert table.X.shape == X.shape
    assert (table.X[hit] > 0.5).mean() > 0.9
    assert "A040" in (folder / "report.html").read_text(encoding="utf-8")
    assert (folder / "cell_map.png").read_bytes()[:4] == b"\x89PNG"


def test_cells_that_are_not_repaired_come_back_byte_for_byte(frpcag, working_folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2)) @ rng.normal(size=(2, 4)) + 0.05 * rng.normal(size=(120, 4))
    X[60, 1] += 40
    lines = ["\ufeffzip,account,a,b,c,d,note"]
    for i, (a, b, c, d) in enumerate(X):
        gap = "NA" if i % 9 == 0 else f"{c:.3e}"
        lines.append(f'0{5000 + i},{2**53 + 1 + 2 * i},{a:+.2f},"{b:.1f}0",{gap},{d:.4f}, "it is {i}"')
    given = "\r\n".join(lines)
    (working_folder / "t.csv").write_bytes(given.encode())
    result = frpcag("clean", "t.csv", "--no-plots")
    assert result.exit_code == 0, result.stderr
    assert "filled" not in result.stdout
    cleaned = (working_folder / "frpcag-clean-t/cleaned.csv").read_bytes().decode()
    listed = list(csv.DictReader((working_folder / "frpcag-clean-t/wrong_cells.csv").read_text("utf-8").splitlines()))
    assert {"row": "61", "zip": "05060", "column": "b"}.items() <= listed[0].items()
    rows = {int(row["row"]) for row in listed}
    pairs = zip(given.split("\r\n"), cleaned.split("\r\n"), strict=True)
    assert {i for i, (before, after) in enumerate(pairs) if before != after} == rows


def test_nothing_wrong_is_said_and_arrays_stay_arrays(frpcag, working_folder):
    X = np.random.default_rng(0).normal(size=(16, 4))
    np.save(working_folder / "fine.npy", X)
    result = frpcag("clean", "fine.npy", "--no-plots")
    assert result.exit_code == 0, result.stderr
    assert "no cell contradicts the others" in " ".join(result.stdout.split())
    np.testing.assert_array_equal(np.load("frpcag-clean-fine/cleaned.npy"), X)
    assert (working_folder / "frpcag-clean-fine/wrong_cells.csv").read_text().count("\n") == 1
    again = frpcag("clean", "fine.npy", "--no-plots", "--json", "--overwrite")
    assert json.loads(again.stdout)["cells"] == {
        "wrong": 0, "share": 0.0, "filled": 0, "by_feature": {}, "wrong_rows": []
    }  # fmt: skip
    assert frpcag("report", "frpcag-clean-fine").exit_code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("none.csv",), "none.csv"),
        (("data.npy", "--feature-shape", "5x5"), "--feature-shape=5x5 must be HEIGHTxWIDTH"),
        (("data.npy", "--output", "data.npy"), "--output=data.npy exists"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(words, said, frpcag, data, working_folder):
    result = frpcag("clean", *words)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert said in result.stderr
    assert [path.name for path in working_folder.iterdir()] == ["data.npy"]


def test_ctrl_c_while_cells_are_judged_leaves_nothing(frpcag, data, working_folder, monkeypatch, ctrl_c):
    monkeypatch.setattr(CellRounds, "run", ctrl_c)
    assert frpcag("clean", data).exit_code == 130
    assert [path.name for path in working_folder.iterdir()] == ["data.npy"]


def test_clean_and_fit_of_one_file_write_two_folders(frpcag, working_folder):
    np.save("one.npy", np.random.default_rng(0).normal(size=(30, 5)))
    assert frpcag("clean", "one.npy", "--no-plots", "--quiet").exit_code == 0
    assert frpcag("fit", "one.npy", "--no-plots", "--quiet").exit_code == 0
