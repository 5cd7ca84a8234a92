"""Catalogues that tests are parametrised over: problems, kinds of data, updates, sets, recipes."""

import tracemalloc
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import kl_div

import partwise
from partwise.projections import AtMost, Bounded, Hoyer, HoyerBetween, Nonnegative, hoyer_sparsity
from partwise.statistics import Stats
from partwise.updates import Columns, Gradient, Greedy, Multiplicative, Pivot, Sequential


class Problem(NamedTuple):
    """A nonnegative matrix (samples × features) and a number of components."""

    X: np.ndarray
    r: int


def planted(rng, n=30, m=40, r=5, noise=0.01):
    parts = Columns.same(Hoyer(0.6), r).project(rng.random((m, r)) ** 4)
    return Problem(rng.random((n, r)) ** 3 @ parts.T + noise * rng.random((n, m)), r)


def hollow(rng):
    """All-zero samples and features."""
    X = planted(rng).X
    X[[0, 7, 29]] = 0
    X[:, [0, 11, 12, 39]] = 0
    return Problem(X, 5)


PROBLEMS = {
    "planted": planted,
    "rank-deficient": lambda rng: Problem(rng.random((20, 2)) @ rng.random((2, 25)), 4),
    "zero rows and columns": hollow,
    "tiny": lambda rng: Problem(rng.random((2, 3)), 2),
    "rank above both sides": lambda rng: Problem(rng.random((6, 7)), 11),
    "counts": lambda rng: Problem(rng.poisson(0.5, (25, 18)).astype(float), 9),
}


def one_at_a_time(**axes):
    """Parametrize by the first value of each axis, and by every other value of one axis while the rest stay first.

    For tests of higher levels: combinations of data and updates are tested at lower levels. Axes named after fixtures
    over catalogues take names of entries.
    """
    first = {name: next(iter(values)) for name, values in axes.items()}
    others = ({**first, name: value} for name, values in axes.items() for value in [*values][1:])
    names, cases = list(axes), [list(case.values()) for case in (first, *others)]
    fixtures = [name for name in names if name in ("problem", "kind", "update", "columns")]
    return pytest.mark.parametrize(names, cases, indirect=fixtures)


def locked(X):
    """A read-only copy."""
    for array in (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,):
        array.setflags(write=False)
    return X


def every_other(X):
    wide = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def data_frame(X):
    return pytest.importorskip("pandas").DataFrame(X, columns=[f"feature {j}" for j in range(X.shape[1])])


def with_explicit_zeros(X):
    sparse = sp.csr_array(np.ones_like(X))
    sparse.data[:] = X.ravel()
    return sparse


def in_pieces(X):
    """Each row's entries in reverse order and split in two, which a canonical matrix would sum."""
    indices = np.tile(np.repeat(np.arange(X.shape[1])[::-1], 2), X.shape[0])
    starts = np.arange(X.shape[0] + 1) * 2 * X.shape[1]
    return sp.csr_array((np.repeat(X[:, ::-1].ravel(), 2) / 2, indices, starts), shape=X.shape)


def with_long_indices(X):
    sparse = sp.csc_array(X)
    sparse.indices, sparse.indptr = sparse.indices.astype(np.int64), sparse.indptr.astype(np.int64)
    return sparse


KINDS = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "strided": every_other,
    "backwards": lambda X: X[::-1, ::-1],
    "read-only": lambda X: locked(X.copy()),
    "float32": lambda X: X.astype(np.float32),
    "float32, Fortran order": lambda X: np.asfortranarray(X, dtype=np.float32),
    "float16": lambda X: X.astype(np.float16),
    "integers": lambda X: np.rint(10 * X).astype(int),
    "booleans": lambda X: np.greater(X, X.mean()),
    "lists": lambda X: X.tolist(),
    "data frame": data_frame,
    "CSR matrix": sp.csr_matrix,
    "CSC matrix": sp.csc_matrix,
    "CSR array": sp.csr_array,
    "CSC array": sp.csc_array,
    "COO array": sp.coo_array,
    "CSR, float32": lambda X: sp.csr_array(X, dtype=np.float32),
    "CSC, integers": lambda X: sp.csc_array(np.rint(10 * X).astype(int)),
    "CSR, read-only": lambda X: locked(sp.csr_array(X)),
    "explicit zeros": with_explicit_zeros,
    "unsorted, in pieces": in_pieces,
    "unsorted, in pieces, read-only": lambda X: locked(in_pieces(X)),
    "64-bit indices": with_long_indices,
}


