"""Gaussian weights and symmetrisation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from frpcag.graphs.weights import gaussian_weights, mean_length, symmetrize_weights
from support.oracles import random_sparse


def test_gaussian_weights_are_the_kernel_of_the_paper():
    d = np.array([0.0, 0.5, 1.0, 3.0])
    assert_allclose(gaussian_weights(d, 2.0), np.exp(-(d**2) / 4))


def test_sigma_zero_gives_unit_weights():
    assert_array_equal(gaussian_weights(np.zeros(3), 0.0), 1.0)


def test_weights_of_far_points_do_not_vanish():
    assert gaussian_weights(np.array([1e30]), 1.0) > 0


def test_mean_length_is_the_mean_distance():
    assert mean_length(np.array([[1.0, 2.0], [3.0, 6.0]])) == 3.0


def test_mean_length_of_coinciding_points_is_zero():
    assert mean_length(np.zeros((3, 2))) == 0.0


def test_mean_length_survives_lengths_near_the_end_of_float64():
    assert mean_length(np.array([1.5e308, 1.5e308])) == pytest.approx(1.5e308)


def test_symmetrization_agrees_with_the_dense_formula():
    A = random_sparse(20, 0.2, seed=0)
    assert_allclose(symmetrize_weights(A).toarray(), (A.toarray() + A.toarray().T) / 2)


def test_symmetrization_is_exact_to_the_last_bit():
    A = random_sparse(50, 0.2, seed=0)
    S = symmetrize_weights(A).toarray()
    assert_array_equal(S, S.T)
