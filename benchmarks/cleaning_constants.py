"""Constants of the cleaner chosen again with one data set left out at a time.

``python benchmarks/cleaning_constants.py`` (with FRPCAG_DATA set) measures what is missing in
results/cleaning_constants.jsonl and prints the tables of docs/decisions/cleaning.md. Three constants are limits between
damage and nature: the rate of a scattered value, the cliff of a rectangle, and the gain per cell in doubt (from
results/cleaning.jsonl). The others are chosen by the error of whole fits: the bound of held-out errors, the share of
the residuals that their scale is taken from, and the least base rate of damage.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

import numpy as np
from cleaning import IMAGES, QUICK_SAMPLES, TABLES, corrupt, error, load
from cleaning import read as read_cells
from machine import RESULTS
from scipy.stats import norm

from frpcag import RobustGraphCleaner
from frpcag.cells import guard, low_rank, occluders, predictors, repeats, rounds
from frpcag.cells.feature_graphs import grid_weights

RECORDS = RESULTS / "cleaning_constants.jsonl"
SETS = ("sensors", "wine", "diabetes", "cancer", "usps", "yale")


class Constant(NamedTuple):
    """A constant that whole fits decide about."""

    title: str
    values: tuple[float, ...]
    sets: tuple[str, ...]
    kinds: tuple[str, ...]


CONSTANTS = {
    "cap": Constant("bound", (0.75, 1.5, 3.0), SETS, ("salt25", "sd5")),
    "kept": Constant("share", (0.7, 0.8, 0.9), SETS, ("salt25", "sd5")),
    "base": Constant("least base rate", (0.002, 0.005, 0.01), (*SETS, "scrna_worm"), ("clean", "sd5")),
}


def put(what: str, value: float) -> None:
    """Set one of the constants."""
    if what == "cap":
        predictors.CAP = rounds.CAP = value
    elif what == "kept":
        end = norm.ppf((1 + value) / 2)
        low_rank.KEPT, low_rank.UNIT = value, value / (2 * (norm.pdf(0) - norm.pdf(end)))
    else:
        guard.LEAST_BASE = value


def read() -> list[dict]:
    return [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []


def write(record: dict) -> None:
    with RECORDS.open("a") as file:
        file.write(json.dumps(record) + "\n")


def measure_values(done: set) -> None:
    """Write down the rate and the cliff of every common value, with what it was."""
    for name in IMAGES + TABLES:
        truth, shape = load(name, most=QUICK_SAMPLES)
        W2 = None if shape is None else grid_weights(*shape)
        for kind in ("clean", "salt10", "salt25", "zero25", "zero40", "block25"):
            if ("value", name, kind) in done or (damaged := corrupt(truth, shape, kind)) is None:
                continue
            X, hit = damaged
            seen = np.ones(X.shape, bool)
            values = []
            for value in repeats.common_values(X, seen):
                equal = value == X
                near = repeats.equal_witnesses(equal, W2)
                rates = repeats._rates_by_witness(near, equal, seen)
                fewest = min(rates, default=repeats.WITNESSES)
                values.append({
                    "value": value,
                    "rate": rates[fewest] if fewest <= repeats.CORNER else 0.0,
                    "even": repeats._is_even(near, equal, seen, rates),
                    "cliff": 0.0 if shape is None else occluders.steepest(occluders.window_shares(
                        equal[: occluders.IMAGES].reshape(-1, *shape)))[0],
                    "overwrote": bool((equal & hit).sum() > 0.3 * max(hit.sum(), 1)),
                })  # fmt: skip
            write({"what": "value", "data": name, "corruption": kind, "values": values})
            print(name, kind, values, flush=True)


def measure_fits(done: set) -> None:
    """Write down the error of whole fits by the value of each constant, the others as they are."""
    for what, constant in CONSTANTS.items():
        usual = {"cap": predictors.CAP, "kept": low_rank.KEPT, "base": guard.LEAST_BASE}[what]
        for name, kind, value in product(constant.sets, constant.kinds, constant.values):
            if (what, name, kind, value) in done:
                continue
            truth, shape = load(name, most=QUICK_SAMPLES)
            X, _ = corrupt(truth, shape, kind)  # type: ignore[misc]
            put(what, value)
            found = error(RobustGraphCleaner(random_state=0).fit(X).cleaned_, truth)
            write({"what": what, "data": name, "corruption": kind, what: value, "error": found})
            print(what, name, kind, value, round(found, 3), flush=True)
        put(what, usual)


def leave_out(cases: list[tuple[str, float, bool]], title: str) -> None:
    """Choose a limit above which a figure means damage on all sets but one, and see whether it is right on that one."""
    print(f"\n| left out | {title}, chosen on the others | right on it |\n|---|---|---|")
    limits = np.unique([figure for _, figure, _ in cases])
    limits = np.concatenate([limits[:1] / 2, (limits[1:] + limits[:-1]) / 2, limits[-1:] * 2])

    def right(some: Iterable, limit: float) -> int:
        return sum((figure > limit) == damage for _, figure, damage in some)

    for name in sorted({name for name, _, _ in cases}):
        others, own = ([case for case in cases if (case[0] == name) == mine] for mine in (False, True))
        good = np.array([right(others, limit) for limit in limits])
        best = limits[good == good.max()]
        chosen = float(np.sqrt(best.min() * best.max())) if best.min() > 0 else float(best.mean())
        print(f"| {name} | {chosen:.3f} | {right(own, chosen)} of {len(own)} |")


def print_tables() -> None:
    """Print one table a constant."""
    values = [(r["data"], r["corruption"], v) for r in read() if r["what"] == "value" for v in r["values"]]
    even = [(name, v["rate"], v["overwrote"]) for name, kind, v in values if v["even"] and kind != "block25"]
    leave_out(even, "least rate of an even value")
    flat = [
        (name, v["cliff"], kind == "block25" and v["overwrote"])
        for name, kind, v in values
        if name in IMAGES and kind in ("clean", "block25")
    ]
    leave_out(flat, "least cliff of a rectangle")
    judged = [r for r in read_cells() if r["method"] == "ours" and r["gain"] > 0.005 and r["doubt"] > 0]
    uneven = [r for r in judged if not r["even"] and r["data"] not in ("mnist", "coil20", "scrna_worm")]
    leave_out([(r["data"], r["gain"] / r["doubt"], r["suspects_right"] > 0.5) for r in uneven], "gain per doubt")
    for what in CONSTANTS:
        print_choice(what)


def print_choice(what: str) -> None:
    """Print the best value of a constant with one set left out at a time."""
    title, values, *_ = CONSTANTS[what]
    records = [r for r in read() if r["what"] == what]

    def mean(value: float, *, without: str = "", of: str = "") -> float:
        some = (r for r in records if r[what] == value and r["data"] != without and of in ("", r["data"]))
        return float(np.mean([r["error"] for r in some]))

    print(f"\n| left out | best {title} on the others | mean error there | error on it, both by {title} |")
    print("|---|---|---|---|")
    for name in sorted({r["data"] for r in records}):
        means, own = [mean(v, without=name) for v in values], [mean(v, of=name) for v in values]
        shown = (", ".join(f"{value:.3f}" for value in some) for some in (means, own))
        print(f"| {name} | {values[int(np.argmin(means))]} | " + " | ".join(shown) + " |")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    measure_values({("value", r["data"], r["corruption"]) for r in read() if r["what"] == "value"})
    measure_fits({(r["what"], r["data"], r["corruption"], r[r["what"]]) for r in read() if r["what"] in CONSTANTS})
    print_tables()
