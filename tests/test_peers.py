"""Comparison with cNMF 1.7.1 and starCAT, on the same counts. Run by ``make peers``."""

import contextlib
import io
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from partwise.cells import cNMF as Ours

import partwise as pw

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
cnmf = pytest.importorskip("cnmf", reason="cNMF is not installed: make peers sets up an environment with it")
anndata = pytest.importorskip("anndata")
K, THRESHOLD = 4, 0.5


@pytest.fixture(name="both", scope="module", params=[np.float32, np.float64])
def analyses(tmp_path_factory, request):
    """The same analysis by cNMF and, from the spectra of its runs, by us."""
    home = tmp_path_factory.mktemp("cnmf")
    rng = np.random.default_rng(0)
    parts = rng.gamma(0.2, 1, (K, 400))
    parts /= parts.sum(axis=1, keepdims=True)
    background = rng.gamma(1, 1, 400)
    rates = 0.6 * rng.dirichlet(np.full(K, 0.3), 200) @ parts + 0.4 * background / background.sum()
    counts = rng.poisson(1500 * rates * rng.gamma(5, 0.2, (200, 1)))
    counts = counts[:, counts.any(axis=0)]
    adata = anndata.AnnData(sp.csr_matrix(counts, dtype=request.param))
    adata.obs_names = [f"c{i}" for i in range(200)]
    adata.var_names = [f"g{j}" for j in range(counts.shape[1])]
    adata.write_h5ad(home / "counts.h5ad")
    options = {"components": [3, K, 6], "n_iter": 12, "seed": 14, "num_highvar_genes": 150}
    theirs, ours = cnmf.cNMF(str(home), "theirs"), Ours(home, "ours")
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.prepare(str(home / "counts.h5ad"), **options)
        theirs.factorize()
        theirs.combine()
        theirs.consensus(K, THRESHOLD, show_clustering=False)
        theirs.consensus(6, 0.2, show_clustering=False)  # leaves some out
        theirs.k_selection_plot(close_fig=True)
    ours.prepare(str(home / "counts.h5ad"), **options)
    for k in options["components"]:
        for i in range(12):
            spectra = cnmf.load_df_from_npz(theirs.paths["iter_spectra"] % (k, i))
            cnmf.save_df_to_npz(spectra, ours.paths["iter_spectra"] % (k, i))
    return theirs, ours, adata


def table(analysis, name, k=K, threshold="0_5"):
    return cnmf.load_df_from_npz(analysis.paths[name] % (k, threshold))


def test_preparation_is_equal(both):
    theirs, ours, _ = both
    genes = [Path(a.paths["nmf_genes_list"]).read_text() for a in (theirs, ours)]
    assert genes[0] == genes[1]
    plans = [cnmf.load_df_from_npz(a.paths["nmf_replicate_parameters"]).iloc[:, :3] for a in (theirs, ours)]
    np.testing.assert_array_equal(*(plan.to_numpy(dtype=int) for plan in plans))
    for name in ("normalized_counts", "tpm"):
        first, second = (anndata.read_h5ad(a.paths[name]).X.toarray() for a in (theirs, ours))
        np.testing.assert_allclose(first, second, rtol=1e-6 if first.dtype == np.float32 else 1e-12)
    stats = [cnmf.load_df_from_npz(a.paths["tpm_stats"]).to_numpy(dtype=float) for a in (theirs, ours)]
    np.testing.assert_allclose(*stats, rtol=1e-6)


@pytest.mark.parametrize(("k", "threshold"), [(K, 0.5), (6, 0.2)])
def test_density_labels_and_clusters_are_equal(both, k, threshold):
    theirs, _, _ = both
    spectra = cnmf.load_df_from_npz(theirs.paths["merged_spectra"] % k)
    counts = anndata.read_h5ad(theirs.paths["normalized_counts"])
    programs = pw.consensus.from_spectra(spectra, counts).at(k, threshold)
    density = cnmf.load_df_from_npz(theirs.paths["local_density_cache"] % k).to_numpy(dtype=float).ravel()
    np.testing.assert_allclose(programs.density, density, atol=1e-12)
    np.testing.assert_array_equal(programs.kept, density < threshold)
    consensus = table(theirs, "consensus_spectra", k, str(threshold).replace(".", "_")).to_numpy(dtype=float)
    ours = programs.components / programs.components.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ours, consensus, atol=1e-12)  # medians of the same clusters, in the same order


