"""Static backgrounds of the paper's three videos (Shahid et al. 2016, Fig. 8), by the three convex models."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import numpy as np

from frpcag.baselines import BASELINES
from frpcag.video.separator import BackgroundSeparator
from reproduction import load_dataset
from reproduction.evaluate.foreground import best_threshold
from reproduction.paper.figures import cell_arrays, markdown_table, new_figure, percent, save

Array = np.ndarray

CLIPS = {"bootstrap": "restaurant food counter", "mall": "shopping mall lobby", "hall": "airport lobby"}
MODELS = ("RPCA", "RPCAG", "FRPCAG")
# The weight of the frame graph in RPCAG, on frames of the range [0, 1]; the smallest of the paper's range.
RPCAG_GAMMA = 2.0**-3


def cells(smoke: bool) -> list[dict]:
    """Return one cell for each clip and model."""
    return [{"clip": clip, "model": model} for clip in (("made",) if smoke else CLIPS) for model in MODELS]


def made_clip(n: int = 24, size: int = 16) -> tuple[Array, Array, Array]:
    """Return frames of a bright square that crosses a textured background, their numbers, and the square's masks."""
    rng = np.random.default_rng(0)
    truth = np.zeros((n, size, size), np.uint8)
    for number, mask in enumerate(truth):
        mask[5:9, number % (size - 4) : number % (size - 4) + 4] = 1
    frames = np.where(truth == 1, 230.0, rng.uniform(20, 120, (size, size))) + rng.normal(0, 1, truth.shape)
    return frames.round().astype(np.uint8), np.arange(n), truth


def load_clip(clip: str) -> tuple[Array, Array, Array]:
    """Return the frames of a clip, the numbers of those with a mask, and the masks."""
    if clip == "made":
        return made_clip()
    data = load_dataset(f"video_{clip}")
    return data.X.reshape(-1, *data.shape).astype(np.uint8), data.gt_idx, data.gt


def measure(cell: dict) -> tuple[dict, dict]:
    """Return seconds and the F1 of |frame - background| at its best threshold, and one frame with its background."""
    frames, numbers, truth = load_clip(cell["clip"])
    start = perf_counter()
    if cell["model"] == "FRPCAG":
        backgrounds = BackgroundSeparator(n_jobs=1).fit(frames).background_
    else:
        X = frames.reshape(len(frames), -1).astype(np.float32) / 255
        options = {} if cell["model"] == "RPCA" else {"gamma": RPCAG_GAMMA}
        model = BASELINES[cell["model"]](tol=1e-5, **options).fit(X)
        backgrounds = 255 * model.low_rank_.reshape(frames.shape)
    seconds = perf_counter() - start
    difference = np.abs(frames[numbers] - backgrounds[numbers])
    shown = numbers[len(numbers) // 2]
    pictures = {"frame": frames[shown], "background": np.clip(backgrounds[shown], 0, 255).round().astype(np.uint8)}
    return {
        "times": {"fit": seconds},
        "shape": list(frames.shape),
        "f1": best_threshold(difference, truth)["f1"],
    }, pictures


def render(records: list[dict], folder: Path) -> str:
    """Draw a frame of each clip with the three backgrounds; return times and F1."""
    found = {(one["cell"]["clip"], one["cell"]["model"]): one for one in records}
    clips = list(dict.fromkeys(clip for clip, _ in found))
    figure, axes = new_figure(len(clips), 1 + len(MODELS), width=2.4, height=1.9)
    rows = []
    for line, clip in zip(axes, clips, strict=True):
        row = [f"{clip} ({CLIPS.get(clip, 'made here')})"]
        for ax, model in zip(line[1:], MODELS, strict=True):
            ax.axis("off")
            record = found.get((clip, model))
            if record is None:
                row.append("-")
                continue
            pictures = cell_arrays(folder, record["cell"])
            ax.imshow(pictures["background"], cmap="gray", vmin=0, vmax=255)
            ax.set_title(model, fontsize=8)
            line[0].imshow(pictures["frame"], cmap="gray", vmin=0, vmax=255)
            row.append(f"{record['times']['fit']:.1f} s, F1 {percent(record['f1'])}")
        line[0].set_title(clip, fontsize=8)
        line[0].axis("off")
        rows.append(row)
    save(figure, folder / "videos.png")
    return markdown_table(["clip", *MODELS], rows)
