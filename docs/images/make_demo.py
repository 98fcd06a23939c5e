"""Draw docs/images/demo.png, the picture of the README: python docs/images/make_demo.py"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from frpcag import FRPCAG
from frpcag.data import load_dataset, salt_and_pepper
from frpcag.plots import plot_image_grid

digits = load_dataset("digits")
corrupted, _ = salt_and_pepper(digits.X, 0.25, random_state=0)
model = FRPCAG(random_state=0).fit(corrupted)
figure = plot_image_grid(
    {"original": digits.X, "corrupted, what is given": corrupted, "cleaned": model.low_rank_},
    digits.shape,
    n_images=12,
)
figure.savefig(Path(__file__).with_name("demo.png"), dpi=240, metadata={"Software": None})
