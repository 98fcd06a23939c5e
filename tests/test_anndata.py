"""AnnData objects are filled as scanpy expects, and .h5ad files go through the command line."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from frpcag import FRPCAG
from frpcag.anndata import cluster, denoise
from support.cli import invoke

ad = pytest.importorskip("anndata", reason="anndata is not installed")


@pytest.fixture
def cells():
    """Logarithms of counts of 60 cells of three kinds, 25 genes, sparse."""
    rng = np.random.default_rng(0)
    rates = np.repeat(rng.gamma(0.5, 3.0, size=(3, 25)), 20, axis=0)
    adata = ad.AnnData(sp.csr_matrix(np.log1p(rng.poisson(rates)).astype(np.float32)))
    adata.obs_names = [f"cell{i}" for i in range(60)]
    adata.var_names = [f"gene{j}" for j in range(25)]
    return adata


def test_every_slot_is_filled_with_what_the_estimator_gives(cells):
    denoise(cells, n_components=5)
    model = FRPCAG(5, n_neighbors=15, nonnegative=True, random_state=0, loss="l2", laplacian="combinatorial").fit(
        cells.X.toarray()
    )
    np.testing.assert_allclose(cells.layers["frpcag"], model.low_rank_, atol=1e-6)
    np.testing.assert_allclose(np.abs(cells.obsm["X_frpcag"]), np.abs(model.embedding_), atol=1e-4)
    assert cells.layers["frpcag"].min() >= 0
    assert cells.varm["frpcag_components"].shape == (25, cells.obsm["X_frpcag"].shape[1])
    assert cells.uns["frpcag"]["duality_gap"] <= 1e-3
    for name in ("connectivities", "distances"):
        assert cells.obsp[cells.uns["frpcag"][f"{name}_key"]].shape == (60, 60)


def test_zeros_are_kept_on_request_and_the_layer_stays_sparse(cells):
    dense = cells.copy()
    dense.X = dense.X.toarray()
    for adata in (cells, dense):
        denoise(adata, keep_zeros=True)
    assert sp.issparse(cells.layers["frpcag"])
    np.testing.assert_array_equal(
        cells.layers["frpcag"].toarray() != 0, (cells.X.toarray() != 0) & (dense.layers["frpcag"] != 0)
    )
    np.testing.assert_allclose(cells.layers["frpcag"].toarray(), dense.layers["frpcag"])


def test_only_chosen_genes_are_used_and_the_others_stay(cells):
    cells.var["highly_variable"] = np.arange(25) < 10
    denoise(cells)
    np.testing.assert_array_equal(cells.layers["frpcag"][:, 10:], cells.X.toarray()[:, 10:])
    assert not cells.varm["frpcag_components"][10:].any()
    assert cells.varm["frpcag_components"][:10].any()


def test_a_copy_leaves_the_object_alone(cells):
    out = denoise(cells, copy=True, key_added="mine")
    assert "mine" in out.layers
    assert not cells.layers
    assert not cells.uns


def test_labels_are_categories_of_the_cells(cells):
    cluster(cells, 3)
    labels = cells.obs["frpcag_cluster"]
    assert labels.dtype == "category"
    assert labels.nunique() == 3


def test_a_wrong_mask_is_refused(cells):
    with pytest.raises(ValueError, match="mask_var='hvg' is not a column"):
        denoise(cells, mask_var="hvg")
    with pytest.raises(ValueError, match="must be a mask of 25 genes"):
        denoise(cells, mask_var=np.ones(3, bool))


def test_an_h5ad_file_goes_through_the_command_line(cells, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells.write_h5ad("cells.h5ad")
    result = invoke("fit", "cells.h5ad", "--no-plots", "--nonnegative")
    assert result.exit_code == 0, result.stderr
    run = json.loads((tmp_path / "frpcag-run-cells/run.json").read_text())
    assert run["feature_names"][:2] == ["gene0", "gene1"]
    assert run["sample_ids"][-1] == "cell59"
    clean = ad.read_h5ad("frpcag-run-cells/low_rank.h5ad")
    assert list(clean.var_names) == run["feature_names"]
    assert clean.X.min() >= 0


@pytest.mark.parametrize("seed", [7, None])
def test_the_seed_that_was_passed_is_recorded(cells, seed):
    denoise(cells, n_components=3, random_state=seed)
    assert cells.uns["frpcag"]["params"].get("random_state") == seed


def test_estimators_name_the_function_for_annotated_data(cells):
    with pytest.raises(ValueError, match=r"pass it to frpcag\.anndata\.denoise"):
        FRPCAG().fit(cells)
