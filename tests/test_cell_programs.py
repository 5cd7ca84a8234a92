"""Consensus programs from raw counts: preparation, tables, AnnData, and cNMF's interface."""

import io
import os
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from partwise.cells import cNMF, consensus
from partwise.cells.counts import moments, prepared
from partwise.cells.frames import Frame, read_frame, write_frame, write_text
from partwise.cells.tables import data_frames, tables
from scipy.optimize import nnls

import partwise as pw
from partwise.engine.summary import summary
from partwise.io.table import LazyRows

anndata = pytest.importorskip("anndata")


def planted_counts(cells=90, genes=80, programs=3, seed=0):
    rng = np.random.default_rng(seed)
    parts = rng.gamma(0.15, 1, (programs, genes))
    parts /= parts.sum(axis=1, keepdims=True)
    everywhere = rng.gamma(0.5, 1, genes)
    everywhere[0] = 60  # as MALAT1
    usage = rng.dirichlet(np.full(programs, 0.2), cells)
    rates = 0.6 * usage @ parts + 0.4 * everywhere / everywhere.sum()
    counts = rng.poisson(1200 * rates * rng.gamma(5, 0.2, (cells, 1)))
    return counts[:, counts.any(axis=0)], usage


def as_adata(counts, kind=sp.csr_matrix):
    adata = anndata.AnnData(kind(counts.astype(np.float32)))
    adata.obs_names = [f"c{i}" for i in range(counts.shape[0])]
    adata.var_names = ["MALAT1", *(f"g{j}" for j in range(1, counts.shape[1]))]
    return adata


@pytest.fixture(name="counts", scope="module")
def some_counts():
    return planted_counts()[0]


@pytest.fixture(name="done", scope="module")
def results(counts):
    adata = as_adata(counts)
    return consensus(adata, ranks=[2, 3, 4], n_runs=5, n_top_genes=60, random_state=14), adata


def test_preparation_by_definition(counts):
    ready = prepared(sp.csr_matrix(counts.astype(float)), range(90), range(counts.shape[1]), 30)
    tpm = 1e6 * counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ready.tpm.toarray(), tpm)
    np.testing.assert_allclose(ready.mean, tpm.mean(axis=0))
    np.testing.assert_allclose(ready.std, tpm.std(axis=0))
    assert len(ready.chosen) == 30
    some = counts[:, ready.chosen]
    np.testing.assert_allclose(ready.matrix.toarray(), some / some.std(axis=0, ddof=1))
    assert prepared(sp.csr_matrix(counts), range(90), range(counts.shape[1]), None).matrix.shape == counts.shape
    gaps = sp.csr_matrix(np.array([[5.0, 0.0], [0.0, 0.0], [1.0, 7.0]]))
    np.testing.assert_allclose(moments(gaps), [[2, 7 / 3], np.var(gaps.toarray(), axis=0)])


def test_tables_by_definition(counts):
    ready = prepared(sp.csr_matrix(counts.astype(float)), range(90), range(counts.shape[1]), 60)
    found = pw.consensus(ready.matrix, ranks=3, n_runs=4, random_state=0).at(3)
    made = data_frames(tables(ready, found, "exact"))
    spectra = found.components / found.components.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(made.spectra, spectra)
    usage = np.array([nnls(spectra.T, row)[0] for row in ready.matrix.toarray()])
    normed = usage / usage.sum(axis=1, keepdims=True)
    tpm = ready.tpm.toarray()
    np.testing.assert_allclose(made.tpm, np.array([nnls(normed, gene)[0] for gene in tpm.T]).T, atol=1e-6)
    z = (tpm - tpm.mean(axis=0)) / tpm.std(axis=0)
    np.testing.assert_allclose(made.scores, np.linalg.lstsq(usage, z, rcond=None)[0], atol=1e-8)
    some = tpm[:, ready.chosen] / tpm[:, ready.chosen].std(axis=0, ddof=1)
    reference = made.tpm.to_numpy()[:, ready.chosen] / tpm[:, ready.chosen].std(axis=0)
    np.testing.assert_allclose(made.usage, [nnls(reference.T, row)[0] for row in some], atol=1e-8)
    sums = 1e6 * made.tpm.to_numpy() / made.tpm.to_numpy().sum(axis=1, keepdims=True) / tpm.std(axis=0)
    np.testing.assert_allclose(made.starcat, sums[:, ready.chosen])
    assert list(made.starcat.index) == ["GEP1", "GEP2", "GEP3"]


