"""Golden figures: drawn with Agg in a fixed style and compared with the PNG in tests/golden.

To regenerate them on purpose, run the tests with FRPCAG_REGENERATE_GOLDEN=1 and look at each one.
"""

import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest
from matplotlib.testing.compare import compare_images

GOLDEN = Path(__file__).parents[1] / "golden"

# Root mean square of the pixel differences, of 255: text rendering differs a little between versions of
# Matplotlib, which a moved or missing curve by far exceeds.
TOLERANCE = 4.0
# Versions before set text and lay out figures otherwise.
DRAWN_WITH = (3, 11)


@pytest.fixture(autouse=True)
def fixed_style():
    with plt.style.context("default", after_reset=True):
        yield
    plt.close("all")


@pytest.fixture
def assert_golden(tmp_path):
    def check(figure, name):
        expected = GOLDEN / f"{name}.png"
        actual = tmp_path / f"{name}.png"
        figure.savefig(actual, dpi=100, metadata={"Software": None})
        if os.environ.get("FRPCAG_REGENERATE_GOLDEN"):
            expected.write_bytes(actual.read_bytes())
        if matplotlib.__version_info__[:2] < DRAWN_WITH:
            pytest.skip(f"the figures in tests/golden were drawn with Matplotlib {'.'.join(map(str, DRAWN_WITH))}")
        assert compare_images(expected, actual, tol=TOLERANCE) is None

    return check
