"""Consensus over many runs: density, clusters, medians, sparsity, files, and what is refused."""

import re
import warnings
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import euclidean_distances

import partwise as pw
from partwise.selection.clustering import local_density, medians, neighbours, unit_rows
from partwise.selection.programs import projected
from partwise.selection.runs import read_runs

NAMES = [f"f{j}" for j in range(24)]


@pytest.fixture(name="X", scope="module")
def planted():
    """Four components of six features each."""
    rng = np.random.default_rng(5)
    parts = np.kron(np.eye(4), rng.uniform(0.5, 1, 6))
    X = rng.dirichlet(np.full(4, 0.3), 40) @ parts + 0.02 * rng.random((40, 24))
    return pd.DataFrame(X, [f"s{i}" for i in range(40)], NAMES)


@pytest.fixture(name="found", scope="module")
def runs(X):
    return pw.consensus(X, ranks=range(1, 6), n_runs=6, random_state=14)


def test_table_of_ranks(found):
    assert found.ranks == [1, 2, 3, 4, 5]
    rows = {row["rank"]: row for row in found.rows}
    assert np.isnan(rows[1]["stability"])
    assert rows[4]["stability"] > 0.95
    assert rows[4]["stability"] > rows[5]["stability"]
    assert rows[1]["error"] > rows[4]["error"]
    assert all(0 <= row["converged"] <= row["n_runs"] == 6 for row in found.rows)
    assert "stability" in repr(found)
    assert "6 of 6" in repr(found)
    assert list(found.table["rank"]) == found.ranks


def test_programs_are_the_planted_components(X, found):
    programs = found.at(4)
    planted = np.kron(np.eye(4), np.ones(6))
    assert pw.match_parts(planted, programs.components).cosines.min() > 0.97
    np.testing.assert_allclose(np.linalg.norm(programs.components, axis=1), 1)
    assert programs.activations.shape == (40, 4)
    assert programs.labels.shape == programs.density.shape == (24,)
    np.testing.assert_array_equal(programs.runs_kept, 6)
    assert "24 of 24 components are kept" in repr(programs)
    model = programs.model
    np.testing.assert_allclose(model.transform(X), programs.activations)
    np.testing.assert_allclose(programs.transform(X), programs.activations)
    residual = np.linalg.norm(X - programs.activations @ programs.components) / np.linalg.norm(X)
    assert programs.relative_error == pytest.approx(residual)
    shares = programs.activations * programs.components.sum(axis=1)
    shares = (shares / shares.sum(axis=1, keepdims=True)).mean(axis=0)
    assert (np.diff(shares) <= 1e-12).all()


def test_density_clusters_and_medians_by_definition(found):
    programs, spectra = found.at(4), found.spectra[4]
    unit = spectra / np.linalg.norm(spectra, axis=1, keepdims=True)
    distances = np.sort(euclidean_distances(unit), axis=1)
    np.testing.assert_allclose(programs.density, distances[:, 1:2].mean(axis=1))  # int(0.3 · 6) neighbours
    labels = KMeans(4, n_init=10, random_state=1).fit(unit).labels_
    np.testing.assert_array_equal(programs.clusters[programs.labels], labels)
    for j, cluster in enumerate(programs.clusters):
        median = np.median(unit[labels == cluster], axis=0)
        np.testing.assert_allclose(programs.components[j], median / np.linalg.norm(median))


def test_another_neighbourhood_is_another_density(found):
    one, three = (found.at(5, 2.0, local_neighborhood_size=size).density for size in (0.17, 0.5))
    assert (three >= one).all()
    assert (three > one).any()
    assert [neighbours(size, 500, 5) for size in (0, 0.3, 1)] == [1, 30, 100]
    assert neighbours(1, 3, 1) == 2


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csc_array, np.asfortranarray, "float32", "frozen"])
def test_every_kind_of_data(X, found, kind):
    if kind == "float32":
        data = X.to_numpy(np.float32)
    elif kind == "frozen":
        data = X.to_numpy().copy()
        data.flags.writeable = False
    else:
        data = kind(X.to_numpy())
    again = pw.consensus(data, ranks=4, n_runs=6, random_state=14).at(4)
    np.testing.assert_allclose(again.components, found.at(4).components, atol=2e-3 if kind == "float32" else 1e-6)
    assert again.feature_names is None
    assert isinstance(again.features(0).index[0], int | np.integer)


