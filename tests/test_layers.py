"""Imports point one way: the flow of the folders is the flow of the data."""

import ast
from pathlib import Path

import pytest

import frpcag

ROOT = Path(frpcag.__file__).parent

# Which folders each folder imports beside itself and `runtime`, which serves all of them: these and no others, each of
# them at least once.
ALLOWED = {
    "runtime": set(),
    "losses": set(),
    "problem": {"losses"},
    "linalg": set(),
    "data": set(),
    "tables": set(),
    "plots": set(),
    "graphs": {"linalg"},
    "backends": {"losses", "problem", "linalg"},
    "solvers": {"losses", "problem", "backends", "linalg"},
    "engines": {"data", "losses", "graphs", "problem", "solvers", "backends", "linalg"},
    # Whoever has row blocks asks `frpcag.engines.base`, which imports this room when it is needed.
    "dask": {"data", "losses", "graphs", "problem", "backends", "linalg", "engines"},
    "pipeline": {"data", "graphs", "problem", "engines", "solvers"},
    "insight": {"graphs", "problem"},
    "labels": {"data", "graphs", "linalg"},
    "cells": {"graphs", "problem", "solvers", "linalg", "rows"},
    # FRPCAG.report opens the page of a fit; it imports the report when called, which reads the model's attributes only.
    "rows": {"data", "losses", "graphs", "backends", "engines", "linalg"},
    "estimators": {
        *("data", "solvers", "linalg", "engines", "pipeline", "rows", "labels", "cells", "saving", "report")
    },
    # A file names the class that it holds; its module is imported when the file is read.
    "saving": {"graphs"},
    "anndata": {"graphs", "estimators"},
    "video": {"graphs", "problem", "solvers", "saving", "estimators"},
    "baselines": {"data", "graphs", "linalg"},
    "report": {"insight", "plots", "linalg", "engines"},
}
# The command line calls what it likes, but a command knows no other command, and what they share knows none.
SHARED_CLI = {"options", "errors", "models", "progress", "runs", "tables", "video_outputs"}
# Modules that one folder may import of another, where the rest of it is none of its business.
ONLY = {("video", "estimators"): {"frpcag.estimators.whole"}}
LATE = {
    *("torch", "triton", "dask", "distributed", "zarr", "fsspec", "matplotlib", "PIL", "av", "numba", "llvmlite"),
    *("pandas", "pyarrow", "h5py", "umap", "networkx", "igraph", "anndata"),
}
HOMES = {
    "matplotlib": {"plots"},
    "numba": {"backends", "graphs", "labels", "video"},
    "llvmlite": {"backends"},
    "torch": {"backends", "graphs", "engines", "linalg", "rows"},
    "triton": {"backends", "graphs"},
}
MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")
every_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))


def layer(path):
    return path.relative_to(ROOT).with_suffix("").parts[0]


def at_import(node):
    """Yield the statements that run when a module is imported, in blocks too, but not in functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) or is_for_types(child):
            continue
        yield child
        yield from at_import(child)


def is_for_types(node):
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def imports(path, *, top_level_only=False):
    """Yield the modules that a file imports; a public name counts as the module that it lives in."""
    tree = ast.parse(path.read_text())
    for node in at_import(tree) if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "frpcag":
                yield from (frpcag._HOMES.get(alias.name, f"frpcag.{alias.name}") for alias in node.names)
            elif node.module == "frpcag.cli":
                yield from (f"frpcag.cli.{alias.name}" for alias in node.names)
            else:
                yield node.module


def imported_layers(path):
    """Return the folders that a file imports, its own and `runtime` left out."""
    ours = {name.split(".")[1] for name in imports(path) if name.startswith("frpcag.")}
    return ours - {layer(path), "runtime"}


def test_every_folder_has_its_rule():
    assert {layer(path) for path in MODULES} == {*ALLOWED, "cli"}


@every_module
def test_a_module_imports_only_what_its_layer_may(path):
    here = layer(path)
    if here == "cli":
        own = {name.split(".")[2] for name in imports(path) if name.startswith("frpcag.cli.")}
        assert own <= SHARED_CLI
        assert imported_layers(path) <= set(ALLOWED)
    else:
        assert imported_layers(path) <= ALLOWED[here]


@pytest.mark.parametrize("here", ALLOWED)
def test_a_layer_imports_all_that_it_may(here):
    used = set().union(*(imported_layers(path) for path in MODULES if layer(path) == here))
    assert used == ALLOWED[here], "take the edge that nobody uses out of ALLOWED"


@pytest.mark.parametrize(("here", "there"), ONLY)
def test_of_some_layers_a_part_is_enough(here, there):
    names = {name for path in MODULES if layer(path) == here for name in imports(path)}
    assert {name for name in names if name.startswith(f"frpcag.{there}")} == ONLY[here, there]


@every_module
def test_heavy_libraries_load_late_or_in_the_folder_that_is_about_them(path):
    top = {name.split(".")[0] for name in imports(path, top_level_only=True)} & LATE
    assert {name for name in top if layer(path) not in HOMES.get(name, set())} == set()


def test_the_package_root_holds_names_and_no_logic():
    """It names what is public; two functions import it when it is asked for, and type checkers see plain imports."""
    *statements, names = ast.parse((ROOT / "__init__.py").read_text()).body
    assert {type(node) for node in statements} <= {ast.Expr, ast.Import, ast.Assign}
    assert is_for_types(names)
    assert {type(node) for node in names.body} == {ast.ImportFrom}
    assert {node.name for node in names.orelse} == {"__getattr__", "__dir__"}
