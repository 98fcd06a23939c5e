"""
New rows, cleaned one by one
============================

``transform`` and ``denoise`` take rows that were not in the fit. They are robust: they link a new row to the *clean*
training rows by absolute differences, ignore entries that stand out, and solve a small problem for the row while the
training rows stay fixed. PCA projects every error along with the row.
"""

import matplotlib.pyplot as plt
import numpy as np
from reproduction import block_occlusion, load_dataset, missing_pixels, salt_and_pepper
from reproduction.evaluate import relative_error
from sklearn.decomposition import PCA

from frpcag import FRPCAG
from frpcag.plots import plot_image_grid

digits = load_dataset("digits")
train, new = digits.X[:1500], digits.X[1500:1700]
model = FRPCAG(random_state=0).fit(train)
pca = PCA(20, random_state=0).fit(train)

# %%
# The same two hundred new digits, damaged in four ways. PCA cannot take NaN: it gets the mean pixel there.
damaged = {
    "clean": new,
    "25 % black or white": salt_and_pepper(new, 0.25, random_state=0)[0],
    "a bright block over a quarter": block_occlusion(new, (8, 8), 0.25, value=16, random_state=0)[0],
    "60 % NaN": missing_pixels(new, 0.6, value=np.nan, random_state=0)[0],
}
distance = {}
for name, rows in damaged.items():
    by_pca = pca.inverse_transform(pca.transform(np.where(np.isnan(rows), train.mean(axis=0), rows)))
    distance[name] = relative_error(by_pca, new), relative_error(model.denoise(rows), new)
    print(f"{name:>30}: {distance[name][0]:.1%} off by PCA, {distance[name][1]:.1%} by denoise")

# %%
# ``denoise`` is nearer to the truth each time: on clean rows, because 20 components lose detail; with grossly wrong
# entries, because PCA spreads them over the row; and with missing entries, which PCA takes for the mean pixel.
rows = damaged["a bright block over a quarter"]
plot_image_grid(
    {
        "true": new,
        "given": rows,
        "PCA": pca.inverse_transform(pca.transform(rows)),
        "FRPCAG.denoise": model.denoise(rows),
    },
    (8, 8),
    n_images=12,
    figure=plt.figure(figsize=(8, 3.3), layout="constrained"),
)

# %%
# Each row is treated on its own: alone or in a batch, the result is the same.
alone = model.denoise(rows[:1])
print("largest difference, alone or in a batch:", float(np.abs(alone - model.denoise(rows)[:1]).max()))
