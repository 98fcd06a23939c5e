"""Odd inputs through the public API and the command line: 10,000 seeded cases, each judged, none allowed to hang.

Run with ``python benchmarks/fuzz.py [FIRST LAST]``. One or two worker processes run the cases of
``tests/support/fuzz_cases.py``; a worker that dies is a crash, one that is silent for five minutes is killed and a
hang. Writes results/fuzz.jsonl.gz, one line a case, results/fuzz.json, the counts, and the table of counts in
results/fuzz.md, which ``python benchmarks/fuzz.py render`` writes again from the counts.
"""

from __future__ import annotations

import faulthandler
import gzip
import json
import multiprocessing
import os
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

import joblib

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
CASES, PATIENCE = 10_000, 300.0


def work(seeds: range, pipe) -> None:
    """Send the record of every seed, one after the other."""
    sys.path.insert(0, str(ROOT / "tests"))
    # The number of threads does not change results; more than the workers have cores only wait.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from support.fuzz_cases import run_case, working_folder

    faulthandler.enable()
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder, working_folder(Path(folder)):
            pipe.send(run_case(seed, Path(folder)))


def records(seeds: range) -> list[dict]:
    """Return the records of seeds, in a worker that is replaced when it hangs or crashes."""
    spawn = multiprocessing.get_context("spawn")
    done: list[dict] = []
    while len(done) < len(seeds):
        here, there = spawn.Pipe(duplex=False)
        worker = spawn.Process(target=work, args=(seeds[len(done) :], there))
        worker.start()
        there.close()
        try:
            while here.poll(PATIENCE):
                done.append(here.recv())
            end = "hang"
        except EOFError:
            end = "crash"
        worker.kill()
        worker.join()
        if len(done) < len(seeds):
            done.append({"seed": seeds[len(done)], "entry": "?", "kind": "?", "outcome": "FAIL", "said": end})
    return done


def summary(found: list[dict], seconds: float) -> dict:
    """Return the counts by outcome, by entry point and by kind of input."""
    tables = {}
    for name in ("entry", "kind"):
        counts = Counter((record[name], record["outcome"]) for record in found)
        rows = sorted({key for key, _ in counts})
        tables[name] = {
            row: {end: counts[row, end] for end in ("ok", "error", "FAIL") if counts[row, end]} for row in rows
        }
    return {
        "cases": len(found),
        "outcomes": dict(Counter(record["outcome"] for record in found)),
        "seconds": round(seconds),
        "failures": [record for record in found if record["outcome"] == "FAIL"],
        "by_entry": tables["entry"],
        "by_kind": tables["kind"],
    }


def render(counts: dict) -> None:
    """Write the table of counts between the marks in results/fuzz.md."""
    ends = ("ok", "error", "FAIL")
    lines = ["| entry point | cases | right answer | clear error | failure |", "|---|---|---|---|---|"]
    rows = [(name, [row.get(end, 0) for end in ends]) for name, row in counts["by_entry"].items()]
    rows.append(("**all**", [counts["outcomes"].get(end, 0) for end in ends]))
    lines += [f"| {name} | {sum(row)} | {row[0]} | {row[1]} | {row[2]} |" for name, row in rows]
    invalid = sum(sum(row.values()) for kind, row in counts["by_kind"].items() if kind.startswith("invalid"))
    lines += [
        "",
        f"{invalid} of the cases pass a plain matrix with one wrong argument. On the command line a refusal in "
        "one line with exit code 2 counts as the right answer, where it is one.",
    ]
    page = RESULTS / "fuzz.md"
    head, _, rest = page.read_text().partition("<!-- begin counts -->\n")
    page.write_text(
        head
        + "<!-- begin counts -->\n"
        + "\n".join(lines)
        + "\n<!-- end counts -->"
        + rest.partition("<!-- end counts -->")[2]
    )


def main() -> None:
    if sys.argv[1:] == ["render"]:
        render(json.loads((RESULTS / "fuzz.json").read_text()))
        return
    first, last = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (0, CASES)
    start, n_workers = perf_counter(), min(2, joblib.cpu_count())
    with ThreadPoolExecutor(n_workers) as pool:
        parts = list(pool.map(records, [range(first + i, last, n_workers) for i in range(n_workers)]))
    found = sorted((record for part in parts for record in part), key=lambda record: record["seed"])
    lines = "".join(json.dumps(record, ensure_ascii=True) + "\n" for record in found)
    (RESULTS / "fuzz.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
    counts = summary(found, perf_counter() - start)
    (RESULTS / "fuzz.json").write_text(json.dumps(counts, indent=1) + "\n")
    render(counts)
    print(json.dumps({key: counts[key] for key in ("cases", "outcomes", "seconds", "failures")}, indent=1))


if __name__ == "__main__":
    main()
