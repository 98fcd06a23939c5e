"""
Video: what stands still and what moves
=======================================

A synthetic clip of sixty frames from a camera that does not move: a ball bounces through a room, a second one rolls
past a window, and the light is off for a third of the time. :class:`~frpcag.BackgroundSeparator` needs no tuning. It
links each frame to similar frames, so dark frames learn from dark frames.
"""

import matplotlib.pyplot as plt
import numpy as np
from reproduction.evaluate import mask_scores
from reproduction.plots import plot_contact_sheet
from scipy.ndimage import gaussian_filter

from frpcag import BackgroundSeparator

rng = np.random.default_rng(1)
n, h, w = 60, 72, 96
y, x = np.mgrid[:h, :w]
room = np.stack([120 + 0.5 * y, 95 + 0.4 * y, 70 + 0.2 * y], axis=-1)
room += 14 * gaussian_filter(rng.normal(size=(h, w)), 1.5)[..., None] / 0.19
room[y > 54] = (96, 70, 48)
room[(abs(x - 24) < 13) & (abs(y - 24) < 14)] = (150, 190, 225)
room[((abs(x - 24) < 1) & (abs(y - 24) < 14)) | ((abs(y - 24) < 1) & (abs(x - 24) < 13))] = (80, 60, 45)

# %%
# Paint the balls, switch the light, add the noise of a camera.
frames, truth = np.empty((n, h, w, 3)), np.zeros((n, h, w), bool)
dark = (np.arange(n) // 10) % 3 == 1
for t in range(n):
    frame = room.copy()
    balls = (
        ((7 * t) % 97, 48 - 30 * abs(np.sin(0.35 * t)), 7, (214, 60, 50)),
        (96 - (4.3 * t) % 110, 60, 5, (60, 160, 90)),
    )
    for left, top, radius, colour in balls:
        ball = (x - left) ** 2 + (y - top) ** 2 < radius**2
        frame[ball] = colour
        truth[t] |= ball
    frames[t] = frame * (0.45 if dark[t] else 1.0)
frames = np.clip(frames + rng.normal(0, 3, frames.shape), 0, 255).astype(np.uint8)

# %%
model = BackgroundSeparator().fit(frames)
median = np.median(frames.astype(np.float32), axis=0)
by_median = np.abs(frames - median).mean(axis=-1) > 20
f1 = {
    "BackgroundSeparator": mask_scores(model.mask_, truth.astype(int))["f1"],
    "one median for all frames": mask_scores(by_median, truth.astype(int))["f1"],
}
for name, value in f1.items():
    print(f"{name}: F1 {value:.2f}")
print(f"noise of the clip {model.noise_:.1f} grey levels, gamma1 {model.gamma1_:.3f}, gap {model.duality_gap_:.2f}")

# %%
at = [4, 13, 24, 47]
plot_contact_sheet(
    {
        "frame": frames[at],
        "background U": np.clip(model.background_[at], 0, 255).astype(np.uint8),
        "mask": model.mask_[at],
        "truth": truth[at],
        "one median": by_median[at],
    },
    labels=[f"frame {t}" for t in at],
    figure=plt.figure(figsize=(9, 5.6), layout="constrained"),
)

# %%
# The median takes the dark frames for foreground as a whole. New frames are compared with the background of the fit:
print("share of a new frame that is foreground:", float(model.transform(frames[3]).mean().round(3)))
