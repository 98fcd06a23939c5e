"""The cost model of fits on row blocks: fitted to the small runs of dask_scaling.py, checked on the large ones.

CPU seconds of client, scheduler and workers together are hardly changed by a busy machine; seconds of a step are looked
at where the machine had nothing else to do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from machine import RESULTS
from scipy.optimize import nnls

from frpcag.dask.memory import worker_bytes

# Rows from which on runs are for the check alone.
HELD_OUT_FROM = 700_000
READINGS = ((10**8, 32), (10**9, 256))
# Times that rows move from blocks to blocks, a piece for every pair: to cells, as guests and back, edges, restored.
EXCHANGES = 5
BLOCKS_PER_WORKER = 4
# A load above that of the workers themselves: others were at work.
BUSY = 0.7
CPU = ("s_per_gigaentry_a_step", "s_per_gigaentry", "s_per_teraproduct", "s_per_thousand_pieces", "s_at_all")
STEP = ("s_per_gigaentry_a_worker", "s_per_letter")


def is_busy(row: dict) -> bool:
    """Say whether others were at work at the end of a run."""
    return row["load_at_end"] > row["workers"] + BUSY


def cpu_terms(row: dict) -> list[float]:
    """Return what the CPU seconds of a fit are made of: its steps, its entries, products of the search, pieces.

    A row is compared with 2 sqrt(n) lists, and looks at 24 of sqrt(n) / 2 rows.
    """
    entries = row["n"] * row["p"] / 1e9
    pieces = EXCHANGES * row["blocks"] ** 2 / 1e3
    return [entries * row["n_iter"], entries, 14 * np.sqrt(row["n"]) * entries / 1e3, pieces, 1.0]


def step_terms(row: dict) -> list[float]:
    """Return what a step's seconds are made of: entries of a worker, and letters that it waits for."""
    return [row["n"] * row["p"] / row["workers"] / 1e9, row["workers"] - 1.0]


def cpu_of(row: dict) -> float:
    return row["cpu_seconds"]


def step_of(row: dict) -> float:
    return row["step_seconds"]


def fitted(rows: list[dict], terms: Callable, measured: Callable, names: tuple[str, ...]) -> dict[str, float]:
    """Return the constants of least squares of relative errors, none of them negative."""
    A, b = np.array([terms(row) for row in rows]), np.array([measured(row) for row in rows])
    return dict(zip(names, nnls(A / b[:, None], np.ones(len(b)))[0].tolist(), strict=True))


def fit_model(rows: list[dict]) -> dict:
    """Fit the constants to the small runs, and predict the large ones."""
    runs = [row for row in rows if row["kind"] in ("run", "tiny") and row["limit"] is None]
    quiet = [row for row in runs if row["kind"] == "run" and not is_busy(row)]
    model: dict = {"halo_share": max(row["halo_rows"] / row["n"] for row in runs if row["kind"] == "run")}
    model["predicted"] = []
    kinds = (("cpu", runs, cpu_terms, cpu_of, CPU), ("step", quiet, step_terms, step_of, STEP))
    for name, chosen, terms, measured, names in kinds:
        known, held = ([row for row in chosen if (row["n"] >= HELD_OUT_FROM) == out] for out in (False, True))
        model[name] = fitted(known, terms, measured, names)
        model[f"{name}_fitted_to"] = [[row["kind"], row["n"], row["workers"]] for row in known]
        for row in held:
            said, seen = float(np.dot(terms(row), list(model[name].values()))), measured(row)
            of = {"n": row["n"], "workers": row["workers"], "what": name}
            model["predicted"].append({**of, "predicted": said, "measured": seen, "error": said / seen - 1})
    model["readings"] = [read_out(model, n, workers) for n, workers in READINGS]
    return model


def read_out(model: dict, n: int, workers: int, *, p: int = 64) -> dict:
    """Return what the model says of a cluster like the one measured; the halo is that of blocks, an upper bound.

    Pieces are counted as if the scheduler had all their work.
    """
    blocks = BLOCKS_PER_WORKER * workers
    row = {"n": n, "p": p, "workers": workers, "blocks": blocks, "n_iter": 1}
    cpu = [a * b for a, b in zip(model["cpu"].values(), cpu_terms(row), strict=True)]
    step = [a * b for a, b in zip(model["step"].values(), step_terms(row), strict=True)]
    del row["n_iter"]
    return {
        **row,
        "step_seconds": sum(step),
        "letters_seconds": step[1],
        "search_seconds": cpu[2] / workers,
        "pieces_seconds": cpu[3],
        "halo_GB_a_step": 4 * p * model["halo_share"] * n / 1e9,
        "checkpoint_GB": 2 * 4 * p * n / 1e9,
        "GB_per_worker": worker_bytes(n, p, 4, 10, n_workers=workers, n_blocks=blocks) / 1e9,
    }


