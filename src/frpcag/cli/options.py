"""Options shared by the commands, and the words they take."""

from __future__ import annotations

from enum import StrEnum
from math import isfinite, prod
from pathlib import Path
from typing import Annotated, Any

import typer

from frpcag.cli.errors import InputError
from frpcag.losses import LOSSES

# Headings of the groups of options in the help.
DATA, MODEL, SOLVER, OUTPUT = "The file", "The model", "The solver", "The output"

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.")]


class SampleGraph(StrEnum):
    """How the samples are linked."""

    auto = "auto"
    exact = "exact"
    approximate = "approximate"
    none = "none"


class FeatureGraph(StrEnum):
    """How the features are linked."""

    auto = "auto"
    exact = "exact"
    approximate = "approximate"
    grid = "grid"
    none = "none"


class Laplacian(StrEnum):
    """Which Laplacian a graph gets."""

    normalized = "normalized"
    combinatorial = "combinatorial"


Loss = StrEnum("Loss", list(LOSSES))  # type: ignore[misc]


class BackendName(StrEnum):
    """What computes the steps."""

    auto = "auto"
    numpy = "numpy"
    numba = "numba"
    torch = "torch"


def parse_gamma(text: str) -> str | float:
    """Return "auto" or a finite number >= 0."""
    return "auto" if text == "auto" else _number(text, "'auto' or a finite number >= 0", lambda x: x >= 0)


def parse_metric(text: str) -> str:
    """Return the name of a metric."""
    from frpcag.graphs.metric import check_metric

    try:
        check_metric(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    return text


def parse_tol(text: str | float) -> float:
    """Return a finite number >= 0."""
    return _number(text, "a finite number >= 0, such as 1e-3", lambda x: x >= 0)


def parse_components(text: str | float) -> int | float:
    """Return a whole number of components, or the share of the squared singular values to keep."""
    value = _number(text, "a whole number >= 1, or a share in (0, 1)", lambda x: 0 < x < 1 or (x >= 1 and x == int(x)))
    return int(value) if value >= 1 else value


def parse_clusters(text: str | int) -> str | int:
    """Return "auto" or a whole number of clusters."""
    rule = "'auto' or a whole number >= 1"
    return "auto" if text == "auto" else int(_number(text, rule, lambda x: x >= 1 and x == int(x)))


def parse_jobs(text: str | int) -> int:
    """Return a number of threads, counted back from all cores if negative."""
    return int(_number(text, "a whole number other than 0; -1 is all cores", lambda x: x != 0 and x == int(x)))


def parse_seed(text: str | int) -> int:
    """Return a whole number that NumPy takes as a seed."""
    rule = f"a whole number from 0 to {2**32 - 1}"
    return int(_number(text, rule, lambda x: 0 <= x < 2**32 and x == int(x)))


def parse_delimiter(text: str) -> str:
    """Return one character; the words tab and space stand for theirs."""
    return {"tab": "\t", "\\t": "\t", "space": " "}.get(text, text)


def parse_feature_shape(text: str | tuple[int, int]) -> tuple[int, int]:
    """Return (height, width) from ``HxW``."""
    if isinstance(text, tuple):
        return text
    sizes = text.lower().replace(",", "x").split("x")
    if len(sizes) != 2 or not all(size.strip().isdecimal() and int(size) > 0 for size in sizes):
        raise typer.BadParameter(f"{text!r} must be HEIGHTxWIDTH of an image, such as 28x28")
    return int(sizes[0]), int(sizes[1])


def check_feature_shape(feature_shape: tuple[int, int] | None, n_features: int, file: Path) -> None:
    """Raise InputError unless an image of this size has as many pixels as the rows of a file have features."""
    if feature_shape is not None and prod(feature_shape) != n_features:
        height, width = feature_shape
        raise InputError(
            f"--feature-shape={height}x{width} has {height * width} pixels but {file} has {n_features} features; "
            "pass height and width of the image behind a row."
        )


File = Annotated[
    Path, typer.Argument(metavar="FILE", help="csv, tsv, parquet, h5ad, npy, npz, mat or h5; samples in rows.")
]
Key = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Name of the array, if an npz, mat or h5 file holds several.", rich_help_panel=DATA
    ),
]
# How a table is read; frpcag.cli.tables.read_input takes all of them.
Columns = Annotated[
    str | None,
    typer.Option(metavar="A,B", help="Use only these columns (names, or numbers from 1).", rich_help_panel=DATA),
]
Drop = Annotated[str | None, typer.Option(metavar="A,B", help="Leave these columns out.", rich_help_panel=DATA)]
Id = Annotated[
    str | None, typer.Option("--id", metavar="A", help="The column that names the rows.", rich_help_panel=DATA)
]
Missing = Annotated[
    str | None,
    typer.Option(
        metavar="WORDS", help='More words for "no value", besides empty cells and NA: "?,-999".', rich_help_panel=DATA
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        parser=parse_delimiter,
        metavar="C",
        help="What separates the cells of a text file (also tab or space); found by default.",
        rich_help_panel=DATA,
    ),
]
Decimal = Annotated[str | None, typer.Option(metavar=".|,", help="Decimal mark of a text file.", rich_help_panel=DATA)]
Encoding = Annotated[
    str | None, typer.Option(metavar="NAME", help="Encoding of a text file; utf-8 by default.", rich_help_panel=DATA)
]
Output = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", help="Folder to write; frpcag-run-<name of the input> by default.", rich_help_panel=OUTPUT
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run.", rich_help_panel=OUTPUT)]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print nothing but warnings and errors.", rich_help_panel=OUTPUT)
]
Jobs = Annotated[
    Any,
    typer.Option(parser=parse_jobs, metavar="N", help="Threads; all cores by default.", rich_help_panel=SOLVER),
]


Metric = Annotated[
    Any,
    typer.Option(
        parser=parse_metric,
        metavar="NAME",
        help="Distance between samples: euclidean; l1 or truncated, which resist gross errors; cosine, blind to "
        "length; auto takes the one of the first three that predicts best.",
        rich_help_panel=MODEL,
    ),
]


def seed_option(help: str) -> Any:
    """Return the option of a seed."""
    return typer.Option(parser=parse_seed, metavar="N", help=help, rich_help_panel=SOLVER)


def gamma_option(help: str) -> Any:
    """Return the option of a number that may be left to the library."""
    return typer.Option(parser=parse_gamma, metavar="auto|X", help=help, rich_help_panel=MODEL)


def _number(text, rule: str, holds) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not (isfinite(value) and holds(value)):
        raise typer.BadParameter(f"{str(text)!r} must be {rule}")
    return value
