"""Run the paper's experiments and set our figures beside the printed ones: ``python -m reproduction``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from frpcag.runtime.threads import count_threads
from reproduction import list_datasets
from reproduction.paper import EXPERIMENTS, read_records, render, run_cells, write_results
from reproduction.paper.run import cell_key

RESULTS_PAGE = "RESULTS.md"


def main(words: list[str] | None = None) -> int:
    """Run, print the tables, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(EXPERIMENTS)}; all by default")
    parser.add_argument("--output", type=Path, default=Path("frpcag-reproduce"), help="a run resumes where it stopped")
    parser.add_argument("--jobs", type=int, help="processes; all cores by default")
    parser.add_argument("--smoke", action="store_true", help="a small version on data that come with scikit-learn")
    parser.add_argument("--render", action="store_true", help="draw from the records there are; run nothing")
    asked = parser.parse_args(words)
    chosen = asked.names or list(EXPERIMENTS)
    for name in chosen:
        if name not in EXPERIMENTS:
            parser.error(f"NAME={name} is unknown; choose among {', '.join(EXPERIMENTS)}.")
    if not (asked.smoke or asked.render) and len(list_datasets()) == 1:
        parser.error(
            "the experiments need the data sets; set FRPCAG_DATA to their folder, fetch those that are public with "
            "python -m reproduction.fetch FOLDER, or pass --smoke to see them run on small data."
        )
    failed: list[str] = []
    tables: dict[str, str] = {}
    for name in chosen:
        if not asked.render:
            failed += _run(name, asked.output, smoke=asked.smoke, n_jobs=count_threads(asked.jobs))
        if table := render(EXPERIMENTS[name], asked.output / EXPERIMENTS[name].records, smoke=asked.smoke):
            tables[name] = table
            print(f"\n{EXPERIMENTS[name].title}\n\n{table}")
    if (asked.output / RESULTS_PAGE).is_file():
        write_results(asked.output / RESULTS_PAGE, tables)
    for line in failed:
        print(f"failed: {line}; run the same command again to retry")
    print(f"Records, tables and figures are in {asked.output}.")
    return 1 if failed else 0


def _run(name: str, output: Path, *, smoke: bool, n_jobs: int) -> list[str]:
    """Run the missing cells of an experiment and return what failed."""
    experiment = EXPERIMENTS[name]
    folder = output / experiment.records
    cells, known = experiment.cells(smoke), read_records(folder)
    done = sum(cell_key(cell) in known for cell in cells)
    failed = []
    for record in run_cells(experiment, folder, smoke=smoke, n_jobs=n_jobs):
        done += 1
        what = f"{name} ({', '.join(str(value) for value in record['cell'].values())})"
        print(f"{done} of {len(cells)}: {what}", file=sys.stderr)
        if "error" in record:
            failed.append(f"{what}: {record['error']}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
