"""The comparison with peers: one fresh process a contender, honest endings, and answers that agree."""

import json
import os
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from contest import measure as measure_module
from contest.contenders import Contender, Given, Timed, solve_ours, solve_pyunlocbox
from contest.measure import measure, run_task
from contest.tables import by_setting, render_peers, summary, table
from contest.tasks import TASKS, Task, best_rank, corrupt, score_recovery, shrink
from numpy.testing import assert_allclose, assert_array_equal
from reproduction.paper.run import RECORDS, read_records
from sklearn.decomposition import PCA

from frpcag.problem import objective
from support.oracles import random_problem

needs_pyunlocbox = pytest.mark.skipif(find_spec("pyunlocbox") is None, reason="needs pyunlocbox, of frpcag[benchmarks]")


def load(cell):
    return Given(np.arange(12.0).reshape(4, 3)), float(cell["data"])


def double(given, seed):
    return 2 * given.X


def threads(given, seed):
    return given.threads, os.environ["OMP_NUM_THREADS"], os.getpid()


def a_hundred_seconds(given, seed):
    return Timed(given.X, 100.0 + seed)


def endless(given, seed):
    while len(given.X) > 2:  # the warm-up, on two rows, ends
        pass


def broken(given, seed):
    raise ValueError("no such luck")


def sum_and_truth(output, truth):
    return {"error": float(np.sum(output)) - truth}


def seen_threads(output, truth):
    return {"threads": float(output[0]), "environment": float(output[1]), "pid": float(output[2])}


def measured(task, cell, **options):
    return {"status": "ok"}


def settings(quick):
    return [{"data": "1"}] if quick else [{"data": "1"}, {"data": "2"}]


def small_task(score=sum_and_truth, **contenders):
    return Task("small", "Small", contenders, settings, load, score, {"error": "error"})


def test_a_contender_runs_in_a_process_of_its_own_with_its_threads(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    task = small_task(seen_threads, ours=Contender(threads, ours=True))
    (record,) = run_task(task, tmp_path, quick=True, threads=3)
    assert record["scores"]["threads"] == record["scores"]["environment"] == 3
    assert record["scores"]["pid"] != os.getpid()
    assert os.environ["OMP_NUM_THREADS"] == "5"
    assert "LOKY_MAX_CPU_COUNT" not in os.environ


def test_a_record_holds_scores_times_memory_and_versions(tmp_path):
    task = small_task(ours=Contender(double, ours=True))
    (record,) = run_task(task, tmp_path, quick=True)
    assert json.loads((tmp_path / RECORDS).read_text()) == record
    assert set(record) == {
        *("cell", "status", "limit", "threads", "shape", "times", "memory", "scores", "versions", "seconds")
    }
    assert record["status"] == "ok"
    assert record["shape"] == [4, 3]
    assert record["scores"] == {"error": 2 * 66.0 - 1.0}
    assert len(record["times"]["runs"]) == measure_module.REPEATS
    assert record["versions"]["numpy"] == np.__version__


def test_a_contender_may_keep_its_own_time_and_runs_once_a_seed(tmp_path):
    task = replace(small_task(ours=Contender(a_hundred_seconds, ours=True)), n_seeds=3)
    found = measure(task, task.cells(True)[0] | {"model": "ours"}, limit=60, threads=1)
    assert found["times"]["runs"] == [100.0, 101.0, 102.0]
    assert found["times"]["run"] == 101.0


def test_a_contender_over_the_limit_is_stopped_and_tried_again_with_a_higher_one(tmp_path, monkeypatch):
    task = small_task(ours=Contender(endless, ours=True, warm_rows=2))
    (record,) = run_task(task, tmp_path, quick=True, limit=0.2)
    assert (record["status"], record["limit"]) == ("over", 0.2)
    monkeypatch.setattr(measure_module, "measure", measured)
    assert list(run_task(task, tmp_path, quick=True, limit=0.2)) == []
    assert len(list(run_task(task, tmp_path, quick=True, limit=0.3))) == 1


def test_what_was_too_slow_for_few_samples_is_not_run_on_more(tmp_path):
    task = replace(small_task(ours=Contender(endless, ours=True, warm_rows=2)), grows=True)
    first, second = run_task(task, tmp_path, limit=0.2)
    assert first["note"] == "stopped in its run"
    assert second["note"].startswith("not run")


def test_a_library_that_is_not_installed_is_recorded_with_the_way_out_and_tried_again(tmp_path):
    task = small_task(theirs=Contender(double, needs="no_such_library"))
    (record,) = run_task(task, tmp_path, quick=True)
    assert record["status"] == "not installed"
    assert "pip install 'frpcag[benchmarks]'" in record["note"]
    assert len(read_records(tmp_path)) == len(list(run_task(task, tmp_path, quick=True))) == 1


def test_a_contender_that_fails_is_reported_and_not_stored(tmp_path):
    task = small_task(ours=Contender(broken, ours=True))
    (record,) = run_task(task, tmp_path, quick=True)
    assert record["error"] == "ValueError: no such luck"
    assert read_records(tmp_path) == {}


def test_only_missing_cells_are_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(measure_module, "measure", measured)
    task = small_task(ours=Contender(double, ours=True))
    list(run_task(task, tmp_path, quick=True))
    assert [one["cell"]["data"] for one in run_task(task, tmp_path)] == ["2"]


@needs_pyunlocbox
@pytest.mark.parametrize("seed", range(3))
def test_pyunlocbox_finds_the_optimum_that_we_find(seed):
    problem = random_problem(seed)
    (ours, _), _ = solve_ours(problem, 0, backend="numpy", gaps=(1e-8,))
    (theirs, seconds), total = solve_pyunlocbox(problem, 0, gaps=(1e-2, 1e-8))
    assert_allclose(objective(problem, theirs), objective(problem, ours), rtol=1e-6)
    assert 0 < seconds[1e-2] <= seconds[1e-8] == total


@pytest.mark.parametrize("name", TASKS)
def test_every_task_loads_small_data_that_each_contender_can_warm_up_on(name):
    task = TASKS[name]
    setting = task.cells(True)[0]
    given, truth = task.load(setting)
    model = task.contenders[task.ours]
    small = shrink(given, 60)
    assert len(small.X) <= 60
    state = small if model.prepare is None else model.prepare(small)
    assert model.run(state, 0) is not None
    if name in ("recovery", "missing"):
        wanted = truth if name == "recovery" else truth[0]
        assert task.score(wanted, truth)["error"] == 0


def test_corruptions_follow_each_other_and_the_first_is_the_hit():
    X = np.random.default_rng(0).uniform(0, 1, (50, 64))
    Z, hit = corrupt(X, (8, 8), "nan30+salt5")
    assert_array_equal(np.isnan(Z), hit)
    assert hit.mean() == pytest.approx(0.3, abs=0.01)
    changed = ~hit & (Z != X)
    assert 0 < changed.mean() < 0.06
    assert set(np.unique(Z[changed])) <= {X.min(), X.max()}


def test_an_unknown_corruption_is_refused():
    with pytest.raises(ValueError, match="'fog10' is unknown; choose clean"):
        corrupt(np.ones((2, 4)), (2, 2), "fog10")


def test_the_rank_given_to_pca_is_the_best_for_it():
    rng = np.random.default_rng(0)
    clean = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 12))
    X = clean + rng.normal(size=clean.shape)
    errors = []
    for rank in range(1, 13):
        model = PCA(rank).fit(X)
        errors.append(score_recovery(model.inverse_transform(model.transform(X)), clean)["error"])
    assert best_rank(X, clean) == 1 + int(np.argmin(errors))


