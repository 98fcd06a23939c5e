"""Rectangles in the colour of the background: found by their size, placed by what is natural."""

import numpy as np
import pytest

from frpcag.cells.guard import damage_share
from frpcag.cells.occluders import find_occluder, window_shares


def objects(rng, n=200, side=20):
    """Return bright discs of all sizes and places on a background of zero."""
    y, x = np.mgrid[:side, :side]
    centers, radii = rng.uniform(7, side - 7, size=(2, n, 1, 1)), rng.uniform(5, 9, size=(n, 1, 1))
    inside = (y - centers[0]) ** 2 + (x - centers[1]) ** 2 < radii**2
    return (inside * rng.uniform(0.2, 1, size=inside.shape)).reshape(n, -1)


def covered(rng, X, size, side=20):
    hit = np.zeros((len(X), side, side), bool)
    for image in hit:
        top, left = rng.integers(0, side - size[0] + 1), rng.integers(0, side - size[1] + 1)
        image[top : top + size[0], left : left + size[1]] = True
    hit = hit.reshape(len(X), -1)
    return np.where(hit, 0, X), hit


def test_window_shares_are_those_of_a_plain_count():
    flat = np.random.default_rng(0).random((30, 6, 5)) < 0.8
    F = window_shares(flat)
    for a in range(1, 7):
        for b in range(1, 6):
            has = [any(image[i : i + a, j : j + b].all() for i in range(7 - a) for j in range(6 - b)) for image in flat]
            assert F[a, b] == np.mean(has)


@pytest.mark.parametrize("size", [(10, 10), (7, 12)])
def test_a_rectangle_in_the_colour_of_the_background_is_found(size):
    rng = np.random.default_rng(1)
    truth = objects(rng)
    X, hit = covered(rng, truth, size)
    seen = np.ones(X.shape, bool)
    found = find_occluder(X, seen, 0.0, (20, 20))
    assert found.size == size
    assert found.covered > 0.9
    flags = found.posterior(X, seen) > 0.5
    changed = hit & (truth != 0)
    assert (flags & changed).sum() > 0.97 * changed.sum()
    assert (flags & hit).sum() > 0.95 * flags.sum()


def test_objects_that_nothing_covers_have_no_rectangle():
    X = objects(np.random.default_rng(2))
    assert find_occluder(X, np.ones(X.shape, bool), 0.0, (20, 20)) is None


def test_natural_flags_of_some_columns_do_not_count_as_damage():
    rng = np.random.default_rng(3)
    among = np.ones((1000, 40), bool)
    damage = rng.random(among.shape) < 0.03
    natural = (rng.random(among.shape) < 0.3) & (np.arange(40) < 15)
    share = damage_share(damage | natural, among)
    np.testing.assert_allclose(share[:15], 0.1, atol=0.04)
    assert (share[15:] > 0.6).all()
    assert not damage_share(natural, among).any()