def test_results_in_adata(done, tmp_path):
    found, adata = done
    cells = found.at(3)
    np.testing.assert_allclose(adata.obsm["X_cnmf"].sum(axis=1), 1)
    np.testing.assert_array_equal(adata.obsm["X_cnmf"], cells.usage)
    np.testing.assert_array_equal(adata.varm["cnmf_scores"].T, cells.scores)
    np.testing.assert_array_equal(adata.varm["cnmf_tpm"].T, cells.tpm)
    chosen = adata.var["cnmf_genes"].to_numpy()
    assert chosen.sum() == 60
    assert not adata.varm["cnmf_spectra"][~chosen].any()
    np.testing.assert_allclose(adata.varm["cnmf_spectra"][chosen].T, cells.tables.spectra)
    about = adata.uns["cnmf"]
    assert about["rank"] == 3
    np.testing.assert_array_equal(about["ranks"]["rank"], [2, 3, 4])
    assert about["starcat"].shape == (60, 3)
    adata.write_h5ad(tmp_path / "a.h5ad")
    again = anndata.read_h5ad(tmp_path / "a.h5ad")
    np.testing.assert_array_equal(again.uns["cnmf"]["labels"], cells.programs.labels)
    assert "marker genes" in repr(cells)
    assert "stability" in repr(found)
    found.plot().savefig(tmp_path / "ranks.png")
    cells.plot().savefig(tmp_path / "runs.png")


def test_marker_genes_are_specific(done, counts):
    cells = done[0].at(3)
    assert (cells.tpm.idxmax(axis=1) == "MALAT1").any()  # raw weights
    assert not (cells.top_genes(10) == "MALAT1").any(axis=None)
    features = cells.features(1)
    assert list(features.columns) == ["weight", "specificity", "score"]
    assert "MALAT1" not in features.index[:10]
    model = cells.programs.model
    for j in range(3):  # as reports and tables list them
        assert "MALAT1" not in [name for name, _ in summary(model).strongest_features(j)]


def test_counts_on_disk_are_read_some_cells_at_a_time(counts, tmp_path, monkeypatch):
    monkeypatch.setattr(pw.cells.counts, "BLOCK", 200)
    np.save(tmp_path / "counts.npy", counts)
    lazy = np.load(tmp_path / "counts.npy", mmap_mode="r")
    names = [range(n) for n in counts.shape]
    for X in (lazy, LazyRows(lazy.shape, lazy.dtype, lambda rows: lazy[rows])):
        np.testing.assert_array_equal(prepared(X, *names).matrix.toarray(), prepared(counts, *names).matrix.toarray())


def test_usages_of_other_cells_by_definition(done, tmp_path):
    found, adata = done
    cells = found.at(3)
    other = adata[::2, ::-1][:, 15:].copy()  # other order, fewer genes
    with pytest.warns(UserWarning, match="of the 60 features of the model: only these are used"):
        usage = cells.transform(other)
    shared = [gene for gene in cells.tables.starcat.columns if gene in set(other.var_names)]
    X = other[:, shared].X.toarray()
    scaled = X / X.std(axis=0)
    expected = np.array([nnls(cells.tables.starcat[shared].to_numpy().T, row)[0] for row in scaled])
    np.testing.assert_allclose(usage, expected / expected.sum(axis=1, keepdims=True), atol=1e-6)
    assert list(usage.index) == list(other.obs_names)
    assert list(usage.columns) == [1, 2, 3]
    cells.reference.save(tmp_path / "reference.pw")
    assert list(pw.load(tmp_path / "reference.pw").feature_names_in_) == list(cells.tables.starcat.columns)
    with pytest.raises(TypeError, match=r"use reference\.transform for arrays"):
        cells.transform(other.X)


