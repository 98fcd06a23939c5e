"""
Which Laplacian: what becomes of levels
=======================================

The combinatorial Laplacian does not change constant vectors. The normalised one does not change vectors that follow the
square root of the degree. So if the *level* of the data has a meaning (temperatures, brightness, tables that are not
centred), the normalised one shifts the level of each row with its degree in the graph.

Here rows are days, columns are the hours of a day, and values are temperatures. Winter days are few and scattered,
summer days are many and alike, so their degrees differ.
"""

import matplotlib.pyplot as plt
import numpy as np
from reproduction import load_dataset
from reproduction.evaluate import clustering_error

from frpcag import FRPCAG, FRPCAGClustering

rng = np.random.default_rng(0)
hours = np.arange(24)
day = np.sort(rng.choice([5.0, 15.0, 25.0], 300, p=[0.1, 0.3, 0.6]))  # mean temperature of each day
truth = day[:, None] + 4 * np.sin((hours - 9) * np.pi / 12)
X = truth + rng.normal(0, 1, truth.shape) * np.where(day < 10, 2.0, 0.5)[:, None]
broken = rng.random(X.shape) < 0.05
X[broken] = rng.choice([-40.0, 85.0], broken.sum())  # what broken sensors report

# %%
# The same data and settings, without centring, once with each Laplacian.
models, errors = {}, {}
for laplacian in ("normalized", "combinatorial"):
    models[laplacian] = FRPCAG(laplacian=laplacian, center=False).fit(X)
    errors[laplacian] = float(np.abs(models[laplacian].low_rank_ - truth).mean())
    print(f"{laplacian:>13}: mean error {errors[laplacian]:.2f} degrees, as given {np.abs(X - truth).mean():.2f}")

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for ax, (laplacian, model) in zip(axes, models.items(), strict=True):
    degree = np.asarray(model.sample_graph_.weights.sum(axis=1)).ravel()
    ax.axhline(0, color="0.6", lw=1)
    for value, colour in ((5.0, "#0072B2"), (15.0, "#009E73"), (25.0, "#D55E00")):
        at = day == value
        off = (model.low_rank_ - truth).mean(axis=1)
        ax.scatter(degree[at], off[at], s=14, color=colour, label=f"days of {value:g} degrees", linewidths=0)
    ax.set(xlabel="degree of the day in the graph", title=f'laplacian="{laplacian}"')
axes[0].set_ylabel("level of U, degrees off")
axes[0].legend(frameon=False)

# %%
# For clusters neither is always ahead. Here the graph of U is labelled spectrally, for 600 of the digits and for all:
digits = load_dataset("digits")
cluster_errors = {}
for n in (600, len(digits.X)):
    for laplacian in ("normalized", "combinatorial"):
        model = FRPCAGClustering(10, FRPCAG(n_refine="auto", laplacian=laplacian), assign="spectral", random_state=0)
        cluster_errors[laplacian, n] = clustering_error(digits.y[:n], model.fit_predict(digits.X[:n]))
        print(f"{laplacian:>13}: {cluster_errors[laplacian, n]:.1%} of {n} digits in the wrong cluster")