def test_tables_agree_under_a_compatible_refit(both):
    theirs, ours, _ = both
    ours.consensus(K, THRESHOLD, show_clustering=False, refit="cnmf")
    for name in ("consensus_spectra", "consensus_usages", "gene_spectra_tpm", "gene_spectra_score", "starcat_spectra"):
        one, other = table(theirs, name), table(ours, name)
        assert np.square(one.to_numpy(dtype=float) - other.to_numpy(dtype=float)).sum() < 1e-4, name
        assert list(one.columns.astype(str)) == list(other.columns.astype(str))


def test_exact_residuals_are_never_larger(both):
    theirs, ours, _ = both
    ours.consensus(K, THRESHOLD, show_clustering=False)
    X = anndata.read_h5ad(theirs.paths["normalized_counts"]).X
    spectra = table(theirs, "consensus_spectra")
    usage = theirs.refit_usage(X, spectra)
    exact = pw.consensus.from_spectra(cnmf.load_df_from_npz(theirs.paths["merged_spectra"] % K), X, rank=K).at(
        K, THRESHOLD
    )
    dense, best = X.toarray(), exact.activations @ exact.components
    theirs_left = np.square(dense - usage @ spectra.to_numpy(dtype=float)).sum(axis=1)
    assert (np.square(dense - best).sum(axis=1) <= theirs_left * (1 + 1e-9)).all()
    for name in ("gene_spectra_tpm", "gene_spectra_score"):  # and the tables hardly change
        one, other = (table(a, name).to_numpy(dtype=float) for a in (theirs, ours))
        assert np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.9999


def test_their_load_results_reads_our_files(both):
    theirs, ours, _ = both
    ours.consensus(K, THRESHOLD, show_clustering=False)
    read = cnmf.cNMF(ours.output_dir, "ours").load_results(K, THRESHOLD)
    for one, other in zip(read, ours.load_results(K, THRESHOLD), strict=True):
        pd.testing.assert_frame_equal(one, other, check_names=False, check_column_type=False)
    assert (read[3].iloc[:20] == theirs.load_results(K, THRESHOLD)[3].iloc[:20]).mean(axis=None) > 0.95


def test_stability_and_error_are_equal(both):
    theirs, ours, _ = both
    ours.k_selection_plot(close_fig=True)
    one, other = (cnmf.load_df_from_npz(a.paths["k_selection_stats"]) for a in (theirs, ours))
    np.testing.assert_allclose(one["silhouette"].to_numpy(float), other["silhouette"].to_numpy(float), atol=1e-9)
    np.testing.assert_allclose(one["prediction_error"].to_numpy(float), other["prediction_error"], rtol=1e-4)


def test_starcat_reads_the_reference_and_agrees_with_transform(both):
    starcat = pytest.importorskip("starcat", reason="starCAT is not installed: make peers")
    _, ours, adata = both
    ours.consensus(K, THRESHOLD, show_clustering=False)
    path = ours.paths["starcat_spectra__txt"] % (K, "0_5")
    query = adata[:, ::-1][:, 40:].copy()  # other order, fewer genes
    with contextlib.redirect_stdout(io.StringIO()):
        one = starcat.starCAT(reference=path)
        one.fit_transform(query)
    reference = pd.read_csv(path, sep="\t", index_col=0)
    model = pw.SparseNMF(K).fit(np.ones((K + 1, reference.shape[1])))
    model._store_parts(reference.to_numpy())
    model.feature_names_in_ = np.array(reference.columns, dtype=object)
    dense = query.X.toarray().astype(float)
    scaled = pd.DataFrame(dense / dense.std(axis=0), query.obs_names, query.var_names)
    with pytest.warns(UserWarning, match="features of the model: only these are used"):
        usage = model.transform(scaled, align="names")
    theirs = one.usage.to_numpy(float)
    assert np.corrcoef(usage.ravel(), theirs.ravel())[0, 1] >= 0.999
    shared = [gene for gene in reference.columns if gene in scaled.columns]
    X, parts = scaled[shared].to_numpy(), reference[shared].to_numpy()
    left, exact = (np.square(X - u @ parts).sum(axis=1) for u in (theirs, usage))
    assert (exact <= left * (1 + 1e-9)).all()
