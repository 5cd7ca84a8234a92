"""sparse_nmf for AnnData: results in obsm, varm and uns, for all kinds of matrices."""

import numpy as np
import pytest
import scipy.sparse as sp
from partwise.cells import sparse_nmf

import partwise

anndata = pytest.importorskip("anndata")

ASKED = {"sparsity": 0.4, "random_state": 0, "tol": 1e-3}


@pytest.fixture(name="X")
def counts(rng):
    return rng.poisson(1.0, (30, 11)).astype(float)


@pytest.fixture(name="expected")
def plain(X):
    model = partwise.SparseNMF(3, **ASKED)
    return model.fit_transform(X), model.components_.T


def backed(X, folder):
    anndata.AnnData(X, uns={"kept": 1}).write_h5ad(folder / "x.h5ad")
    return anndata.read_h5ad(folder / "x.h5ad", backed="r")


KINDS = {
    "dense": lambda X, folder: anndata.AnnData(X),
    "sparse": lambda X, folder: anndata.AnnData(sp.csr_matrix(X)),
    "csc": lambda X, folder: anndata.AnnData(sp.csc_matrix(X)),
    "backed": backed,
    "backed, sparse": lambda X, folder: backed(sp.csr_matrix(X), folder),
}


@pytest.mark.parametrize("limit", [None, 2000])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_matrix(X, expected, kind, limit, tmp_path):
    adata = KINDS[kind](X, tmp_path)
    assert sparse_nmf(adata, 3, memory_limit=limit, **ASKED) is None
    np.testing.assert_allclose(adata.obsm["X_nmf"], expected[0], atol=1e-6)
    np.testing.assert_allclose(adata.varm["NMFs"], expected[1], atol=1e-6)
    found = adata.uns["nmf"]
    np.testing.assert_allclose(found["sparsity"], 0.4, atol=1e-10)
    assert (found["params"]["sparsity"], found["params"]["n_components"]) == (0.4, 3)
    assert found["stop_reason"].startswith("converged: relative decrease of the loss")


def test_results_can_be_written_to_h5ad(X, tmp_path):
    adata = anndata.AnnData(X)
    sparse_nmf(adata, 3, sparsity=[0.2, (0.1, 0.5), None], random_state=0, tol=1e-3)
    adata.write_h5ad(tmp_path / "x.h5ad")
    back = anndata.read_h5ad(tmp_path / "x.h5ad")
    np.testing.assert_array_equal(back.varm["NMFs"], adata.varm["NMFs"])
    assert back.uns["nmf"]["n_iter"] == adata.uns["nmf"]["n_iter"]
    assert back.uns["nmf"]["params"]["sparsity"] == "[0.2, (0.1, 0.5), None]"


@pytest.mark.parametrize("kind", KINDS)
def test_subset_of_genes(X, kind, tmp_path):
    adata = KINDS[kind](X, tmp_path)
    mask = np.arange(11) % 3 != 0
    adata.var["highly_variable"] = mask
    expected = partwise.SparseNMF(2, **ASKED).fit(X[:, mask]).components_.T
    for mask_var in ("highly_variable", mask):
        sparse_nmf(adata, 2, mask_var=mask_var, memory_limit=2000, **ASKED)
        np.testing.assert_allclose(adata.varm["NMFs"][mask], expected, atol=1e-6)
        assert not adata.varm["NMFs"][~mask].any()
    assert "mask_var" not in adata.uns["nmf"]["params"]  # the last one had no name


def test_layers_keys_and_copies(X, expected, tmp_path):
    adata = anndata.AnnData(X + 1, layers={"counts": X})
    copied = sparse_nmf(adata, 3, layer="counts", key_added="programs", copy=True, **ASKED)
    assert not any(map(len, (adata.obsm, adata.varm, adata.uns)))
    np.testing.assert_allclose(copied.obsm["programs"], expected[0], atol=1e-9)
    np.testing.assert_allclose(copied.varm["programs"], expected[1], atol=1e-9)
    assert copied.uns["programs"]["params"]["layer"] == "counts"
    there = backed(X, tmp_path)
    assert not sparse_nmf(there, 3, copy=True, **ASKED).isbacked


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"layer": "counts"}, ValueError, "layer='counts' does not exist; layers are: raw"),
        ({"mask_var": "hv"}, ValueError, "mask_var='hv' is not a column of adata.var"),
        ({"mask_var": np.ones(3, dtype=bool)}, ValueError, r"mask_var has shape \(3,\)"),
        ({"mask_var": np.ones(11)}, ValueError, "dtype float64: give one bool per gene"),
        ({"mask_var": np.zeros(11, dtype=bool)}, ValueError, "selects no genes"),
        ({"sparsity": 1.5}, ValueError, r"sparsity=1.5 is outside \[0, 1\]"),
        ({"colour": 1}, TypeError, "colour"),
    ],
)
def test_bad_arguments_are_rejected(X, given, error, message):
    adata = anndata.AnnData(X, layers={"raw": X})
    with pytest.raises(error, match=message):
        sparse_nmf(adata, 3, **ASKED | given)
    assert not any(map(len, (adata.obsm, adata.uns)))


def test_objects_other_than_anndata_are_rejected(X):
    with pytest.raises(TypeError, match="adata is a ndarray, not an AnnData"):
        sparse_nmf(X, 3, sparsity=0.4)
    with pytest.raises(ValueError, match=r"adata.X is None: choose a layer"):
        sparse_nmf(anndata.AnnData(layers={"raw": X}), 3, sparsity=0.4)
    with pytest.raises(ValueError, match="Negative values"):
        sparse_nmf(anndata.AnnData(-X), 3, sparsity=0.4)
