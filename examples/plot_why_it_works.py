"""
Why it works: data that are smooth on their graphs
==================================================

The solver computes no SVD in its loop, yet ``U`` is nearly low-rank. The reason (Shahid et al. 2016, Sec. IV and V): if
data have neighbourhood structure, their principal directions are close to the low-frequency eigenvectors of the graphs,
and the graph terms damp high frequencies. :mod:`frpcag.insight` measures this, also for your data.
"""

import matplotlib.pyplot as plt
import numpy as np
from reproduction import load_dataset, salt_and_pepper
from reproduction.plots import plot_frequency_energy, plot_graph_covariance

from frpcag import FRPCAG, build_graph
from frpcag.insight import alignment_ratio, frequency_energy, graph_basis, graph_covariance
from frpcag.plots import plot_singular_values

clean = load_dataset("digits").X[:800].astype(float)
X, _ = salt_and_pepper(clean, 0.2, random_state=0)
model = FRPCAG(random_state=0).fit(X)
Xc, U = X - X.mean(axis=0), model.low_rank_ - model.low_rank_.mean(axis=0)

# %%
# The covariance of the true pixels in the basis of the pixel graph (here built from the *corrupted* images) is nearly
# diagonal: graph and covariance have nearly the same eigenvectors. ``s_r`` is the share on the diagonal; 1 is perfect.
# For comparison, the same graph with the pixels shuffled.
_, P = graph_basis(build_graph(X, axis=1))
shuffled = np.random.default_rng(0).permutation(64)
Gamma, Gamma_shuffled = graph_covariance(clean, P), graph_covariance(clean[:, shuffled], P)
s_r, s_r_shuffled = alignment_ratio(Gamma), alignment_ratio(Gamma_shuffled)
print(f"s_r of the pixel graph {s_r:.2f}, of the same graph on shuffled pixels {s_r_shuffled:.2f}")

figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
for ax, matrix, title in zip(axes, (Gamma, Gamma_shuffled), ("the pixel graph", "shuffled pixels"), strict=True):
    plot_graph_covariance(matrix, ax=ax)
    ax.set_title(title, fontsize=9)

# %%
# The fit moves energy to the low frequencies of the sample graph, and the singular values fall faster.
_, Q = graph_basis(model.sample_graph_, 60)
energy = {name: frequency_energy(matrix, Q) for name, matrix in {"X": Xc, "U": U}.items()}
Sigma = {name: np.linalg.svd(matrix, compute_uv=False) for name, matrix in {"X": Xc, "U": U}.items()}
figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
plot_frequency_energy(energy, ax=axes[0])
for name, values in Sigma.items():
    plot_singular_values(values, ax=axes[1], label=name)

low = {name: float(values.sum()) for name, values in energy.items()}
rank = {name: int(np.sum(np.cumsum(v**2) < 0.9 * np.sum(v**2))) + 1 for name, v in Sigma.items()}
print(f"energy in the 60 lowest of 800 frequencies: X {low['X']:.0%}, U {low['U']:.0%}")
print(f"singular values that hold 90 % of the energy: X {rank['X']}, U {rank['U']}, of 64")
