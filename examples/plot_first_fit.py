"""
A first fit: gross errors out of images
=======================================

A quarter of the pixels of small handwritten digits are set to black or white. :class:`~frpcag.FRPCAG` splits the
result into ``X = U + S``: ``U`` is close to its neighbours in two graphs, ``S`` takes what does not fit. The model does
not know which pixels are wrong, and it never sees a clean digit.
"""

import matplotlib.pyplot as plt
from reproduction import load_dataset, salt_and_pepper
from reproduction.evaluate import outlier_scores, relative_error
from sklearn.decomposition import PCA

from frpcag import FRPCAG
from frpcag.plots import plot_image_grid

digits = load_dataset("digits")  # 1797 images of 8 x 8 pixels, from scikit-learn
X, hit = salt_and_pepper(digits.X, 0.25, random_state=0)

# %%
# Fit with the default settings. The gap is a proof: no other ``U`` has an objective smaller by more than that share.
model = FRPCAG(random_state=0).fit(X)
print(f"{model.n_iter_} steps, duality gap {model.duality_gap_:.1e}, backend {model.backend_}")

# %%
# The last row is what was taken out: red where a pixel was too bright, blue where it was too dark.
plot_image_grid(
    {"true": digits.X, "X, as given": X, "U, cleaned": model.low_rank_, "S, taken out": model.sparse_},
    (8, 8),
    n_images=12,
    signed=["S, taken out"],
    figure=plt.figure(figsize=(8, 3.3), layout="constrained"),
)

# %%
# ``U`` is closer to the truth than PCA with ten components, because PCA must explain the black and white pixels too.
pca = PCA(10, random_state=0).fit(X)
distance = {
    "as given": relative_error(X, digits.X),
    "PCA": relative_error(pca.inverse_transform(pca.transform(X)), digits.X),
    "FRPCAG": relative_error(model.low_rank_, digits.X),
}
for name, value in distance.items():
    print(f"{name:>10}: {100 * value:4.1f} % off the true images")

# %%
# FRPCAG is a smoother and loses detail: on *clean* digits the same fit is farther from the truth than PCA, and of
# course than the digits themselves.
clean_model = FRPCAG(random_state=0).fit(digits.X)
clean_pca = PCA(10, random_state=0).fit(digits.X)
on_clean = {
    "PCA": relative_error(clean_pca.inverse_transform(clean_pca.transform(digits.X)), digits.X),
    "FRPCAG": relative_error(clean_model.low_rank_, digits.X),
}
print("on clean digits: " + ", ".join(f"{name} {100 * value:.1f} % off" for name, value in on_clean.items()))

# %%
# ``S`` points at more entries than were hit, because it takes some strokes for errors.
scores = outlier_scores(model.sparse_, hit)
print(f"of the pixels hit S points at {scores['recall']:.0%}; of those it points at {scores['precision']:.0%} were hit")
