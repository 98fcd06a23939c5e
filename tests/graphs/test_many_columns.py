"""Facts about the feature graph of very many features, whose p x p products nobody holds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from frpcag.graphs.blocks.gram import column_products, graph_from_products
from frpcag.graphs.blocks.many_columns import COMBINATIONS, candidates, combined_rows, graph_from_pairs, pair_sums
from frpcag.runtime.tasks import add_up

OPTIONS = {"n_neighbors": 6, "sigma": "auto", "laplacian": "normalized"}


def columns(missing=0.0, n=400, p=300):
    """Columns along a curve, with noise, in random order; some entries missing."""
    rng = np.random.default_rng(0)
    at = rng.random(p)
    X = np.sin(6 * np.outer(1 + rng.random(n), at) + 6 * rng.random((n, 1))) + 0.02 * rng.standard_normal((n, p))
    X[rng.random((n, p)) < missing] = np.nan
    return X


def graph_of(X, cuts):
    """Return the graph of the columns from row blocks."""
    parts = np.split(X, cuts), np.split(np.arange(len(X)), cuts)
    combined = add_up([combined_rows(*part) for part in zip(*parts, strict=True)])
    pairs = candidates(combined, OPTIONS["n_neighbors"], seed=0)
    return graph_from_pairs(pairs, add_up([pair_sums(part, pairs) for part in parts[0]]), len(X), **OPTIONS)


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("cuts", [[], [30, 250]])
def test_columns_have_the_neighbours_of_all_products_at_the_same_distances(missing, cuts):
    X = columns(missing)
    graph, wanted = graph_of(X, cuts), graph_from_products(column_products(X), len(X), **OPTIONS)
    assert wanted.edges_kept_by(graph) >= 0.97
    assert_allclose(graph.sigma, wanted.sigma, rtol=1e-2)
    both = (graph.weights != 0).multiply(wanted.weights != 0).tocoo()
    weights = (np.asarray(g.weights[both.row, both.col]) ** graph.sigma**2 for g in (graph, wanted))
    assert_allclose(*weights, rtol=0.05)
    assert graph.method == "approximate"


def test_combinations_keep_distances_and_know_a_row_by_its_name_alone():
    X = np.random.default_rng(1).standard_normal((3000, 40))
    whole = combined_rows(X, np.arange(3000))
    order = np.random.default_rng(2).permutation(3000)
    cut = sum(combined_rows(X[rows], rows) for rows in np.array_split(order, 7))
    assert_allclose(cut, whole, atol=1e-4)
    true, seen = (np.linalg.norm(A[:, :1] - A[:, 1:], axis=0) for A in (X, whole))
    assert whole.shape == (COMBINATIONS, 40)
    assert_allclose(seen, true, rtol=0.15)
    assert abs((seen / true).mean() - 1) < 0.02
