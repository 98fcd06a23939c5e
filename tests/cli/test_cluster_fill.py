"""frpcag cluster and frpcag fill: what Python gives for the same table, in one folder."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine

from frpcag import FRPCAG, FRPCAGClustering, RobustGraphImputer, load
from frpcag.tables import read_table


@pytest.fixture
def wine(working_folder):
    """Wine in its mixed units, with gaps, gross errors, a column of ids and one of text."""
    rng = np.random.default_rng(0)
    X = load_wine().data[::2]
    X = np.where(rng.random(X.shape) < 0.03, 20 * X, X)
    X[rng.random(X.shape) < 0.1] = np.nan
    with open("wine.csv", "w", encoding="utf-8") as file:
        file.write("id;" + ";".join(f"c{j}" for j in range(X.shape[1])) + ";remark\n")
        for i, row in enumerate(X):
            cells = ";".join("?" if np.isnan(x) else repr(float(x)).replace(".", ",") for x in row)
            file.write(f"W{i:03d};{cells};bottle {i}\n")
    return X


WORDS = ("wine.csv", "--missing", "?", "--decimal", ",")


@pytest.mark.parametrize(
    ("words", "model"),
    [
        (("-k", 3), lambda: FRPCAGClustering(3, random_state=0)),
        ((), lambda: FRPCAGClustering("auto", random_state=0)),
        (
            ("--clusters", 4, "--seed", 5, "--set", "assign=kmeans", "--set", "estimator__scale=true"),
            lambda: FRPCAGClustering(4, FRPCAG(scale=True, random_state=5), assign="kmeans", random_state=5),
        ),
    ],
)
def test_clusters_are_those_of_python(words, model, wine, frpcag, working_folder):
    assert frpcag("cluster", *WORDS, *words, "--save-model", "--no-plots").exit_code == 0
    run, expected = working_folder / "frpcag-cluster-wine", model().fit_predict(wine)
    np.testing.assert_array_equal(np.load(run / "labels.npy"), expected)
    np.testing.assert_array_equal(load(run / "model.npz").labels_, expected)
    rows = list(csv.DictReader((run / "labels.csv").read_text().splitlines()))
    assert [(row["id"], int(row["label"])) for row in rows] == [(f"W{i:03d}", k) for i, k in enumerate(expected)]


@pytest.mark.parametrize(
    ("words", "model"),
    [
        ((), RobustGraphImputer),
        (
            ("--set", "estimator__scale=true", "--set", "estimator__laplacian=combinatorial"),
            lambda: RobustGraphImputer(FRPCAG(scale=True, laplacian="combinatorial")),
        ),
        (("--set", "keep_observed=false"), lambda: RobustGraphImputer(keep_observed=False)),
    ],
)
def test_filled_cells_are_those_of_python(words, model, wine, frpcag, working_folder):
    assert frpcag("fill", *WORDS, *words, "--no-plots").exit_code == 0
    table = read_table(working_folder / "frpcag-fill-wine/filled.csv", decimal=",")
    np.testing.assert_array_equal(table.X, model().fit_transform(wine))
    assert list(table.ids[:2]) == ["W000", "W001"]


def test_only_missing_cells_are_written_anew(wine, frpcag, working_folder):
    assert frpcag("fill", *WORDS).exit_code == 0
    run = working_folder / "frpcag-fill-wine"
    pairs = zip(Path("wine.csv").read_text().split(";"), (run / "filled.csv").read_text().split(";"), strict=True)
    changed = [before for before, after in pairs if before != after]
    assert set(changed) == {"?"}
    record = json.loads((run / "run.json").read_text())
    assert record["cells"]["filled"] == len(changed) == np.isnan(wine).sum()
    assert f"{len(changed)} missing cells" in (run / "report.html").read_text()
    assert set(record["files"]) == {"filled.csv", "report.html"}


def test_a_run_of_cluster_has_its_page_and_its_certificate(wine, frpcag, working_folder):
    result = frpcag("cluster", *WORDS, "-k", 3, "--json")
    record = json.loads((working_folder / "frpcag-cluster-wine/run.json").read_text())
    assert json.loads(result.stdout) == record
    assert record["parameters"]["n_clusters"] == record["clusters"]["number"] == 3
    assert record["certificate"]["relative_gap"] <= record["certificate"]["tol"]
    assert set(record["files"]) == {"labels.csv", "labels.npy", "report.html"}


@pytest.mark.parametrize("words", [("cluster", "-k", 3), ("fill", "--set", "estimator__gamma1=0.5")])
def test_ctrl_c_in_the_solve_writes_what_is_certified(words, wine, frpcag, working_folder, monkeypatch):
    original = FRPCAG.fit

    def fit(self, X, y=None):
        original(self, X)
        self.status_ = "interrupted"
        raise KeyboardInterrupt

    monkeypatch.setattr(FRPCAG, "fit", fit)
    command, *more = words
    result = frpcag(command, *WORDS, *more, "--no-plots", "--output", "run")
    assert result.exit_code == 130
    assert "interrupted after" in result.stderr
    assert json.loads((working_folder / "run/run.json").read_text())["certificate"]["status"] == "interrupted"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("cluster", "-k", "0"), "--clusters=0"),
        (("cluster", "-k", "none"), "--clusters="),
        (("cluster", "--set", "assign=magic"), "assign='magic'"),
        (("cluster", "--set", "estimator__gama1=3"), "did you mean estimator__gamma1="),
        (("fill", "--set", "estimator__tol=x"), "tol='x'"),
        (("fill", "--seed", "3"), "no such option: --seed"),
    ],
)
def test_bad_parameters_are_one_line_and_leave_nothing(words, said, wine, frpcag, working_folder):
    command, *more = words
    result = frpcag(command, *WORDS, *more)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert said in result.stderr
    assert [path.name for path in working_folder.iterdir()] == ["wine.csv"]
