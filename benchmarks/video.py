"""Foreground of real video: F1, time and memory of BackgroundSeparator, nuclear-norm RPCA, OpenCV and the median.

Run with FRPCAG_DATA set; OpenCV's methods need frpcag[benchmarks] (opencv-contrib-python-headless):

    python benchmarks/video.py                   # every clip and method that results/video.json does not hold yet
    python benchmarks/video.py --again ours      # one method again
    python benchmarks/video.py --rescore         # scores again, from the backgrounds kept
    python benchmarks/video.py --table           # print the tables
    python benchmarks/video.py --sheets          # contact sheets in results/video/
    python benchmarks/video.py --missed          # what our masks miss: how far from the background, and how bright
    python benchmarks/video.py --stream          # new frames against a frozen background, ms a frame

Each clip and method runs in a process of its own, one after the other. F1 counts the pixels of all frames with a mask
together. "score" is the same for every method: the best threshold of the score of frpcag.video.masks, made of frame
and the method's background, with one noise map for all, that of BackgroundSeparator. OpenCV's methods also give masks:
theirs, after a 5 x 5 median filter, count where they are better than the score. "raw" is the best threshold of
|frame - background|, or OpenCV's own mask where that is better. "auto" is the mask as a user gets it. "truth" is no
method: a still background made of the pixels that the truth calls background. The backgrounds are kept in the folder
FRPCAG_VIDEO_CACHE, by default one in the system's temporary folder.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from machine import RESULTS, write_result
from reproduction.evaluate.foreground import best_threshold, mask_scores

from frpcag import BackgroundSeparator
from frpcag.video import masks, similar_frames

CLIPS = ("hall", "lobby", "escalator", "mall", "hallmonitor", "ibmtest2", "bootstrap", "highway")
METHODS = ("ours", "rpca", "mog2", "knn", "gsoc", "median", "truth")
CACHE = Path(os.environ.get("FRPCAG_VIDEO_CACHE") or Path(tempfile.gettempdir()) / "frpcag-video")


def load(clip: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return frames, the numbers of those with a mask, and the masks."""
    with np.load(Path(os.environ["FRPCAG_DATA"]) / f"video_{clip}.npz", allow_pickle=False) as data:
        return data["frames"], data["gt_idx"], data["gt"]


def rate(clip: str, method: str, frames, at, truth) -> dict[str, float]:
    """Return the best F1 of a method's difference to its background: as the score of all methods, and raw."""
    shot, behind = frames[at].astype(np.float32), kept(clip, method)
    exact = kept(clip, f"{method}_U") if method == "ours" else behind
    noises = ("ours_noise",) if method == "ours" else ("noise", "ours_noise")
    return {
        "score": max(best_threshold(score_of(shot, behind, kept(clip, noise)), truth)["f1"] for noise in noises),
        "raw": best_threshold(np.abs(shot - exact), truth)["f1"],
    }


def score_of(shot, behind, noise):
    return masks.foreground_score(shot - behind, noise, background=behind)


def kept(clip: str, name: str) -> np.ndarray:
    """Return backgrounds of the frames with a mask, or the noise map, as the fit left them."""
    return np.load(CACHE / f"{clip}_{name}.npy").astype(np.float32)


def keep(clip: str, **arrays) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    for name, values in arrays.items():
        np.save(CACHE / f"{clip}_{name}.npy", values.astype(np.float16 if values.ndim == 3 else np.float32))


def timed(function) -> tuple:
    """Return what a function returns, with the seconds it took: on the clock, and of all cores together."""
    start, cpu_start = perf_counter(), process_time()
    result = function()
    return result, {"seconds": perf_counter() - start, "cpu_seconds": process_time() - cpu_start}


class Watched(BackgroundSeparator):
    """Keeps what the masks of the clip are made of."""

    def _fitted_mask(self, frames, moving, noise):
        self.behind, self.closer = np.empty(frames.shape, np.float16), noise
        return super()._fitted_mask(frames, moving, noise)

    def _behind(self, frames, moving, rows, noise):
        found = super()._behind(frames, moving, rows, noise)
        if hasattr(self, "behind"):
            self.behind[rows] = found[1]
        return found


