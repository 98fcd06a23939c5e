"""Single-cell counts, from the raw counts to clean ones, clusters and a picture.

python docs/stories/cells.py              # makes counts of three kinds of cells first
python docs/stories/cells.py counts.h5ad  # your own raw counts; needs pip install 'frpcag[anndata]'

Writes labels.csv and cells.png into the working folder.
"""

import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans

from frpcag import FRPCAG


def make():
    """Return counts of 150 cells of three kinds, each read to a depth of its own, most of them zero."""
    rng = np.random.default_rng(0)
    kinds = np.repeat(rng.gamma(0.5, 2.0, size=(3, 80)), 50, axis=0)
    return sparse.csr_matrix(rng.poisson(kinds * rng.gamma(5, 0.2, size=(150, 1))))


def main():
    """Clean and cluster the counts, and draw them before and after."""
    if len(sys.argv) > 1:
        import anndata

        counts = sparse.csr_matrix(anndata.read_h5ad(sys.argv[1]).X)
    else:
        counts = make()
    depth = np.asarray(counts.sum(axis=1))
    logs = np.log1p(counts.multiply(np.median(depth) / depth).tocsr())
    model = FRPCAG(3, nonnegative=True, loss="l2", laplacian="combinatorial", random_state=0).fit(logs)
    labels = KMeans(3, n_init=10, random_state=0).fit_predict(model.embedding_)
    np.savetxt("labels.csv", labels, fmt="%d", header="label", comments="")

    rows = np.argsort(labels, kind="stable")
    genes = np.argsort(-model.low_rank_.std(axis=0))[:60]
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 2.6), layout="constrained", sharey=True)
    for ax, values, word in zip(axes, (logs.toarray(), model.low_rank_), ("as given", "clean"), strict=True):
        image = ax.imshow(values[rows][:, genes], aspect="auto", cmap="viridis", vmin=0, interpolation="nearest")
        ax.set(title=word, xlabel="gene", xticks=[])
    axes[0].set_ylabel("cell, by cluster")
    figure.colorbar(image, ax=axes, label="log count")
    figure.savefig("cells.png", dpi=110, metadata={"Software": None})
    print(f"clusters of {np.bincount(labels).tolist()} cells; no clean count is below {model.low_rank_.min():.0f}")


if __name__ == "__main__":
    main()
