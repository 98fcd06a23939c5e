"""
The certificate: how far from the optimum
=========================================

The model is convex, so its objective has one smallest value. Every solve computes a lower bound of that value. The
relative difference between the bound and the value reached is the *duality gap*. You need not trust the solver: the
bound holds for any ``U`` (see :doc:`the maths </maths>`).

Shahid et al. (2016) stop when the iterates hardly change. We run their algorithm and ours on the same problem.
"""

import warnings

import matplotlib.pyplot as plt
from reproduction import load_dataset, salt_and_pepper
from sklearn.exceptions import ConvergenceWarning

from frpcag import Problem, build_graph, solve
from frpcag.engines.gammas import scale_free_gamma

X, _ = salt_and_pepper(load_dataset("digits").X[:800].astype(float), 0.25, random_state=0)
X -= X.mean(axis=0)
L1, L2 = (build_graph(X, axis=axis).laplacian for axis in (0, 1))
gamma1, gamma2 = (10 * scale_free_gamma(L, X, axis=axis) for axis, L in enumerate((L1, L2)))
problem = Problem(X, L1, L2, gamma1, gamma2)

# %%
# 200 steps of each, without a stop; the gap is computed on the way.
warnings.simplefilter("ignore", ConvergenceWarning)  # the limit of steps is meant to be reached
runs = {
    "the paper's algorithm": solve(problem, tol=0, max_iter=200, restart=False, step="paper"),
    "step size by Lanczos": solve(problem, tol=0, max_iter=200, restart=False),
    "the same with restart (default)": solve(problem, tol=0, max_iter=200),
}

# %%
# The paper stops when the squared change of an iterate falls below a share of its squared size, here 1e-4. We stop at a
# gap of 1e-3.
paper = solve(problem, restart=False, step="paper", stop="change", tol=1e-4)
ours = solve(problem)
print(f"stop on change: {paper.n_iter} steps, gap {paper.gap:.1e}")
print(f"stop on gap:    {ours.n_iter} steps, gap {ours.gap:.1e}")
for name, run in runs.items():
    print(f"{name}: gap {run.gap:.1e} after {run.n_iter} steps")

# %%
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for (name, run), style in zip(runs.items(), (":", "--", "-"), strict=True):
    ax.semilogy(run.history["n_iter"], run.history["gap"], style, label=name)
ax.plot(paper.n_iter, paper.gap, "ko", mfc="none", ms=9)
ax.annotate("the paper's stop", (paper.n_iter, paper.gap), (paper.n_iter + 12, 2.5 * paper.gap), fontsize=9)
ax.plot(ours.n_iter, ours.gap, "k*", ms=11)
ax.annotate("ours", (ours.n_iter, ours.gap), (ours.n_iter + 4, 2 * ours.gap), fontsize=9)
ax.set(xlabel="steps", ylabel="relative duality gap")
ax.legend(frameon=False)

# %%
# An iterate that hardly changes need not be near the optimum: momentum may be about to turn, or the steps may be short.
