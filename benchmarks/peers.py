"""This library beside its peers: time, memory and quality, each contender in a fresh process.

``python benchmarks/peers.py [TASK...] [--limit SECONDS] [--threads N]`` needs ``pip install 'frpcag[benchmarks]'``.
Larger data sets join in when FRPCAG_DATA points at their folder. It writes results/peers/records.jsonl, one line a
cell, the figures beside it, and the tables of results/peers.md. What is there already is not measured again, unless
``--fresh`` is given, which forgets the records of the chosen tasks; ``--render`` only draws. ``--quick`` is a small
version on data that come along, in its own folder.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError
from math import isfinite, nan
from pathlib import Path
from time import perf_counter

from contest.measure import NOT_INSTALLED, forget_records, run_task
from contest.tables import render_peers, table
from contest.tasks import TASKS
from machine import RESULTS
from reproduction.paper import read_records, write_results
from reproduction.paper.run import RECORDS
from rich.console import Console
from rich.table import Table

from frpcag.runtime.threads import count_threads

FOLDER, QUICK_FOLDER, PAGE = RESULTS / "peers", Path("peers-quick"), RESULTS / "peers.md"


def parse_limit(text: str) -> float:
    """Return a finite number of seconds above 0."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = nan
    if not (isfinite(seconds) and seconds > 0):
        raise ArgumentTypeError(f"{text!r} must be a number of seconds above 0, such as 60")
    return seconds


def parse_words(words: list[str]):
    """Return the options, or end with exit code 2 and one line that says what is wrong."""
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"any of {', '.join(TASKS)}; all by default")
    parser.add_argument("--output", type=Path, help=f"folder of records, tables and figures; {FOLDER.name} in results/")
    parser.add_argument("--limit", type=parse_limit, default=60.0, help="seconds after which a contender is stopped")
    parser.add_argument("--threads", type=int, default=None, help="threads of every contender; all cores by default")
    parser.add_argument("--quick", action="store_true", help=f"a small version, in {QUICK_FOLDER} by default")
    parser.add_argument("--fresh", action="store_true", help="measure the chosen tasks again")
    parser.add_argument("--render", action="store_true", help="draw from the records there are; run nothing")
    options = parser.parse_args(words)
    options.output = options.output or (QUICK_FOLDER if options.quick else FOLDER)
    if unknown := [name for name in options.tasks if name not in TASKS]:
        parser.error(f"TASK={unknown[0]} is unknown; choose among {', '.join(TASKS)}.")
    if options.render and not read_records(options.output):
        parser.error(f"--output={options.output} holds no records to draw; run without --render first.")
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        with (options.output / RECORDS).open("a"):
            pass
        if options.fresh:
            forget_records(options.output, options.tasks or list(TASKS))
    except OSError as error:
        parser.error(f"--output={options.output} cannot be written ({error.strerror}); pass a folder you may write to.")
    return options


def main(words: list[str]) -> int:
    """Measure what is missing, draw, print, and return 0; 1 where a contender failed or the run was interrupted."""
    options = parse_words(words)
    chosen, failed, interrupted = options.tasks or list(TASKS), [], False
    start = perf_counter()
    try:
        for name in [] if options.render else chosen:
            measuring = {"quick": options.quick, "limit": options.limit, "threads": count_threads(options.threads)}
            for record in run_task(TASKS[name], options.output, **measuring):
                what, found = _in_words(record)
                print(f"{perf_counter() - start:6.0f} s  {what}: {found}", flush=True)
                if "error" in record:
                    failed.append(f"{what}: {found}")
    except KeyboardInterrupt:
        interrupted = True
    tables = render_peers(options.output, chosen)
    if options.output == FOLDER:
        write_results(PAGE, tables)
    records = [one for one in read_records(options.output).values() if one["cell"]["task"] in chosen]
    _print(chosen, records, failed, options.output, interrupted=interrupted)
    return 1 if failed or interrupted else 0


def _in_words(record: dict) -> tuple[str, str]:
    """Return which cell a record is of, and what was found there."""
    seconds = record.get("times", {}).get("run")
    found = record.get("error") or (record["status"] if seconds is None else f"{seconds:.3g} s {record['scores']}")
    return ", ".join(str(value) for value in record["cell"].values()), found


def _print(names: list[str], records: list[dict], failed: list[str], output: Path, *, interrupted: bool) -> None:
    console = Console(highlight=False, markup=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = 100  # a file has no width, and a cut figure is no figure
    for name in names:
        head, rows = table(TASKS[name], records, mark=lambda text: f"{text} *")
        if not rows:
            continue
        shown = Table(title=TASKS[name].title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for number, column in enumerate(head):
            shown.add_column(column, justify="left" if number < 2 else "right", no_wrap=True)
        for above, row in zip([None, *rows], rows, strict=False):
            shown.add_row(*(["", *row[1:]] if above and above[0] == row[0] else row))
        console.print()
        console.print(shown)
        console.print(TASKS[name].note)
    if any(one.get("status") == NOT_INSTALLED for one in records):
        console.print("Some contenders are not installed: pip install 'frpcag[benchmarks]', then run again.")
    for line in failed:
        console.print(f"failed: {line}; run the same command again to retry", style="red")
    if interrupted:
        console.print("Interrupted; what was measured is kept, and the same command goes on from there.")
    console.print(
        f"\n* the smallest error, the shortest time. ratio: seconds over ours. MB: peak memory beyond the data.\n"
        f"Records, tables and figures are in {output}."
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
