"""
Row blocks: data larger than memory
===================================

Pass a Dask array as it is. Graphs, solver, certificate and factors work on row blocks: on your cluster or, without a
client as here, one block after the other in this process. No step collects an array of the size of ``X``. The answer is
that of NumPy, except for neighbours in other blocks that the search misses. This example needs Dask:
``pip install 'frpcag[dask]'``.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from reproduction.evaluate import relative_error

from frpcag import FRPCAG
from frpcag.data import make_low_rank_on_graphs
from frpcag.plots import plot_embedding

X, clean, labels = make_low_rank_on_graphs(
    2000, 40, n_sample_clusters=8, n_feature_clusters=8, outliers=0.1, noise=0.3, dtype=np.float32, random_state=0
)
blocks = da.from_array(X, chunks=(500, -1))  # with real data: da.from_zarr("x.zarr"), or the path of a .npy or .zarr

# %%
by_blocks = FRPCAG(random_state=0).fit(blocks)
in_memory = FRPCAG(random_state=0).fit(X)
print("low_rank_ is", by_blocks.low_rank_)
for name, model in {"row blocks": by_blocks, "in memory": in_memory}.items():
    off = relative_error(np.asarray(model.low_rank_), clean)
    print(f"{name}: {model.n_iter_} steps, gap {model.duality_gap_:.1e}, {off:.3f} off the truth")
print(f"as given: {relative_error(X, clean):.3f} off the truth")

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for ax, (name, model) in zip(axes, {"row blocks": by_blocks, "in memory": in_memory}.items(), strict=True):
    plot_embedding(np.asarray(model.embedding_), labels, ax=ax)
    ax.set_title(name, fontsize=9)
difference = relative_error(np.asarray(by_blocks.low_rank_), in_memory.low_rank_)
print(f"difference between the two clean parts: {difference:.1e}")

# %%
# :doc:`/scaling` has more: what a cluster costs, checkpoints, and what happens if a worker is lost.