def record(task, data, model, error, seconds, **more):
    cell = {"task": task, "data": data, "corruption": "clean", "model": model}
    found = {"times": {"run": seconds}, "scores": {"error": error, "nmi": 0.5}, "memory": 2_000_000, "shape": [9, 9]}
    return {"cell": cell, "status": "ok", **found, **more}


@pytest.fixture
def records():
    return [
        record("clustering", "orl", "FRPCAGClustering", 0.2, 2.0),
        record("clustering", "orl", "k-means", 0.3, 0.5),
        {**record("clustering", "orl", "UMAP + k-means", 0, 0), "status": "over", "limit": 60},
        record("clustering", "usps-1500", "FRPCAGClustering", 0.2, 2.0),
        record("clustering", "usps-1500", "UMAP + k-means", 0.1, 4.0),
    ]


def test_the_table_marks_the_best_and_says_who_did_not_end(records):
    head, rows = table(TASKS["clustering"], records, mark=lambda text: f"{text}*")
    assert head == ["data", "contender", "error", "NMI", "seconds", "ratio", "MB"]
    by_name = {(row[0], row[1]): row[2:] for row in rows}
    assert by_name["orl, clean", "FRPCAGClustering"] == ["0.200*", "0.500", "2", "1", "2"]
    assert by_name["orl, clean", "k-means"] == ["0.300", "0.500", "0.5*", "0.25", "2"]
    assert by_name["orl, clean", "UMAP + k-means"][:4] == ["-", "-", "over 60 s", "-"]


def test_the_summary_counts_our_losses(records):
    line = summary(records).splitlines()[2]
    assert line == "| clustering | 2 | 1 | UMAP + k-means 1 | 1 | k-means 1 |"


def test_references_do_not_compete_for_time():
    records = [record("missing", "orl", "RobustGraphImputer", 0.2, 2.0), record("missing", "orl", "mean", 0.1, 0.1)]
    assert summary(records).splitlines()[2] == "| missing | 1 | 0 | mean 1 | 1 | - |"


def test_records_of_every_task_are_drawn(records, tmp_path):
    way = {"gap": 1e-4, "objective": 7.0, "seconds_0.01": 0.1, "seconds_0.001": 0.2, "seconds_0.0001": 0.3}
    growing = [
        {
            **record("growth", "mnist", model, 0, seconds),
            "cell": {"task": "growth", "data": "mnist", "n": n, "model": model},
        }
        for n, model, seconds in ((100, "FRPCAG", 0.1), (200, "FRPCAG", 0.2), (100, "PCA", 0.1))
    ]
    solver = {**record("solver", "orl", "pyunlocbox", 0, 0.3), "scores": way}
    folder = tmp_path / "peers"
    folder.mkdir()
    (folder / RECORDS).write_text("".join(json.dumps(one) + "\n" for one in [*records, *growing, solver]))
    tables = render_peers(folder)
    assert set(tables) == {"clustering", "growth", "solver", "summary"}
    assert "![Clusters of corrupted images](peers/clustering.png)" in tables["clustering"]
    assert {one.name for one in folder.iterdir()} == {
        RECORDS,
        *(f"{name}.{end}" for name in ("clustering", "growth", "solver") for end in ("md", "png")),
    }


def test_settings_keep_the_order_of_the_task(records):
    assert list(by_setting(TASKS["clustering"], records[::-1])["orl, clean"]) == [
        "FRPCAGClustering",
        "UMAP + k-means",
        "k-means",
    ]
