"""This library beside its peers, on real data: time, memory and quality, each contender in a fresh process.

Run with FRPCAG_DATA set: ``python benchmarks/peers.py [TASK...] [--limit SECONDS] [--threads N]``. Writes
results/peers/records.jsonl, one line a cell, the figures beside it, and the tables of results/peers.md. What is there
already is not measured again, unless ``--fresh`` is given; ``--render`` only draws.
"""

from __future__ import annotations

from argparse import ArgumentParser
from time import perf_counter

from machine import RESULTS

from frpcag.bench import write_results
from frpcag.bench.measure import run_task
from frpcag.bench.peer_tables import render_peers
from frpcag.bench.peers import TASKS
from frpcag.threads import count_threads

FOLDER, PAGE = RESULTS / "peers", RESULTS / "peers.md"


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"any of {', '.join(TASKS)}; all by default")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a contender is stopped")
    parser.add_argument("--threads", type=int, default=None, help="threads of every contender; all cores by default")
    parser.add_argument("--fresh", action="store_true", help="measure everything again")
    parser.add_argument("--render", action="store_true", help="draw from the records there are")
    options = parser.parse_args()
    if unknown := set(options.tasks) - set(TASKS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose among {', '.join(TASKS)}")
    if options.fresh:
        (FOLDER / "records.jsonl").unlink(missing_ok=True)
    start = perf_counter()
    for name in [] if options.render else options.tasks or TASKS:
        try:
            for one in run_task(TASKS[name], FOLDER, limit=options.limit, threads=count_threads(options.threads)):
                what = ", ".join(str(value) for value in one["cell"].values())
                seconds = one.get("times", {}).get("run")
                found = one.get("error") or (one["status"] if seconds is None else f"{seconds:.3g} s {one['scores']}")
                print(f"{perf_counter() - start:6.0f} s  {what}: {found}", flush=True)
        except KeyboardInterrupt:
            print("interrupted; the same command goes on from here")
            break
    write_results(PAGE, render_peers(FOLDER))