def write_tables(record: dict) -> None:
    """Put the runs and readings into docs/scaling.md, between its marks."""
    path = RESULTS.parent / "docs" / "scaling.md"
    lines = [*run_lines(record["rows"]), *ratio_lines(record["rows"])]
    if "model" in record:
        lines += model_lines(record["model"])
    head, _, rest = path.read_text().partition("<!-- runs -->")
    tail = rest.partition("<!-- end of runs -->")[2]
    path.write_text(head + "<!-- runs -->\n\n" + "\n".join(lines) + "\n\n<!-- end of runs -->" + tail)


def run_lines(rows: list[dict]) -> list[str]:
    lines = [
        "| kind | rows | workers | limit | blocks | halo | recall | steps | gap | graph s | solve s | s a step | fit s "
        "| CPU s | peak MB | MB said | busy |",
        "|" + "---|" * 17,
    ]
    for row in rows:
        halo = f"{100 * row['halo_rows'] / row['n']:.1f} %" if "halo_rows" in row else ""
        recall = f"{row['recall']:.3f}" if "recall" in row else ""
        peak, said = max(row.get("peak_MB_per_worker") or [row.get("peak_MB")]), ""
        if "blocks" in row:
            needed = worker_bytes(row["n"], row["p"], 4, 10, n_workers=row["workers"], n_blocks=row["blocks"])
            said = f"{needed / 2**20:.0f}"
        lines.append(
            f"| {row['kind']} | {row['n']} | {row['workers']} | {row.get('limit') or ''} | {row.get('blocks', '')} "
            f"| {halo} | {recall} | {row['n_iter']} | {row['gap']:.1e} | {row['timings']['sample_graph']:.1f} "
            f"| {row['timings']['solve']:.1f} | {row['step_seconds']:.3f} | {row['seconds']:.1f} "
            f"| {row['cpu_seconds']:.0f} | {peak:.0f} | {said} | {'yes' if is_busy(row) else ''} |"
        )
    return lines


def ratio_lines(rows: list[dict]) -> list[str]:
    """Return how fits compare: two workers with plain on two threads, and one worker with two."""
    lines = [
        "",
        "| rows | seconds: two workers over plain | one over two | CPU: two workers over plain |",
        "|---|---|---|---|",
    ]
    known = {(row["kind"], row["n"], row["workers"]): row for row in rows if row.get("limit") is None}
    for n in sorted({n for _, n, _ in known}):
        plain, one, two = (known.get((kind, n, w)) for kind, w in (("plain", 2), ("run", 1), ("run", 2)))
        if two and (plain or one):
            pairs = (two, plain, "seconds"), (one, two, "seconds"), (two, plain, "cpu_seconds")
            ratios = [
                f"{a[what] / b[what]:.2f}{' (busy)' if what == 'seconds' and (is_busy(a) or is_busy(b)) else ''}"
                if a and b
                else ""
                for a, b, what in pairs
            ]
            lines.append(f"| {n} | {' | '.join(ratios)} |")
    return lines


def model_lines(model: dict) -> list[str]:
    lines = ["", "| left out of the fit: rows | workers | what | predicted | measured | error |", "|" + "---|" * 6]
    words = {"cpu": "CPU s of the fit", "step": "s a step"}
    for row in model["predicted"]:
        said, seen = row["predicted"], row["measured"]
        place = f"| {row['n']} | {row['workers']} | {words[row['what']]}"
        lines.append(f"{place} | {said:.3g} | {seen:.3g} | {100 * row['error']:+.0f} % |")
    lines += [
        "",
        "| rows | workers | blocks | s a step | of it letters | search s | exchanges s | halo GB a step | GB a worker "
        "| checkpoint GB |",
        "|" + "---|" * 10,
    ]
    for row in model["readings"]:
        lines.append(
            f"| {row['n']:.0e} | {row['workers']} | {row['blocks']} | {row['step_seconds']:.1f} "
            f"| {row['letters_seconds']:.1f} | {row['search_seconds']:.0f} | {row['pieces_seconds']:.0f} "
            f"| {row['halo_GB_a_step']:.1f} | {row['GB_per_worker']:.1f} | {row['checkpoint_GB']:.0f} |"
        )
    return lines