def test_too_few_cells_and_duplicate_genes_are_refused(done):
    found, adata = done
    for count in (0, 1):
        with pytest.raises(ValueError, match=f"adata has {count} cells, but the standard deviations of genes need at"):
            found.at(3).transform(adata[:count].copy())
    twice = adata.copy()
    twice.var_names = ["MALAT1", *twice.var_names[:-1]]
    with pytest.raises(ValueError, match=r"'MALAT1' of adata occurs more than once: .* adata\.var_names_make_unique"):
        found.at(3).transform(twice)


def test_wrong_numbers_of_programs_and_genes_are_refused(done):
    cells = done[0].at(3)
    for program in (0, 4, 1.5, "1", [1], None):
        with pytest.raises(ValueError, match="give a number from 1 to 3, as in the tables"):
            cells.features(program)
    for count in (0, -1, 1.5, "1"):
        with pytest.raises(ValueError, match="give a whole number of at least 1"):
            cells.features(1, count)
        with pytest.raises(ValueError, match="give a whole number of at least 1"):
            cells.top_genes(count)


def test_anndata_is_refused_where_a_matrix_is_expected(done):
    _, adata = done
    with pytest.raises(TypeError, match="X is an AnnData: give its X or a layer"):
        pw.SparseNMF(2).fit(adata)


def test_programs_are_numbered_from_1_everywhere(done):
    cells = done[0].at(3)
    for place, number in enumerate(cells.usage.columns):
        features = cells.features(number)
        np.testing.assert_array_equal(features["score"], cells.scores.loc[number, features.index])
        np.testing.assert_array_equal(features["weight"], cells.programs.features(place)["weight"])
    drawn = [[text.get_text() for text in axis.get_yticklabels()] for axis in cells.plot().axes]
    assert ["1", "2", "3"] in drawn
    for wrong in (0, 4, "1"):
        with pytest.raises(ValueError, match="from 1 to 3"):
            cells.features(wrong)
    with pytest.raises(ValueError, match="names has 2 entries, but there are 3 programs"):
        cells.plot(names=["a", "b"])


def test_the_most_stable_rank_is_stored_unless_one_is_given(counts):
    adata = as_adata(counts, np.asarray)
    found = consensus(adata, ranks=[2, 3], n_runs=3, n_top_genes=60, random_state=0, at=2, key_added="mine")
    assert adata.uns["mine"]["rank"] == 2
    assert adata.obsm["X_mine"].shape == (90, 2)
    mask = np.arange(adata.n_vars) % 2 == 0
    sparse = consensus(adata, ranks=3, n_runs=3, mask_var=mask, sparsity=0.6, density_threshold=2.0, random_state=0)
    sparse = sparse.at(3, 2.0)
    np.testing.assert_array_equal(adata.var["cnmf_genes"], mask)
    np.testing.assert_allclose(pw.hoyer_sparsity(sparse.programs.components, axis=1), 0.6, atol=1e-10)
    assert found.rows[0]["n_runs"] == 3


