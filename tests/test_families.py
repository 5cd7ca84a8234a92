"""Families of components over models and donors."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

import partwise as pw

anndata = pytest.importorskip("anndata")


def planted_models(rng, owners, features=80, noise=0.03):
    """One DataFrame of components per model, in random order, and the true family of each."""
    count = 1 + max(max(owner) for owner in owners)
    parts = rng.gamma(0.15, 1, (count, features))
    parts /= np.linalg.norm(parts, axis=1, keepdims=True)
    common = rng.random(features) * 0.1  # what all components share
    models, truth = [], []
    for owner in owners:
        order = rng.permutation(owner)
        rows = (parts[order] + common + noise * rng.random((len(order), features))) * rng.uniform(1, 9, (len(order), 1))
        models.append(pd.DataFrame(rows, columns=[f"g{j}" for j in range(features)]))
        truth.append(order)
    return models, truth


@pytest.mark.parametrize("seed", range(5))
def test_shared_and_private_components(seed):
    rng = np.random.default_rng(seed)
    models, truth = planted_models(rng, [[0, 1, 2, 3], [0, 1, 2, 4], [0, 1, 5], [0, 2, 1]])
    found = pw.match(models, by="names")
    assert adjusted_rand_score(np.concatenate(truth), np.concatenate(found.labels)) >= 0.95
    assert [family.coverage for family in found.families] == [4, 4, 3, 1, 1, 1]
    assert len(found.private) == 3
    for family in found.private:
        ((model, component),) = family.members
        alone = models[model].to_numpy()[component]
        np.testing.assert_allclose(family.part, alone / np.linalg.norm(alone))  # nothing is averaged in
        assert np.isnan(family.silhouette)
    assert all(family.silhouette > 0.5 for family in found.shared)
    assert "(only 0)" in repr(found)
    assert len(found.table) == len(found) == 6
    assert found.features(0, top=3).shape == (3, 2)


def test_features_are_matched_by_name_on_what_all_models_have(rng):
    models, truth = planted_models(rng, [[0, 1, 2], [0, 1, 2], [0, 1, 2]])
    models[1] = models[1].iloc[:, ::-1]
    models[2] = models[2].iloc[:, 10:].assign(other=5.0)
    found = pw.match(models)
    assert adjusted_rand_score(np.concatenate(truth), np.concatenate(found.labels)) == 1
    assert found.left_out == (10, 10, 1)
    assert found.feature_names.tolist() == [f"g{j}" for j in range(10, 80)]
    assert found[0].part.shape == (70,)


def test_two_components_of_a_model_are_never_in_one_family(rng):
    same = np.abs(np.ones((3, 9)) + 0.01 * rng.random((3, 9)))
    same[:, 0] += 3
    found = pw.match([same, same], by="position")
    for family in found.families:
        assert len({member.model for member in family.members}) == len(family.members)


def test_models_programs_and_groups(rng):
    X = pd.DataFrame(np.kron(np.eye(2), np.ones((8, 5))) + 0.1 * rng.random((16, 10)), columns=list("abcdefghij"))
    first = pw.SparseNMF(2, random_state=0).fit(X)
    second = pw.consensus(X, ranks=2, n_runs=3, random_state=0).at(2)
    third = pw.ssnmf(X, 2, random_state=1)
    found = pw.match([first, second], groups=["a", "a"])
    assert [family.coverage for family in found.families] == [1, 1]
    assert [family.groups for family in found.families] == [["a"], ["a"]]
    assert [len(family.members) for family in pw.match([first, third], by="position").families] == [2, 2]


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        ([np.eye(3)], {}, "at least two models"),
        ("ab", {}, "at least two models"),
        ([pw.SparseNMF(), np.eye(3)], {}, "this SparseNMF is not fitted: call fit first"),
        ([np.eye(3), np.eye(3)], {}, "model 0 has no feature names"),
        ([np.eye(3), np.eye(4)], {"by": "position"}, "models have 3, 4 features"),
        ([np.eye(3), np.eye(3)], {"by": "cosine"}, "by='cosine'"),
        ([np.eye(3), np.eye(3)], {"by": "position", "groups": [1]}, "1 groups for 2 models"),
        ([np.eye(3), np.eye(3)], {"by": "position", "min_cosine": 2}, "min_cosine=2"),
        ([pd.DataFrame(np.eye(2), columns=c) for c in (["a", "b"], ["c", "d"])], {}, "no feature name in common"),
        ([pd.DataFrame(np.eye(2), columns=c) for c in (["a", "a"], ["a", "b"])], {}, "'a' of model 0 occurs more than"),
    ],
)
def test_what_cannot_be_matched(models, options, message):
    with pytest.raises(ValueError, match=message):
        pw.match(models, **options)


@pytest.fixture(name="donors", scope="module")
def counts_of_donors():
    rng = np.random.default_rng(0)
    shared, genes = rng.gamma(0.15, 1, (2, 150)), 150
    blocks, names = [], []
    for donor, private in {"d1": 1, "d2": 0, "d3": 0}.items():
        parts = np.vstack([shared, rng.gamma(0.15, 1, (private, genes))])
        parts /= parts.sum(axis=1, keepdims=True)
        usage = rng.dirichlet(np.full(len(parts), 0.3), 60)
        blocks.append(rng.poisson(900 * (0.8 * usage @ parts + 0.2 / genes)))
        names += [donor] * 60
    adata = anndata.AnnData(sp.csr_matrix(np.vstack(blocks), dtype=np.float32))
    adata.obs["donor"] = names
    return adata


def test_programs_across_donors(donors, tmp_path):
    adata = donors.copy()
    found = pw.cells.programs(adata, by="donor", ranks=[3], n_runs=4, n_top_genes=140, random_state=0)
    assert [family.coverage for family in found.families[:2]] == [3, 3]
    assert ["d1"] in [family.groups for family in found.private]
    assert adata.varm["programs"].shape == (150, len(found))
    assert adata.uns["programs"]["coverage"][0] == 3
    adata.write_h5ad(tmp_path / "d.h5ad")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"by": "age"}, "by='age' is not a column of adata.obs; columns are: donor"),
        ({"ranks": []}, "ranks is empty"),
        ({"density_threshold": 1e-12}, "fewer than two donors have programs"),
        ({"density_threshold": 0.0}, "density_threshold=0.0 leaves out all components"),
        ({"by": ["donor"]}, r"by=\['donor'\] is not a column"),
        ({"layer": "zz"}, "layer='zz' does not exist; layers are: none"),
    ],
)
def test_bad_donors_are_refused(donors, change, message):
    with pytest.raises(ValueError, match=message):
        pw.cells.programs(donors.copy(), **{"by": "donor", "ranks": 2, "n_runs": 2, "random_state": 0, **change})


def test_donors_that_are_missing_or_alone(donors):
    one = donors[donors.obs["donor"] == "d1"].copy()
    with pytest.raises(ValueError, match="has one value, 'd1'"):
        pw.cells.programs(one, by="donor", ranks=2)
    lost = donors.copy()
    lost.obs["donor"] = lost.obs["donor"].astype(object).where(np.arange(180) > 4)
    with pytest.raises(ValueError, match="5 missing values"):
        pw.cells.programs(lost, by="donor", ranks=2)
    lost.X = None
    with pytest.raises(ValueError, match=r"adata\.X is None: choose a layer"):
        pw.cells.programs(lost, by="donor", ranks=2)
    with pytest.raises(TypeError, match="not an AnnData"):
        pw.cells.programs(np.eye(3), by="donor", ranks=2)


def test_a_donor_that_cannot_be_fitted_is_named(donors):
    small = donors.copy()
    small.obs["donor"] = ["a"] * (small.n_obs // 2) + ["b"] * (small.n_obs - small.n_obs // 2 - 1) + ["tiny"]
    with pytest.raises(ValueError, match=r"donor 'tiny' \(1 cells\) cannot be fitted, leave it out: no gene is over-"):
        pw.cells.programs(small, by="donor", ranks=2)
