"""For all tests: no deadlines, PyTorch in one thread, and Triton's interpreter where there is no GPU."""

import os
from importlib.util import find_spec

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

settings.register_profile("no clock", deadline=None)
settings.load_profile("no clock")

if find_spec("torch"):
    import torch

    # The suite runs one process per core; two pools of threads on the same cores wait for each other.
    torch.set_num_threads(1)
    if not torch.cuda.is_available():
        # Triton reads this when it is imported, which only the kernels do.
        os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture
def two_threads():
    """Give BLAS and OpenMP two threads, as they have outside of the suite."""
    with threadpool_limits(2):
        yield
