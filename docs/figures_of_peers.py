"""Figures of the comparison with peers by name, from results/peers/records.jsonl."""

from __future__ import annotations

import json
from functools import cache
from math import inf
from pathlib import Path
from statistics import mean

RECORDS = Path(__file__).resolve().parents[1] / "results/peers/records.jsonl"
OURS = {
    "recovery": "RobustGraphCleaner",
    "solver": "frpcag, Numba",
    "clustering": "FRPCAGClustering",
    "missing": "RobustGraphImputer",
    "transform": "FRPCAG",
    "growth": "FRPCAG",
}


@cache
def contest(task: str) -> dict[str, dict[str, dict]]:
    """Return the records of a task by setting and contender; those that were stopped have no times."""
    found: dict[str, dict[str, dict]] = {}
    for line in RECORDS.read_text().splitlines():
        record = json.loads(line)
        cell = record["cell"]
        if cell["task"] == task:
            setting = " ".join(str(value) for key, value in cell.items() if key not in ("task", "model"))
            found.setdefault(setting, {})[cell["model"]] = record
    return found


def peer(task: str, setting: str, model: str | None = None) -> dict:
    """Return the record of a contender, ours by default."""
    return contest(task)[setting][model or OURS[task]]


def peer_seconds(task: str, setting: str, model: str | None = None) -> float:
    """Return the seconds of a contender."""
    return peer(task, setting, model)["times"]["run"]


def peer_errors(task: str, model: str | None = None) -> list[float]:
    """Return the errors of a contender over the settings where it came to an end."""
    rows = (found.get(model or OURS[task], {}) for found in contest(task).values())
    return [row["scores"]["error"] for row in rows if "scores" in row]


def peer_mean(task: str, model: str | None = None) -> float:
    """Return the mean error of a contender."""
    return mean(peer_errors(task, model))


def n_settings(task: str) -> int:
    """Return how many settings a task has."""
    return len(contest(task))


def n_best(task: str) -> int:
    """Return in how many settings our error is the smallest."""
    best = 0
    for found in contest(task).values():
        errors = {model: row["scores"]["error"] for model, row in found.items() if "scores" in row}
        best += errors.get(OURS[task], inf) <= min(errors.values())
    return best


def slower(task: str, model: str) -> list[float]:
    """Return how many times the seconds of another contender ours takes, least and most of the settings."""
    found = [peer_seconds(task, setting) / peer_seconds(task, setting, model) for setting in _both_ended(task, model)]
    return [min(found), max(found)]


def faster(task: str, model: str) -> list[float]:
    """Return how many times our seconds another contender takes, least and most of the settings."""
    return [1 / ratio for ratio in reversed(slower(task, model))]


def seconds_between(task: str, model: str | None = None) -> list[float]:
    """Return the least and the most seconds of a contender over the settings."""
    found = [peer_seconds(task, setting, model) for setting in _both_ended(task, model or OURS[task])]
    return [min(found), max(found)]


def _both_ended(task: str, model: str) -> list[str]:
    return [setting for setting, found in contest(task).items() if "times" in found.get(model, {})]
