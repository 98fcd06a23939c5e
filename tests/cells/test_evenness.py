"""Damage is even over rows and columns; what data have by nature is not."""

import numpy as np
import pytest

from frpcag.cells.guard import is_even, variation


def test_variation_is_free_of_what_sampling_adds():
    rng = np.random.default_rng(0)
    cells = np.full(4000, 50)
    assert variation(rng.binomial(cells, 0.1), cells) < 0.1
    uneven = rng.choice([0.05, 0.15], size=4000)
    assert variation(rng.binomial(cells, uneven), cells) == pytest.approx(0.5, abs=0.05)


def test_scattered_flags_are_even_and_flags_in_some_columns_are_not():
    rng = np.random.default_rng(1)
    flags = rng.random((300, 40)) < 0.05
    everywhere = np.ones(flags.shape, bool)
    assert is_even(flags, everywhere)
    crowded = flags & (np.arange(40) < 15)
    assert not is_even(crowded, everywhere)
    assert not is_even(crowded.T, everywhere.T)


def test_a_handful_of_flags_says_nothing():
    flags = np.zeros((300, 40), bool)
    flags[::30, ::7] = True
    flags[:, 20:] = False
    assert flags.sum() < 50
    assert not is_even(flags, np.ones(flags.shape, bool))
