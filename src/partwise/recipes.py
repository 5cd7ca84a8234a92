"""Famous methods as lists of blocks. No loop and no arithmetic of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Literal

from .ask import as_columns, as_count, as_generator, as_penalty, warn_of_capacity
from .data import Data, as_data
from .factorize import Block, Callback, Result, factorize, interrupts
from .projections import Method
from .start import Factors, starting_factors
from .updates import Extrapolated, Gradient, Greedy, Multiplicative, Pivot, Sequential, Update

Solver = Literal["hals", "multiplicative", "gradient", "greedy", "pivot"]

SOLVERS: dict[str, Callable[[int | None], Update]] = {
    "hals": lambda steps: Sequential(steps or 1),
    "multiplicative": lambda steps: Multiplicative(steps or 1),
    "gradient": lambda steps: Gradient(steps or 1),
    "greedy": lambda steps: Greedy(),
    "pivot": lambda steps: Pivot(),
}


def ssnmf(
    X: Any,
    n_components: int,
    *,
    sparsity: Any = None,
    activation_sparsity: Any = None,
    faithful: bool = False,
    solver: Solver | None = None,
    projection: Method = "fast",
    component_sweeps: int | None = None,
    activation_sweeps: int | None = None,
    extrapolate: bool = False,
    l1: float | Sequence[float] = 0.0,
    l2: float | Sequence[float] = 0.0,
    init: Any = None,
    max_iter: int = 200,
    tol: float | None = None,
    kkt_tol: float = 0.0,
    max_time: float | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
) -> Result:
    """Sequential Sparse NMF: parts of exactly the sparsity that you name.

    min ½‖X − activations·components‖²  over  activations ≥ 0 and components in their sets: HALS for the activations and
    a sequential pass over Hoyer sets for the parts.

    Parameters
    ----------
    X : array or scipy sparse of shape (samples, features)
        Nonnegative.
    n_components : int
    sparsity, activation_sparsity : None, float, (lo, hi), or a list of n_components of these
        Hoyer sparsity in [0, 1] of each part (over the features), or of each part's activations (over the samples); a
        *tuple* is an interval. One side at a time. What is constrained has unit norm, and the other side the scale.
    faithful : bool
        Exactly the paper's Algorithm 4: multiplicative updates, random column order, the paper's start, max_iter
        updates. The paper repeats its inner loops "until convergence": here ``component_sweeps`` and
        ``activation_sweeps`` times, once by default.
    solver : {"hals", "multiplicative", "gradient", "greedy", "pivot"}
        For the side without sparsity.
    projection : {"fast", "sorted", "hoyer"}
        How the nearest sparse vector is found; the answers are equal. "hoyer" makes it the paper's SSNMF+Proj.
    component_sweeps, activation_sweeps : int
        Passes over each factor for every product with X; by default more, the cheaper they are beside that product.
    extrapolate : bool
        Let the side without sparsity go on a little in the direction of its last change. Mostly faster (by 1.5 or so in
        `benchmarks/extrapolation.py`), but the loss may rise now and then.
    l1, l2 : float, or a pair (on activations, on components)
        Penalties l1·ΣF + ½·l2·‖F‖². One number is meant for the activations.
    init : {"samples", "random", "nndsvd", "gradual"} or (activations, components)
        Far-apart samples of X (the default), the paper's random start, a truncated SVD, or a few iterations at each of
        several lower sparsities.
    max_iter, max_time : int, float
        Iterations and seconds at most.
    tol : float
        Stop when an iteration lowers the loss by no more than this share of it (1e-4; if faithful, 0: never).
    kkt_tol : float
        Stop when no column would move by more than this share of its norm; 0: not measured.
    random_state : int, Generator, RandomState or None
    callback : callable
        Told of each `Iteration`; returning True stops the fit.

    Returns
    -------
    Result

    References
    ----------
    V. K. Potluru, S. M. Plis, J. Le Roux, B. A. Pearlmutter, V. D. Calhoun and T. P. Hayes, "Block Coordinate Descent
    for Sparse NMF", 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> result = ssnmf(load_digits().data, 16, sparsity=0.7, random_state=0)
    >>> result.components.shape, result.sparsity.round(6).min(), result.sparsity.round(6).max()
    ((16, 64), 0.7, 0.7)
    """
    started = perf_counter()
    data = as_data(X)
    r = as_count(n_components, "n_components")
    if sparsity is not None and activation_sparsity is not None:
        raise ValueError(
            "sparsity and activation_sparsity are both given: with unit norms on both sides X ≈ activations·components "
            "has no scale left; constrain one side"
        )
    sets = [as_columns(activation_sparsity, r, projection, "activation_sparsity"), as_columns(sparsity, r, projection)]
    warn_of_capacity(sets[1], data)
    rng = as_generator(random_state)
    penalties = [as_penalty(l1, "l1"), as_penalty(l2, "l2")]
    if any(penalties[0]) or any(penalties[1]):
        check_scale(sets, penalties)
    sweeps = [activation_sweeps, component_sweeps]
    constrained = 0 if sets[1].nonnegative and not sets[0].nonnegative else 1
    blocks = []
    for mode in (0, 1):
        steps = sweeps[mode] and as_count(sweeps[mode], ("activation_sweeps", "component_sweeps")[mode])
        if not faithful and steps is None:
            steps = cheap_sweeps(data.shape[1 - mode], r)
        if not sets[mode].nonnegative:
            columns: Literal["random", "fixed"] = "random" if faithful else "fixed"
            update: Update = Sequential(steps or 1, columns, int(rng.integers(2**31)))
        else:
            update = as_solver(solver or ("multiplicative" if faithful else "hals"), sweeps[mode], steps)
            update = Extrapolated(update) if extrapolate and mode != constrained else update
        blocks.append(Block(update, sets[mode], penalties[0][mode], penalties[1][mode]))
    order = (constrained, 1 - constrained)
    init = ("random" if faithful else "samples") if init is None else init
    with interrupts():
        if isinstance(init, str) and init == "gradual":
            factors = gradual_factors(data, r, blocks, order, rng)
        else:
            factors = starting_factors(init, data, r, sets, rng)
        return factorize(
            data,
            factors,
            blocks,
            order=order,
            before=() if faithful else order[1:],
            max_iter=as_count(max_iter, "max_iter"),
            tol=(0.0 if faithful else 1e-4) if tol is None else tol,
            kkt_tol=kkt_tol,
            max_time=max_time,
            callback=callback,
            revive_dead=not faithful,
            started=started,
        )


def gradual_factors(data: Data, r: int, blocks: Sequence[Block], order: Sequence[int], rng: Any) -> Factors:
    """A start by a few iterations at each of several lower sparsities."""
    factors = starting_factors("samples", data, r, [b.sets.relaxed(0.2) for b in blocks], rng)
    for share in (0.2, 0.4, 0.6, 0.8):
        relaxed = [replace(b, sets=b.sets.relaxed(share)) for b in blocks]
        factors = [b.sets.project(f) for b, f in zip(relaxed, factors, strict=True)]
        factors = factorize(data, factors, relaxed, order=order, before=order[1:], max_iter=10, tol=0).factors
    return [b.sets.project(f) for b, f in zip(blocks, factors, strict=True)]


def cheap_sweeps(other: int, r: int) -> int:
    """How many sweeps of a factor cost about half of forming its statistics: one costs r/other of it. At most 4."""
    return int(min(max(round(0.5 * other / r), 1), 4))


def as_solver(name: Any, asked: int | None, steps: int | None) -> Update:
    """The update of that name, with as many steps."""
    if name not in SOLVERS:
        raise ValueError(f"solver={name!r} is not one of {', '.join(map(repr, SOLVERS))}")
    if asked is not None and name in ("greedy", "pivot"):
        raise ValueError(f"solver={name!r} decides itself how long it works: leave the number of sweeps to it")
    return SOLVERS[name](steps)


def check_scale(sets: Sequence[Any], penalties: Sequence[Sequence[float]]) -> None:
    """Refuse a penalty on one side where the other side could grow instead."""
    for mode, name in ((0, "activations"), (1, "components")):
        alone = any(p[mode] for p in penalties) and not any(p[1 - mode] for p in penalties)
        if alone and not sets[1 - mode].unit_norm:
            raise ValueError(
                f"a penalty on the {name} alone means nothing while the other side's scale is free: it would shrink "
                "the one and grow the other. Give the other side a sparsity (which fixes its norm) or a penalty too"
            )


RECIPES: dict[str, Callable[..., Result]] = {"ssnmf": ssnmf}
