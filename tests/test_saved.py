"""Model files: models round-trip bit for bit; damaged and hostile files are rejected."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from test_archive import mutations

import partwise as pw
from partwise.engine.origins import Brain, Sound
from partwise.runtime.archive import UnreadableError, read, write

X = np.random.default_rng(0).random((20, 12))


def fitted(**params):
    kind = params.pop("kind", pw.SparseNMF)
    return kind(3, **{"max_iter": 3, "tol": 0.0, "random_state": 0} | params).fit(X)


MODELS = {
    "plain": {},
    "sparse": {"sparsity": 0.7},
    "each part": {"sparsity": [0.3, (0.2, 0.5), None]},
    "interval": {"sparsity": (0.2, 0.5)},
    "sets": {"sparsity": [pw.Hoyer(0.4, "sorted"), pw.HoyerBetween(0.1, None), pw.AtMost(3)]},
    "array": {"sparsity": np.array([0.2, 0.3, 0.4])},
    "activations": {"activation_sparsity": 0.4},
    "both": {"sparsity": 0.5, "activation_sparsity": 0.3},
    "start": {"init": (np.ones((20, 3)), np.ones((3, 12)))},
    "penalties": {"sparsity": 0.5, "l1": (0.1, 0.0), "l2": np.float32(0.5)},
    "l0": {"recipe": "l0", "recipe_params": {"nonzeros": 2, "side": "activations"}},
    "l0_path": {"recipe": "l0_path", "recipe_params": {"nonzeros": np.int64(2)}},
    "snmf": {"recipe": "snmf", "recipe_params": {"beta": 0.1}},
    "nsnmf, kl": {"recipe": "nsnmf", "loss": "kl"},
    "kl": {"loss": "kullback-leibler", "sparsity": 0.5},
    "mini-batch": {"kind": pw.MiniBatchSparseNMF, "sparsity": 0.4, "batch_size": 7},
}


def same(a, b):
    """Whether two parameters or attributes are equal, in type and bits."""
    if isinstance(a, np.ndarray) and a.dtype != object:
        return (
            a.dtype == b.dtype
            and a.shape == b.shape
            and a.flags.c_contiguous == b.flags.c_contiguous
            and a.tobytes() == b.tobytes()
        )
    if isinstance(a, np.ndarray | list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return (type(a) is type(b) or isinstance(a, np.generic)) and (a == b or a != a)


def assert_same_model(a, b):
    assert type(a) is type(b)
    assert same(a.get_params(), b.get_params())
    public = [name for name in vars(a) if name.endswith("_")]
    assert public == [name for name in public if name in vars(b)]
    assert all(same(getattr(a, name), getattr(b, name)) for name in public)
    assert same(a.transform(X), b.transform(X))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "parts.pw"


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return fitted(**MODELS[request.param])


@pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")
def test_model_round_trips_bit_for_bit(model, path):
    assert model.save(path) is None
    again = pw.load(path)
    assert_same_model(model, again)
    assert same(clone(model).fit(X).components_, again.fit(X).components_)


def test_single_precision_stays_single(path):
    model = pw.SparseNMF(3, sparsity=0.5, random_state=0, max_iter=3, tol=0).fit(X.astype(np.float32))
    model.save(path)
    assert pw.load(path).components_.dtype == np.float32
    assert_same_model(model, pw.load(path))


def test_partial_fit_continues_bit_for_bit(path):
    model = pw.MiniBatchSparseNMF(3, sparsity=0.5, random_state=0)
    for batch in np.array_split(X, 4):
        model.partial_fit(batch)
    model.save(path)
    again = pw.load(str(path))
    for batch in np.array_split(X, 4):
        assert same(model.partial_fit(batch).components_, again.partial_fit(batch).components_)
    assert again.n_steps_ == 8


TENSOR = np.random.default_rng(1).random((8, 6, 5))
TENSORS = {
    "plain": {},
    "sparse": {"sparsity": {1: 0.5, np.int64(2): (0.2, 0.4)}},
    "sets": {"sparsity": {2: [pw.Hoyer(0.4, "sorted"), 0.2, None]}},
    "sparse samples": {"sparsity": {0: 0.4}},
    "start": {"init": [np.ones((n, 3)) for n in TENSOR.shape]},
}


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_tensor_model_round_trips_bit_for_bit(name, kind, path):
    X = TENSOR.astype(kind)
    model = pw.SparseCP(3, max_iter=3, tol=0.0, random_state=0, **TENSORS[name]).fit(X)
    model.save(path)
    again = pw.load(path)
    assert type(again) is pw.SparseCP
    assert same(again.get_params(), model.get_params())
    public = {name for name in vars(model) if name.endswith("_")}
    assert public == {name for name in vars(again) if name.endswith("_")}
    assert all(same(getattr(model, name), getattr(again, name)) for name in public)
    assert same(again.transform(X), model.transform(X))
    assert again.score(X) == model.score(X)
    assert all(same(a, b) for a, b in zip(clone(model).fit(X).factors_, again.fit(X).factors_, strict=True))


factor = np.ones((6, 3))
HOSTILE_TENSORS = {
    "no factors": ("attributes.factors_", []),
    "a number of factors": ("attributes.factors_", 3),
    "one factor": ("attributes.factors_", [{"array": "factors_.1"}]),
    "factors are text": ("attributes.factors_", ["all", "of", "them"]),
    "no weights": ("attributes", {"factors_": [{"array": "factors_.0"}, {"array": "factors_.1"}]}),
    "other weights": ("weights_", np.ones(4)),
    "negative weights": ("weights_", -np.ones(3)),
    "a negative factor": ("factors_.1", -factor),
    "NaN": ("factors_.1", np.nan * factor),
    "another precision": ("factors_.1", factor.astype(np.float32)),
    "one dimension": ("factors_.1", np.ones(18)),
    "nothing": ("factors_.1", np.ones((0, 3))),
    "other components": ("factors_.1", np.ones((6, 2))),
    "n_iter_": ("attributes.n_iter_", "3"),
    "modes by name": ("params.sparsity", {"numbered": [["all", 0.5]]}),
    "modes without a value": ("params.sparsity", {"numbered": [1]}),
    "encoder": ("encoder", "pivot"),
    "output": ("output", "pandas"),
}


@pytest.mark.parametrize("name", HOSTILE_TENSORS)
def test_hostile_models_of_tensors_are_refused(name, path):
    pw.SparseCP(3, sparsity={1: 0.3}, max_iter=2, tol=0, random_state=0).fit(TENSOR).save(path)
    header, arrays = changed(*read(path), *HOSTILE_TENSORS[name])
    write(path, {k: v for k, v in header.items() if k != "arrays"}, arrays)
    with pytest.raises(UnreadableError, match="is not a valid model file"):
        pw.load(path)


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        ({"affine": np.eye(3), "shape": (2, 3, 2)}, "finite 4 × 4 matrix"),
        ({"affine": np.full((4, 4), np.nan), "shape": (2, 3, 2)}, "finite 4 × 4 matrix"),
        ({"affine": np.eye(4), "shape": (2, 3)}, "three dimensions"),
        ({"affine": np.eye(4), "shape": (2, 3, 2), "mask": np.ones((2, 3), dtype=bool)}, "mask has shape"),
        ({"rate": 8000, "window": 0, "hop": 1}, "at least 1"),
    ],
)
def test_origins_are_checked(bad, match):
    with pytest.raises(ValueError, match=match):
        (Sound if "rate" in bad else Brain)(**bad)


def test_names_and_kept_activations_are_stored(path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=[f"gene {j}" for j in range(11)] + ["é\n漢"])
    model = fitted().set_output(transform="pandas").fit(table)
    names = [f"cell {i}" for i in range(20)]
    kept = model.keep(activations=model.transform(table), sample_names=names, part_shape=(3, 4))
    assert kept is model
    model.save(path)
    again = pw.load(path)
    assert again.part_shape_ == (3, 4)
    assert again.sample_names_.tolist() == names
    assert same(again.activations_, model.activations_)
    assert again.feature_names_in_[-1] == "é\n漢"
    pandas.testing.assert_frame_equal(again.transform(table), model.transform(table))
    assert not hasattr(again.fit(table), "activations_")  # they belonged to the old components


@pytest.mark.parametrize(
    "origin",
    [
        Brain(np.diag([2.0, 2, 2, 1]), (2, 3, 2)),
        Brain(np.eye(4), (3, 5, 1), np.arange(15).reshape(3, 5, 1) >= 3),
        Sound(8000, 22, 7),
    ],
    ids=["volumes", "masked volumes", "sound"],
)
def test_the_origin_of_samples_is_kept(origin, path):
    fitted().keep(origin=origin).save(path)
    model = pw.load(path)
    again = model.origin_
    assert type(again) is type(origin)
    for name, value in vars(origin).items():
        np.testing.assert_array_equal(getattr(again, name), value)
    if isinstance(origin, Brain) and origin.mask is not None:
        assert same(model.part_mask_, origin.mask)  # for pictures
    assert not hasattr(model.fit(X), "origin_")


def test_keep_rejects_bad_arguments():
    model = fitted()
    for bad, match in [
        ({"activations": np.ones((20, 4))}, "4 columns, but the model has 3"),
        ({"activations": -np.ones((20, 3))}, "must be nonnegative"),
        ({"activations": np.full((20, 3), np.nan)}, "NaN"),
        ({"sample_names": "abc"}, "must be a sequence of str"),
        ({"sample_names": [1, 2]}, "must be a sequence of str"),
        ({"part_shape": (3, 5)}, "does not match the 12 features"),
        ({"part_shape": (-3, -4)}, "does not match the 12 features"),
        ({"part_mask": np.ones((3, 5), dtype=bool)}, "12 True entries, one for each feature"),
        ({"part_mask": np.ones((3, 4))}, "part_mask must be a bool array"),
        ({"activations": np.ones((20, 3)), "sample_names": ["a"]}, "1 sample names for 20 samples"),
        ({"origin": Sound(8000, 1024, 256)}, "does not describe samples of 12 features"),
        ({"origin": "here"}, "does not describe samples of 12 features"),
    ]:
        with pytest.raises(ValueError, match=match):
            model.keep(**bad)
    assert not hasattr(model, "activations_")
    with pytest.raises(NotFittedError):
        pw.SparseNMF().keep(part_shape=(1,))


def test_unsaveable_parameters_are_omitted_and_named(path):
    class Own(pw.SparseNMF):
        pass

    model = fitted(random_state=np.random.default_rng(0), sparsity=[lambda b, near=None: np.maximum(b, 0)] * 3)
    model.save(path)
    assert set(read(path)[0]["not_stored"]) == {"params.random_state", "params.sparsity"}
    again = pw.load(path)
    assert again.random_state is None
    assert again.sparsity is None
    assert same(again.transform(X), model.transform(X))
    with pytest.raises(ValueError, match="Own cannot be saved"):
        Own(3, max_iter=3, tol=0).fit(X).save(path)
    with pytest.raises(NotFittedError):
        pw.SparseNMF().save(path)


def test_model_with_custom_sets_cannot_continue_after_loading(path):
    model = pw.MiniBatchSparseNMF(3, sparsity=[lambda b, near=None: np.maximum(b, 0)] * 3).partial_fit(X)
    model.save(path)
    again = pw.load(path)
    assert same(again.transform(X), model.transform(X))
    with pytest.raises(ValueError, match="custom constraints cannot be saved, so partial_fit is unavailable"):
        again.partial_fit(X)
    assert clone(again).partial_fit(X).n_steps_ == 1


def test_sparse_components_take_less_space(path, tmp_path):
    wide = np.random.default_rng(0).random((10, 5000))
    with pytest.warns(pw.CapacityWarning):
        model = pw.SparseNMF(5, sparsity=0.95, max_iter=1, tol=0).fit(wide)
    model.save(path)
    assert path.stat().st_size < 0.2 * model.components_.nbytes
    assert same(pw.load(path).components_, model.components_)


@pytest.mark.slow
def test_model_loads_in_a_new_process(path):
    model = fitted(sparsity=0.5)
    model.save(path)
    np.save(path.with_suffix(".npy"), X)
    code = (
        "import sys, numpy, partwise; model = partwise.load(sys.argv[1]);"
        "sys.stdout.write(model.transform(numpy.load(sys.argv[2])).tobytes().hex())"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(pw.__file__).parents[1])}
    command = [sys.executable, "-c", code, str(path), str(path.with_suffix(".npy"))]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=path.parent)
    assert found.stdout == model.transform(X).tobytes().hex()


def test_damaged_files_are_rejected(path):
    model = fitted(sparsity=0.5).keep(sample_names=[f"s{i}" for i in range(20)])
    model.save(path)
    original = path.read_bytes()
    refused = 0
    for data in mutations(original, np.random.default_rng(1), 330):
        path.write_bytes(data)
        if data == original:
            assert_same_model(model, pw.load(path))
            continue
        with pytest.raises(UnreadableError):
            pw.load(path)
        refused += 1
    assert refused > 300


def changed(header, arrays, where, value):
    """The header with one of its values replaced, or the array of that name."""
    if where in arrays:
        return header, {**arrays, where: value}
    name, *rest = where.split(".", 1)
    inner = changed(header[name], {}, rest[0], value)[0] if rest else value
    return {**header, name: inner}, arrays


components = np.ones((3, 12))
HOSTILE = {
    "class": ("class", "os.system"),
    "class is a list": ("class", ["SparseNMF"]),
    "kind": ("kind", "pickle"),
    "params are a list": ("params", []),
    "an unknown value": ("params.sparsity", {"value": "Popen", "fields": {"args": "true"}}),
    "a block as a parameter": ("params.sparsity", {"value": "Block", "fields": {}}),
    "a set of nothing": ("params.sparsity", {"value": "Hoyer", "fields": {}}),
    "a set of too much": ("params.sparsity", {"value": "Hoyer", "fields": {"sparsity": 0.5, "own": 1}}),
    "a set outside": ("params.sparsity", {"value": "Hoyer", "fields": {"sparsity": 7}}),
    "no array": ("params.init", {"array": "nothing"}),
    "no value": ("params.init", {"code": "1"}),
    "attributes are text": ("attributes", "all"),
    "no components": ("attributes.components_", None),
    "components are text": ("attributes.components_", "all"),
    "NaN": ("components_", np.full((3, 12), np.nan)),
    "negative": ("components_", -components),
    "integers": ("components_", np.ones((3, 12), dtype=int)),
    "one dimension": ("components_", np.ones(36)),
    "no parts": ("components_", np.ones((0, 12))),
    "other features": ("components_", np.ones((3, 11))),
    "other parts": ("sparsity_", np.ones(4)),
    "n_features_in_": ("attributes.n_features_in_", "12"),
    "n_iter_": ("attributes.n_iter_", True),
    "stop_reason_": ("attributes.stop_reason_", 3),
    "data_shape_": ("attributes.data_shape_", {"tuple": [20, -12]}),
    "feature names": ("attributes.feature_names_in_", ["a"]),
    "sample names": ("attributes.sample_names_", [3]),
    "part shape": ("attributes.part_shape_", {"tuple": [5, 5]}),
    "encoder": ("encoder", "pivot"),
    "encoder is a set": ("encoder", {"value": "Hoyer", "fields": {"sparsity": 0.5}}),
    "encoder of nothing": ("encoder", {"value": "Block", "fields": {"update": None, "sets": None}}),
    "encoder for one part": (
        "encoder",
        {
            "value": "Block",
            "fields": {
                "update": {"value": "Pivot", "fields": {}},
                "sets": {
                    "value": "Columns",
                    "fields": {"sets": {"tuple": [{"value": "Nonnegative", "fields": {}}]}},
                },
            },
        },
    ),
    "encoder by text": (
        "encoder",
        {
            "value": "Block",
            "fields": {
                "update": {"value": "Coding", "fields": {"nonzeros": "2"}},
                "sets": {"value": "Rows", "fields": {"row": {"value": "AtMost", "fields": {"nonzeros": 2}}, "r": 3}},
            },
        },
    ),
}


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "good.pw"
    fitted(sparsity=0.2).save(path)
    return read(path)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_contents_are_refused(path, contents, name):
    header, arrays = changed(*contents, *HOSTILE[name])
    write(path, {k: v for k, v in header.items() if k != "arrays"}, arrays)
    with pytest.raises(UnreadableError) as error:
        pw.load(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_later_version_of_the_same_format_is_read(path, contents):
    header, arrays = changed(*contents, "params.later", {"dict": {}})
    header, arrays = changed(header, arrays, "attributes.__class__", "int")
    header = {k: v for k, v in header.items() if k != "arrays"} | {"news": [1], "format": [1, 9]}
    write(path, header, {**arrays, "later": np.ones(3)})
    assert type(pw.load(path)) is pw.SparseNMF


def test_a_name_that_no_file_can_hold_is_refused(path):
    model = fitted()
    with pytest.raises(ValueError, match=r"the name 'caf\\udce9' is not valid Unicode"):
        model.keep(sample_names=["a"] * 19 + ["caf\udce9"])
    model.feature_names_in_ = np.array([*"abcdefghijk", "caf\udce9"], dtype=object)
    with pytest.raises(ValueError, match=r"the name 'caf\\udce9' is not valid Unicode"):
        model.save(path)
    assert not path.exists()
