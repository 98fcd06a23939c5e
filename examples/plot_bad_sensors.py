"""
Which samples and sensors are bad
=================================

``S`` holds what did not fit. Its share per row and per column (:func:`~frpcag.insight.outlier_shares`) shows which
sensors fail, and on which days something went wrong.

Forty sensors in five rooms report their temperature every hour for forty days. Three sensors spike now and then. One
is stuck for a while. On two days the loggers were restarted, and a tenth of all readings are nonsense.
"""

import matplotlib.pyplot as plt
import numpy as np
from reproduction.evaluate import outlier_scores

from frpcag import FRPCAG
from frpcag.insight import outlier_shares
from frpcag.plots import plot_outlier_map, plot_outlier_shares

rng = np.random.default_rng(0)
hour = np.arange(40 * 24)
room = np.repeat(np.arange(5), 8)
truth = 18 + room + (1 + 0.5 * room) * np.sin((hour[:, None] - 9) * np.pi / 12) + 2 * np.sin(hour[:, None] / 200)
X = truth + rng.normal(0, 0.2, truth.shape)
wrong = np.zeros(X.shape, bool)
spiky, stuck, bad_days = [3, 17, 30], 22, [11, 28]
wrong[:, spiky] |= rng.random((len(X), 3)) < 0.15
for day in bad_days:
    wrong[24 * day : 24 * day + 24] |= rng.random((24, 40)) < 0.1
X[wrong] += rng.choice([-12, 12], wrong.sum())
X[600:700, stuck] = 30.0
wrong[600:700, stuck] = True

# %%
# Levels matter here, so the Laplacian is the combinatorial one (see :doc:`plot_which_laplacian`). We know which sensors
# share a room, so we pass that graph. A searched graph works badly here: a bad sensor is far from all others, gets weak
# links, and keeps its errors.
same_room = (room[:, None] == room).astype(float) - np.eye(40)
model = FRPCAG(laplacian="combinatorial", feature_graph=same_room).fit(X)
searched = FRPCAG(laplacian="combinatorial").fit(X)
shares = outlier_shares(model.sparse_)
scores = outlier_scores(model.sparse_, wrong, threshold=shares.threshold)
worst = np.argsort(shares.features)[::-1][:4]
by_day = shares.samples.reshape(40, 24).mean(axis=1)
print(f"|S| above {shares.threshold:.2f} degrees stands out: {shares.share:.1%} of the readings")
print(f"of these {scores['precision']:.0%} are wrong; of the wrong ones {scores['recall']:.0%} stand out")
print("sensors with most of them:", sorted(worst.tolist()), " days:", sorted(np.argsort(by_day)[::-1][:2].tolist()))
error = {
    "X": np.abs(X - truth).mean(),
    "U": np.abs(model.low_rank_ - truth).mean(),
    "U, searched graph": np.abs(searched.low_rank_ - truth).mean(),
}
print("off the truth: " + ", ".join(f"{name} {value:.2f} degrees" for name, value in error.items()))
recall = outlier_scores(searched.sparse_, wrong)["recall"]
print(f"with a searched graph {recall:.0%} of the wrong readings stand out")

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", width_ratios=(1.4, 1))
plot_outlier_map(model.sparse_, ax=axes[0])
axes[0].set_title("S: hours down, sensors across", fontsize=9)
plot_outlier_shares(shares.features, xlabel="sensor", ax=axes[1])
axes[1].set_title("share of each sensor that stands out", fontsize=9)

# %%
figure, ax = plt.subplots(figsize=(9, 2.8), layout="constrained")
shown = slice(590, 720)
ax.plot(hour[shown], X[shown, stuck], ".", color="0.6", label="sensor 22, as given")
ax.plot(hour[shown], truth[shown, stuck], "k:", lw=1, label="truth")
ax.plot(hour[shown], model.low_rank_[shown, stuck], color="#0072B2", label="U")
ax.set(xlabel="hour", ylabel="degrees")
ax.set_ylim(None, 33)
ax.legend(frameon=False, ncols=3, loc="upper left")
