"""The fits of `fuzz.py`: any recipe or estimator with any options, of small and awkward X.

The laws: what `test_descent.py` states for the recipes of the catalogue; the same bits again, from an estimator, and
when resumed; and an error of one sentence, before the fit starts, for what is invalid.
"""

import inspect
import os
import traceback
import warnings
from contextlib import chdir
from dataclasses import replace

import numpy as np
from catalogues import KINDS, Recipe, assert_feasible, each
from tensors import model_of
from test_descent import assert_lawful, drawn, pick
from test_wrong_types import GIVEN

import partwise as pw
from partwise.data.values import scale_limit
from partwise.projections import Hoyer, Nonnegative
from partwise.recipes import RECIPES, SOLVERS

warnings.simplefilter("ignore")
DATA = ("C order", "Fortran order", "CSR array", "CSC array", "unsorted, in pieces")
SPARSITIES = (None, 0.0, 0.3, 0.5, 0.8, 1.0, (0.2, 0.6), (0.4, None), (None, 0.5), each)
SCALES = {
    name: (1.0, *(scale_limit(np.dtype(name)) ** power * 0.99**power for power in (-1, -0.8, -0.5, 0.5, 0.8, 1)))
    for name in ("float64", "float32")
}


def keep_on(iteration):
    """A callback that does nothing."""


VALUES = {  # of parameters, or of those of one recipe; `fits` draws some for X
    **dict.fromkeys(("sparsity", "activation_sparsity"), SPARSITIES),
    **dict.fromkeys(("faithful", "refit"), (False, True)),
    **dict.fromkeys(("component_sweeps", "activation_sweeps"), (None, 1, 3)),
    **dict.fromkeys(("l1", "l2"), (0.0, 0.1, 2, (0.1, 0.0))),
    "solver": (None, *SOLVERS),
    **dict.fromkeys(("accelerate", "compress"), ("auto", False)),
    "projection": ("fast", "sorted", "hoyer"),
    "side": ("activations", "components"),
    "nnsc.method": ("sequential", "hoyer"),
    "l0.method": (None, "prune", "sequential", "forward", "reverse"),
    "grouped.sparsity": (0.0, 0.3, 0.7, 1.0),
    "nnsc.l1": (0.0, 0.2, 2),
    "beta": (0.01, 1.0),
    "eta": (None, 0.5),
    "theta": (0.0, 0.5, 1.0),
    "loss": ("squared", "kl"),
    "nonzeros": (1, 2, 50),
    "every": (1, 3),
    "middle": ("diagonal", "full"),
    "middle_solver": (None, "nnls", "multiplicative"),
    "init": ("auto", "samples", "random", "nndsvd", "gradual"),
    "max_iter": (1, 12),
    "tol": (None, 0.0, 0.5),
    "kkt_tol": (0.0, 1e-3),
    "max_time": (None, 1e9),
    "callback": (None, keep_on),
    "memory_limit": (None, "1 GB"),
    "n_threads": (None, 1, 2),
    "checkpoint_every": (1, 10),
    "missing": ("error", "em"),
    "negative": ("error", "allow"),
    "activations": ("nonnegative", "simplex"),
    "max_activation": (None, 1.0),
}
DRAWN = ("X", "n_components", "random_state", "checkpoint", "resume_from", "fixed_components", "fixed_activations")
DRAWN += ("observed", "weights", "sample_weight", "feature_weight")  # weights change the objective: test_weights.py
RUNNING = tuple(os.path.join("engine", name) for name in ("loop.py", "running.py"))


def values_of(recipe, parameter):
    return VALUES.get(f"{recipe}.{parameter}", VALUES.get(parameter))


def falls(name, asked):
    """Whether docs/recipes.md promises that the loss never rises."""
    return (name != "l0" or asked.get("method") == "sequential") and name != "l0_path"


def unit(name, asked):
    """The modes whose columns have unit norm."""
    sparse = tuple(mode for mode, key in enumerate(("activation_sparsity", "sparsity")) if asked.get(key) is not None)
    if name in ("nnsc", "grouped"):
        free = ("activations", "components").index(asked.get("side", "activations" if name == "nnsc" else "components"))
        return (1 - free if name == "nnsc" else free,)
    scaled = asked.get("activations") == "simplex" or asked.get("max_activation") is not None
    sparse = () if scaled else sparse  # the components carry the scale
    return {"ssnmf": sparse, "bisparse": sparse, "nmfsc": sparse[:1] if 0 in sparse else ()}.get(name, ())