def test_a_run_depends_on_its_own_seed_only(X, found):
    other = pw.consensus(X, ranks=[4, 3], n_runs=3, random_state=14)
    np.testing.assert_allclose(other.spectra[4], found.spectra[4][:12], atol=1e-6)
    same = pw.consensus(X, ranks=[4, 3], n_runs=3, random_state=14)
    np.testing.assert_array_equal(other.spectra[4], same.spectra[4])


def test_sparse_parts_meet_the_sparsity(X):
    programs = pw.consensus(X, ranks=4, n_runs=5, sparsity=0.7, random_state=0).at(4)
    np.testing.assert_allclose(pw.hoyer_sparsity(programs.components, axis=1), 0.7, atol=1e-10)
    np.testing.assert_allclose(programs.model.sparsity_, 0.7, atol=1e-10)
    assert programs.model.sparsity == 0.7
    for j in range(4):
        found = programs.features(j)
        assert set(found.index) == set(np.array(NAMES)[programs.components[j] > 0])
        assert dict(found["weight"]) == {
            name: weight for name, weight in zip(NAMES, programs.components[j], strict=True) if weight
        }
    levels = pw.hoyer_sparsity(
        pw.consensus(X, ranks=4, n_runs=3, sparsity=(0.3, 0.4), random_state=0).at(4).components, axis=1
    )
    assert (levels >= 0.3 - 1e-10).all()
    assert (levels <= 0.4 + 1e-10).all()


@pytest.mark.parametrize("sparsity", [0.6, 0.8])
def test_a_consensus_has_no_features_that_no_run_has(X, sparsity):
    found = pw.consensus(X, ranks=4, n_runs=6, sparsity=sparsity, random_state=0).at(4)
    for j in range(4):
        runs = found.spectra[found.labels == j]
        assert not (found.components[j] > 0)[(runs == 0).all(axis=0)].any()


def test_a_consensus_gets_features_if_its_own_are_too_few_for_the_sparsity():
    parts = projected(np.eye(2, 9), 0.2)
    np.testing.assert_allclose(pw.hoyer_sparsity(parts, axis=1), 0.2, atol=1e-10)
    assert (parts.argmax(axis=1) == [0, 1]).all()
    assert (parts > 0).all()


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    parts = np.kron(np.eye(3), np.ones(10)) * rng.gamma(1.0, 1.0, 30)
    return parts, rng.poisson(rng.gamma(0.5, 1.0, (150, 3)) @ parts)


@pytest.mark.parametrize("sparsity", [None, (0.3, 0.8)])
def test_divergence_of_counts(counts, sparsity, tmp_path):
    parts, X = counts
    asked = {"sparsity": sparsity, "random_state": 0, "checkpoint": tmp_path / "runs.pw"}
    found = pw.consensus(X, ranks=[2, 3], n_runs=4, loss="kl", **asked)
    programs = found.at(3)
    assert pw.match_parts(parts, programs.components).cosines.min() > 0.99
    model = pw.SparseNMF(3, loss="kl", fixed_components=programs.components).fit(X)  # the exact activations
    np.testing.assert_allclose(programs.activations, model.transform(X), atol=1e-7)
    assert 1 - programs.relative_error**2 == pytest.approx(model.score(X))
    assert found.rows[1]["error"] == pytest.approx(found.at(3, 2.0).relative_error)
    assert found.connectivity(3).matrix.shape == (150, 150)
    assert "explained" in repr(programs)
    programs.save(tmp_path / "model.pw")
    saved = pw.load(tmp_path / "model.pw")
    assert saved.loss == "kullback-leibler"
    np.testing.assert_allclose(saved.transform(X), programs.activations, atol=1e-7)
    again = pw.load(tmp_path / "runs.pw").at(3, X=X)
    np.testing.assert_array_equal(again.activations, programs.activations)
    with pytest.raises(ValueError, match="belongs to a consensus with different loss"):
        pw.consensus(X, ranks=[2, 3], n_runs=4, **asked)
    with pytest.raises(ValueError, match=r"holdout=0.2 needs the squared loss"):
        pw.consensus(X, ranks=3, n_runs=2, loss="kl", holdout=0.2)


