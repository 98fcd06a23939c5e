"""
Faces with wrong pixels
=======================

Photographs of faces, in which one pixel in twenty is far too bright or too dark. :class:`~frpcag.RobustGraphCleaner`
finds these pixels and repairs them; nearly all others stay as they are. Robust PCA changes every pixel.

The faces are the Olivetti faces of scikit-learn if they have been fetched once (``fetch_olivetti_faces()`` needs the
network), or the same people as ``orl`` in the folder of ``FRPCAG_DATA``. Without either, digits take their place.
(Photographs: AT&T Laboratories Cambridge.)
"""

import matplotlib.pyplot as plt
import numpy as np
from reproduction import list_datasets, load_dataset
from sklearn.datasets import fetch_olivetti_faces

from frpcag import RobustGraphCleaner
from frpcag.baselines import RPCA
from frpcag.plots import plot_image_grid


def load_images():
    """Return images of shape (n_images, h, w), 0 is black and 1 is white."""
    try:
        return fetch_olivetti_faces(download_if_missing=False).images
    except OSError:
        data = load_dataset("orl" if "orl" in list_datasets() else "digits")
        return data.X.reshape(-1, *data.shape) / data.X.max()


images = load_images()[:200]
if images.shape[1] > 64:  # half the size is enough to see who it is
    n, h, w = images.shape
    images = images.reshape(n, h // 2, 2, w // 2, 2).mean(axis=(2, 4))
shape = images.shape[1:]
truth = images.reshape(len(images), -1).astype(np.float32)

# %%
# The damage: five standard deviations up or down.
rng = np.random.default_rng(0)
hit = rng.random(truth.shape) < 0.05
X = truth + (5 * truth.std() * hit * rng.choice([-1, 1], truth.shape)).astype(np.float32)

# %%
# Nothing to set. The cleaner finds the size of the images by itself.
cleaner = RobustGraphCleaner(random_state=0).fit(X)
rpca = RPCA().fit(X - X.mean(axis=0)).low_rank_ + X.mean(axis=0)

spread = np.linalg.norm(truth - truth.mean(axis=0))
error = {
    name: float(np.linalg.norm(Z - truth) / spread)
    for name, Z in {"as given": X, "robust PCA": rpca, "repaired": cleaner.cleaned_}.items()
}
print(", ".join(f"{name} {value:.0%} off" for name, value in error.items()))
found = float((cleaner.outliers_ & hit).sum() / hit.sum())
untouched = float((cleaner.cleaned_ == X)[~hit].mean())
print(f"{found:.1%} of the wrong pixels found; {untouched:.1%} of the right ones unchanged, to the last bit")

# %%
# Red pixels are brighter than white, blue ones darker than black.
rows = {
    "as given": X,
    "robust PCA": np.clip(rpca, 0, 1),
    "what was found": X - cleaner.cleaned_,
    "repaired": np.clip(cleaner.cleaned_, 0, 1),
    "the truth": truth,
}
figure = plot_image_grid(
    {name: Z[::25] for name, Z in rows.items()},
    shape,
    signed=["what was found"],
    limits=(0, 1),
    figure=plt.figure(figsize=(8, 7.2), layout="constrained"),
)