def options_of(name, r, rng):
    """Some of the options of a recipe, and all that it needs."""
    asked = {"random_state": int(rng.integers(100)), "max_iter": 12}
    for parameter in inspect.signature(RECIPES[name]).parameters.values():
        values, needed = values_of(name, parameter.name), parameter.default is inspect.Parameter.empty
        if values and (needed or rng.random() < 0.25):
            value = pick(rng, [v for v in values if not (needed and v is None)])
            asked[parameter.name] = value(r) if value is each else value
    if name == "tpc":
        asked["max_iter"] = min(asked["max_iter"], 2)
    return asked


def known_part(recipe, shape, r, rng):
    """A known component or its activations, and what the recipe then promises: for the others alone."""
    mode = int(rng.integers(2))
    known = rng.random((1, shape[1]) if mode else (shape[0], 1))
    promised = {key: value for key, value in recipe.options.items() if key != "nonzeros"}
    key = ("activation_sparsity", "sparsity")[mode]
    if promised.get(key) is not None:
        others = promised[key][1:] if isinstance(promised[key], list) else [promised[key]] * (r - 1)
        promised[key] = [None, *others]
    return {("fixed_activations", "fixed_components")[mode]: known}, replace(recipe, options=promised, unit=())


def drawn_fit(rng):
    """A recipe for the judge, X for the judge (NaN where entries are missing), and the arguments of the fit."""
    X, r, _ = drawn(rng, SCALES)
    name = pick(rng, list(RECIPES))
    asked = options_of(name, r, rng)
    penalty = name in ("nnsc", "snmf") or bool(asked.get("l1") or asked.get("l2"))
    recipe = Recipe(name, dict(asked), unit(name, asked), falls(name, asked), penalty)
    seen, kind = rng.random(X.shape) < 0.8, pick(rng, DATA)
    here, how = X, pick(rng, ["whole", "whole", "whole", "missing", "observed", "known"])
    if how == "known":
        more, recipe = known_part(recipe, X.shape, r, rng)
        asked |= more
    elif how != "whole" and np.where(seen, X, 0).any():
        here, kind = np.where(seen, X, np.nan).astype(X.dtype), "C order"
        asked |= {"missing": "em"} if how == "missing" else {"observed": seen}
    return recipe, here, (KINDS[kind](here if how == "missing" else X), r), asked


def outcome(work):
    """The result, or None if the options are refused in one sentence. An error of a running fit is a failure."""
    try:
        return work()
    except (ValueError, TypeError) as error:
        refusal = error
    running = [f for f in traceback.extract_tb(refusal.__traceback__) if f.filename.endswith(RUNNING)]
    if running or "every entry must be finite" in str(refusal):  # of a projection
        raise AssertionError("the fit has failed") from refusal
    assert str(refusal), "the error has no message"
    assert "\n" not in str(refusal), f"not one sentence: {refusal}"
    return None