def test_features_per_part(X):
    programs = pw.consensus(X, ranks=4, n_runs=8, features_per_part=6, random_state=0).at(4, 1.0)
    assert [len(programs.features(j)) for j in range(4)] == [6] * 4
    assert len(programs.features(0, top=3)) == 3


def test_features_are_ordered_by_specificity_where_names_are_known(X, found):
    programs = found.at(4)
    named = programs.features(0)
    assert (np.diff(named["specificity"]) <= 0).all()
    unnamed = pw.consensus(X.to_numpy(), ranks=4, n_runs=2, random_state=14).at(4, 2.0).features(0)
    assert (np.diff(unnamed["weight"]) <= 0).all()
    np.testing.assert_allclose(programs.specificity, pw.specificity(programs.components))
    for wrong in (4, "0", 1.0):
        with pytest.raises(ValueError, match="give a number from 0 to 3"):
            programs.features(wrong)


def test_thresholds_that_leave_too_little_are_explained(found):
    with pytest.raises(ValueError, match=r"density_threshold=1e-09 leaves 0 of 24 .* at least 4: 0\.05 leaves \d+"):
        found.at(4, 1e-9)
    with pytest.raises(ValueError, match="rank=9 was not fitted; ranks are 1, 2, 3, 4, 5"):
        found.at(9)
    with pytest.raises(ValueError, match="density_threshold=-1"):
        found.at(4, -1)
    with pytest.raises(ValueError, match="local_neighborhood_size=2"):
        found.at(4, local_neighborhood_size=2)


def test_isolated_and_zero_components_are_left_out(X):
    rng = np.random.default_rng(0)
    runs = [np.kron(np.eye(2), np.ones(12)) + 0.01 * rng.random((2, 24)) for _ in range(5)]
    runs[2][1] = np.eye(24)[7]  # found once
    runs[4][0] = 0.0  # dead
    programs = pw.consensus.from_spectra(runs, X).at(2, 0.3)
    assert np.flatnonzero(programs.labels < 0).tolist() == [5, 8]
    assert programs.density[8] == np.inf
    assert sorted(programs.runs_kept) == [4, 4]


def test_cluster_whose_median_is_zero_takes_its_mean():
    unit = unit_rows(np.eye(6)[:5])
    np.testing.assert_allclose(medians(unit, np.zeros(5, dtype=int), 1)[0], unit.mean(axis=0))
    assert local_density(np.zeros((3, 2)), np.zeros((3, 3)), 1).tolist() == [np.inf] * 3


