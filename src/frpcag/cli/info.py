"""frpcag info: what is installed, and what a fit will use."""

from __future__ import annotations

import os
import platform
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from frpcag.backends import BACKENDS
from frpcag.cli import options
from frpcag.cli.runs import library_versions, print_json
from frpcag.runtime.threads import count_threads

EXTRAS = {
    "io": ("pandas", "pyarrow", "h5py"),
    "video": ("av",),
    "graphs": ("networkx", "igraph"),
    "anndata": ("anndata",),
    "gpu": ("torch", "triton"),
    "dask": ("dask", "distributed", "zarr", "fsspec"),
}


def info(as_json: options.Json = False) -> None:
    """Show versions, cores, backends, the cache of compiled code and extras."""
    record = _record()
    if as_json:
        print_json(record)
        return
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, version in record["versions"].items():
        table.add_row(name, version or "not installed")
    table.add_row("platform", record["platform"])
    table.add_row("cores", str(record["cores"]))
    table.add_row("backends", ", ".join(_yes_no(record["backends"], "not installed")))
    cache = record["numba_cache"]
    if cache["folder"] is None:
        words = "none: kernels are compiled in every new process; set NUMBA_CACHE_DIR"
    else:
        words = f"{cache['folder']} ({'writable' if cache['writable'] else 'not writable; set NUMBA_CACHE_DIR'})"
    table.add_row("compiled code", words)
    for extra, found in record["extras"].items():
        table.add_row(f"frpcag[{extra}]", ", ".join(_yes_no(found, "not installed")))
    Console(highlight=False, markup=False).print(table)


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


def _yes_no(found: dict[str, bool], word: str) -> list[str]:
    return [name if here else f"{name} ({word})" for name, here in found.items()]
