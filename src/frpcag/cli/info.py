"""frpcag info: what is installed, and what a fit will use."""

from __future__ import annotations

import os
import platform
import sys
from argparse import Namespace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console

from frpcag.backends import BACKENDS
from frpcag.cli.runs import library_versions, print_rows, to_json
from frpcag.runtime.threads import count_threads

EXTRAS = {
    "io": ("pandas", "pyarrow", "h5py"),
    "video": ("av",),
    "graphs": ("networkx", "igraph"),
    "anndata": ("anndata",),
    "gpu": ("torch", "triton"),
    "dask": ("dask", "distributed", "zarr", "fsspec"),
}


def show(asked: Namespace) -> None:
    """Print what is installed."""
    record = _record()
    if asked.json:
        sys.stdout.write(to_json(record))
        return
    cache = record["numba_cache"]
    if cache["folder"] is None:
        words = "none: kernels are compiled in every new process; set NUMBA_CACHE_DIR"
    else:
        words = f"{cache['folder']} ({'writable' if cache['writable'] else 'not writable; set NUMBA_CACHE_DIR'})"
    rows = [(name, version or "not installed") for name, version in record["versions"].items()]
    rows += [("platform", record["platform"]), ("cores", str(record["cores"]))]
    rows += [("backends", _found(record["backends"])), ("compiled code", words)]
    rows += [(f"frpcag[{extra}]", _found(found)) for extra, found in record["extras"].items()]
    print_rows(Console(highlight=False, markup=False), rows)


def _record() -> dict[str, Any]:
    return {
        "versions": library_versions(),
        "platform": platform.platform(),
        "cores": count_threads(None),
        "backends": {name: name == "numpy" or find_spec(name) is not None for name in BACKENDS},
        "numba_cache": _numba_cache(),
        "extras": {extra: {name: find_spec(name) is not None for name in names} for extra, names in EXTRAS.items()},
    }


def _numba_cache() -> dict[str, Any]:
    """Return where Numba keeps compiled kernels, and whether it can."""
    if find_spec("numba") is None:
        return {"folder": None, "writable": False}
    from frpcag.backends.numba import kernels as numba_kernels

    kernel: Any = numba_kernels.step_rows_of("l1")
    folder = kernel.stats.cache_path
    if folder is None:
        return {"folder": None, "writable": False}
    existing = next(path for path in (Path(folder), *Path(folder).parents) if path.exists())
    return {"folder": str(folder), "writable": os.access(existing, os.W_OK)}


def _found(found: dict[str, bool]) -> str:
    return ", ".join(name if here else f"{name} (not installed)" for name, here in found.items())
