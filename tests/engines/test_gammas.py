"""The automatic gammas follow one rule on every engine, in the corners of the data too."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import frpcag.engines.gammas as rule
from frpcag import build_graph
from support.engines import (
    BASE,
    ENGINES,
    OTHERS,
    REFERENCE,
    Case,
    N,
    P,
    adjacency,
    clusters,
    fit,
    known,
    needs,
    on_host,
    over,
)


def path(n, weight=1.0, without=()):
    """Return weights of a path through the rows in their order; rows in ``without`` stand alone."""
    starts = np.arange(n - 1)
    starts = starts[~np.isin(starts, without) & ~np.isin(starts + 1, without)]
    A = sparse.csr_array((np.full(len(starts), weight), (starts, starts + 1)), shape=(n, n))
    return A + A.T


def at_levels(dtype, missing=0.0):
    """Return columns at levels far above their spread."""
    return (clusters(missing=missing) + 1e4 * np.arange(1, P + 1)).astype(dtype)


def heavy_tail():
    """Return rows whose mean absolute deviation is a third of their standard deviation."""
    X = 1e-3 * np.random.default_rng(2).normal(size=(N, P))
    X[-1] = 1000
    return X


UNSEEN = np.setdiff1d(np.arange(2500), np.linspace(0, 2499, 2000).astype(int))


def unseen_rows(size):
    """Return 2500 rows, of which the 500 that the rule does not look at are of another size."""
    X = 1e-5 * np.random.default_rng(3).normal(size=(2500, 3))
    X[UNSEEN] *= size
    return X


def incomplete_rows():
    """Return data in which a row and a column have one observed entry each."""
    X = clusters()
    X[3, 1:] = np.nan
    X[1:, 2] = np.nan
    return X


def many_rows(missing):
    X = clusters(2100, 4, missing=missing)
    X[:, 0] = np.nan_to_num(X[:, 0])
    return X


def duplicates():
    return np.repeat(np.random.default_rng(1).normal(size=(3, P)), 10, axis=0)


GRID = {"feature_graph": "grid", "feature_shape": (2, 4)}
GIVEN = {"sample_graph": adjacency(), **GRID}
# The path pulls the rows of the heavy tail by 1.1e-4, between a millionth of the one spread and of the other.
TAIL = {"sample_graph": path(N, 0.03, without=[N - 1]), "feature_graph": None}
ALONE = {"sample_graph": path(2500, without=UNSEEN), "feature_graph": None}
LEVEL = {"laplacian": "combinatorial", "center": False}

CORNERS = {
    "levels": Case(lambda: at_levels(np.float64)),
    "levels-uncentred": Case(lambda: at_levels(np.float64), {"center": False}),
    "levels-uncentred-combinatorial": Case(lambda: at_levels(np.float64), LEVEL),
    "levels-missing": Case(lambda: at_levels(np.float64, 0.15)),
    "levels-scaled": Case(lambda: at_levels(np.float64), {"scale": True}),
    "levels-float32": Case(lambda: at_levels(np.float32)),
    "levels-float32-scaled": Case(lambda: at_levels(np.float32), {"scale": True}),
    "levels-float32-uncentred": Case(lambda: at_levels(np.float32), {"center": False}),
    "levels-float32-uncentred-combinatorial": Case(lambda: at_levels(np.float32), LEVEL),
    "heavy-tail": Case(heavy_tail, TAIL | LEVEL),
    "unseen-rows-small": Case(lambda: unseen_rows(1e-3), ALONE | LEVEL),
    "unseen-rows-large": Case(lambda: unseen_rows(1e8), ALONE | LEVEL),
    "many-rows": Case(lambda: many_rows(0.0), {"sample_graph": path(2100)}),
    "many-rows-missing": Case(lambda: many_rows(0.15), {"sample_graph": path(2100)}),
    "many-rows-searched": Case(lambda: many_rows(0.0)),
    "mostly-missing": Case(lambda: clusters(missing=0.6)[np.arange(N) != 25], {**GRID, "sample_graph": path(N - 1)}),
    "row-and-column-of-one-entry": Case(incomplete_rows),
    "isolated-rows": Case(clusters, {"sample_graph": path(N, without=np.arange(10, N))}),
    "duplicates": Case(duplicates, {"laplacian": "combinatorial"}),
    "duplicates-float32": Case(lambda: duplicates().astype(np.float32), {"laplacian": "combinatorial"}),
}


SHIFT = "torch rounds the mean to float32 before it subtracts it"
PULL = "torch sums L X in float32"
SPREAD = "Dask takes the standard deviation for the spread, the reference the mean absolute deviation"
STRIDE = "torch measures size and spread on all rows, the reference on the 2000 that it looks at"
CONSTANT = "torch's mean of a constant column rounds; what is left counts as data"
FIRST = "the shift is the first row, 0 where that is missing; the mean then rounds, and what is left counts as data"

# Engine and corner as regular expressions, and the cause.
HOLES: list[tuple[str, ...]] = []


@cache  # the reference is asked once for all engines
def gammas(engine, corner):
    model = fit(engine, CORNERS[corner].X(), **BASE | {"max_iter": 1} | CORNERS[corner].params)
    return model.gamma1_, model.gamma2_


@pytest.mark.parametrize(
    ("engine", "corner"),
    [
        pytest.param(engine, corner, marks=[*needs(engine), *known(HOLES, engine, corner)], id=f"{engine}-{corner}")
        for engine in OTHERS
        for corner in CORNERS
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_automatic_gammas_equal_the_reference(engine, corner):
    rtol = 1e-5 if CORNERS[corner].X().dtype == np.float32 else 1e-6
    assert_allclose(gammas(engine, corner), gammas(REFERENCE, corner), rtol=rtol)


def mean_pull(L, X):
    """Return mean |2 L X| over the observed entries, entry by entry; missing neighbours count as the others' mean."""
    W = np.diag(np.diag(L)) - L
    pulls = []
    for i, j in np.argwhere(~np.isnan(X)):
        seen = ~np.isnan(X[:, j])
        there = W[i, seen].sum()
        mean = W[i, seen] @ X[seen, j] / there if there > 0 else 0.0
        pulls.append(abs(2 * (L[i, i] * X[i, j] - W[i].sum() * mean)))
    return np.mean(pulls)