@pytest.mark.parametrize(
    ("spoil", "options", "message"),
    [
        (lambda a: np.log1p(a), {}, "which is not a whole number: give raw counts"),
        (lambda a: -a, {}, "counts contain -"),
        (lambda a: a * np.nan, {}, "nan or infinity"),
        (lambda a: a * (np.arange(90) > 1)[:, None], {}, r"2 cells have no counts, first 'c0': remove them"),
        (lambda a: a * (np.arange(a.shape[1]) != 5), {}, r"1 genes have no counts, first 'g5'"),
        (lambda a: a, {"n_top_genes": 0}, "n_top_genes=0"),
        (lambda a: a, {"n_runs": 1}, "n_runs=1"),
        (lambda a: a, {"layer": "counts"}, "layer='counts' does not exist"),
        (lambda a: a, {"mask_var": "variable"}, "mask_var='variable'"),
        (lambda a: a, {"refit": "fast"}, "refit='fast'"),
        (lambda a: a, {"at": 7}, "at=7 is not one of the ranks 2"),
        (lambda a: a, {"density_threshold": -1}, "density_threshold=-1"),
    ],
)
def test_bad_counts_and_options(counts, spoil, options, message):
    adata = as_adata(counts)
    adata.X = sp.csr_matrix(spoil(counts.astype(np.float32)))
    with pytest.raises(ValueError, match=message):
        consensus(adata, **{"ranks": 2, "n_runs": 2, "n_top_genes": 40, "random_state": 0, **options})


@pytest.mark.parametrize("X", [np.full((5, 8), 3), np.arange(1, 9)[None]])
def test_cells_that_are_all_the_same_are_refused(X):
    with pytest.raises(ValueError, match="all cells have the same shares of counts: give more cells"):
        consensus(as_adata(X), ranks=2, n_runs=2)


def test_duplicate_genes_and_foreign_objects(counts):
    adata = as_adata(counts)
    adata.var_names = ["g1", "g1", *adata.var_names[2:]]
    with pytest.raises(ValueError, match="the feature name 'g1' of the counts occurs more than once"):
        consensus(adata, ranks=2, n_runs=2)
    with pytest.raises(TypeError, match=r"use partwise\.consensus for arrays"):
        consensus(counts, ranks=2)


def test_cells_without_the_chosen_genes_are_named(counts):
    adata = as_adata(counts)
    mask = np.zeros(adata.n_vars, dtype=bool)
    mask[np.argsort(counts.sum(axis=0))[:2]] = True
    with pytest.raises(
        ValueError, match=r"cells have no counts of the 2 genes that are factorized, .*or use more genes"
    ):
        consensus(adata, ranks=2, n_runs=2, mask_var=mask)


def test_runs_are_not_lost_if_a_threshold_leaves_nothing(counts):
    adata = as_adata(counts)
    with pytest.warns(UserWarning, match=r"no programs are stored in adata: density_threshold=1e-12 leaves 0 of 10"):
        found = consensus(adata, ranks=2, n_runs=5, n_top_genes=40, density_threshold=1e-12, random_state=0)
    assert "X_cnmf" not in adata.obsm
    found.at(2, 2.0)
    assert adata.obsm["X_cnmf"].shape == (90, 2)


def test_rank_one(counts):
    cells = consensus(as_adata(counts), ranks=1, n_runs=3, n_top_genes=40, random_state=0).at(1)
    np.testing.assert_allclose(cells.usage, 1)


# cNMF's own interface


@pytest.fixture(name="home", scope="module")
def analysis(counts, tmp_path_factory):
    home = tmp_path_factory.mktemp("cnmf")
    as_adata(counts).write_h5ad(home / "counts.h5ad")
    mine = cNMF(home, "mine")
    mine.prepare(str(home / "counts.h5ad"), components=[2, 3], n_iter=4, seed=14, num_highvar_genes=60)
    mine.factorize()
    assert mine.consensus(3, density_threshold=0.5).axes  # a notebook shows it
    assert mine.consensus(3, density_threshold=0.5, close_clustergram_fig=True) is None
    return home


def test_files_have_cnmfs_names(home):
    there = {str(path.relative_to(home / "mine")) for path in (home / "mine").rglob("*") if path.is_file()}
    expected = {f"mine.{name}.k_3.dt_0_5.txt" for name in ("gene_spectra_score", "gene_spectra_tpm", "starcat_spectra")}
    expected |= {f"mine.{name}.k_3.dt_0_5.consensus.txt" for name in ("usages", "spectra")}
    expected |= {"mine.overdispersed_genes.txt", "mine.clustering.k_3.dt_0_5.png", "cnmf_tmp/mine.norm_counts.h5ad"}
    expected |= {f"cnmf_tmp/mine.spectra.k_{k}.iter_{i}.df.npz" for k in (2, 3) for i in range(4)}
    assert expected <= there