def test_from_spectra_takes_arrays_lists_dicts_and_cnmf_names(X, found):
    stacked = found.spectra[4]
    by_run = [stacked[4 * i : 4 * i + 4] for i in range(6)]
    named = pd.DataFrame(stacked, [f"iter{i}_topic{j + 1}" for i in range(6) for j in range(4)], NAMES)
    forms = [({4: stacked}, {}), (by_run, {}), (named, {}), (stacked, {"rank": 4})]
    for spectra, options in forms:
        again = pw.consensus.from_spectra(spectra, X, **options).at(4)
        np.testing.assert_array_equal(again.components, found.at(4).components)
    assert pw.consensus.from_spectra(named, X.to_numpy()).feature_names.tolist() == NAMES
    projected = pw.consensus.from_spectra(named, X, sparsity=0.8).at(4)
    np.testing.assert_allclose(pw.hoyer_sparsity(projected.components, axis=1), 0.8, atol=1e-10)
    wrong = [
        (stacked, {}, "give rank="),
        (stacked, {"rank": 5}, "spectra of rank 5 have 24 rows"),
        (stacked[:4], {"rank": 4}, "at least two runs"),
        (stacked[:, :9], {"rank": 4}, "have 9 features, but X has 24"),
        (-stacked, {"rank": 4}, "must be finite and nonnegative"),
    ]
    for spectra, options, message in wrong:
        with pytest.raises(ValueError, match=message):
            pw.consensus.from_spectra(spectra, X, **options)
    with pytest.raises(ValueError, match="no runs to save"):
        pw.consensus.from_spectra(by_run, X).save("x.pw")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_runs": 1}, "n_runs=1: a consensus compares runs; give at least 2"),
        ({"n_runs": 0}, "n_runs=0"),
        ({"ranks": []}, "ranks is empty"),
        ({"ranks": [0]}, "ranks=0"),
        ({"sparsity": [0.5] * 4}, "one sparsity per part does not fit all ranks"),
        ({"sparsity": 1.5}, r"^sparsity=1\.5"),
        ({"sparsity": 0.5, "features_per_part": 3}, "give one of them"),
        ({"features_per_part": 0}, "features_per_part=0"),
        ({"holdout": 1.5}, "holdout=1.5"),
        ({"tol": -1}, "tol=-1"),
    ],
)
def test_bad_options_are_refused_before_any_run(X, options, message):
    with pytest.raises(ValueError, match=message):
        pw.consensus(X, **{"ranks": 4, "n_runs": 3, **options})


def test_bad_data_are_refused():
    for bad in (-np.eye(4), np.full((3, 3), np.nan), np.ones(4)):
        with pytest.raises(ValueError, match=r"negative|NaN|nan|samples × features"):
            pw.consensus(bad, ranks=2, n_runs=2)


def test_features_of_the_same_name_are_refused(X):
    double = X.rename(columns={"f1": "f0"})
    for call in (
        lambda: pw.consensus(double, 2),
        lambda: pw.consensus.from_spectra([np.eye(X.shape[1])[:2]] * 2, double),
    ):
        with pytest.raises(ValueError, match="the feature name 'f0' of X occurs more than once"):
            call()


@pytest.mark.parametrize(("value", "advice"), [(np.nan, {"missing": "em"}), (-0.1, {"negative": "allow"})])
def test_missing_and_negative_entries_are_refused_with_advice_that_works(X, tmp_path, value, advice):
    odd = X.copy()
    odd.iloc[:3, 0] = value
    ((name, choice),) = advice.items()
    with pytest.raises(ValueError, match=f"set {name}='{choice}'"):
        pw.consensus(odd, ranks=4, n_runs=2)
    found = pw.consensus(odd, 4, 4, random_state=0, checkpoint=tmp_path / "found.pw", precision="single", **advice)
    whole = pw.consensus(X, ranks=4, n_runs=4, random_state=0).at(4)
    programs = found.at(4)
    cosines = programs.components @ whole.components.T
    assert (cosines.max(axis=1) > 0.99).all()
    np.testing.assert_allclose(programs.transform(odd), programs.activations, atol=1e-6)
    again = pw.load(tmp_path / "found.pw").at(4, X=odd)
    np.testing.assert_array_equal(again.activations, programs.activations)
    with pytest.raises(ValueError, match="belongs to a consensus with different"):
        pw.consensus(X, 4, 4, random_state=0, checkpoint=tmp_path / "found.pw", precision="single")


def test_runs_with_few_features_agree():
    rng = np.random.default_rng(3)
    parts = rng.random((4, 60)) ** 3
    X = rng.random((80, 4)) ** 3 @ parts + 0.05 * rng.random((80, 60))
    found = pw.consensus(X, ranks=4, n_runs=8, features_per_part=10, random_state=0)
    assert found.rows[0]["stability"] > 0.7  # 0.13 if runs begin with ten random features each
    assert (np.count_nonzero(found.at(4).components, axis=1) <= 10).all()


