"""The constants of the video preset: what others would have given, and what seven clips choose for the eighth.

Run with FRPCAG_DATA set:

    python benchmarks/video_settings.py --leave-one-out [METHOD ...]   # score and level of the mask; needs the
                                                                       # backgrounds that benchmarks/video.py keeps
    python benchmarks/video_settings.py --leave-one-out-moving         # how linked frames explain a frame
    python benchmarks/video_settings.py --fit [--clips hall mall]      # settings of the fit, one changed at a time

Records go to results/video_settings.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
from machine import RESULTS, write_result
from reproduction.evaluate.foreground import best_threshold, mask_scores

from frpcag import BackgroundSeparator
from frpcag.video import ghosts, masks, separator, similar_frames
from video import CLIPS, METHODS, at_levels, held_out, kept, load, score_of, some


def saved() -> dict:
    path = RESULTS / "video_settings.json"
    return json.loads(path.read_text()) if path.exists() else {}


def save(**parts) -> None:
    write_result("video_settings", {**{key: value for key, value in saved().items() if key != "machine"}, **parts})


# Of the score, one changed at a time.
SCORE_SETTINGS = [
    {},
    *({"SHADOW": value} for value in (0.0, 0.5, 0.9)),
    *({"LEAST_LIGHT": value} for value in (0.5, 0.7)),
    *({"SIDE": value} for value in (3, 7)),
    *({"SLOPE": value} for value in (1.5, 3.0)),
    *({"CAP": value} for value in (14.0, 24.0)),
    *({"BLUR": value} for value in (1.5, 2.5)),
]
LEVELS = np.arange(6.0, 14.1, 0.5)


# Of what linked frames explain; beyond a reach of 1e9 that is nothing.
MOVING_SETTINGS = [
    {},
    *({"SEEN": value} for value in (0.1, 0.3, 0.4)),
    *({"REACH": value} for value in (1.0, 3.0, 1e9)),
    *({"RIM": value} for value in (0, 1, 4)),
]


@contextmanager
def changed(module, setting: dict) -> Iterator[None]:
    """Set constants of a module for a while."""
    before = {name: getattr(module, name) for name in setting}
    vars(module).update(setting)
    try:
        yield
    finally:
        vars(module).update(before)


def rated(score, truth) -> dict:
    return {"best": best_threshold(score, truth)["f1"], "f1": at_levels(score, truth, LEVELS)}


def score_settings(clip: str, method: str) -> list[dict]:
    """Return how the score of a method's background does in each setting."""
    shot, truth, which = some(clip)
    behind, noise = kept(clip, method)[which], kept(clip, "ours_noise" if method == "ours" else "noise")
    out = []
    for setting in SCORE_SETTINGS:
        with changed(masks, setting):
            out.append(rated(score_of(shot, behind, noise), truth))
    return out


class Kept(BackgroundSeparator):
    """Keeps what its masks are made from."""

    def _noise(self, frames, moving, wide, *rest):
        self.mask_parts = moving, rest
        return super()._noise(frames, moving, wide, *rest)


def moving_settings(clip: str) -> list[dict]:
    """Return how the score does when linked frames explain more or less of a frame."""
    frames, at, _ = load(clip)
    shot, truth, which = some(clip)
    model, out = Kept().fit(frames), []
    in_front, rest = model.mask_parts
    for setting in MOVING_SETTINGS:
        with changed(similar_frames, setting):
            wide = similar_frames.widened(in_front)
            noise, _, closer = BackgroundSeparator._noise(model, frames, in_front, wide, *rest)
            parts = [model._behind(frames, wide, slice(t, t + 1), noise)[1] for t in at[which]]
        out.append(rated(score_of(shot, np.concatenate(parts), closer), truth))
    return out


def leave_one_out(name: str, settings: list[dict], rows_of) -> None:
    """Choose a setting, and the level of the mask, on seven clips; measure on the eighth."""
    found = {}
    for clip in CLIPS:
        found[clip] = rows_of(clip)
        print(clip, [round(row["best"], 4) for row in found[clip]], flush=True)
    save(settings={**saved().get("settings", {}), name: found})
    best = np.array([[row["best"] for row in found[clip]] for clip in CLIPS])
    levels = np.array([[row["f1"] for row in found[clip]] for clip in CLIPS])
    chosen, of_seven = held_out(best), held_out(levels[:, 0])
    columns = ("setting", "best", "level", "auto", "as_built", "level_as_built", "auto_as_built")
    out = {
        "setting": [settings[which] for which in chosen],
        "best": best[range(len(CLIPS)), chosen].tolist(),
        "as_built": best[:, 0].tolist(),
        "level_as_built": LEVELS[of_seven].tolist(),
        "auto_as_built": levels[range(len(CLIPS)), 0, of_seven].tolist(),
        "level": [LEVELS[held_out(levels[:, which])[row]] for row, which in enumerate(chosen)],
        "auto": [levels[row, which, held_out(levels[:, which])[row]] for row, which in enumerate(chosen)],
    }
    save(leave_one_out={**saved().get("leave_one_out", {}), name: out})
    means = ", ".join(f"{setting}: {mean:.4f}" for setting, mean in zip(settings, best.mean(axis=0), strict=True))
    print(f"\n{name}, mean of the best threshold: {means}")
    print(f"mean at each level from {LEVELS[0]} on: {levels[:, 0].mean(axis=0).round(4).tolist()}\n")
    print("| clip | setting | best threshold | level | F1 there | as built: best threshold | level | F1 there |")
    print("|---" * 8 + "|")
    for clip, setting, *figures in zip(CLIPS, *(out[key] for key in columns), strict=True):
        print(f"| {clip} | {setting or 'as built'} | " + " | ".join(f"{v:.3f}" for v in figures) + " |")
    print("| mean | | " + " | ".join(f"{np.mean(out[key]):.3f}" for key in columns[1:]) + " |", flush=True)


