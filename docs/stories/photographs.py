"""A folder of photographs with damaged pixels, from the files to clean images and a picture.

python docs/stories/photographs.py           # makes the folder photos first
python docs/stories/photographs.py FOLDER    # your own: images of one size, the more alike the better

Writes the clean images into the folder clean-photos, and photographs.png.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from frpcag import RobustGraphCleaner


def make(folder):
    """Write handwritten digits with white pixels scattered over them."""
    rng = np.random.default_rng(0)
    folder.mkdir(exist_ok=True)
    for i, image in enumerate(load_digits().images[:200]):
        pixels = np.where(rng.random(image.shape) < 0.1, 255, image * 15.9).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{i:03d}.png")


def main():
    """Clean the images and draw some of them."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "photos")
    if len(sys.argv) == 1:
        make(folder)
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in (".png", ".jpg", ".jpeg"))
    X = np.array([np.asarray(Image.open(file).convert("L")) for file in files], dtype=np.float32)
    cleaner = RobustGraphCleaner(random_state=0).fit(X.reshape(len(X), -1))
    clean = cleaner.cleaned_.reshape(X.shape)
    Path("clean-photos").mkdir(exist_ok=True)
    for file, image in zip(files, clean, strict=True):
        Image.fromarray(image.clip(0, 255).astype(np.uint8)).save(Path("clean-photos", file.stem + ".png"))

    figure, axes = plt.subplots(2, 10, figsize=(7.2, 1.6))
    figure.subplots_adjust(left=0.08, right=1, top=1, bottom=0, wspace=0.06, hspace=0.06)
    for line, images, word in zip(axes, (X, clean), ("as given", "clean"), strict=True):
        line[0].set_ylabel(word)
        for ax, image in zip(line, images, strict=False):
            ax.imshow(image, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            ax.set(xticks=[], yticks=[])
    figure.savefig("photographs.png", dpi=130, metadata={"Software": None})
    print(f"{len(files)} images, {cleaner.outliers_.mean():.1%} of their pixels found wrong; see clean-photos")


if __name__ == "__main__":
    main()