def test_holdout_of_data_in_chunks_is_refused_before_any_run(X, tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", X)
    module = import_module("partwise.selection.consensus")  # pw.selection.consensus is the function
    monkeypatch.setattr(module, "fit_runs", lambda *args: pytest.fail("a run was made"))
    with pytest.raises(ValueError, match="holdout= needs X in memory"):
        pw.consensus(np.load(tmp_path / "x.npy", mmap_mode="r"), 2, 2, holdout=0.1, memory_limit=4000)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_is_replaced_only_by_a_finished_run(X, tmp_path, overwrite):
    path = tmp_path / "runs.pw"
    path.write_text("something else")
    with pytest.raises(ValueError, match="n_threads=0" if overwrite else "cannot be resumed"):
        pw.consensus(X, 2, 2, checkpoint=path, overwrite=overwrite, n_threads=0)
    assert path.read_text() == "something else"
    pw.consensus(X, 2, 2, checkpoint=path, overwrite=True)
    assert pw.load(path).ranks == [2]


@pytest.mark.parametrize(
    ("spectra", "message"),
    [
        ([], "give the components of at least two runs"),
        ({}, "give the components of at least two runs"),
        ("abc", "give the components of at least two runs"),
        ([1.0, 2.0], "spectra have shape"),
        (np.zeros((4, 30)), "spectra of rank 2 are all zero"),
    ],
)
def test_spectra_that_are_none(spectra, message):
    with pytest.raises(ValueError, match=message):
        pw.consensus.from_spectra(spectra, np.ones((5, 30)), rank=2)


def test_equal_runs_are_not_clustered_into_more_than_there_are(X):
    same = np.tile(np.vstack([np.eye(24)[:1]] * 2), (3, 1))
    found = pw.consensus.from_spectra(same, X, rank=2)
    assert np.isnan(found.rows[0]["error"])
    with pytest.raises(ValueError, match="1 different components, too few for 2 clusters"):
        found.at(2)


def test_held_out_error(X):
    found = pw.consensus(X, ranks=[2, 4], n_runs=2, holdout=0.25, random_state=0)
    low, right = (row["heldout_error"] for row in found.rows)
    assert right < low < 1
    assert "held-out error" in repr(found)
    same = pw.consensus(sp.csr_array(X.to_numpy()), ranks=[4], n_runs=2, holdout=0.25, random_state=0)
    assert same.rows[0]["heldout_error"] == pytest.approx(right, rel=1e-4)
    with pytest.raises(ValueError, match="only 1 of one"):
        pw.consensus(np.ones((1, 5)), ranks=1, n_runs=2, holdout=0.5, random_state=0)


def test_runs_that_did_not_converge_are_counted(X):
    found = pw.consensus(X, ranks=4, n_runs=3, max_iter=2, random_state=0)
    assert found.rows[0]["converged"] == 0
    assert "0 of 3" in repr(found)


def test_saved_and_loaded(X, found, tmp_path):
    found.save(tmp_path / "found.pw")
    again = pw.load(tmp_path / "found.pw")
    assert repr(again) == repr(found)
    with pytest.raises(ValueError, match="give X="):
        again.at(4)
    one, other = again.at(4, X=X), found.at(4)
    np.testing.assert_array_equal(one.components, other.components)
    assert one.feature_names.tolist() == NAMES
    with pytest.raises(ValueError, match="X has 5 features, but the components have 24"):
        again.at(4, X=np.ones((3, 5)))
    other.save(tmp_path / "model.pw")
    model = pw.load(tmp_path / "model.pw")
    np.testing.assert_array_equal(model.components_, other.components)
    np.testing.assert_array_equal(model.activations_, other.activations)
    assert model.feature_names_in_.tolist() == NAMES
    assert "consensus of 6 runs" in model.stop_reason_
    assert "consensus of 6 runs" in model.report()


def test_checkpoint_resumes_and_extends(X, tmp_path, monkeypatch):
    path = tmp_path / "runs.pw"
    whole = pw.consensus(X, ranks=[2, 3], n_runs=3, random_state=1)
    calls = []

    def stop(number, result):
        calls.append(number)
        if len(calls) == 3:
            raise KeyboardInterrupt

    from partwise.selection import runs

    original = runs.fit_each

    def interrupted(data, keywords, options, done):
        original(data, keywords, options, lambda *args: (done(*args), stop(*args)))

    with monkeypatch.context() as patch:
        patch.setattr(runs, "fit_each", interrupted)
        patch.setattr(runs, "IDLE", 1e9)  # written once, and again at the interrupt
        with pytest.raises(KeyboardInterrupt):
            pw.consensus(X, ranks=[2, 3], n_runs=3, random_state=1, checkpoint=path)
    assert len(read_runs(path)[0].components) == 3
    finished = []
    with monkeypatch.context() as patch:
        patch.setattr(
            runs, "fit_each", lambda data, keywords, *rest: (finished.extend(keywords), original(data, keywords, *rest))
        )
        again = pw.consensus(X, ranks=[2, 3], n_runs=3, random_state=1, checkpoint=path)
    assert len(finished) == 3
    for rank in (2, 3):
        np.testing.assert_allclose(again.spectra[rank], whole.spectra[rank], rtol=1e-8)  # other runs shared its passes
    more = pw.consensus(X, ranks=[2, 4], n_runs=4, random_state=1, checkpoint=path)
    np.testing.assert_array_equal(more.spectra[2][:6], again.spectra[2])
    without_seed = pw.consensus(X, ranks=[2], n_runs=3, checkpoint=path)
    np.testing.assert_array_equal(without_seed.spectra[2], again.spectra[2])
    for change, name in (({"random_state": 2}, "random_state"), ({"sparsity": 0.5}, "sparsity"), ({"tol": 0.3}, "tol")):
        with pytest.raises(ValueError, match=f"belongs to a consensus with different {name}"):
            pw.consensus(X, ranks=[2], **{"n_runs": 3, "random_state": 1, "checkpoint": path, **change})
    with pytest.raises(ValueError, match="different X"):
        pw.consensus(X + 1, ranks=[2], n_runs=3, random_state=1, checkpoint=path)


def test_unfinished_damaged_and_foreign_files(X, tmp_path):
    path = tmp_path / "runs.pw"
    pw.consensus(X, ranks=[2], n_runs=2, random_state=1, checkpoint=path)
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(pw.UnreadableError, match="damaged"):
        pw.load(path)
    with pytest.raises(ValueError, match="cannot be resumed"):
        pw.consensus(X, ranks=[2], n_runs=2, random_state=1, checkpoint=path)
    pw.SparseNMF(2, max_iter=3, tol=0).fit(X).save(path)
    with pytest.raises(ValueError, match="is a model, not the runs of a consensus"):
        pw.consensus(X, ranks=[2], n_runs=2, random_state=1, checkpoint=path)
    with pytest.raises(ValueError, match="cannot be written"):
        pw.consensus(X, ranks=[2], n_runs=2, checkpoint=tmp_path / "none" / "runs.pw")


def test_pictures(found, tmp_path):
    for figure, axes in ((found.plot(title="ranks"), 2), (found.at(4).plot(title="runs"), 4)):
        figure.savefig(tmp_path / "picture.png")
        assert len(figure.axes) == axes
    found.at(1, 2.0).plot().savefig(tmp_path / "picture.png")
    for function in (pw.plotting.ranks, pw.plotting.clustergram, pw.plotting.clustermap):
        with pytest.raises(ValueError, match="found has type int"):
            function(3)


def test_samples_that_are_together_in_all_runs(tmp_path):
    rng = np.random.default_rng(0)
    classes = np.repeat([0, 1, 2], 15)
    X = np.kron(np.eye(3), np.ones(8))[classes] + 0.1 * rng.random((45, 24))
    found = pw.consensus(X, ranks=[3], n_runs=6, random_state=0).connectivity(3)
    assert found.cophenetic > 0.99
    assert len({(a, b) for a, b in zip(found.classes, classes, strict=True)}) == 3
    np.testing.assert_allclose(np.diag(found.matrix), 1)
    np.testing.assert_array_equal(found.matrix, found.matrix.T)
    found.plot(title="samples").savefig(tmp_path / "map.png")
    assert "cophenetic correlation" in repr(found)


def test_connectivity_is_refused_for_many_samples():
    X = sp.random_array((10_001, 3), density=0.5, rng=np.random.default_rng(0)).tocsr()
    found = pw.consensus.from_spectra([np.eye(3)[:2]] * 2, X)
    with pytest.raises(ValueError, match="X has 10001 samples"):
        found.connectivity(2)
    with pytest.raises(ValueError, match="rank=7 was not fitted"):
        found.connectivity(7)
    with pytest.raises(ValueError, match="X has 2 samples: classes need at least 3"):
        pw.consensus.from_spectra([np.eye(3)[:2]] * 2, np.ones((2, 3))).connectivity(2)


def test_rank_above_the_data(X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = pw.consensus(X.iloc[:3, :4], ranks=[5], n_runs=3, random_state=0)
    assert found.ranks == [5]


# aligning other data by names


def test_transform_aligns_by_name(X, found):
    model = found.at(4).model
    expected = model.transform(X)
    np.testing.assert_allclose(model.transform(X.iloc[:, ::-1], align="names"), expected, atol=1e-12)
    more = X.assign(unknown=1.0)
    np.testing.assert_allclose(model.transform(more, align="names"), expected, atol=1e-12)
    with pytest.warns(UserWarning, match="X has 20 of the 24 features of the model: only these are used"):
        some = model.transform(X.iloc[:, 4:], align="names")
    residual = np.linalg.norm(X.iloc[:, 4:] - some @ model.components_[:, 4:], axis=1)
    from scipy.optimize import nnls

    best = [nnls(model.components_[:, 4:].T, row)[1] for row in X.iloc[:, 4:].to_numpy()]
    np.testing.assert_allclose(residual, best, atol=1e-8)


@pytest.mark.parametrize(
    ("other", "align", "message"),
    [
        (lambda X: X.rename(columns=lambda name: f"x{name}"), "names", "no feature name in common"),
        (lambda X: X.rename(columns={"f1": "f0"}), "names", "the feature name 'f0' of X occurs more than once"),
        (lambda X: X.to_numpy(), "names", "X has none"),
        (lambda X: X, "places", "align='places' is not one of 'names'"),
    ],
)
def test_names_that_cannot_be_aligned(X, found, other, align, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        found.at(4).model.transform(other(X), align=align)


def test_masks_and_data_on_disk_cannot_be_aligned(X, found, tmp_path):
    model = found.at(4).model
    with pytest.raises(ValueError, match="observed= cannot be used with align"):
        model.transform(X, align="names", observed=X > 0)
    sparse = pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X.to_numpy()), X.index, X.columns)
    np.testing.assert_allclose(model.transform(sparse.iloc[:, ::-1], align="names"), model.transform(X), atol=1e-10)


def test_model_without_names_cannot_be_aligned(X):
    model = pw.SparseNMF(2, max_iter=5, tol=0).fit(X.to_numpy())
    with pytest.raises(ValueError, match="the model has none"):
        model.transform(X, align="names")


def test_sparse_data_frames_stay_sparse(X):
    table = pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X.to_numpy()), X.index, X.columns)
    found = pw.consensus(table, ranks=[2], n_runs=2, random_state=0)
    assert type(found.data).__name__ == "SparseData"
    assert found.feature_names.tolist() == NAMES
