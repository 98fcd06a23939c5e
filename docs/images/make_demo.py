"""Draw docs/images/faces.png and demo.png, the pictures of the front page, and print their figures.

python docs/images/make_demo.py digits
python docs/images/make_demo.py faces   # needs FRPCAG_DATA

One pixel in twenty of scikit-learn's digits, or of 200 photographs of faces (AT&T Laboratories Cambridge, at half their
size), is moved by five standard deviations, up or down. PCA gets the rank that is best for it, which only the truth can
tell; RPCA and RobustGraphCleaner have their default settings. In the first row pixels brighter than white are red and
those darker than black blue. The figures go to results/front_page.json and results/front_faces.json.
"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from reproduction import load_dataset

from frpcag import RobustGraphCleaner
from frpcag.baselines import RPCA

SHARE, SIZE, SEED = 0.05, 5.0, 5
RESULTS = Path(__file__).resolve().parents[2] / "results"


def damaged(truth):
    """Return the images with wrong pixels, and where these are."""
    rng = np.random.default_rng(SEED)
    hit = rng.random(truth.shape) < SHARE
    X = truth.copy()
    X[hit] += SIZE * truth.std() * rng.choice([-1, 1], hit.sum())
    return X, hit


def best_pca(X, error):
    """Return the projection on the number of components with the least error, and that number."""
    mean = X.mean(axis=0)
    W, Sigma, Vt = np.linalg.svd(X - mean, full_matrices=False)
    tried = {rank: mean + (W[:, :rank] * Sigma[:rank]) @ Vt[:rank] for rank in range(1, X.shape[1])}
    rank = min(tried, key=lambda r: error(tried[r]))
    return tried[rank], rank


def draw(rows, shape, at, *, white, far, path):
    """Draw the images numbered ``at``, one row for each matrix; deviations of ``far`` are darkest."""
    ratio = shape[0] / shape[1]
    size = {"figsize": (8.2, 6.6 / len(at) * ratio * len(rows)), "width_ratios": [3.1, *[10 / len(at)] * len(at)]}
    figure, axes = plt.subplots(len(rows), 1 + len(at), **size)
    figure.subplots_adjust(left=0.01, right=0.995, top=0.99, bottom=0.01, wspace=0.06, hspace=0.08)
    grey = plt.get_cmap("gray")
    looks = {
        "grey": {"cmap": grey, "vmin": 0, "vmax": white},
        "beyond": {"cmap": grey.with_extremes(under="#2166AC", over="#B2182B"), "vmin": 0, "vmax": white},
        "signed": {"cmap": "RdBu_r", "vmin": -far, "vmax": far},
    }
    for line, (title, words, X, look) in zip(axes, rows, strict=True):
        line[0].text(0, 0.62, title, fontsize=10, fontweight="bold", va="center", transform=line[0].transAxes)
        line[0].text(0, 0.28, words, fontsize=8.5, color="0.35", va="center", transform=line[0].transAxes)
        line[0].set_axis_off()
        for ax, i in zip(line[1:], at, strict=True):
            ax.imshow(X[i].reshape(shape), interpolation="nearest", **looks[look])
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_color("0.75")
    figure.savefig(path, dpi=200, metadata={"Software": None})


def digits():
    """Return all digits, their shape, the first of each class, and the value of white."""
    data = load_dataset("digits")
    return data.X.astype(np.float64), data.shape, [int(np.flatnonzero(data.y == k)[0]) for k in range(10)], 16.0


def faces():
    """Return the faces of 20 people at half their size, their shape, nine of these people, and the value of white."""
    data = load_dataset("orl")
    h, w = data.shape
    X = data.X[:200].reshape(-1, h // 2, 2, w // 2, 2).mean(axis=(2, 4)).astype(np.float64)
    return X.reshape(len(X), -1), X.shape[1:], list(range(0, 180, 20)), 255.0


def main(images, picture, record):
    """Compute, print and draw."""
    truth, shape, at, white = images()
    X, hit = damaged(truth)
    spread = np.linalg.norm(truth - truth.mean(axis=0))

    def error(A):
        return 100 * np.linalg.norm(A - truth) / spread

    cleaner = RobustGraphCleaner(random_state=0).fit(X)
    rpca = RPCA().fit(X).low_rank_
    pca, rank = best_pca(X, error)
    found = cleaner.outliers_
    right = (found & hit).sum()
    recall, precision = 100 * right / hit.sum(), 100 * right / found.sum()
    print(f"{hit.sum()} of {hit.size} pixels are wrong: {recall:.1f} % of them are found")
    print(f"{precision:.1f} % of those found are wrong; all other pixels are untouched")
    scores = {"as given": X, f"PCA, {rank} components": pca, "RPCA": rpca, "repaired": cleaner.cleaned_}
    for name, A in scores.items():
        print(f"{name}: {error(A):.0f} % of the distance of the truth from its mean")
    figures = {"given": error(X), "pca": error(pca), "rpca": error(rpca), "ours": error(cleaner.cleaned_)}
    figures |= {"precision": precision, "recall": recall, "n_images": len(X)}
    (RESULTS / record).write_text(json.dumps({name: float(value) for name, value in figures.items()}, indent=1) + "\n")
    rows = [
        ("as given", f"error {error(X):.0f} %", X, "beyond"),
        ("PCA", f"best rank, error {error(pca):.0f} %", pca, "grey"),
        ("RPCA", f"error {error(rpca):.0f} %", rpca, "grey"),
        ("found wrong", f"{recall:.0f} % of the wrong pixels", np.where(found, cleaner.deviation_, 0), "signed"),
        ("repaired", f"error {error(cleaner.cleaned_):.0f} %", cleaner.cleaned_, "grey"),
        ("truth", "not seen by any of them", truth, "grey"),
    ]
    draw(rows, shape, at, white=white, far=7 * truth.std(), path=Path(__file__).with_name(picture))


if __name__ == "__main__":
    if sys.argv[1:] == ["digits"]:
        main(digits, "demo.png", "front_page.json")
    elif sys.argv[1:] == ["faces"]:
        main(faces, "faces.png", "front_faces.json")
    else:
        sys.exit(__doc__)
