"""
Wrong cells of a sensor table
=============================

:class:`~frpcag.RobustGraphCleaner` predicts every cell of a table from the other cells. It repairs cells that are
probably wrong, fills in missing ones, and leaves everything else as it is. It needs no settings.

Sixteen sensors report every hour for ten days. One reading in thirty is off, one sensor is stuck for twelve hours, some
readings of sensor 9 are missing, and in hour 100 the logger wrote nonsense into all columns.
"""

import matplotlib.pyplot as plt
import numpy as np

from frpcag import RobustGraphCleaner
from frpcag.baselines import RPCA
from frpcag.plots import plot_cell_map

rng = np.random.default_rng(0)
hour = np.arange(240)
signals = np.sin(2 * np.pi * (hour[:, None] / [24, 60, 150] + rng.random(3)))
truth = 20 + signals @ rng.normal(size=(3, 16)) + 0.05 * rng.normal(size=(240, 16))
X = truth.copy()
wrong = rng.random(X.shape) < 1 / 30
X[wrong] += rng.choice([-4, 4], wrong.sum())
stuck = int(np.argmax(truth.std(axis=0)))
X[130:142, stuck], wrong[130:142, stuck] = X[130, stuck], True
X[100] = 20 + 25 * rng.normal(size=16)
wrong[100] = False  # a whole row, judged apart
X[200:206, 9] = np.nan

# %%
# Cells that are fine stay the same to the last bit. The cleaner names the hour that is wrong as a whole and does not
# change it: nothing in that row tells what it should have been.
cleaner = RobustGraphCleaner(random_state=0).fit(X)
found = cleaner.outliers_
precision, recall = (found & wrong).sum() / found.sum(), (found & wrong).sum() / wrong.sum()
bad_hours = np.flatnonzero(cleaner.row_outlier_probability_ > 0.5)
untouched = bool((cleaner.cleaned_ == X)[~found & ~np.isnan(X)].all())
print(f"{found.sum()} cells repaired: {precision:.0%} of them are wrong, {recall:.0%} of the wrong ones are among them")
print("hours that are wrong as a whole:", bad_hours.tolist(), " all other cells untouched:", untouched)

kept = np.arange(240) != 100
filled = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)  # RPCA does not take NaN
error = {
    "as given": np.abs(filled - truth)[kept].mean(),
    "RPCA": np.abs(RPCA().fit(filled).low_rank_ - truth)[kept].mean(),
    "RobustGraphCleaner": np.abs(cleaner.cleaned_ - truth)[kept].mean(),
}
print("off the truth: " + ", ".join(f"{name} {value:.3f} degrees" for name, value in error.items()))

# %%
# In the cell map rows are hours and columns are sensors. Red is too high, blue is too low, grey is missing. The bad
# hour is a horizontal stripe, the stuck sensor a short vertical one.
figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
names = [f"sensor {j}" for j in range(16)]
plot_cell_map(
    cleaner.deviation_, cleaner.outlier_probability_, scale=cleaner.scale_, order="given", feature_names=names, ax=ax
)

# %%
# The readings of the stuck sensor, and what the other sensors predict for it.
figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
shown = slice(115, 160)
ax.plot(hour[shown], X[shown, stuck], ".", color="0.55", label=f"sensor {stuck}, as given")
ax.plot(hour[shown], truth[shown, stuck], "k:", lw=1, label="truth")
ax.plot(hour[shown], cleaner.cleaned_[shown, stuck], color="#0072B2", lw=1.2, label="cleaned")
ax.set(xlabel="hour", ylabel="degrees")
ax.legend(frameon=False, ncols=3)
