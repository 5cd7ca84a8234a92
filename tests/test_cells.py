"""sparse_nmf for AnnData: results in obsm, varm and uns, for all kinds of matrices."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from partwise.cells import sparse_nmf

import partwise
from partwise.cli import main
from partwise.io import read

anndata = pytest.importorskip("anndata")
zarr = pytest.importorskip("zarr")

ASKED = {"sparsity": 0.4, "random_state": 0, "tol": 1e-3}
MASK = np.arange(11) % 3 != 0


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
    assert found["stop_reason"].startswith("converged: components have settled")


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
    adata.var["highly_variable"] = MASK
    expected = partwise.SparseNMF(2, **ASKED).fit(X[:, MASK]).components_.T
    for mask_var in ("highly_variable", MASK):
        sparse_nmf(adata, 2, mask_var=mask_var, memory_limit=2000, **ASKED)
        np.testing.assert_allclose(adata.varm["NMFs"][MASK], expected, atol=1e-6)
        assert not adata.varm["NMFs"][~MASK].any()
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
        ({"mask_var": "hv"}, ValueError, "mask_var='hv' is not a boolean column of var; .* are: none"),
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


@pytest.mark.parametrize("kind", ["dense", "backed"])
def test_activations_as_columns_of_obs(X, kind, tmp_path):
    adata = KINDS[kind](X, tmp_path)
    sparse_nmf(adata, 3, obs_columns=True, **ASKED)
    np.testing.assert_array_equal(adata.obs[["nmf_0", "nmf_1", "nmf_2"]], adata.obsm["X_nmf"])
    sparse_nmf(adata, 2, obs_columns=True, key_added="pair", **ASKED)
    np.testing.assert_array_equal(adata.obs[["pair_0", "pair_1"]], adata.obsm["pair"])


@pytest.fixture(name="file")
def written(X, tmp_path, monkeypatch):
    """cells.h5ad with a layer, a mask, and columns that are no masks."""
    monkeypatch.chdir(tmp_path)
    adata = anndata.AnnData(sp.csr_matrix(X + 1), layers={"counts": sp.csr_matrix(X)})
    adata.var_names = [f"gene{j}" for j in range(11)]
    adata.var["highly_variable"] = MASK
    adata.var["mean"] = X.mean(axis=0)
    adata.var["some"] = pd.array([True, None] + 9 * [False], dtype="boolean")
    adata.obs["type"] = pd.Categorical(["T", "B"] * 15)
    adata.write_h5ad("cells.h5ad")
    return adata


FIT = ["fit", "cells.h5ad", "-r", "2", "-s", "0.3", "--seed", "0", "-q", "--force"]


def test_layer_and_mask_at_the_command_line(X, file, capsys):
    out = ["--layer", "counts", "--mask-var", "highly_variable", "--obs-columns", "--components-out", "cells.h5ad"]
    assert main([*FIT, *out]) == 0
    found, model = anndata.read_h5ad("cells.h5ad"), partwise.load("cells.pw")
    expected = partwise.SparseNMF(2, sparsity=0.3, random_state=0).fit(sp.csr_array(X[:, MASK]))
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-12)
    np.testing.assert_array_equal(found.varm["NMFs"][MASK].T, model.components_)
    assert not found.varm["NMFs"][~MASK].any()
    np.testing.assert_array_equal(found.obs[["nmf_0", "nmf_1"]], model.activations_)
    assert list(found.obs["type"]) == list(file.obs["type"])
    params = found.uns["nmf"]["params"]
    assert (params["layer"], params["mask_var"]) == ("counts", "highly_variable")
    assert main(["info", "cells.h5ad", "--layer", "counts", "--mask-var", "highly_variable", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["features"] == MASK.sum()
    quick = ["--mask-var", "highly_variable", "--max-iter", "2", "--n-init", "1", "--n-splits", "1"]
    assert main(["select", "cells.h5ad", "-r", "2", *quick, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["features"] == MASK.sum()


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_model_of_some_genes_finds_them_by_name(file, monkeypatch, on_disk):
    assert main([*FIT, "--mask-var", "highly_variable"]) == 0
    file[:, ::-1].copy().write_h5ad("new.h5ad")  # all genes, in another order
    if on_disk:
        monkeypatch.setattr("partwise.io.h5ad.LIMIT", 1)
        monkeypatch.setattr("partwise.io.h5ad.as_rows.__defaults__", (None, 1))
    assert main(["transform", "cells.pw", "new.h5ad", "--out", "usage.npy", "-q"]) == 0
    expected = partwise.load("cells.pw").transform(file[:, MASK].to_df())
    np.testing.assert_allclose(np.load("usage.npy"), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["--mask-var", "hv"],
            "--mask-var hv is not a boolean column of var; boolean columns are: highly_variable, some",
        ),
        (["--mask-var", "mean"], "--mask-var mean is not a boolean column of var"),
        (["--layer", "raw"], "cells.h5ad has no layer 'raw'; it has X, counts"),
        (["--obs-columns"], "--obs-columns adds to an .h5ad file: name it with --components-out"),
    ],
)
def test_bad_options_for_cells_are_rejected(file, capsys, given, message):
    assert main([*FIT, *given]) != 0
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_one_matrix_is_selected_once(file):
    with pytest.raises(ValueError, match="both select a matrix"):
        read("cells.h5ad:layers/counts", layer="counts")
    np.save("x.npy", file.X.toarray())
    with pytest.raises(ValueError, match="layer applies only to AnnData"):
        read("x.npy", layer="counts")
    zarr.save("x.zarr", file.X.toarray())
    with pytest.raises(ValueError, match=r"x\.zarr is not AnnData"):
        read("x.zarr", mask_var="highly_variable")


@pytest.mark.filterwarnings("ignore:Writing zarr v2 data")  # by AnnData
@pytest.mark.parametrize("ending", [".h5ad", ".zarr"])
def test_layer_and_mask_of_both_formats(X, file, ending):
    getattr(file, f"write_{ending[1:]}")(f"y{ending}")
    table = read(f"y{ending}", layer="counts", mask_var="highly_variable")
    np.testing.assert_array_equal(table.X.toarray(), X[:, MASK])
    assert table.feature_names == tuple(file.var_names[MASK])


def test_missing_values_of_a_mask_select_no_gene(file):
    assert read("cells.h5ad", mask_var="some").feature_names == ("gene0",)
