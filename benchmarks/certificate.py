"""Hostile problems against the certificate: no gap that is shown may be smaller than the true one.

Run with ``python benchmarks/certificate.py [--cases 5000] [--seed 0] [--backends numpy numba torch dask]``. The cases
are those of ``tests/support/hostile.py``: `solve`, fits, paths and clusterings; all losses; dtypes; scales of 1e-30 to
1e30 and at both ends of the range, where squares leave it; levels of rows, columns and pieces; isolated nodes, weights
of 1e-12, Laplacians of users; matrices with a negative eigenvalue, of any size or of float32 rounding beside a grounded
piece, on more nodes than a dense solver takes too; missing entries; gammas of 0 to 1e6; early stops, and tolerances of
1e-14, where all that is left of a gap is rounding. The true gap comes from an interior-point method in extended
precision, with graph terms by differences along edges (``tests/support/exact.py``).

Four claims are checked, each up to the rounding of the oracle: the gap of what is returned is not below the true one;
no bound in the history lies above the optimum; the objective shown is that of what is returned, up to rounding of the
data, and `certificate` and `objective` compute it up to float64's; a problem without a minimum is refused, or has a gap
of 1. A comparison with room for 1e-6, tolerances of 1e-7 and true Laplacians alone would not see float32 squares,
squares that underflow, or negative eigenvalues.

Writes results/certificate.json; exits with 1 if any claim is false.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter

import numpy as np
from machine import write_result

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.hostile import BACKENDS, draw, judge

COUNTED = ("backend", "loss", "dtype", "call", "level", "graphs", "missing", "form", "size", "tolerance")


def summary(found: list[dict], seconds: float) -> dict:
    """Return the counts, and how far the gaps reported lie above the true ones."""
    judged = [record for record in found if "gap" in record]
    false = [record for record in judged if record["wrong"]]
    tables = {
        tag: {
            value: {"cases": count, "prove too much": sum(record[tag] == value for record in false)}
            for value, count in sorted(Counter(record[tag] for record in judged).items())
        }
        for tag in COUNTED
    }
    close = [record for record in judged if record["end"] == "converged"]
    return {
        "cases": len(found),
        "judged": len(judged),
        "refused": len(found) - len(judged),
        "prove_too_much": len(false),
        "false_by_claim": dict(Counter(name for record in false for name in record["wrong"])),
        "worst": max((record["true"] - record["gap"] for record in judged), default=0.0),
        "reference_within_1e-6": sum(record["true_at_most"] - record["true"] <= 1e-6 for record in judged),
        "converged": len(close),
        "converged_above_1e-2": sum(record["true"] > 1e-2 + 1e-6 for record in close),
        "gap_of_one": sum(record["gap"] >= 1 and record["true_at_most"] < 0.5 for record in judged),
        "median_excess": float(np.median([record["gap"] - record["true"] for record in judged])) if judged else 0.0,
        "objective_off_by_1e-3": sum(
            abs(record["objective"] - record["exact_objective"]) > 1e-3 * abs(record["exact_objective"])
            for record in judged
        ),
        "ends": dict(Counter(record["end"] for record in found)),
        "seconds": round(seconds),
        "tables": tables,
        "false": sorted(false, key=lambda record: record["gap"] - record["true"])[:50],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first case")
    parser.add_argument("--backends", nargs="+", default=list(BACKENDS), help="triton: the fused kernels")
    parser.add_argument("--dry", action="store_true", help="write no results file")
    given = parser.parse_args()
    if "torch" in given.backends:
        import torch

        torch.set_num_threads(1)
    start = perf_counter()
    found = []
    for seed in range(given.seed, given.seed + given.cases):
        record = judge(draw(seed, tuple(given.backends)))
        found.append(record)
        if record.get("wrong"):
            print({k: v for k, v in record.items() if k != "said"}, flush=True)
        if len(found) % 500 == 0:
            print(f"{len(found)} cases, {perf_counter() - start:.0f} s", flush=True)
    told = summary(found, perf_counter() - start)
    for key, value in told.items():
        if key not in ("tables", "false"):
            print(f"{key}: {value}")
    for tag, rows in told["tables"].items():
        print(f"{tag}: " + ", ".join(f"{v} {r['prove too much']} of {r['cases']}" for v, r in rows.items()))
    if not given.dry:
        write_result("certificate", told)
    return int(told["prove_too_much"] > 0)


if __name__ == "__main__":
    sys.exit(main())