def run_ours(clip, frames, at, truth) -> dict:
    BackgroundSeparator(max_iter=2).fit(frames[:8])  # kernels are compiled by now
    model, times = timed(lambda: Watched().fit(frames))
    keep(clip, ours=model.behind[at], ours_U=model.background_[at], noise=model.noise_map_, ours_noise=model.closer)
    return {**times, "auto": mask_scores(model.mask_[at], truth), "noise": model.noise_, "gap": model.duality_gap_}


def run_rpca(clip, frames, at, truth) -> dict:
    from frpcag.baselines import RPCA

    X = frames.reshape(len(frames), -1).astype(np.float32) / 255
    model, times = timed(lambda: RPCA(tol=1e-6).fit(X))
    keep(clip, rpca=255 * model.low_rank_.reshape(frames.shape)[at])
    return {**times, "rank": len(model.singular_values_), "n_iter": model.n_iter_}


def run_median(clip, frames, at, truth) -> dict:
    middle, times = timed(lambda: np.median(frames, axis=0))
    keep(clip, median=np.repeat(middle[None], len(at), axis=0))
    return times


def run_truth(clip, frames, at, truth) -> dict:
    known = np.where(truth == 0, frames[at].astype(np.float32), np.nan)
    middle, times = timed(lambda: np.nanmedian(known, axis=0))
    middle = np.where(np.isnan(middle), np.median(frames, axis=0), middle)
    keep(clip, truth=np.repeat(middle[None], len(at), axis=0))
    return times


def run_opencv(clip, kind: str, frames, at, truth) -> dict:
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
    keep(clip, **{kind: still})
    filtered = np.stack([cv2.medianBlur(one, 5) for one in mask]) > 0
    return {**times, "auto": mask_scores(mask > 0, truth), "filtered": mask_scores(filtered, truth)}


def one(clip: str, method: str) -> dict:
    """Measure one method on one clip, in this process."""
    frames, at, truth = load(clip)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    functions = {"ours": run_ours, "rpca": run_rpca, "median": run_median, "truth": run_truth}
    if method in functions:
        record = functions[method](clip, frames, at, truth)
    else:
        record = run_opencv(clip, method, frames, at, truth)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    record = {"clip": clip, "method": method, "shape": frames.shape, **record, "megabytes": (peak - before) / 1024}
    return scored(record, frames, at, truth)


def scored(record: dict, frames, at, truth) -> dict:
    found = rate(record["clip"], record["method"], frames, at, truth)
    if "filtered" in record:  # OpenCV's own masks, where they are better
        found = {
            "score": max(found["score"], record["filtered"]["f1"]),
            "raw": max(found["raw"], record["auto"]["f1"]),
        }
    return {**record, **found}


def rescore(clips) -> None:
    records = saved()["records"]
    for clip in clips:
        frames, at, truth = load(clip)
        records = [scored(row, frames, at, truth) if row["clip"] == clip else row for row in records]
    save(records=records)


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
    rivals = [method for method in METHODS[1:] if method != "truth"]
    print("One score, one noise map, the best threshold\n")
    _print_f1(clips, ("ours", *rivals, "truth"), lambda clip, method: rows[clip, method]["score"])
    print("\nRaw difference to the background, the best threshold\n")
    _print_f1(clips, ("ours", *rivals), lambda clip, method: rows[clip, method]["raw"])
    print("\nMasks as users get them; RPCA and median: |difference| above the level that is best on the other clips\n")
    plain = plain_levels(clips)

    def as_used(clip: str, method: str) -> float:
        row = rows[clip, method]
        both = [row[key]["f1"] for key in ("auto", "filtered") if key in row]
        return max(both) if both else plain[method][clip]

    _print_f1(clips, ("ours", *rivals), as_used)
    print("\n| clip | " + " | ".join(f"{method}: s, CPU s, MB" for method in METHODS) + " | RPCA / ours: s, CPU s |")
    print("|---" * (len(METHODS) + 2) + "|")
    for clip in clips:
        cells = [
            f"{row['seconds']:.1f}, {row['cpu_seconds']:.1f}, {row['megabytes']:.0f}"
            for row in (rows[clip, method] for method in METHODS)
        ]
        pairs = [[rows[clip, m][key] for m in ("rpca", "ours")] for key in ("seconds", "cpu_seconds")]
        print(f"| {clip} | {' | '.join(cells)} | {', '.join(f'{rpca / ours:.1f}' for rpca, ours in pairs)} |")