def dense(X):
    """Any kind of data as a float64 array."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)


def tolerance(dtype):
    return 1e-5 if dtype == np.float32 else 1e-12


def random_factors(shape, r, rng, dtype=float):
    return [np.asfortranarray(rng.random((rows, r)), dtype=dtype) for rows in shape]


def stats_of(X, factors, mode):
    """The statistics of one factor, by their definition."""
    rest = factors[1 - mode]
    cross = np.asfortranarray((X.T if mode else X) @ rest)
    return Stats(cross, np.asarray(rest.T @ rest, dtype=float), float(np.vdot(X, X)))


UPDATES = {
    "sequential": Sequential(),
    "sequential, 3 random sweeps": Sequential(3, "random", seed=5),
    "multiplicative": Multiplicative(),
    "multiplicative, 3 times": Multiplicative(3),
    "gradient": Gradient(),
    "gradient, one step": Gradient(1, factor=2.0),
    "greedy": Greedy(),
    "pivot": Pivot(),
}


def for_all_sets(update):
    return not isinstance(update, Greedy | Pivot)


def one_of_each(recipes):
    """The first entry of a catalogue for each recipe's own name."""
    return list({recipe.name: name for name, recipe in reversed(recipes.items())}.values())[::-1]


@dataclass(frozen=True)
class Ball:
    """y ≥ 0 and ‖y‖ ≤ 1: a custom set without a kernel."""

    def __call__(self, b, near=None):
        y = np.maximum(b, 0)
        return y / max(1, np.linalg.norm(y))


def mixed(r):
    choice = (Hoyer(0.3), Nonnegative(), AtMost(2), HoyerBetween(0.1, 0.5), Hoyer(0.7, "sorted"))
    return Columns(tuple(choice[j % len(choice)] for j in range(r)))


def same(projection):
    return lambda r: Columns.same(projection, r)


SETS = {
    "nonnegative": same(Nonnegative()),
    "Hoyer": same(Hoyer(0.6)),
    "Hoyer, sorted": same(Hoyer(0.6, "sorted")),
    "Hoyer, alternating": same(Hoyer(0.6, "hoyer")),
    "single": same(Hoyer(1.0)),
    "flat": same(Hoyer(0.0)),
    "interval": same(HoyerBetween(0.3, 0.4)),
    "one-sided": same(HoyerBetween(0.5, None)),
    "at most": same(AtMost(2)),
    "bounded": same(Bounded(0.5)),
    "mixed": mixed,
    "custom": same(Ball()),
    "mixed, custom": lambda r: Columns((Ball(), *mixed(r).sets[1:])),
}
TAKEN = [(u, s) for u in UPDATES for s in SETS if for_all_sets(UPDATES[u]) or s == "nonnegative"]


def assert_feasible(factor, sets, atol=1e-10):
    """Every column is in its set, up to rounding."""
    assert np.isfinite(factor).all()
    assert factor.min() >= 0
    for column, s in zip(factor.T.astype(float), sets, strict=True):
        if isinstance(s, Hoyer | HoyerBetween):
            lo, hi = (s.sparsity, s.sparsity) if isinstance(s, Hoyer) else (s.lo or 0, 1 if s.hi is None else s.hi)
            assert abs(np.linalg.norm(column) - 1) <= atol
            if len(column) > 1:
                assert lo - atol <= hoyer_sparsity(column) <= hi + atol
        elif isinstance(s, AtMost):
            assert np.count_nonzero(column) <= s.nonzeros
        elif isinstance(s, Bounded):
            assert column.max() <= s.upper
        elif isinstance(s, Ball):
            assert np.linalg.norm(column) <= 1 + atol


def each(r):
    """One sparsity per column, in every form."""
    choice = (0.3, (0.2, 0.5), None, (0.5, None), (None, 0.4))
    return [choice[j % len(choice)] for j in range(r)]


