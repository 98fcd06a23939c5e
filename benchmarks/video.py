"""Foreground of real video: F1, time and memory of BackgroundSeparator, nuclear-norm RPCA, OpenCV and the median.

Run with FRPCAG_DATA set; OpenCV's methods need frpcag[benchmarks] (opencv-contrib-python-headless):

    python benchmarks/video.py                 # every clip and method that results/video.json does not hold yet
    python benchmarks/video.py --again ours    # one method again
    python benchmarks/video.py --table         # print the table
    python benchmarks/video.py --sheets        # contact sheets in results/video/
    python benchmarks/video.py --choices       # what other settings would have given
    python benchmarks/video.py --stream        # new frames against a frozen background, ms a frame

Each clip and method runs in a process of its own, one after the other. F1 counts the pixels of all frames with a mask
together. One score and one threshold rule for every method: "smoothed" is the best threshold of the score of
frpcag.video.masks, made of the difference to the method's background, with one noise level for all pixels. OpenCV's
methods also give masks: theirs, after a 5 x 5 median filter, count where they are better than the score. "raw" is the
best threshold of |frame - background|; "best" that of the score BackgroundSeparator makes its own mask of, which knows
the noise of each pixel. "truth" is no method: a still background made of the pixels that the truth calls background.
FRPCAG_VIDEO_CACHE names a folder for the backgrounds, so that other scores can be tried without fitting again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import warnings
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from machine import RESULTS, write_result

from frpcag import BackgroundSeparator
from frpcag.evaluate.foreground import best_threshold, mask_scores
from frpcag.video import ghosts, masks, separator, similar_frames

CLIPS = ("hall", "lobby", "escalator", "mall", "hallmonitor", "ibmtest2", "bootstrap", "highway")
METHODS = ("ours", "rpca", "mog2", "knn", "gsoc", "median", "truth")


def load(clip: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return frames, the numbers of those with a mask, and the masks."""
    with np.load(Path(os.environ["FRPCAG_DATA"]) / f"video_{clip}.npz", allow_pickle=False) as data:
        return data["frames"], data["gt_idx"], data["gt"]


def rate(difference: np.ndarray, noise: float | np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return the best F1 of a method's difference to its background, raw and smoothed."""
    return {
        "raw": best_threshold(np.abs(difference), truth)["f1"],
        "smoothed": best_threshold(masks.foreground_score(difference, noise), truth)["f1"],
    }


def noise_of(frames: np.ndarray) -> float:
    rows = similar_frames.spread(len(frames), similar_frames.NOISE_FRAMES)
    near = similar_frames.nearest_frames(similar_frames.shrink(frames), round(len(frames) ** 0.5), rows=rows)
    return float(np.median(similar_frames.noise_map(frames.reshape(len(frames), -1, 1)[:, ::7], rows, near)))


def timed(function) -> tuple:
    """Return what a function returns, with the seconds it took: on the clock, and of all cores together."""
    start, cpu_start = perf_counter(), process_time()
    result = function()
    return result, {"seconds": perf_counter() - start, "cpu_seconds": process_time() - cpu_start}


def run_ours(frames, at, truth) -> dict:
    BackgroundSeparator(max_iter=2).fit(frames[:8])  # kernels are compiled by now
    model, times = timed(lambda: BackgroundSeparator().fit(frames))
    S = model.foreground_[at]
    keep(model.background_[at], frames)
    return {
        **times,
        "auto": mask_scores(model.mask_[at], truth),
        "best": best_threshold(masks.foreground_score(S, model.noise_map_), truth)["f1"],
        **rate(S, noise_of(frames), truth),  # the same noise as the rivals get
        "noise": model.noise_,
        "gap": model.duality_gap_,
    }


def run_rpca(frames, at, truth) -> dict:
    from frpcag.baselines import RPCA

    X = frames.reshape(len(frames), -1).astype(np.float32) / 255
    model, times = timed(lambda: RPCA(tol=1e-6).fit(X))
    S = 255 * (X - model.low_rank_).reshape(frames.shape)[at]
    keep(frames[at] - S, frames)
    rank = len(model.singular_values_)
    return {**times, **rate(S, noise_of(frames), truth), "rank": rank, "n_iter": model.n_iter_}


def run_median(frames, at, truth) -> dict:
    middle, times = timed(lambda: np.median(frames, axis=0))
    return {**times, **rate(frames[at].astype(np.float32) - middle, noise_of(frames), truth)}


def run_truth(frames, at, truth) -> dict:
    known = np.where(truth == 0, frames[at].astype(np.float32), np.nan)
    middle, times = timed(lambda: np.nanmedian(known, axis=0))
    middle = np.where(np.isnan(middle), np.median(frames, axis=0), middle)
    return {**times, **rate(frames[at] - middle, noise_of(frames), truth)}


def run_opencv(kind: str, frames, at, truth) -> dict:
    import cv2

    make = {
        "mog2": lambda: cv2.createBackgroundSubtractorMOG2(detectShadows=False),
        "knn": lambda: cv2.createBackgroundSubtractorKNN(detectShadows=False),
        "gsoc": lambda: cv2.bgsegm.createBackgroundSubtractorGSOC(),
    }[kind]
    cv2.setNumThreads(os.cpu_count() or 1)

    def run() -> tuple[np.ndarray, np.ndarray]:
        subtractor, found, backgrounds, wanted = make(), [], [], set(at.tolist())
        for t, frame in enumerate(frames):
            mask = subtractor.apply(cv2.cvtColor(frame, cv2.COLOR_GRAY2BGR) if kind == "gsoc" else frame)
            if t in wanted:
                still = subtractor.getBackgroundImage()
                found.append(mask.copy())
                backgrounds.append(still if still.ndim == 2 else still[..., 0])
        return np.stack(found), np.stack(backgrounds)

    (mask, still), times = timed(run)
    keep(still, frames)
    rated = rate(frames[at] - still.astype(np.float32), noise_of(frames), truth)
    filtered = np.stack([cv2.medianBlur(one, 5) for one in mask]) > 0
    auto = mask_scores(mask > 0, truth)
    return {
        **times,
        "auto": auto,
        "raw": max(rated["raw"], auto["f1"]),
        "smoothed": max(rated["smoothed"], mask_scores(filtered, truth)["f1"]),
    }


def keep(background: np.ndarray, frames: np.ndarray) -> None:
    """Store the backgrounds of the frames with a mask for other scores to be tried on."""
    folder = os.environ.get("FRPCAG_VIDEO_CACHE")
    if folder and sys.argv[1:2] == ["--one"]:
        Path(folder).mkdir(parents=True, exist_ok=True)
        np.save(Path(folder) / f"{'_'.join(sys.argv[2:4])}.npy", background.astype(np.float16))


def one(clip: str, method: str) -> dict:
    """Measure one method on one clip, in this process."""
    frames, at, truth = load(clip)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    functions = {"ours": run_ours, "rpca": run_rpca, "median": run_median, "truth": run_truth}
    if method in functions:
        record = functions[method](frames, at, truth)
    else:
        record = run_opencv(method, frames, at, truth)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"clip": clip, "method": method, "shape": frames.shape, **record, "megabytes": (peak - before) / 1024}


