"""Famous methods as lists of blocks. No loop and no arithmetic of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Literal

from .ask import as_amount, as_count, as_generator, as_penalties, one_sided, warn_of_capacity
from .data import Data, as_data
from .factorize import Block, Callback, Result, factorize, interrupts
from .projections import Method
from .start import Factors, scale_to, starting_factors
from .updates import Extrapolated, Gradient, Greedy, Multiplicative, Pivot, Sequential, Update

Solver = Literal["hals", "multiplicative", "gradient", "greedy", "pivot"]

SOLVERS: dict[str, Callable[[int], Update]] = {
    "hals": Sequential,
    "multiplicative": Multiplicative,
    "gradient": Gradient,
    "greedy": lambda steps: Greedy(),
    "pivot": lambda steps: Pivot(),
}

SWEEPS = ("activation_sweeps", "component_sweeps")


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
        Let the side without sparsity go on a little in the direction of its last change. Mostly faster
        (`benchmarks/extrapolation.py` measures it), but the loss may rise now and then.
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
    >>> result.components.shape, bool(abs(result.sparsity - 0.7).max() < 1e-10)
    ((16, 64), True)
    """
    started = perf_counter()
    if callback is not None and not callable(callback):
        raise ValueError(f"callback={callback!r} cannot be called")
    data = as_data(X)
    r = as_count(n_components, "n_components")
    sets = one_sided(activation_sparsity, sparsity, r, projection)
    warn_of_capacity(sets[1], data)
    penalties = as_penalties(l1, l2, sets)
    rng = as_generator(random_state)
    seed = int(rng.integers(2**31))
    first = 0 if sets[1].nonnegative and not sets[0].nonnegative else 1
    blocks = []
    for mode, asked in enumerate((activation_sweeps, component_sweeps)):
        cheap = 1 if faithful else cheap_sweeps(data.shape[1 - mode], r)
        if sets[mode].nonnegative:
            update = as_solver(solver or ("multiplicative" if faithful else "hals"), asked, cheap, SWEEPS[mode])
            update = Extrapolated(update) if extrapolate and mode != first else update
        else:
            sweeps = cheap if asked is None else as_count(asked, SWEEPS[mode])
            update = Sequential(sweeps, "random" if faithful else "fixed", seed)
        blocks.append(Block(update, sets[mode], *penalties[mode]))
    init = ("random" if faithful else "samples") if init is None else init
    order = (first, 1 - first)
    with interrupts():
        if isinstance(init, str) and init == "gradual":
            factors = gradual_factors(data, r, blocks, order, rng)
        else:
            factors = starting_factors(init, data, r, sets, rng)
        if not faithful and isinstance(init, str):
            scale_to(data, factors, order[1])
        return factorize(
            data,
            factors,
            blocks,
            order=order,
            before=() if faithful else order[1:],
            max_iter=as_count(max_iter, "max_iter"),
            tol=(0.0 if faithful else 1e-4) if tol is None else as_amount(tol, "tol"),
            kkt_tol=as_amount(kkt_tol, "kkt_tol"),
            max_time=None if max_time is None else as_amount(max_time, "max_time"),
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
    return min(max(round(0.5 * other / r), 1), 4)


def as_solver(name: Any, asked: Any, cheap: int, parameter: str) -> Update:
    """The update of that name, with as many steps as asked for (by that parameter), or as are cheap."""
    if not isinstance(name, str) or name not in SOLVERS:
        raise ValueError(f"solver={name!r} is not one of {', '.join(map(repr, SOLVERS))}")
    if asked is not None and name in ("greedy", "pivot"):
        raise ValueError(f"solver={name!r} decides itself how long it works: leave {parameter} to it")
    return SOLVERS[name](cheap if asked is None else as_count(asked, parameter))


RECIPES: dict[str, Callable[..., Result]] = {"ssnmf": ssnmf}
