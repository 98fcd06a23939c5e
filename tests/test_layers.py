"""Imports point one way: the flow of the folders is the flow of the data."""

import ast
from pathlib import Path

import pytest

import frpcag

ROOT = Path(frpcag.__file__).parent

# Leaves of one concern each, which any layer may import.
LEAVES = {"spectrum", "threads", "torch_sparse", "cluster", "halo", "checkpoint", "memory", "clock", "atomic"}
SPINE = {"data", "graphs", "problem", "solvers", "factorize"}
ALLOWED = {
    "problem": set(),
    "factorize": set(),
    "data": set(),
    "graphs": set(),
    "evaluate": set(),
    "plots": set(),
    "spectrum": set(),
    "threads": set(),
    "memory": set(),
    "clock": set(),
    "atomic": set(),
    "torch_sparse": set(),
    "cluster": set(),
    "halo": set(),
    "checkpoint": set(),
    "inspect": {"graphs", "problem", "factorize"},
    "backends": {"problem"},
    "solvers": {"problem", "backends"},
    "extend": {"graphs", "problem"},
    "saved": {"graphs"},
    "new_rows": {"backends", "data", "extend", "gpu", "outofcore"},
    "gpu": {"backends", "data", "factorize", "graphs"},
    "outofcore": SPINE | {"backends"},
    # FRPCAG.report opens the page of a fit; it imports the report when called, which reads the model's attributes only.
    "estimator": SPINE | {"new_rows", "backends", "gpu", "report", "outofcore", "saved"},
    "baselines": SPINE,
    "clustering": SPINE | {"estimator", "saved"},
    "path": SPINE | {"estimator"},
    "imputer": {"data", "path", "saved"},
    "masks": set(),
    "similar_frames": set(),
    "background": SPINE | {"estimator", "masks", "saved", "similar_frames"},
    "bench": SPINE | {"estimator", "clustering", "background", "baselines", "imputer", "evaluate", "inspect", "plots"},
    "report": {"bench", "inspect", "plots", "graphs", "problem", "factorize", "gpu"},
}
LATE = {
    "torch",
    "triton",
    "dask",
    "distributed",
    "matplotlib",
    "av",
    "cv2",
    "pandas",
    "h5py",
    "pynndescent",
    "numba",
    "zarr",
    "fsspec",
    "umap",
    "tensorly",
    "pyunlocbox",
}
HOMES = {
    "matplotlib": {"plots"},
    "numba": {"backends"},
    "torch": {"backends", "graphs", "gpu", "torch_sparse"},
    "triton": {"backends"},
}


def modules():
    return sorted(path for path in ROOT.rglob("*.py") if path.name != "__init__.py" or path.parent != ROOT)


def layer(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[0]


def imports(path, *, top_level_only=False):
    tree = ast.parse(path.read_text())
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            if node.module == "frpcag":
                yield from (f"frpcag.{alias.name}" for alias in node.names)
            else:
                yield node.module


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_what_its_layer_may(path):
    here = layer(path)
    if here == "cli":
        return
    ours = {name.split(".")[1] for name in imports(path) if name.startswith("frpcag.")}
    assert ours - {here} <= ALLOWED[here] | LEAVES


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_heavy_libraries_load_late_or_in_the_folder_that_is_about_them(path):
    top = {name.split(".")[0] for name in imports(path, top_level_only=True)} & LATE
    assert {name for name in top if layer(path) not in HOMES.get(name, set())} == set()


def test_the_package_root_holds_no_logic():
    tree = ast.parse((ROOT / "__init__.py").read_text())
    assert {type(node) for node in tree.body} <= {ast.Expr, ast.ImportFrom, ast.Assign}