def test_results_are_loaded_in_another_process(home):
    usage, scores, tpm, top = cNMF(home, "mine").load_results(3, 0.5)
    np.testing.assert_allclose(usage.sum(axis=1), 1)
    assert usage.columns.tolist() == [1, 2, 3]
    assert scores.shape == tpm.shape == (len(scores), 3)
    assert top.shape == (min(100, len(scores)), 3)
    assert top[1][0] == scores[1].idxmax()
    with pytest.raises(FileNotFoundError, match="run consensus with this K and density_threshold first"):
        cNMF(home, "mine").load_results(3, 0.1)


def test_workers_make_the_same_runs(home, tmp_path):
    again = cNMF(tmp_path, "two")
    again.prepare(str(home / "counts.h5ad"), components=[2, 3], n_iter=4, seed=14, num_highvar_genes=60)
    for worker in (0, 1):
        cNMF(tmp_path, "two").factorize(worker_i=worker, total_workers=2)
    again.combine()
    one = cNMF(home, "mine")
    for i in range(4):
        first, second = (read_frame(c.paths["iter_spectra"] % (3, i)).data for c in (one, again))
        np.testing.assert_allclose(first, second, atol=1e-7)
    assert len(read_frame(again.paths["merged_spectra"] % 3).data) == 12
    before = os.stat(again.paths["iter_spectra"] % (2, 0)).st_mtime_ns
    os.remove(again.paths["iter_spectra"] % (3, 1))
    again.factorize(skip_completed_runs=True)
    assert os.stat(again.paths["iter_spectra"] % (2, 0)).st_mtime_ns == before
    assert os.path.exists(again.paths["iter_spectra"] % (3, 1))
    with pytest.warns(UserWarning, match="8 runs exist already"):
        again.prepare(str(home / "counts.h5ad"), components=[2, 3], n_iter=4, seed=14, num_highvar_genes=60)


def test_large_files_are_read_whole(home, tmp_path, monkeypatch):
    monkeypatch.setattr("partwise.io.h5ad.LIMIT", 1)
    monkeypatch.setattr("partwise.io.h5ad.as_rows.__defaults__", (None, 1))
    copy = tmp_path / "COUNTS.H5AD"
    copy.write_bytes((home / "counts.h5ad").read_bytes())
    large = cNMF(tmp_path, "mine")
    large.prepare(copy, components=[2, 3], n_iter=4, seed=14, num_highvar_genes=60)
    for step in ("factorize", "k_selection_plot"):
        getattr(cNMF(tmp_path, "mine"), step)()  # as in processes of their own
    cNMF(tmp_path, "mine").consensus(3, density_threshold=0.5)
    for found, expected in zip(large.load_results(3, 0.5), cNMF(home, "mine").load_results(3, 0.5), strict=True):
        pd.testing.assert_frame_equal(found, expected)


def test_ranks_are_drawn(home):
    mine = cNMF(home, "mine")
    mine.k_selection_plot()
    stats = read_frame(mine.paths["k_selection_stats"]).pandas()
    assert stats["k"].tolist() == [2, 3]
    one = mine.consensus(3, skip_density_and_return_after_stats=True)
    assert one.loc["silhouette", "stats"] == pytest.approx(stats["silhouette"][1])
    assert os.path.exists(mine.paths["k_selection_plot"])


def test_another_neighbourhood_is_another_density_file(home):
    mine = cNMF(home, "mine")
    found = []
    for size in (0.3, 0.8):
        mine.consensus(3, 1.0, local_neighborhood_size=size, show_clustering=False, build_ref=False)
        found.append(read_frame(mine.paths["local_density_cache"] % 3).data)
    assert (found[1] > found[0]).any()


