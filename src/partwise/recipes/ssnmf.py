"""SSNMF: HALS for the activations, and a sequential pass over Hoyer sets for the components."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np

from ..data import WeightedDense
from ..engine.blocks import Block, bounded_encoder
from ..engine.options import TOL, Keywords
from ..engine.result import Result
from ..engine.validation import Sparsity, as_auto, as_choice, as_count, as_penalties, as_penalty, as_switch, one_sided
from ..projections import Bounded, FreeNorm, Hoyer, HoyerBetween, Method, Simplex
from ..updates import (
    Columns,
    Gradient,
    Greedy,
    Multiplicative,
    Newton,
    Pivot,
    Rows,
    Sequential,
    SumToOne,
    Update,
    Weighted,
)
from .registry import recipe
from .task import FIXED, Task

Accelerate = Literal["auto", False]
Compress = Literal["auto", False]
Activations = Literal["nonnegative", "simplex"]
Solver = Literal["hals", "multiplicative", "gradient", "greedy", "pivot"]

SOLVERS: dict[str, Callable[[int], Update]] = {
    "hals": Sequential,
    "multiplicative": Multiplicative,
    "gradient": Gradient,
    "greedy": lambda steps: Greedy(),
    "pivot": lambda steps: Pivot(),
}

SWEEPS = ("activation_sweeps", "component_sweeps")
KL_SWEEPS = 2  # with the Kullback–Leibler divergence; benchmarks/kl.py
WEIGHTED_SWEEPS = (3, 2)  # with a single sweep, more fits to few entries end in poor local minima


@recipe
async def ssnmf(
    X: Any,
    n_components: int,
    *,
    sparsity: Sparsity = None,
    activation_sparsity: Sparsity = None,
    faithful: bool = False,
    solver: Solver | None = None,
    projection: Method = "fast",
    component_sweeps: int | None = None,
    activation_sweeps: int | None = None,
    accelerate: Accelerate = "auto",
    compress: Compress = "auto",
    activations: Activations = "nonnegative",
    max_activation: float | None = None,
    l1: float | Sequence[float] = 0.0,
    l2: float | Sequence[float] = 0.0,
    **options: Unpack[Keywords],
) -> Result:
    """Sequential Sparse NMF: components of exactly the sparsity that you set.

    min ½‖X − activations·components‖²  over  activations ≥ 0 and components in their sets. The activations are updated
    by HALS, the components by a sequential pass over Hoyer sets. With ``loss="kullback-leibler"``, the divergence of
    counts is minimised instead, by Newton steps, without ``activation_sparsity``, ``faithful``, ``solver``, penalties.

    Parameters
    ----------
    sparsity, activation_sparsity : None, float, (lo, hi), or a list of n_components of these
        Hoyer sparsity in [0, 1] of each component (over the features), or of its activations (over the samples). A
        *tuple* is an interval. Different entries of a list are assigned to the components that they suit best, and the
        output keeps the order of the list (with ``init="auto"``). Only one of the two can be given. The constrained
        side has unit norm, and the other side carries the scale.
    faithful : bool
        Run exactly the paper's Algorithm 4: multiplicative updates, random column order, the paper's start, max_iter
        updates. The paper repeats its inner loops "until convergence"; here they are repeated ``component_sweeps`` and
        ``activation_sweeps`` times, once by default. ``init`` is then "random" and ``tol`` 0 by default.
    solver : {"hals", "multiplicative", "gradient", "greedy", "pivot"}, optional
        The update of the side without sparsity. By default "hals", or "multiplicative" if ``faithful``.
    projection : {"fast", "sorted", "hoyer"}
        The algorithm of the projection. All give the same result. "hoyer" is the paper's SSNMF+Proj.
    component_sweeps, activation_sweeps : int, optional
        Passes over each factor for every product with X. By default 1 to 8, such that they are cheap relative to that
        product.
    accelerate : {"auto", False}
        Extrapolate both factors in the direction of their last change. A fit then mostly reaches the same loss in a
        fifth to a half of the time (`benchmarks/acceleration.py`). A step that would raise the loss is undone. "auto"
        does so with solver="hals", unless ``faithful`` or ``kkt_tol`` are set, or X is read in chunks and has missing
        entries; False never does. If X is read in chunks, the activations then take three times the memory.
        Fits with the Kullback–Leibler divergence are neither accelerated nor compressed.
    compress : {"auto", False}
        Make the first iterations, at most 40, on a low-rank approximation of X, where they cost less, and the others on
        X itself. "auto" does so for an accelerated fit of a dense X, in memory or in chunks, from a built-in start and
        without penalties, if the shape of X promises a gain and its singular values decay; False never does.
    activations : {"nonnegative", "simplex"}
        With "simplex", the activations of each sample sum to 1: they are the shares of a mixture, and are solved
        exactly. The components then carry the scale, also if they have a sparsity.
    max_activation : float, optional
        An upper bound of all activations. The components then carry the scale, also if they have a sparsity: each is
        scaled such that its largest activation is ``max_activation``. For ``fixed_components``, whose scale is known,
        the bound is a constraint of the fit.
    l1, l2 : float, or a pair (on activations, on components)
        Penalties l1·ΣF + ½·l2·‖F‖². A single number applies to the activations.

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
    faithful = as_switch(faithful, "faithful")
    hals = solver is None or (isinstance(solver, str) and solver == "hals")
    faster = as_auto(accelerate, "accelerate") and hals and not faithful
    cheaper = as_auto(compress, "compress") and faster
    task = Task(X, n_components, options, divergence=True, weights=True)
    r = task.r
    sets = one_sided(activation_sparsity, sparsity, r, projection)
    mixed = as_choice(activations, "activations", ("nonnegative", "simplex")) == "simplex"
    penalised = [any(as_penalty(given, name)) for given, name in ((l1, "l1"), (l2, "l2"))]
    others = {
        "faithful": faithful,
        "solver": solver is not None,
        "activation_sparsity": activation_sparsity is not None,
        "activations='simplex'": mixed,
        "l1": penalised[0],
        "l2": penalised[1],
    }
    if max_activation is not None:
        limit = as_limit(max_activation)
        refuse(others | {FIXED[0]: task.known[0] is not None}, "max_activation")
    if task.divergence:
        loss = f"loss={task.options['loss']!r}"
        refuse(others | {"max_activation": max_activation is not None}, loss)
        return await of_counts(task, sets, (activation_sweeps, component_sweeps))
    if mixed:
        own = activation_sparsity is not None or activation_sweeps is not None
        if own or faithful or not hals or any(penalised):
            raise ValueError("activations='simplex' is solved exactly: omit other options of the activations")
        return await mixture(task, sets[1], component_sweeps)
    known = () if task.known[1] is None else task.known[1].which
    if max_activation is not None:
        sets[0] = Columns(tuple(Bounded(limit) if j in known else s for j, s in enumerate(sets[0])))
    penalties = as_penalties(l1, l2, sets)
    free = [s.nonnegative and not any(given) for s, given in zip(sets, penalties, strict=True)]
    task.weigh([free[0] and max_activation is None, free[1]])
    seed = int(task.rng.integers(2**31))
    first = 0 if sets[1].nonnegative and not sets[0].by_rows else 1
    blocks = []
    for mode, asked in enumerate((activation_sweeps, component_sweeps)):
        cheap = 1 if faithful else task.sweeps(mode)
        if task.weighted and (faithful or not hals):
            raise ValueError("weights need solver='hals' and faithful=False: omit both")
        if isinstance(task.data, WeightedDense):
            update: Update = Weighted(WEIGHTED_SWEEPS[mode] if asked is None else as_count(asked, SWEEPS[mode]))
        elif sets[mode].nonnegative:
            usual = "multiplicative" if faithful else "hals"
            update = as_solver(usual if solver is None else solver, asked, cheap, SWEEPS[mode])
        else:
            sweeps = cheap if asked is None else as_count(asked, SWEEPS[mode])
            update = Sequential(sweeps, "random" if faithful else "fixed", seed)
        blocks.append(Block(update, sets[mode], *penalties[mode]))
    result = await task.run(
        blocks,
        order=(first, 1 - first),
        before=() if faithful else (1 - first,),
        init="random" if faithful else "auto",
        scaled=None if faithful else 1 - first,
        tol=0.0 if faithful else TOL,
        revive=not faithful,
        accelerate=faster,
        compress=cheaper,
    )
    return result if max_activation is None else bounded(result, limit, known)


