"""What users may rely on: every public name and its signature, compared with the list that is kept."""

import importlib
import inspect
import os
from pathlib import Path

import frpcag

LIST = Path(__file__).parent / "golden" / "api.txt"
# Packages whose ``__all__`` is public; docs/versioning.md says what that means.
PUBLIC = (
    "frpcag",
    "frpcag.anndata",
    "frpcag.graphs",
    "frpcag.data",
    "frpcag.tables",
    "frpcag.solvers",
    "frpcag.baselines",
    "frpcag.insight",
    "frpcag.plots",
)


def signature(value):
    parameters = inspect.signature(value).parameters.values()
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    return str(inspect.Signature(bare))


def members(cls):
    """Return the public methods and properties that the class or a class of ours adds, sorted."""
    for name, value in sorted(inspect.getmembers(cls)):
        owner = next((base for base in cls.__mro__ if name in vars(base)), None)
        if (
            name.startswith("_")
            or name.endswith("_request")
            or owner is None
            or not owner.__module__.startswith("frpcag")
        ):
            continue
        yield f"{name}{signature(value)}" if callable(value) else name


def describe(module, name):
    value = getattr(module, name)
    if inspect.isclass(value):
        yield f"class {module.__name__}.{name}{signature(value)}"
        yield from (f"    {member}" for member in members(value))
    elif callable(value):
        yield f"def {module.__name__}.{name}{signature(value)}"
    else:
        yield f"{module.__name__}.{name}: {type(value).__name__}"


def public_api():
    for package in PUBLIC:
        module = importlib.import_module(package)
        for name in sorted(module.__all__):
            yield from describe(module, name)


def test_the_public_api_is_the_one_that_is_listed():
    api = "\n".join(public_api()) + "\n"
    if os.environ.get("FRPCAG_REGENERATE_GOLDEN"):
        LIST.write_text(api)
    assert api == LIST.read_text(), (
        "the public API changed; see docs/versioning.md, then regenerate tests/golden/api.txt"
    )


def public_values():
    for package in PUBLIC:
        module = importlib.import_module(package)
        yield from ((f"{package}.{name}", getattr(module, name)) for name in module.__all__)


def test_every_public_function_and_class_says_what_it_is():
    assert [name for name, value in public_values() if callable(value) and not inspect.getdoc(value)] == []


def test_every_public_function_and_estimator_shows_an_example():
    shown = [
        name
        for name, value in public_values()
        if (inspect.isfunction(value) or hasattr(value, "get_params")) and ">>>" not in inspect.getdoc(value)
    ]
    assert shown == []


def test_nothing_is_public_by_accident():
    held = {**vars(frpcag), **{name: getattr(frpcag, name) for name in dir(frpcag)}}
    names = {name for name, value in held.items() if not name.startswith("_") and not inspect.ismodule(value)}
    assert names == set(frpcag.__all__)
