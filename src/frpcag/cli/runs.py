"""What every run has: a folder written whole at its end, the record of it in run.json, and words for people."""

from __future__ import annotations

import json
import platform
import re
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table

import frpcag
from frpcag.cli.errors import CTRL_C, InputError, in_option_words, input_errors, printable
from frpcag.cli.models import solved
from frpcag.cli.options import COMMANDS
from frpcag.cli.progress import Bar
from frpcag.report import Fit, write_report
from frpcag.runtime.atomic import RUN_FILE, atomic_folder

# The report of a run, in its folder.
PAGE = "report.html"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "faiss-cpu", "matplotlib")
Rows = list[tuple[str, str]]


class Run:
    """One call of a command: what is asked, and what is noted for its record on the way."""

    def __init__(self, asked: Namespace, bar: Bar) -> None:
        self.asked, self.bar, self.file = asked, bar, Path(asked.file)
        self.record: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}
        self.notes: list[str] = []
        self.notices: list[str] = []
        self.column_name: Callable[[int], str] = "column {}".format
        self.interrupted = False
        self._last = perf_counter()

    def lap(self, stage: str, parts: dict[str, float] | None = None) -> None:
        """Note the seconds since the last lap under a name, or the parts of them that are known."""
        before, self._last = self._last, perf_counter()
        self.seconds |= parts or {stage: self._last - before}

    def fit(self, model: Any, X: Any, method: str = "fit") -> Any:
        """Fit and return what the method gives; after Ctrl-C in the solve None: the model holds a certified result."""
        try:
            return getattr(model, method)(X)
        except KeyboardInterrupt:
            inner = solved(model)
            if getattr(inner, "status_", None) != "interrupted":
                raise
        self.interrupted = True
        gap = f"a relative duality gap of {inner.duality_gap_:.2g}"
        self.notes.append(f"interrupted after {inner.n_iter_} steps; the result is valid, with {gap}.")
        return None

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Note what the library warns of, one line each, columns by their names."""

        def hear(message, *_: Any, **__: Any) -> None:
            line = re.sub(
                r"\bcolumn (\d+)",
                lambda at: self.column_name(int(at[1])),
                in_option_words(str(message), self.asked.flags),
            )
            if line not in self.notes:
                self.notes.append(line)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            warnings.simplefilter("always", RuntimeWarning)
            warnings.showwarning = hear
            yield


@dataclass(frozen=True)
class Result:
    """What a command found, before anything is on disk; ``write`` may still add to the record."""

    write: Callable[[Path], object]
    rows: Callable[[dict[str, Any]], Rows] = lambda record: []
    page: Callable[..., Fit] | None = None
    figures: Callable[[dict[str, Any]], list[Any]] = lambda record: []


def carry_out(work: Callable[[Run], Result], asked: Namespace) -> int:
    """Do the work of a command, write its folder, say what came of it, and return the exit code."""
    target = asked.output or Path(COMMANDS[asked.command]["folder"].format(Path(asked.file).stem))
    overwrite = asked.overwrite or (asked.command == "demo" and (target / "demo.html").is_file())
    check_output(target, overwrite=overwrite)
    with Bar(shown=not (asked.json or asked.quiet)) as bar:
        run = Run(asked, bar)
        with input_errors(run.file, asked.flags), run.heard():
            result = work(run)
            bar.stage(f"writing {target}")
            with run_folder(target, overwrite=overwrite) as folder:
                record = _written(run, result, folder)
    if asked.json:
        sys.stdout.write(to_json(record))
        return CTRL_C if run.interrupted else 0
    told = [("warning", line) for line in run.notes]
    told += [] if asked.quiet else [("note", line) for line in run.notices]
    for kind, line in told:
        print(f"{kind}: {printable(line)}", file=sys.stderr)
    if not asked.quiet:
        console = Console(highlight=False, markup=False)
        for figure in result.figures(record):
            console.print(figure)
        rows = [*result.rows(record), ("time", seconds_in_words(record["timings"]))]
        rows += [("written to", f"{str(target).rstrip('/')}/"), ("", ", ".join([*record["files"], RUN_FILE]))]
        print_rows(console, rows)
    return CTRL_C if run.interrupted else 0


def _written(run: Run, result: Result, folder: Path) -> dict[str, Any]:
    """Write all that a run leaves, and return its record."""
    result.write(folder)
    common = {"timings": run.seconds, "versions": library_versions(), "warnings": run.notes}
    if result.page is not None and not run.asked.no_plots:
        files = {path.name: path.name for path in sorted(folder.iterdir())}
        write_report(folder / PAGE, result.page(title=run.file.name, files=files, **common))
    run.lap("write")
    written = sorted(path.name for path in folder.iterdir())
    record = {"command": run.asked.command, **run.record, **common, "files": written}
    (folder / RUN_FILE).write_text(to_json(record), encoding="utf-8")
    return record


def check_output(output: Path, *, overwrite: bool) -> None:
    """Raise InputError unless a run folder can be written there; leave nothing behind."""

    class Rehearsed(Exception):
        pass

    with suppress(Rehearsed), run_folder(output, overwrite=overwrite):
        raise Rehearsed


@contextmanager
def run_folder(output: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a folder that becomes ``output`` if the block ends well; errors speak of ``--output``."""
    try:
        with atomic_folder(output, overwrite=overwrite) as folder:
            yield folder
    except OSError as error:
        if isinstance(error, FileExistsError) and error.strerror is None:  # ours, in clear words
            said = str(error).replace("another path", "another --output").replace("overwrite=True", "--overwrite")
            raise InputError(said.replace("path=", "--output=", 1)) from error
        reason = error.strerror or str(error)
        raise InputError(
            f"--output={output} cannot be written ({reason}), and nothing was left there; pass a folder that "
            "you may write to and that has room."
        ) from error


def to_json(record: dict[str, Any]) -> str:
    """Return a record as strict JSON."""
    return json.dumps(record, indent=2, allow_nan=False) + "\n"


def library_versions() -> dict[str, str | None]:
    """Return the versions of this library, of Python and of what the numbers come from."""
    versions: dict[str, str | None] = {"frpcag": frpcag.__version__, "python": platform.python_version()}
    for name in LIBRARIES:
        versions[name] = None
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def print_rows(console: Console, rows: Rows) -> None:
    """Print names and what is to be said of them, in two columns."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(name, printable(text))
    console.print(table)


def seconds_in_words(timings: dict[str, float]) -> str:
    """Return the sum of the seconds, and the stages that took a hundredth or more."""
    stages = ", ".join(f"{stage.replace('_', ' ')} {s:.2f}" for stage, s in timings.items() if s >= 0.005)
    return f"{sum(timings.values()):.1f} s" + (f" ({stages})" if stages else "")
