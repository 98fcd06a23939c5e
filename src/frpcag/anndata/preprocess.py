"""Counts of cells in, clean counts, embedding, graph and labels out, each in the slot where scanpy looks for it."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from frpcag.estimators.clustering import FRPCAGClustering
from frpcag.estimators.decomposition import FRPCAG
from frpcag.graphs import build_graph

Array = np.ndarray

# What suits counts that are mostly zero: the mean of a gene, which is a median of zero, is kept.
COUNTS = {"loss": "l2", "laplacian": "combinatorial"}


def denoise(
    adata: Any,
    *,
    layer: str | None = None,
    mask_var: str | Array | None = "highly_variable",
    n_components: int = 50,
    n_neighbors: int = 15,
    keep_zeros: bool = False,
    key_added: str = "frpcag",
    copy: bool = False,
    **params: Any,
) -> Any:
    """Clean the counts of cells, embed the cells, and link them to their neighbours.

    Parameters
    ----------
    adata : AnnData of shape (n_cells, n_genes)
        Normalised and in logarithms, as scanpy prepares it: ``normalize_total``, then ``log1p``.
    layer : str, optional
        Which layer to read; ``adata.X`` by default.
    mask_var : str, array of bool or None, default="highly_variable"
        The genes to use: a column of ``adata.var`` or a mask. The name is passed over if there is no such column; None
        uses all genes. The others keep their values.
    n_components : int, default=50
        Components of the embedding, at most as many as there are.
    n_neighbors : int, default=15
        Of each cell, in the graphs of the fit and in the one that is stored.
    keep_zeros : bool, default=False
        Leave zeros as they are; the layer is then sparse where the counts are.
    key_added : str, default="frpcag"
        What the results are called.
    copy : bool, default=False
        Fill and return a copy.
    **params
        Other parameters of :class:`frpcag.FRPCAG`. ``loss`` is "l2" and ``laplacian`` "combinatorial": most counts are
        zero, and the l1 loss takes a gene that few cells show for an error, as a median would. ``nonnegative`` is True
        unless the data have negative entries, and ``random_state`` is 0.

    Returns
    -------
    None or AnnData
        ``layers[key]`` holds the clean counts, ``obsm["X_<key>"]`` the embedding, ``varm["<key>_components"]`` the
        directions, ``obsp["<key>_connectivities"]`` and ``obsp["<key>_distances"]`` the graph of the embedding, and
        ``uns[key]`` the certificate, the gammas and what ``neighbors_key=key`` of scanpy needs.

    Examples
    --------
    >>> import anndata, frpcag  # doctest: +SKIP
    >>> adata = anndata.read_h5ad("cells.h5ad")  # doctest: +SKIP
    >>> frpcag.anndata.denoise(adata)  # doctest: +SKIP
    >>> adata.obsm["X_frpcag"].shape  # doctest: +SKIP
    (2700, 50)
    """
    adata = adata.copy() if copy else adata
    X, genes, chosen = _counts(adata, layer, mask_var)
    values = chosen.data if sp.issparse(chosen) else chosen
    params = {**COUNTS, "random_state": 0, "nonnegative": not (values < 0).any(), **params}
    k = min(n_neighbors, adata.n_obs - 1)
    model = FRPCAG(min(n_components, *chosen.shape), n_neighbors=k, **params).fit(chosen)
    adata.layers[key_added] = _layer(X, genes, model.low_rank_, keep_zeros=keep_zeros)
    adata.obsm[f"X_{key_added}"] = model.embedding_
    directions = np.zeros((adata.n_vars, len(model.components_)), model.components_.dtype)
    directions[genes] = model.components_.T
    adata.varm[f"{key_added}_components"] = directions
    _add_graph(adata, model, key_added, k, seed=params["random_state"])
    return adata if copy else None


def cluster(
    adata: Any,
    n_clusters: int,
    *,
    layer: str | None = None,
    mask_var: str | Array | None = "highly_variable",
    key_added: str = "frpcag_cluster",
    copy: bool = False,
    **params: Any,
) -> Any:
    """Label the cells, in as many clusters as are asked for.

    Parameters
    ----------
    adata : AnnData of shape (n_cells, n_genes)
    n_clusters : int
    layer, mask_var, copy
        As in :func:`denoise`.
    key_added : str, default="frpcag_cluster"
        The column of ``adata.obs`` that holds the labels, as categories.
    **params
        Other parameters of :class:`frpcag.FRPCAGClustering`; ``random_state`` is 0.

    Returns
    -------
    None or AnnData

    Examples
    --------
    >>> frpcag.anndata.cluster(adata, 8)  # doctest: +SKIP
    >>> adata.obs["frpcag_cluster"].nunique()  # doctest: +SKIP
    8
    """
    from pandas import Categorical

    adata = adata.copy() if copy else adata
    _, _, chosen = _counts(adata, layer, mask_var)
    model = FRPCAGClustering(n_clusters, **{"random_state": 0, **params}).fit(chosen)
    adata.obs[key_added] = Categorical([str(label) for label in model.labels_])
    return adata if copy else None


def _counts(adata: Any, layer: str | None, mask_var: str | Array | None) -> tuple[Any, Array, Any]:
    """Return the counts as stored, the positions of the genes to use, and their columns in float32."""
    X = adata.X if layer is None else adata.layers[layer]
    genes = _genes(adata, mask_var)
    chosen = X if len(genes) == X.shape[1] else X[:, genes]  # all of them without a copy
    sparse = sp.issparse(X)
    return X, genes, chosen.tocsr().astype(np.float32, copy=False) if sparse else np.asarray(chosen, dtype=np.float32)


def _genes(adata: Any, mask_var: str | Array | None) -> Array:
    """Return the positions of the genes to use."""
    if isinstance(mask_var, str):
        if mask_var not in adata.var:
            if mask_var != "highly_variable":
                raise ValueError(f"mask_var={mask_var!r} is not a column of adata.var; pass one of {list(adata.var)}.")
            return np.arange(adata.n_vars)
        mask_var = adata.var[mask_var].to_numpy(dtype=bool)
    if mask_var is None:
        return np.arange(adata.n_vars)
    mask = np.asarray(mask_var)
    if mask.dtype != bool or mask.shape != (adata.n_vars,) or not mask.any():
        raise ValueError(f"mask_var must be a mask of {adata.n_vars} genes that keeps some; got shape {mask.shape}.")
    return np.flatnonzero(mask)


def _layer(X: Any, genes: Array, low_rank: Array, *, keep_zeros: bool) -> Any:
    """Return ``X`` with its chosen columns replaced by the clean part, its zeros kept if asked."""
    whole = len(genes) == X.shape[1]
    if keep_zeros and sp.issparse(X):
        out = X.astype(np.float32).tocoo()
        place = np.full(X.shape[1], -1)
        place[genes] = np.arange(len(genes))
        at = place[out.col]
        out.data[at >= 0] = low_rank[out.row[at >= 0], at[at >= 0]]
        return out.tocsr()
    if keep_zeros:
        low_rank = np.where(np.asarray(X)[:, genes] == 0, np.float32(0), low_rank)
    if whole:
        return low_rank
    out = X.toarray().astype(np.float32) if sp.issparse(X) else np.array(X, dtype=np.float32)
    out[:, genes] = low_rank
    return out


def _add_graph(adata: Any, model: FRPCAG, key: str, k: int, *, seed: Any) -> None:
    """Store the graph of the embedding, and what is proved, where scanpy looks for neighbours."""
    graph = build_graph(model.embedding_, n_neighbors=k, random_state=seed)
    for name, matrix in (("connectivities", graph.weights), ("distances", graph.distances(model.embedding_))):
        adata.obsp[f"{key}_{name}"] = sp.csr_matrix(matrix, dtype=np.float32)
    params = {"n_neighbors": k, "method": "umap", "metric": "euclidean", "use_rep": f"X_{key}"}
    if isinstance(seed, Integral):  # other seeds cannot be written to a file
        params["random_state"] = int(seed)
    adata.uns[key] = {
        "connectivities_key": f"{key}_connectivities",
        "distances_key": f"{key}_distances",
        "params": params,
        "gamma1": model.gamma1_,
        "gamma2": model.gamma2_,
        "duality_gap": model.duality_gap_,
        "objective": model.objective_,
        "n_iter": model.n_iter_,
        "converged": bool(model.converged_),
        "singular_values": model.singular_values_,
    }
