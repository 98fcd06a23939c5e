"""What an import loads, where public names come from, and whether pyproject.toml declares what is imported."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import frpcag
from frpcag.cli.info import EXTRAS

ROOT = Path(frpcag.__file__).parent
REPOSITORY = Path(__file__).parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
# Distributions whose module has another name.
MODULES = {"scikit-learn": "sklearn", "faiss-cpu": "faiss", "umap-learn": "umap", "pillow": "PIL"}
# Extras for those who work on the library; the others are for those who use it.
WORKSHOP = {"reproduce", "benchmarks", "test", "docs", "lint", "package", "dev"}


def loaded_by(code, *names):
    """Return those of some modules that a fresh interpreter has loaded after some code."""
    code = f"{code}\nimport sys; print(*sorted({set(names)!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()


def declared_modules(requirements):
    names = [re.match(r"[\w-]+", one)[0] for one in requirements if not one.startswith("frpcag[")]
    return {MODULES.get(name, name) for name in names}


def imported_modules():
    """Return the libraries that any line of the package imports."""
    found = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found.add(node.module.split(".")[0])
    return found - sys.stdlib_module_names - {"frpcag"}


def test_the_package_alone_loads_no_other_library():
    assert loaded_by("import frpcag", *imported_modules()) == []


def test_a_model_loads_no_plots_no_compiler_and_no_optional_library():
    late = ("numba", "matplotlib", "torch", "dask", "h5py", "av")
    assert loaded_by("from frpcag import FRPCAG", *late) == []


@pytest.mark.parametrize("words", [["--version"], ["--help"], [], ["fit", "--help"], ["fit", "--nonsense", "x"]])
def test_version_and_help_load_no_command(words):
    code = f"from frpcag.cli.main import main\nmain({words!r})"
    commands = [f"frpcag.cli.{name}" for name in ("fit", "info", "runs")]
    assert loaded_by(code, "numpy", "scipy", "sklearn", "numba", *commands) == []


def test_type_checkers_and_users_find_public_names_in_the_same_place():
    tree = ast.parse((ROOT / "__init__.py").read_text())
    seen = {
        alias.name: node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert seen == frpcag._HOMES
    assert set(frpcag.__all__) == set(frpcag._HOMES)


def test_public_folders_are_there_without_an_import_of_their_own():
    code = "import frpcag; assert frpcag.graphs.build_graph is frpcag.build_graph; frpcag.problem.Problem"
    assert loaded_by(code, "frpcag.problem") == ["frpcag.problem"]
    assert all((ROOT / name).is_dir() or (ROOT / f"{name}.py").is_file() for name in frpcag._ROOMS)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'frpcag' has no attribute 'frpca'"):
        frpcag.frpca  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'frpca'"):
        from frpcag import frpca  # noqa: F401


def test_every_library_that_is_imported_is_declared_and_the_other_way_round():
    extras = PROJECT["optional-dependencies"]
    used = [line for name in extras.keys() - WORKSHOP for line in extras[name]]
    assert imported_modules() == declared_modules(PROJECT["dependencies"] + used)


def test_info_looks_for_what_the_extras_install():
    extras = PROJECT["optional-dependencies"]
    assert {name: set(found) for name, found in EXTRAS.items()} == {
        name: declared_modules(extras[name]) for name in extras.keys() - WORKSHOP
    }


def test_the_conda_recipe_asks_for_what_the_package_asks_for():
    run = (REPOSITORY / "conda" / "meta.yaml").read_text().partition("  run:\n")[2].partition("\n\n")[0]
    asked = {line.strip("- ").replace(" ", "").replace("matplotlib-base", "matplotlib") for line in run.splitlines()}
    assert asked == {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}


def test_the_labels_of_the_changelog_are_there():
    assert "linkage" in frpcag.labels.LABELLERS