def as_limit(value: object) -> float:
    """Validate ``max_activation``; with an extreme one, squares of components would overflow in single precision."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not number or not 1e-9 <= float(value) <= 1e9:  # type: ignore[arg-type]
        raise ValueError(f"max_activation={value!r}: give a number from 1e-9 to 1e9")
    return float(value)  # type: ignore[arg-type]


def refuse(others: Mapping[str, bool], option: str) -> None:
    """Raise ValueError for options that are given and cannot be combined with ``option``."""
    for name in (name for name, given in others.items() if given):
        raise ValueError(f"{name} is not available with {option}: omit it")


def bounded(result: Result, limit: float, known: Sequence[int]) -> Result:
    """Scale all components but the ``known`` ones such that the largest activation of each is ``limit``."""
    activations, parts = result.factors
    scale = np.array(activations.max(axis=0), dtype=float) / limit
    scale[(scale == 0) | np.isin(np.arange(len(scale)), known)] = 1
    scaled = (activations / scale.astype(activations.dtype)).clip(0, limit)
    factors = [scaled, parts * scale.astype(parts.dtype)]
    return replace(result, factors=factors, encoder=bounded_encoder(len(scale), limit))


async def of_counts(task: Task, sets: Sequence[Columns], sweeps: Sequence[int | None]) -> Result:
    """Fit by the Kullback–Leibler divergence."""
    given = zip(sweeps, SWEEPS, strict=True)
    counts = [KL_SWEEPS if asked is None else as_count(asked, name) for asked, name in given]
    return await task.run([*map(Block, map(Newton, counts), sets)], before=(0,), init="auto", scaled=0)


async def mixture(task: Task, sets: Columns, sweeps: int | None) -> Result:
    """Fit components of free norm, and activations that sum to 1 for each sample."""
    others = [name for name, known in zip(FIXED, task.known, strict=False) if known is not None]
    if task.weighted:
        others.append("weights")
    if others:
        raise ValueError(f"activations='simplex' cannot be combined with {' or '.join(others)}: omit one of them")
    free = Columns(tuple(FreeNorm(s) if isinstance(s, Hoyer | HoyerBetween) else s for s in sets))
    steps = task.sweeps(1) if sweeps is None else as_count(sweeps, "component_sweeps")
    blocks = [Block(SumToOne(), Rows(Simplex(), task.r)), Block(Sequential(steps), free)]
    return await task.run(blocks, before=(0,), scaled=1, revive=False)


def as_solver(name: str, asked: int | None, cheap: int, parameter: str) -> Update:
    """Return the update of this name, with the number of steps given by ``parameter``, or the cheap number."""
    as_choice(name, "solver", tuple(SOLVERS))
    if asked is not None and name in ("greedy", "pivot"):
        raise ValueError(f"solver={name!r} has its own stopping rule: omit {parameter}")
    return SOLVERS[name](cheap if asked is None else as_count(asked, parameter))
