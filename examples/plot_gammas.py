"""
What the gammas do
==================

``gamma1`` weighs the sample graph, ``gamma2`` the feature graph. If both are near zero, nothing changes: ``U = X``. If
both are large, neighbours become alike and detail is lost. ``"auto"`` takes ``1 / mean |2 L X|``, which follows the
units of the data; all gammas on this page are multiples of it. :func:`~frpcag.regularization_path` solves for many
gammas, starts each solve from the solution of its neighbour, and certifies every one.
"""

import matplotlib.pyplot as plt
import numpy as np
from reproduction import load_dataset, salt_and_pepper
from reproduction.evaluate import relative_error
from reproduction.plots import plot_gamma_grid

from frpcag import FRPCAG, FRPCAGCV, regularization_path
from frpcag.plots import plot_image_grid

clean = load_dataset("digits").X[:600]
X, hit = salt_and_pepper(clean, 0.25, random_state=0)
unit = FRPCAG(max_iter=500, random_state=0).fit(X)

# %%
# Five gammas for each graph, 25 certified solutions, one call.
multiples = np.array([0.1, 0.3, 1.0, 3.0, 10.0])
distance, shown, worst_gap = np.empty((5, 5)), {"true": clean, "X": X}, 0.0
for point in regularization_path(X, multiples * unit.gamma1_, multiples * unit.gamma2_):
    row = int(np.argmin(np.abs(multiples * unit.gamma1_ - point.gamma1)))
    column = int(np.argmin(np.abs(multiples * unit.gamma2_ - point.gamma2)))
    distance[row, column] = relative_error(point.solution.U, clean)
    worst_gap = max(worst_gap, point.solution.gap)
    if row == column:
        shown[f"U, both gammas {multiples[row]:g} times auto"] = point.solution.U
best = np.unravel_index(distance.argmin(), distance.shape)
print(f"largest gap of 25 solutions: {worst_gap:.1e}")
as_given = relative_error(X, clean)
print(f"as given {as_given:.3f}, auto {distance[2, 2]:.3f}, best of the grid {distance.min():.3f} at")
print(f"gamma1 = {multiples[best[0]]:g} and gamma2 = {multiples[best[1]]:g} times auto")

# %%
# From too little to too much:
plot_image_grid(shown, (8, 8), n_images=12, figure=plt.figure(figsize=(8, 5.6), layout="constrained"))

# %%
# Distance to the true images over the grid. The valley is wide: "auto" is a fair start, not a tuned choice.
ax = plot_gamma_grid(multiples, multiples, distance, label="distance to the truth")
ax.set(xlabel="gamma2 / auto", ylabel="gamma1 / auto")

# %%
# Without the truth at hand, :class:`~frpcag.FRPCAGCV` hides a tenth of the entries and takes the gammas that predict
# them best.
chosen = FRPCAGCV(random_state=0).fit(X)
by_cv = relative_error(chosen.low_rank_, clean)
m1, m2 = chosen.gamma1_ / unit.gamma1_, chosen.gamma2_ / unit.gamma2_
print(f"FRPCAGCV takes {m1:.2f} and {m2:.2f} times auto: {by_cv:.3f} off the truth")

# %%
# Here this choice cleans a little better than "auto", and less well than the best of the grid: a quarter of the hidden
# entries are themselves wrong, and the best prediction need not be the best cleaning. Held-out entries are meant for
# *missing* values (:doc:`plot_missing_values`).