CHOICES = {
    "as built": {},
    "links by Euclidean distance": {"cdist": "euclidean"},
    "links to frames near in time, too": {"APART": 0.0},
    "frames within a tenth of the clip left out": {"APART": 1 / 10},
    "frames within a fortieth of the clip left out": {"APART": 1 / 40},
    "half the neighbours": {"neighbors": 0.5},
    "twice the neighbours": {"neighbors": 2},
    "gamma1 half": {"TIGHTNESS": 0.2},
    "gamma1 double": {"TIGHTNESS": 0.8},
    "people not left out of the second solve": {"threshold": 1e6},
    "30 steps": {"max_iter": 30},
    "200 steps": {"max_iter": 200},
    "what stands still not looked for": {"FREE_SHARE": 2.0, "STANDS": 2.0},
    "half as much standing": {"STANDS": 0.2},
    "noise of a third of that at least": {"LEAST_NOISE": 0.5 / 255},
    "noise of two grey levels at least": {"LEAST_NOISE": 2 / 255},
}


def try_choice(clip: str, changes: dict) -> dict[str, float]:
    """Return the F1 that other settings give, in this process."""
    changes = dict(changes)
    frames, at, truth = load(clip)
    if len(frames) > 300:  # other settings are compared on every third frame, for time
        keep = np.union1d(np.arange(0, len(frames), 3), at if len(at) < 100 else [])
        inside = np.isin(at, keep)
        frames, truth, at = frames[keep], truth[inside], np.searchsorted(keep, at[inside])
    params = {name: changes.pop(name) for name in ("threshold", "max_iter") if name in changes}
    if (factor := changes.pop("neighbors", None)) is not None:
        auto = min(round(len(frames) ** 0.5), separator.MOST_NEIGHBORS)
        params["n_neighbors"] = max(1, round(factor * auto))
    if (metric := changes.pop("cdist", None)) is not None:
        plain = similar_frames.cdist
        similar_frames.cdist = lambda a, b, _: plain(a, b, metric)
    for name, value in changes.items():
        (module,) = (m for m in (masks, similar_frames, separator, ghosts) if name in vars(m) and name.isupper())
        setattr(module, name, value)
    model = BackgroundSeparator(**params).fit(frames)
    raw = best_threshold(np.abs(model.foreground_[at]), truth)["f1"]
    return {"raw": raw, "auto": mask_scores(model.mask_[at], truth)["f1"]}


def measure_choices(clips) -> None:
    for name in CHOICES:
        for clip in clips:
            choices = saved().get("choices", {})
            if clip in choices.get(name, {}):
                continue
            command = [sys.executable, __file__, "--try", clip, name]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            choices.setdefault(name, {})[clip] = json.loads(done.stdout.splitlines()[-1])
            save(choices=choices)
        row = saved()["choices"][name]
        cells = " | ".join(f"{row[clip]['auto']:.3f}" for clip in clips)
        means = [np.mean([row[clip][key] for clip in clips]) for key in ("auto", "raw")]
        print(f"| {name} | {cells} | {' | '.join(f'{mean:.3f}' for mean in means)} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--clips", nargs="+", default=CLIPS, choices=CLIPS)
    parser.add_argument("--leave-one-out", nargs="*", choices=METHODS, metavar="METHOD")
    parser.add_argument("--leave-one-out-moving", action="store_true")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--try", nargs=2, dest="attempt", metavar=("CLIP", "CHOICE"))
    asked = parser.parse_args()
    if asked.attempt:
        print(json.dumps(try_choice(asked.attempt[0], CHOICES[asked.attempt[1]])))
    elif asked.fit:
        measure_choices(asked.clips)
    elif asked.leave_one_out_moving:
        leave_one_out("moving", MOVING_SETTINGS, moving_settings)
    else:
        for method in asked.leave_one_out or ("ours", "rpca"):
            leave_one_out(method, SCORE_SETTINGS, partial(score_settings, method=method))
