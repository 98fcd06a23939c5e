"""Facts about the one way of a fit: what it hands out is certified, whoever asks, and telling changes nothing."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from frpcag import FRPCAG, Problem, solve
from frpcag.pipeline import prepare
from frpcag.problem import objective
from frpcag.runtime.stages import StageReport


def table(dtype, *, missing=False, level=0.0):
    rng = np.random.default_rng(0)
    X = level + np.repeat(rng.normal(size=(3, 12)), 15, axis=0) + 0.1 * rng.normal(size=(45, 12))
    X[rng.random(X.shape) < 0.05] += 5
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X.astype(dtype)


@pytest.mark.parametrize("loss", ["l1", "l2", "huber"])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(("dtype", "level"), [("f8", 0.0), ("f8", 1.7e9), ("f4", 0.0), ("f4", 1e5)])
def test_the_gap_is_that_of_the_clean_part_handed_out(loss, missing, dtype, level):
    X = table(dtype, missing=missing, level=level)
    prepared = prepare(X, FRPCAG(loss=loss, scale=True))
    solved = prepared.solve(prepared.graphs())
    center, scale = prepared.centred.center, prepared.centred.scale
    given, U = ((A.astype(np.float64) - center) / scale for A in (X, solved.low_rank))
    parts = {f"L{i}": graph.laplacian for i, graph in enumerate(solved.graphs, start=1)}
    parts |= {f"null{i}": graph.null_vector for i, graph in enumerate(solved.graphs, start=1)}
    gamma1, gamma2 = solved.gammas
    problem = Problem(given, gamma1=gamma1, gamma2=gamma2, loss=loss, **parts)
    found = solved.solution
    assert found.objective == pytest.approx(objective(problem, U), rel=1e-5)
    assert found.objective * (1 - found.gap) <= solve(problem, tol=1e-5, max_iter=5000).objective
    assert found.gap <= 1e-3


def test_a_report_is_told_and_changes_nothing(capsys):
    X, told = table("f4", missing=True), []

    class Listener(StageReport):
        def lap(self, stage, seconds, more=""):
            told.append((stage, more))

    silent, heard = (
        (prepared := prepare(X, FRPCAG(n_refine=1), report=report)).solve(prepared.graphs())
        for report in (StageReport(0), Listener(0))
    )
    assert_array_equal(heard.low_rank, silent.low_rank)
    assert heard.solution.gap == silent.solution.gap
    stages = [stage for stage, _ in told]
    assert stages[:5] == ["preprocess", "sample_graph", "feature_graph", "gammas", "solve"]
    assert stages[-1] == "restore"
    assert f"{heard.solution.n_iter} steps, relative duality gap" in dict(told)["solve"]
    assert capsys.readouterr().out == ""