def test_steps_that_are_missing_are_named(home, tmp_path):
    fresh = cNMF(tmp_path, "fresh")
    for step in (fresh.factorize, fresh.k_selection_plot, lambda: fresh.consensus(3)):
        with pytest.raises(FileNotFoundError, match="run prepare first"):
            step()
    fresh.prepare(str(home / "counts.h5ad"), components=3, n_iter=2, seed=1, num_highvar_genes=40)
    with pytest.raises(FileNotFoundError, match=r"2 of 2 runs of k=3 have no file.*run factorize first"):
        fresh.consensus(3)
    os.remove(fresh.paths["nmf_run_parameters"])
    with pytest.raises(FileNotFoundError, match="run prepare first"):
        fresh.factorize()
    with pytest.raises(ValueError, match="k=5 was not prepared; ranks are 3"):
        fresh.consensus(5)
    for options, message in (
        ({"beta_loss": "kullback-leibler"}, "beta_loss"),
        ({"alpha_usage": 1.0}, "penalties are not available"),
        ({"init": "svd"}, "init='svd'"),
        ({"num_highvar_genes": 0}, "num_highvar_genes=0"),
        ({"n_iter": 1}, "n_iter=1: a consensus compares runs; give at least 2"),
    ):
        with pytest.raises(ValueError, match=message):
            fresh.prepare(str(home / "counts.h5ad"), components=3, **options)


def test_any_name_of_a_file_is_a_name(home, tmp_path):
    mine = cNMF(tmp_path / "100%d", "é <b>%s")
    mine.prepare(str(home / "counts.h5ad"), components=2, n_iter=2, seed=1, num_highvar_genes=40)
    mine.factorize()
    mine.consensus(2, density_threshold=2.0, show_clustering=False)
    assert mine.load_results(2, 2.0)[0].shape[1] == 2
    assert {path.name for path in tmp_path.iterdir()} == {"100%d"}
    for name in ("a/b", "../a", "a/"):
        with pytest.raises(ValueError, match="is not the name of a file: give the folder as output_dir"):
            cNMF(tmp_path, name)


@pytest.mark.parametrize("counts", [np.ones((4, 3)), pd.DataFrame(np.ones((4, 3))), None])
def test_counts_that_are_no_file_are_refused(tmp_path, counts):
    with pytest.raises(TypeError, match=f"counts are of type {type(counts).__name__}: give the path of a file"):
        cNMF(tmp_path, "mine").prepare(counts, components=2)


