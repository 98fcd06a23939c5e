"""
Single cells, with scanpy
=========================

:func:`frpcag.anndata.denoise` takes an AnnData object and fills it as scanpy's own steps do. Neighbours, Leiden
clusters and UMAP then go on from our graph or from our embedding.

The 700 blood cells and their types, from the sorting of the cells, come with scanpy. This example needs scanpy, and
igraph for its Leiden clusters: ``pip install 'frpcag[anndata,graphs]' scanpy``.
"""

import warnings

import anndata
import matplotlib.pyplot as plt
import numpy as np
import scanpy as sc
from sklearn.metrics import adjusted_rand_score, roc_auc_score

import frpcag.anndata
from frpcag.plots.style import COLORS

warnings.simplefilter("ignore")  # what scanpy and its libraries announce for their future
given = sc.datasets.pbmc68k_reduced()
logs = given.raw.to_adata()  # logarithms of counts, two thirds of them zero
adata = anndata.AnnData(logs.X.astype(np.float32), obs=logs.obs[["bulk_labels"]], var=logs.var[[]])
types = adata.obs["bulk_labels"]

# %%
# One line cleans the counts, embeds the cells and links them. PCA stands beside it, as usual.
frpcag.anndata.denoise(adata)
print(f"gap {adata.uns['frpcag']['duality_gap']:.1e}, lowest clean value {adata.layers['frpcag'].min():.1f}")
sc.pp.pca(adata, n_comps=50, random_state=0)
sc.pp.neighbors(adata, n_neighbors=15, use_rep="X_pca", key_added="PCA", random_state=0)
sc.pp.neighbors(adata, n_neighbors=15, use_rep="X_frpcag", key_added="embedding", random_state=0)
ways = {"PCA": "PCA", "our graph": "frpcag", "our embedding": "embedding"}

# %%
# The same Leiden clusters and the same UMAP on all three. The clusters agree with the types about as well on all of
# them, by the adjusted Rand index (ARI): for clusters of these cells PCA is good enough.
agreement = {}
figure, axes = plt.subplots(1, 3, figsize=(10, 4.4))
for ax, (name, key) in zip(axes, ways.items(), strict=True):
    sc.tl.leiden(adata, resolution=0.6, neighbors_key=key, flavor="igraph", directed=False, n_iterations=-1)
    agreement[name] = adjusted_rand_score(types, adata.obs["leiden"])
    sc.tl.umap(adata, neighbors_key=key, random_state=0)
    for kind, color in zip(types.cat.categories, COLORS, strict=False):
        ax.scatter(*adata.obsm["X_umap"][types == kind].T, s=7, color=color, label=kind, linewidths=0)
    ax.set(title=f"{name}: ARI {agreement[name]:.2f}", xticks=[], yticks=[])
figure.legend(*ax.get_legend_handles_labels(), loc="lower center", ncol=4, frameon=False, markerscale=2.5, fontsize=8)
figure.subplots_adjust(left=0.01, right=0.99, top=0.92, bottom=0.24, wspace=0.04)
print(", ".join(f"{name} {value:.2f}" for name, value in agreement.items()))

# %%
# What PCA does not give: clean counts, gene by gene. A gene that marks a type is often missed in single cells, so that
# the counts as given say little; the clean ones tell the cells of the type from all others. A score of 1 separates them
# entirely, 0.5 not at all.
markers = {"MS4A1": "B", "CD79A": "B", "CD8A": "CD8+", "CD8B": "CD8+", "GNLY": "NK", "FCER1A": "Dendritic"}
score = {}
figure, axes = plt.subplots(2, len(markers), figsize=(10, 3.6), sharex="col", sharey=True)
for column, (gene, kind) in zip(axes.T, markers.items(), strict=True):
    j, own = adata.var_names.get_loc(gene), types.str.contains(kind, regex=False).to_numpy()
    for ax, values in zip(column, (adata.X[:, j].toarray().ravel(), adata.layers["frpcag"][:, j]), strict=True):
        edges = np.linspace(0, adata.X[:, j].max(), 25)
        for cells, color in ((~own, "#BBBBBB"), (own, COLORS[0])):
            ax.hist(values[cells], edges, weights=np.full(cells.sum(), 1 / cells.sum()), color=color, alpha=0.75)
        score.setdefault(gene, []).append(roc_auc_score(own, values))
        ax.text(0.95, 0.9, f"{score[gene][-1]:.2f}", transform=ax.transAxes, ha="right", va="top")
        ax.set(yticks=[])
    column[0].set_title(f"{gene}, {kind}")
axes[0, 0].set_ylabel("as given")
axes[1, 0].set_ylabel("clean")
figure.tight_layout()
print({gene: f"{before:.2f} -> {after:.2f}" for gene, (before, after) in score.items()})