def saved() -> dict:
    path = RESULTS / "video.json"
    return json.loads(path.read_text()) if path.exists() else {}


def save(**parts) -> None:
    write_result("video", {**{key: value for key, value in saved().items() if key != "machine"}, **parts})


def measure(clips, again) -> None:
    for clip in clips:
        for method in METHODS:
            records = saved().get("records", [])
            rest = [row for row in records if (row["clip"], row["method"]) != (clip, method)]
            if len(rest) < len(records) and method not in again:
                continue
            command = [sys.executable, __file__, "--one", clip, method]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            row = json.loads(done.stdout.splitlines()[-1])
            save(records=[*rest, row])
            print(clip, method, {k: round(v, 3) for k, v in row.items() if isinstance(v, float)}, flush=True)


def print_table() -> None:
    rows = {(row["clip"], row["method"]): row for row in saved()["records"]}
    clips = [clip for clip in CLIPS if all((clip, method) in rows for method in METHODS)]
    names = {"rpca": "RPCA", "mog2": "MOG2", "knn": "KNN", "gsoc": "GSOC", "median": "median", "truth": "truth"}
    heads = ["clip", "auto: precision, recall, F1", "best", "smoothed: ours", *names.values()]
    rivals = [name for name in names if name != "truth"]
    print("| " + " | ".join([*heads, "raw: ours", *(names[name] for name in rivals)]) + " |")
    print("|---" * (len(heads) + 1 + len(rivals)) + "|")
    means: list[list[float]] = []
    for clip in clips:
        ours = rows[clip, "ours"]
        auto = ours["auto"]
        smoothed, raw = ([ours[key], *(rows[clip, name][key] for name in rivals)] for key in ("smoothed", "raw"))
        cells = [f"{auto['precision']:.2f}, {auto['recall']:.2f}, {auto['f1']:.3f}", f"{ours['best']:.3f}"]
        for group in (smoothed, raw):
            cells += [f"**{v:.3f}**" if v == max(group) else f"{v:.3f}" for v in group]
            if group is smoothed:
                cells.append(f"{rows[clip, 'truth']['smoothed']:.3f}")
        print(f"| {clip} {' x '.join(map(str, ours['shape']))} | {' | '.join(cells)} |")
        means.append([auto["f1"], ours["best"], *smoothed, rows[clip, "truth"]["smoothed"], *raw])
    print("| mean | " + " | ".join(f"{v:.3f}" for v in np.mean(means, axis=0)) + " |\n")
    print("| clip | " + " | ".join(f"{method}: s, CPU s, MB" for method in METHODS) + " | RPCA / ours: s, CPU s |")
    print("|---" * (len(METHODS) + 2) + "|")
    for clip in clips:
        cells = [
            f"{row['seconds']:.1f}, {row.get('cpu_seconds', np.nan):.1f}, {row['megabytes']:.0f}"
            for row in (rows[clip, method] for method in METHODS)
        ]
        pairs = [[rows[clip, m].get(key, np.nan) for m in ("rpca", "ours")] for key in ("seconds", "cpu_seconds")]
        ratios = ", ".join(f"{rpca / ours:.1f}" for rpca, ours in pairs)
        print(f"| {clip} | {' | '.join(cells)} | {ratios} |")