def test_arguments_of_the_steps_are_checked(home, tmp_path):
    mine = cNMF(tmp_path, "mine")
    for components in ([], [0], "3", 2.5):
        with pytest.raises(ValueError, match=r"^components"):
            mine.prepare(str(home / "counts.h5ad"), components=components)
    mine.prepare(str(home / "counts.h5ad"), components=np.int64(3), n_iter=2, seed=1, num_highvar_genes=40)
    for workers, message in (
        ((5, 2), "worker_i=5: give a number from 0 to total_workers - 1 = 1"),
        ((-1, 2), "worker_i=-1"),
        ((0, 0), "total_workers=0: give a whole number of at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            mine.factorize(*workers)
    for k in ("3", 3.0):
        with pytest.raises(ValueError, match=rf"k={k!r}: give a whole number of at least 1"):
            mine.consensus(k)


def test_counts_as_frames_text_and_genes(counts, tmp_path):
    frame = pd.DataFrame(counts, [f"c{i}" for i in range(90)], [f"g{j}" for j in range(counts.shape[1])])
    frame.to_csv(tmp_path / "counts.tsv", sep="\t")
    write_frame(Frame(counts, np.asarray(frame.index), np.asarray(frame.columns)), tmp_path / "counts.df.npz")
    (tmp_path / "genes.txt").write_text("\n".join(frame.columns[5:40]))
    made = []
    for source in ("counts.tsv", "counts.df.npz"):
        one = cNMF(tmp_path, source.split(".")[1])
        one.prepare(str(tmp_path / source), components=2, n_iter=2, seed=0, genes_file=tmp_path / "genes.txt")
        made.append(anndata.read_h5ad(one.paths["normalized_counts"]))
    np.testing.assert_allclose(made[0].X.toarray(), made[1].X.toarray())
    assert list(made[0].var_names) == list(frame.columns[5:40])
    with pytest.warns(UserWarning, match="not whole"):
        cNMF(tmp_path, "half").prepare(as_adata(counts / 2), components=2, n_iter=2, num_highvar_genes=40)
    other = as_adata(counts)
    one = cNMF(tmp_path, "tpm")
    one.prepare(other, components=2, n_iter=2, tpm_fn=other, num_highvar_genes=40)
    np.testing.assert_allclose(anndata.read_h5ad(one.paths["tpm"]).X.toarray(), counts)
    with pytest.raises(ValueError, match="tpm_fn has other cells or genes"):
        one.prepare(other, components=2, tpm_fn=other[:, ::-1].copy(), num_highvar_genes=40)


def test_frames_with_pickled_names_are_read_but_no_code(tmp_path):
    frame = pd.DataFrame(np.eye(2), ["a", "b"], ["x", "y"])
    values = {
        name: np.asarray(part, dtype=object) for name, part in (("index", frame.index), ("columns", frame.columns))
    }
    np.savez_compressed(tmp_path / "theirs.npz", data=frame.to_numpy(), **values)
    pd.testing.assert_frame_equal(read_frame(tmp_path / "theirs.npz").pandas(), frame, check_index_type=False)

    class Bad:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'run'}",)

    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "|O", "fortran_order": False, "shape": (1,)})
    content.write(pickle.dumps(Bad()))
    import zipfile

    with zipfile.ZipFile(tmp_path / "bad.npz", "w") as archive:
        for name in ("data", "index", "columns"):
            archive.writestr(f"{name}.npy", content.getvalue())
    with pytest.raises(pw.UnreadableError, match="which is not read"):
        read_frame(tmp_path / "bad.npz")
    assert not (tmp_path / "run").exists()
    np.savez(tmp_path / "wrong.npz", data=np.eye(2), index=np.arange(3), columns=np.arange(2))
    with pytest.raises(pw.UnreadableError, match="3 × 2 names"):
        read_frame(tmp_path / "wrong.npz")
    np.savez(tmp_path / "other.npz", x=np.eye(2))
    with pytest.raises(pw.UnreadableError, match="not a data frame of cNMF"):
        read_frame(tmp_path / "other.npz")


def test_text_is_written_as_by_pandas(tmp_path):
    values = np.array([[0.1, 1 / 3], [1e-30, 1234.5]])
    for dtype in (np.float64, np.float32):
        frame = Frame(values.astype(dtype), np.array(['a "b"', "c\td"], dtype=object), np.arange(1, 3))
        write_text(frame, str(tmp_path / "ours.txt"))
        frame.pandas().to_csv(tmp_path / "theirs.txt", sep="\t")
        assert (tmp_path / "ours.txt").read_bytes() == (tmp_path / "theirs.txt").read_bytes()


def test_nothing_is_made_dense():
    rng = np.random.default_rng(0)
    counts = sp.random(3000, 2500, density=0.01, random_state=0, data_rvs=lambda n: rng.integers(1, 9, n)).tolil()
    counts[:, 0] = 1  # no empty cell
    counts[0] = 1  # and no empty gene
    adata = anndata.AnnData(sp.csr_matrix(counts, dtype=np.float32))
    tracemalloc.start()
    consensus(
        adata, ranks=[2], n_runs=2, n_top_genes=2000, density_threshold=2.0, max_iter=3, random_state=0, holdout=0.1
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000 * 2000 * 8 / 2