@pytest.mark.parametrize("engine", over(ENGINES))
@pytest.mark.parametrize("missing", [0.0, 0.15])
@pytest.mark.parametrize("laplacian", ["normalized", "combinatorial"])
def test_the_automatic_gamma_is_one_over_the_mean_pull(engine, missing, laplacian):
    X = clusters(missing=missing)
    model = fit(engine, X, **BASE, laplacian=laplacian, **GIVEN | {"feature_graph": adjacency(P)})
    graphs = (build_graph(X, axis=axis, method=adjacency(X.shape[axis]), laplacian=laplacian) for axis in (0, 1))
    L1, L2 = (graph.laplacian.toarray() for graph in graphs)
    Xc = X - np.nanmean(X, axis=0)
    assert_allclose([model.gamma1_, model.gamma2_], [1 / mean_pull(L1, Xc), 1 / mean_pull(L2, Xc.T)], rtol=1e-6)


def constant_cases():
    names = {False: "constant", True: "constant-missing"}
    for engine in ENGINES:
        for missing, corner in names.items():
            yield pytest.param(engine, missing, marks=[*needs(engine), *known(HOLES, engine, corner)])


@pytest.mark.parametrize(("engine", "missing"), list(constant_cases()))
def test_constant_columns_leave_the_graphs_nothing_to_do(engine, missing):
    X = np.tile(np.linspace(0.1, 0.9, P), (N, 1))
    if missing:
        X[np.arange(N), np.arange(N) % P] = np.nan
    model = fit(engine, X, **BASE | GIVEN)
    assert (model.gamma1_, model.gamma2_, model.objective_) == (0, 0, 0)


@pytest.mark.parametrize("engine", over(ENGINES, "one-constant-missing", holes=HOLES))
def test_the_rounding_of_constant_columns_is_not_scaled_up(engine):
    X = clusters()
    X[:, 3:] = np.linspace(0.1, 0.9, P - 3)
    X[2, 3:] = np.nan
    model = fit(engine, X, **BASE | GIVEN | {"scale": True})
    assert on_host(model.scale_)[3:].tolist() == [1] * (P - 3)


def test_the_gamma_does_not_depend_on_the_columns_looked_at_together(monkeypatch):
    X = np.random.default_rng(0).normal(size=(50, 200))
    L = build_graph(X).laplacian
    whole = rule.scale_free_gamma(L, X, axis=0)
    monkeypatch.setattr(rule, "_BLOCK_ENTRIES", 1)
    assert rule.scale_free_gamma(L, X, axis=0) == whole
