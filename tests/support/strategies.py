"""Hypothesis strategies for problems."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from frpcag.losses import LOSSES
from support.oracles import random_problem


@st.composite
def problems(draw, *, dtypes=(np.float64, np.float32), losses=tuple(LOSSES)):
    """Draw a small problem: any shape, Laplacian, loss, dtype, one graph or two."""
    return random_problem(
        draw(st.integers(0, 2**32 - 1)),
        n=draw(st.integers(1, 20)),
        p=draw(st.integers(1, 20)),
        kind=draw(st.sampled_from(["normalized", "combinatorial"])),
        loss=draw(st.sampled_from(losses)),
        graphs=draw(st.sampled_from(["both", "samples", "features"])),
        dtype=draw(st.sampled_from(dtypes)),
    )