@dataclass(frozen=True)
class Recipe:
    """A recipe with its options, and its guarantees besides the sparsities and nonzeros in the options."""

    name: str
    options: dict
    unit: tuple = ()  # the modes whose columns have unit norm
    falls: bool = True
    penalty: object = None  # of X, activations and parts

    def asked(self, r):
        return {name: value(r) if callable(value) else value for name, value in self.options.items()}

    def __call__(self, X, r, **options):
        if self.name == "tpc":
            pytest.importorskip("clarabel")
        return getattr(partwise, self.name)(X, r, **{"random_state": 0, **self.asked(r), **options})

    @property
    def divergence(self):
        return self.options.get("loss") == "kl"

    def relative_error(self, X, result):
        """The relative error by its definition. X may have NaN for missing entries."""
        seen, model = ~np.isnan(X), rebuilt(result)
        exact = np.where(seen, X, 0).astype(float)
        if self.divergence:
            usual = self.usual(X)
            return np.sqrt(max(divergence(exact, model, result.factors[0].dtype, seen), 0) / usual)
        return np.linalg.norm(np.where(seen, exact - model, 0)) / np.linalg.norm(exact)

    def usual(self, X):
        """The divergence that others are relative to: that of the features' means."""
        seen = ~np.isnan(X)
        exact = np.where(seen, X, 0).astype(float)
        means = exact.sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        found = divergence(exact, np.broadcast_to(means, X.shape), np.float64, seen)
        return found if found > 1e-10 * exact.sum() else exact.sum()

    def objective(self, X, result):
        """The objective by its definition, in double precision."""
        activations, parts = (f.astype(float) for f in result.factors)
        model = rebuilt(result)
        if self.divergence:
            return divergence(X, model, result.factors[0].dtype)
        penalty = 0 if self.penalty is None else self.penalty(X, activations, parts)
        return 0.5 * float(np.sum((X - model) ** 2)) + penalty


def divergence(X, model, dtype, seen=slice(None)):
    """Σ x·log(x / model) − x + model over what is seen, with a model that is nowhere quite zero."""
    return float(kl_div(X, model + np.finfo(dtype).eps ** 1.75 * X[seen].max())[seen].sum())


def rebuilt(result):
    """activations · D · components in double precision."""
    middle = np.eye(result.components.shape[0]) if result.middle is None else result.middle
    return result.activations.astype(float) @ middle @ result.components.astype(float)


def kim_and_park(beta, eta=None, side=0):
    def penalty(X, *factors):
        size = X.max() ** 2 if eta is None else eta
        return 0.5 * (beta * np.sum(factors[side].sum(axis=1) ** 2) + size * np.sum(factors[1 - side] ** 2))

    return penalty


