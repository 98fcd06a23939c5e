"""Messy tables on the command line: read as told, named in every output, refused in one line."""

import csv
import json

import numpy as np
import pytest

FAST = ("--no-plots",)


@pytest.fixture
def messy(working_folder, X):
    """A table with an id, a date, text, gaps written as ?, a decimal comma and two columns of one name."""
    X = X[:, :6].round(3)
    with open(working_folder / "messy.csv", "w", newline="", encoding="latin-1") as file:
        rows = csv.writer(file, delimiter=";")
        rows.writerow(["patient", "date", "site", "größe", "b", "b", "c", "d", "e"])
        for i, row in enumerate(X):
            cells = [str(x).replace(".", ",") for x in row]
            cells[2] = "?" if i % 9 == 0 else cells[2]
            rows.writerow([f"P{i:03d}", f"2024-05-{i % 28 + 1:02d}", ["north", "south"][i % 2], *cells])
    return working_folder / "messy.csv"


OPTIONS = ("--missing", "?", "--decimal", ",", "--encoding", "latin-1")


def run_of(folder, name="messy"):
    return json.loads((folder / f"frpcag-run-{name}/run.json").read_text())


def test_names_and_ids_come_back_in_every_output(messy, working_folder, frpcag):
    result = frpcag("fit", messy, *OPTIONS, "--clusters", 2, *FAST)
    assert result.exit_code == 0, result.stderr
    run = run_of(working_folder)
    assert run["feature_names"] == ["größe", "b", "b_2", "c", "d", "e"]
    assert run["sample_ids"][:2] == ["P000", "P001"]
    assert run["data"]["id_column"] == "patient"
    assert run["data"]["carried"] == {"patient": "text", "date": "dates", "site": "categories"}
    labels = (working_folder / "frpcag-run-messy/labels.csv").read_text().splitlines()
    assert labels[0] == "patient,label"
    assert labels[1].startswith("P000,")
    with open(working_folder / "frpcag-run-messy/low_rank.csv", encoding="latin-1") as file:
        rows = list(csv.reader(file, delimiter=";"))
    assert rows[0] == ["patient", "date", "site", "größe", "b", "b", "c", "d", "e"]
    assert rows[1][:3] == ["P000", "2024-05-01", "north"]
    written = [[float(cell.replace(",", ".")) for cell in row[3:]] for row in rows[1:]]
    np.testing.assert_array_equal(written, np.load(working_folder / "frpcag-run-messy/low_rank.npy"))


def test_the_report_names_columns_and_rows(messy, working_folder, frpcag):
    assert frpcag("fit", messy, *OPTIONS).exit_code == 0
    page = (working_folder / "frpcag-run-messy/report.html").read_text()
    assert ">P003</button>" in page
    assert ">größe</td>" in page


def test_notices_are_notes_on_stderr_and_not_warnings(messy, frpcag):
    result = frpcag("fit", messy, *OPTIONS, *FAST)
    assert result.stderr.splitlines()[0] == "note: names that come more than once got a suffix: 'b_2'."
    assert "carried along: 'patient' (text, such as 'P000'), 'date' (dates" in result.stderr
    assert frpcag("fit", messy, *OPTIONS, *FAST, "--overwrite", "--quiet").stderr == ""


def test_one_line_lists_all_unusable_columns_with_the_options_that_help(messy, frpcag):
    result = frpcag("fit", messy, "--encoding", "latin-1", *FAST)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "'größe' holds" in result.stderr
    assert "pass --decimal ','" in result.stderr
    assert "--drop 'größe,b,b_2,c,d,e'" in result.stderr


def test_columns_and_drop_choose_what_is_fed_in(messy, working_folder, frpcag):
    assert frpcag("fit", messy, *OPTIONS, "--columns", "b,c,d,e", "--drop", "date", *FAST).exit_code == 0
    assert run_of(working_folder)["feature_names"] == ["b", "c", "d", "e"]
    first = (working_folder / "frpcag-run-messy/low_rank.csv").read_text(encoding="latin-1").splitlines()[0]
    assert first == "patient;site;größe;b;b;c;d;e"


def test_an_infinite_cell_is_named_by_its_row_and_column(working_folder, frpcag):
    (working_folder / "t.csv").write_text(
        "id,pressure,flow\n" + "".join(f"{i + 7},{i},1\n" for i in range(20)) + "9999,1,inf\n"
    )
    result = frpcag("fit", "t.csv")
    assert result.exit_code == 2
    assert "row 21 (id '9999'), column 'flow'" in result.stderr
    assert frpcag("fit", "t.csv", "--missing", "inf", *FAST).exit_code == 0


@pytest.mark.parametrize(("word", "character"), [("tab", "\t"), ("space", " "), ("|", "|")])
def test_delimiters_have_names(word, character, working_folder, X, frpcag):
    np.savetxt(working_folder / "t.csv", X, delimiter=character)
    assert frpcag("fit", "t.csv", "--delimiter", word, *FAST).exit_code == 0
    saved = np.load(working_folder / "frpcag-run-t/low_rank.npy")
    assert saved.shape == X.shape


def test_a_warning_of_units_names_the_columns_and_the_option(working_folder, X, frpcag):
    table = np.column_stack([1e5 * X[:, 0], X[:, 1]])
    np.savetxt(working_folder / "units.csv", table, delimiter=",", header="pressure,flow", comments="")
    result = frpcag("fit", "units.csv", *FAST)
    assert "column 'pressure' spreads" in result.stderr
    assert "column 'flow'" in result.stderr
    assert "Pass --scale" in result.stderr
    assert "1 edge," in result.stdout


def test_a_wrong_delimiter_names_the_option(working_folder, frpcag):
    (working_folder / "t.csv").write_text("a,b,c\n1,2,3\n3,4,5\n")
    assert "check --delimiter" in frpcag("fit", "t.csv", "--delimiter", ";").stderr


def test_marks_between_thousands_are_read_and_said(working_folder, X, frpcag):
    lines = [f'"1,{100 + i}.5",{x},{y}' for i, (x, y) in enumerate(X[:, :2])]
    (working_folder / "t.csv").write_text("a,b,c\n" + "\n".join(lines))
    assert "note: 'a' is read with ',' between the thousands." in frpcag("fit", "t.csv", *FAST).stderr
    assert run_of(working_folder, "t")["feature_names"] == ["a", "b", "c"]
