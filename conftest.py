"""Doctests of modules that need a library which is not installed are left out; any other import error is an error.

`--doctest-ignore-import-errors` would hide them all, those of test files too: a file that cannot be imported has no
tests, and nothing fails.

Where pytest runs one process per core (``-n``), BLAS and OpenMP get one thread in each: threads of two processes on the
same cores wait for each other, at full load. Tests that are about these threads ask for two by themselves.
"""

import importlib
import os
from pathlib import Path

if "PYTEST_XDIST_WORKER" in os.environ:  # before NumPy is imported, which reads it
    os.environ.setdefault("OMP_NUM_THREADS", "1")

SOURCE = Path(__file__).parent / "src"
OPTIONAL = {"torch", "triton"}


def pytest_ignore_collect(collection_path):
    if collection_path.suffix != ".py" or SOURCE not in collection_path.parents:
        return None
    parts = collection_path.relative_to(SOURCE).with_suffix("").parts
    try:
        importlib.import_module(".".join(part for part in parts if part != "__init__"))
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in OPTIONAL:
            return True
        raise
    return None