RECIPES = {
    "ssnmf, free": Recipe("ssnmf", {}),
    "ssnmf": Recipe("ssnmf", {"sparsity": 0.5}, unit=(1,)),
    "ssnmf, activations": Recipe("ssnmf", {"activation_sparsity": 0.4}, unit=(0,)),
    "ssnmf, each its own": Recipe("ssnmf", {"sparsity": each, "projection": "sorted"}, unit=(1,)),
    "ssnmf, faithful": Recipe("ssnmf", {"sparsity": 0.5, "faithful": True, "projection": "hoyer"}, unit=(1,)),
    "ssnmf, penalised": Recipe(
        "ssnmf",
        {"sparsity": 0.5, "l1": 0.1, "l2": 0.2},
        unit=(1,),
        penalty=lambda X, activations, parts: 0.1 * activations.sum() + 0.1 * np.sum(activations**2),
    ),
    "ssnmf, kl, free": Recipe("ssnmf", {"loss": "kl"}),
    "ssnmf, kl": Recipe("ssnmf", {"loss": "kl", "sparsity": 0.5}, unit=(1,)),
    "ssnmf, kl, each its own": Recipe("ssnmf", {"loss": "kl", "sparsity": each}, unit=(1,)),
    "nmfsc, free": Recipe("nmfsc", {}),
    "nmfsc": Recipe("nmfsc", {"sparsity": 0.5}),
    "nmfsc, activations": Recipe("nmfsc", {"activation_sparsity": 0.4}, unit=(0,)),
    "nmfsc, both": Recipe("nmfsc", {"sparsity": 0.5, "activation_sparsity": (0.2, 0.4)}, unit=(0,)),
    "nmfsc, each its own": Recipe("nmfsc", {"sparsity": each, "projection": "fast"}),
    "nmfsc, sorted": Recipe("nmfsc", {"activation_sparsity": each, "projection": "sorted"}, unit=(0,)),
    "tpc, free": Recipe("tpc", {}),
    "tpc": Recipe("tpc", {"sparsity": (0.4, 0.6)}),
    "tpc, activations": Recipe("tpc", {"activation_sparsity": (0.3, 0.5)}),
    "tpc, both": Recipe("tpc", {"sparsity": (0.4, None), "activation_sparsity": (None, 0.5)}),
    "tpc, each its own": Recipe("tpc", {"sparsity": each}),
    **{
        f"nnsc, {side}, {method}": Recipe(
            "nnsc",
            {"l1": 0.2, "side": side, "method": method},
            unit=(1 - mode,),
            penalty=lambda X, *factors, mode=mode: 0.2 * factors[mode].sum(),
        )
        for mode, side in enumerate(("activations", "components"))
        for method in ("sequential", "hoyer")
    },
    "snmf": Recipe("snmf", {}, penalty=kim_and_park(0.01)),
    "snmf, components": Recipe("snmf", {"beta": 0.2, "side": "components"}, penalty=kim_and_park(0.2, side=1)),
    "snmf, eta": Recipe("snmf", {"beta": 0.1, "eta": 0.3}, penalty=kim_and_park(0.1, 0.3)),
    **{
        f"nsnmf, {loss}, {theta}": Recipe("nsnmf", {"loss": loss, "theta": theta})
        for loss in ("squared", "kl")
        for theta in (0.0, 0.5, 1.0)
    },
    "l0": Recipe("l0", {"nonzeros": 5}, falls=False),
    "l0, sequential": Recipe("l0", {"nonzeros": 5, "method": "sequential"}),
    "l0, reverse": Recipe("l0", {"nonzeros": 2, "side": "activations"}, falls=False),
    "l0, forward": Recipe("l0", {"nonzeros": 2, "side": "activations", "method": "forward"}, falls=False),
    **{
        f"l0_path, {side}, {'refit' if refit else 'shrunk'}": Recipe(
            "l0_path", {"nonzeros": 2, "side": side, "refit": refit}, falls=False
        )
        for side in ("activations", "components")
        for refit in (True, False)
    },
    **{
        f"bisparse, {middle}, {solver}": Recipe(
            "bisparse",
            {"sparsity": 0.5, "activation_sparsity": 0.3, "middle": middle, "middle_solver": solver},
            unit=(0, 1),
        )
        for middle in ("diagonal", "full")
        for solver in ("nnls", "multiplicative")
    },
    "bisparse, each its own": Recipe(
        "bisparse", {"sparsity": each, "activation_sparsity": (0.2, 0.5), "projection": "hoyer"}, unit=(0, 1)
    ),
    "grouped": Recipe("grouped", {"sparsity": 0.5}, unit=(1,)),
    "grouped, activations": Recipe("grouped", {"sparsity": 0.3, "side": "activations"}, unit=(0,)),
}


def assert_promised(recipe, result, atol=1e-10):
    """Nonnegative and finite, with the requested norms, sparsities and nonzeros. A column of free norm may be zero."""
    factors, asked = result.factors, recipe.asked(result.factors[0].shape[1])
    for array in (*factors, *([] if result.middle is None else [result.middle])):
        assert np.isfinite(array).all()
        assert array.min() >= 0
    for mode in recipe.unit:
        np.testing.assert_allclose(np.linalg.norm(factors[mode].astype(float), axis=0), 1, atol=atol)
    side = ("activations", "components").index(
        asked.get("side", "activations" if "path" in recipe.name else "components")
    )
    if "nonzeros" in asked:  # of each part, or of each sample or feature
        axis = 0 if recipe.name == "l0" and side == 1 else 1
        assert np.count_nonzero(factors[side], axis=axis).max() <= asked["nonzeros"]
    elif recipe.name == "grouped":
        assert (
            len(factors[side]) == 1
            or abs(hoyer_sparsity(factors[side].astype(float), axis=0).mean() - asked["sparsity"]) <= atol
        )
    else:
        for factor, name in zip(factors, ("activation_sparsity", "sparsity"), strict=True):
            wanted = asked.get(name)
            for j, column in enumerate(factor.T.astype(float)):
                one = wanted[j] if isinstance(wanted, list) else wanted
                lo, hi = one if isinstance(one, tuple) else (one, one)
                if column.any() and len(column) > 1:  # a single entry has sparsity 1
                    assert (lo or 0) - atol <= hoyer_sparsity(column) <= (1 if hi is None else hi) + atol


def peak_of(work):
    """Peak memory of a call in bytes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