def _print_f1(clips, methods, f1) -> None:
    """Print a table of F1; bold is the best of the methods that are no truth."""
    names = {"rpca": "RPCA", "mog2": "MOG2", "knn": "KNN", "gsoc": "GSOC"}
    print("| clip | " + " | ".join(names.get(method, method) for method in methods) + " |")
    print("|---" * (len(methods) + 1) + "|")
    table = np.array([[f1(clip, method) for method in methods] for clip in clips])
    still = table[[clip != "lobby" for clip in clips]]  # its light changes: no still background is true
    means = {"mean": table.mean(axis=0), "mean without lobby": still.mean(axis=0)}
    for clip, row in zip([*clips, *means], [*table, *means.values()], strict=True):
        best = max(value for value, method in zip(row, methods, strict=True) if method != "truth")
        print(f"| {clip} | " + " | ".join(f"**{v:.3f}**" if v == best else f"{v:.3f}" for v in row) + " |")


def at_levels(score, truth, levels) -> list[float]:
    return [mask_scores(score > level, truth)["f1"] for level in levels]


def held_out(table: np.ndarray) -> list[int]:
    """Return for each row the column with the best mean of all other rows."""
    return [int((table.sum(axis=0) - row).argmax()) for row in table]


def plain_levels(clips) -> dict[str, dict[str, float]]:
    """Return the F1 of RPCA and the median with |difference| above the level that is best on the other clips."""
    levels, out = np.arange(4, 61, 2), {}
    loaded = {clip: some(clip) for clip in clips}
    for method in ("rpca", "median"):
        table = np.array(
            [at_levels(np.abs(x - kept(clip, method)[w]), t, levels) for clip, (x, t, w) in loaded.items()]
        )
        out[method] = dict(zip(clips, table[range(len(clips)), held_out(table)].tolist(), strict=True))
    return out


def some(clip: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return at most 20 frames with a mask, their masks, and which of those with a mask they are."""
    frames, at, truth = load(clip)
    which = similar_frames.spread(len(at), 20)
    return frames[at[which]].astype(np.float32), truth[which], which


def print_missed(clips) -> None:
    """Print how missed and found foreground differs from the background, and the grey level behind; medians."""
    out = {}
    for clip in clips:
        frames, at, truth = load(clip)
        shot, behind = frames[at].astype(np.float32), kept(clip, "ours")
        found = score_of(shot, behind, kept(clip, "ours_noise")) > masks.LEVEL
        row = {"missed": float((~found[truth == 1]).mean())}
        for name, which in (("missed", (truth == 1) & ~found), ("found", (truth == 1) & found)):
            row[f"{name}_off"] = float(np.median(np.abs(shot - behind)[which]))
            row[f"{name}_behind"] = float(np.median(behind[which]))
        out[clip] = row
        print(clip, {key: round(value, 2) for key, value in row.items()})
    save(missed=out)


def draw_sheets(clips) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from reproduction.plots import plot_contact_sheet

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
    for flag in ("--table", "--missed", "--sheets", "--stream", "--rescore"):
        parser.add_argument(flag, action="store_true")
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(one(*asked.one)))
    elif asked.rescore:
        rescore(asked.clips)
    elif asked.table:
        print_table()
    elif asked.missed:
        print_missed(asked.clips)
    elif asked.sheets:
        draw_sheets(asked.clips)
    elif asked.stream:
        measure_stream()
    else:
        measure(asked.clips, asked.again)
