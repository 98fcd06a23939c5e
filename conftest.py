"""Doctests of modules that need a library which is not installed are left out; any other import error is an error.

`--doctest-ignore-import-errors` would hide them all, those of test files too: a file that cannot be imported has no
tests, and nothing fails.
"""

import importlib
from pathlib import Path

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
