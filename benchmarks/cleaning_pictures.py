"""Ten faces and ten digits before and after cleaning, as PNG files, to be looked at.

``python benchmarks/cleaning_pictures.py [FOLDER]`` (with FRPCAG_DATA set) writes one picture a data set, four rows each:
truth, as given, which cells were found, cleaned.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
from cleaning import QUICK_SAMPLES, corrupt, error, load
from machine import RESULTS

from frpcag import RobustGraphCleaner

CASES = (("yale", "salt25"), ("mnist", "salt25"), ("coil20", "block25"))
N_SHOWN = 10


def main(folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    for name, kind in CASES:
        truth, shape = load(name, most=QUICK_SAMPLES)
        X, _ = corrupt(truth, shape, kind)  # type: ignore[misc]
        cleaner = RobustGraphCleaner(random_state=0).fit(X)
        shown = np.linspace(0, len(X) - 1, N_SHOWN).astype(int)
        found = np.where(cleaner.outliers_, 1.0, 0.0)
        rows = {"truth": truth, f"given {error(X, truth):.2f}": X, "found": found,
                f"cleaned {error(cleaner.cleaned_, truth):.2f}": cleaner.cleaned_}  # fmt: skip
        figure, axes = plt.subplots(len(rows), N_SHOWN, figsize=(N_SHOWN, len(rows)))
        for (label, Z), line in zip(rows.items(), axes, strict=True):
            for i, ax in zip(shown, line, strict=True):
                ax.imshow(Z[i].reshape(shape), cmap="gray", vmin=0, vmax=1)
                ax.set_xticks([]), ax.set_yticks([])
            line[0].set_ylabel(label, fontsize=7)
        figure.suptitle(f"{name}, {kind}: errors over all images", fontsize=9)
        figure.savefig(folder / f"{name}-{kind}.png", dpi=100)
        plt.close(figure)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS / "cleaning")
