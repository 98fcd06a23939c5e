"""
Clusters of corrupted data
==========================

Images of ten digits, with more and more pixels set to black or white. :class:`~frpcag.FRPCAGClustering` cleans the
data and clusters the result. It sees no labels; they only score the result.

The best curve is told which pixels were hit: they are NaN. If you know which entries are wrong, mark them.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from reproduction import load_dataset, salt_and_pepper
from reproduction.evaluate import clustering_error
from sklearn.cluster import KMeans, SpectralClustering

from frpcag import FRPCAGClustering
from frpcag.plots import plot_embedding

digits = load_dataset("digits")
clean, y = digits.X[:600], digits.y[:600]
shares = [0.0, 0.2, 0.4]


def spectral(X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of graphs in several pieces
        return SpectralClustering(10, affinity="nearest_neighbors", random_state=0).fit_predict(X)


# %%
# Four methods, three levels of corruption.
errors = {"k-means": [], "spectral clustering": [], "FRPCAGClustering": [], "the same, told by NaN": []}
for share in shares:
    X, hit = salt_and_pepper(clean, share, random_state=0)
    labels = {
        "k-means": KMeans(10, n_init=10, random_state=0).fit_predict(X),
        "spectral clustering": spectral(X),
        "FRPCAGClustering": FRPCAGClustering(10, random_state=0).fit_predict(X),
        "the same, told by NaN": FRPCAGClustering(10, random_state=0).fit_predict(np.where(hit, np.nan, X)),
    }
    for name, found in labels.items():
        errors[name].append(clustering_error(y, found))
    print(f"{share:4.0%} hit: " + ", ".join(f"{name} {values[-1]:.1%}" for name, values in errors.items()))

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for (name, values), style in zip(errors.items(), ("o:", "s:", "^-", "D-"), strict=True):
    left.plot([100 * share for share in shares], [100 * value for value in values], style, label=name)
left.set(xlabel="pixels black or white, %", ylabel="samples in the wrong cluster, %", ylim=(0, None))
left.legend(frameon=False)
model = FRPCAGClustering(10, random_state=0).fit(np.where(hit, np.nan, X))
plot_embedding(model.estimator_.embedding_, y, ax=right)
right.set_title(f"{shares[-1]:.0%} of the pixels unknown: two components of U, true digits", fontsize=9)

# %%
# FRPCAGClustering is ahead with no errors, with some and with many. Unmarked errors of this kind are hard for every
# method: with two pixels in five hit, a third of the samples are in the wrong cluster. If it knows where the errors
# are, it loses little. This is one draw of the corruption and one seed: differences of a few points are noise.