def assert_same(one, other):
    np.testing.assert_array_equal(one.losses, other.losses)
    for mine, theirs in zip(one.factors, other.factors, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def assert_resumable(fit, result, asked):
    """A fit of half the iterations, continued, gives the same bits."""
    half = max(result.n_iter // 2, 1)
    fit(**asked | {"max_iter": half, "checkpoint": "half.pw"})
    assert_same(result, fit(**asked | {"resume_from": "half.pw"}))
    os.remove("half.pw")


def estimator(name, r, asked):
    own = {key: value for key, value in asked.items() if key in pw.SparseNMF().get_params()}
    more = {key: value for key, value in asked.items() if key not in own and key not in ("observed", "callback")}
    return pw.SparseNMF(r, recipe=name, **own, recipe_params=more)


def law_of_fits(rng):
    recipe, X, given, asked = drawn_fit(rng)
    describe(recipe.name, given, asked)

    def fit(**options):
        return RECIPES[recipe.name](*given, **options)

    result = outcome(lambda: fit(**asked))
    if result is None:
        return "refused"
    assert_lawful(recipe, X, result)
    assert_same(result, fit(**asked))
    assert_resumable(fit, result, asked)
    model = estimator(recipe.name, given[1], asked)
    if outcome(lambda: model.fit(given[0], observed=asked.get("observed"))) is not None:
        np.testing.assert_array_equal(model.components_, result.components)
        assert np.isfinite(model.transform(np.nan_to_num(X))).all()
    return "fitted"


def law_of_wrong_options(rng):
    recipe, _, given, asked = drawn_fit(rng)
    options = asked | {"n_components": given[1]}
    options[pick(rng, [name for name in options if name != "callback"])] = pick(rng, GIVEN)
    describe(recipe.name, given, options)
    result = outcome(lambda: RECIPES[recipe.name](given[0], **options))
    if result is None:
        return "refused"
    assert all(np.isfinite(factor).all() and factor.min() >= 0 for factor in result.factors)
    return "fitted"


def law_of_tensors(rng):
    X, r, _ = drawn(rng, SCALES)
    T = X[:, :, None] * np.array([1, 0.5, 0, 1], dtype=X.dtype)[: rng.integers(1, 5)]
    levels = [None, 0.0, 0.3, 0.8, 1.0, (0.2, 0.6)]
    sparsity = {mode: pick(rng, levels) for mode in range(3) if rng.random() < 0.5}
    asked = {"sparsity": sparsity, "init": pick(rng, [None, "samples", "random", "gradual"]), "random_state": 0}
    asked |= {"max_iter": 10, "tol": 0, "sweeps": pick(rng, [None, 1, 3])}
    describe("cp", (T, r), asked)
    result = outcome(lambda: pw.cp(T, r, **asked))
    if result is None:
        return "refused"
    double, exact = T.dtype == float, T.astype(float)
    atol = 1e-10 if double else 1e-5
    for mode, factor in enumerate(result.factors):
        assert_feasible(factor, [Nonnegative()] * r)
        level = sparsity.get(mode)
        lo, hi = level if isinstance(level, tuple) else (0, 1) if level is None else (level, level)
        for column in factor.T.astype(float):
            assert len(column) == 1 or not column.any() or lo - atol <= pw.hoyer_sparsity(column) <= hi + atol
    assert np.diff(result.losses).max() <= (1e-12 if double else 1e-5) * 0.5 * np.vdot(exact, exact)
    error = np.linalg.norm(exact - model_of(result.factors, result.weights)) / np.linalg.norm(exact)
    assert abs(result.relative_error - error) <= (1e-11 if double else 1e-5)
    assert_same(result, pw.cp(T, r, **asked))
    assert_resumable(lambda **options: pw.cp(T, r, **options), result, asked)
    return "fitted"


def law_of_batches(rng):
    X, r, _ = drawn(rng, SCALES)
    level = pick(rng, [None, 0.0, 0.5, 0.9])
    asked = {"sparsity": level, "batch_size": pick(rng, [1, 3, 50]), "forget_factor": pick(rng, [0.5, 1.0])}
    asked |= {"random_state": 0, "max_iter": 3, "shuffle": pick(rng, [True, False])}
    describe("MiniBatchSparseNMF", (X, r), asked)
    first = outcome(lambda: pw.MiniBatchSparseNMF(r, **asked).fit(X))
    if first is None:
        return "refused"
    other = pw.MiniBatchSparseNMF(r, **asked).fit(X)
    for _ in range(2):
        np.testing.assert_array_equal(first.components_, other.components_)
        sets = [Nonnegative() if level is None else Hoyer(level)] * r
        assert_feasible(first.components_.T, sets, 1e-10 if X.dtype == float else 1e-5)
        assert_feasible(first.transform(X), [Nonnegative()] * r)
        first.partial_fit(X)
        other.partial_fit(X)
    return "fitted"


def as_array(X):
    return X.toarray() if hasattr(X, "toarray") else X


def describe(name, given, asked):
    """Write what is tried into the current folder."""
    with open("fit.txt", "w", encoding="utf-8") as file, np.printoptions(threshold=10**6, floatmode="unique"):
        print(name, type(given[0]).__name__, repr(as_array(given[0])), given[1], asked, sep="\n", file=file)


LAWS = (law_of_fits, law_of_wrong_options, law_of_fits, law_of_tensors, law_of_fits, law_of_batches)


def case(seed, folder):
    """One fit."""
    with chdir(folder):
        return [LAWS[seed % len(LAWS)](np.random.default_rng(seed))]
