"""Array operations that NumPy and PyTorch have in common."""

import numpy as np
from numpy.testing import assert_array_equal

from frpcag.linalg.arrays import arrays_of


def test_medians_at_the_end_of_the_range_do_not_warn():
    A = np.full((4, 2), np.finfo(float).max)
    assert_array_equal(arrays_of(A).medians(A), [np.inf, np.inf])