def draw_sheets(clips) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from frpcag.plots.frames import plot_contact_sheet

    folder = RESULTS / "video"
    folder.mkdir(parents=True, exist_ok=True)
    for clip in clips:
        frames, at, truth = load(clip)
        model = BackgroundSeparator().fit(frames)
        shown = np.linspace(0, len(at) - 1, 6).astype(int)[[0, 1, 3, 4]]
        places = at[shown]
        figure = plot_contact_sheet(
            {
                "frame": frames[places],
                "background": np.clip(np.rint(model.background_[places]), 0, 255).astype(np.uint8),
                "|foreground|": np.clip(np.rint(2 * np.abs(model.foreground_[places])), 0, 255).astype(np.uint8),
                "mask": model.mask_[places],
                "truth (grey: not counted)": np.where(truth[shown] == 1, 255, np.where(truth[shown], 128, 0)).astype(
                    np.uint8
                ),
            },
            labels=[str(place) for place in places],
        )
        figure.savefig(folder / f"{clip}.png", dpi=90, metadata={"Software": None})
        plt.close(figure)


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
    "15 steps": {"max_iter": 15},
    "60 steps": {"max_iter": 60},
    "mask from |S| alone": {"SLOPE": 0.0},
    "slope 1": {"SLOPE": 1.0},
    "slope 3": {"SLOPE": 3.0},
    "cap 12": {"CAP": 12.0},
    "cap 24": {"CAP": 24.0},
    "no cap": {"CAP": 1e9},
    "blur 1 pixel": {"BLUR": 1.0},
    "blur 3 pixels": {"BLUR": 3.0},
    "what stands still not looked for": {"FREE_SHARE": 2.0, "STANDS": 2.0},
    "half as much standing": {"STANDS": 0.2},
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
    return {**rate(model.foreground_[at], model.noise_map_, truth), "auto": mask_scores(model.mask_[at], truth)["f1"]}


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
        cells = " | ".join(f"{row[clip]['smoothed']:.3f}" for clip in clips)
        means = [np.mean([row[clip][key] for clip in clips]) for key in ("smoothed", "raw", "auto")]
        print(f"| {name} | {cells} | {' | '.join(f'{mean:.3f}' for mean in means)} |", flush=True)


def measure_stream() -> None:
    result = {}
    for clip in ("bootstrap", "highway"):
        frames, _, _ = load(clip)
        half = len(frames) // 2
        model = BackgroundSeparator().fit(frames[:half])
        new = frames[half : half + 100]
        model.transform(new[0])
        start = perf_counter()
        for frame in new:
            model.transform(frame)
        result["x".join(map(str, frames.shape[1:]))] = 10 * (perf_counter() - start)
    print(result)
    save(stream_ms_per_frame=result)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--clips", nargs="+", default=CLIPS, choices=CLIPS)
    parser.add_argument("--again", nargs="+", default=(), choices=METHODS)
    parser.add_argument("--one", nargs=2, metavar=("CLIP", "METHOD"))
    parser.add_argument("--try", nargs=2, dest="attempt", metavar=("CLIP", "CHOICE"))
    for flag in ("--table", "--sheets", "--choices", "--stream"):
        parser.add_argument(flag, action="store_true")
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(one(*asked.one)))
    elif asked.attempt:
        print(json.dumps(try_choice(asked.attempt[0], CHOICES[asked.attempt[1]])))
    elif asked.table:
        print_table()
    elif asked.sheets:
        draw_sheets(asked.clips)
    elif asked.choices:
        measure_choices(asked.clips)
    elif asked.stream:
        measure_stream()
    else:
        measure(asked.clips, asked.again)
