"""What all recipes share: how a fit starts, and when it stops."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, TypedDict, TypeVar

import numpy as np

from ..ask import as_amount, as_count, as_generator
from ..data import Data, as_data
from ..factorize import Block, Callback, Result, Reviver, factorize, interrupts, nonnegative_encoder
from ..start import Factors, revive, scale_to, starting_factors

Function = TypeVar("Function", bound=Callable[..., Result])


class Options(TypedDict, total=False):
    """The keywords that every recipe takes.

    Parameters
    ----------
    init : {"samples", "random", "nndsvd", "gradual"} or (activations, components)
        Far-apart samples of X, the paper's random start, a truncated SVD, or a few iterations at each of several lower
        sparsities. By default what the recipe starts from.
    max_iter, max_time : int, float
        Iterations (200) and seconds at most.
    tol : float
        Stop when an iteration lowers the loss by no more than this share of it (mostly 1e-4; 0: never).
    kkt_tol : float
        Stop when no column would move by more than this share of its norm; 0: not measured.
    random_state : int, Generator, RandomState or None
    callback : callable
        Told of each `Iteration`; returning True stops the fit.
    """

    init: Any
    max_iter: int
    tol: float | None
    kkt_tol: float
    max_time: float | None
    random_state: Any
    callback: Callback | None


DEFAULTS: dict[str, Any] = {
    "init": None,
    "max_iter": 200,
    "tol": None,
    "kkt_tol": 0.0,
    "max_time": None,
    "random_state": None,
    "callback": None,
}

RECIPES: dict[str, Callable[..., Result]] = {}


def recipe(function: Function) -> Function:
    """Enter a function among the recipes, and spell out its `Options` in its signature."""
    signature = inspect.signature(function)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    shared = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=d) for name, d in DEFAULTS.items()]
    function.__signature__ = signature.replace(parameters=own + shared)  # type: ignore[attr-defined]
    RECIPES[function.__name__] = function
    return function


class Task:
    """X, a rank, and the options, checked; `run` starts and ends the fit."""

    def __init__(self, X: Any, n_components: int, options: Options) -> None:
        self.started = perf_counter()
        unknown = set(options) - set(DEFAULTS)
        if unknown:
            raise TypeError(
                f"unknown parameter {', '.join(sorted(unknown))}; besides its own, every recipe takes "
                f"{', '.join(DEFAULTS)}"
            )
        self.options: dict[str, Any] = DEFAULTS | dict(options)
        if self.options["callback"] is not None and not callable(self.options["callback"]):
            raise ValueError(f"callback={self.options['callback']!r} cannot be called")
        self.data = as_data(X)
        self.r = as_count(n_components, "n_components")
        self.rng = as_generator(self.options["random_state"])

    def run(
        self,
        blocks: Sequence[Block],
        *,
        data: Data | None = None,
        more: Sequence[np.ndarray[Any, Any]] = (),
        order: Sequence[int] = (1, 0),
        before: Sequence[int] = (),
        init: str = "samples",
        scaled: int | None = None,
        tol: float = 1e-4,
        revive: Reviver | None = revive,
        balance: bool = True,
    ) -> Result:
        """Fit ``blocks`` to the data, or to ``data`` in its place, with the recipe's own defaults.

        ``more`` are further factors; ``scaled`` is the mode that a start by name is scaled to X by.
        """
        limits = self.limits(tol)
        start = init if self.options["init"] is None else self.options["init"]
        with interrupts():
            if isinstance(start, str) and start == "gradual":
                factors = gradual_factors(self.data, self.r, blocks[:2], order, self.rng)
            else:
                factors = starting_factors(start, self.data, self.r, [b.sets for b in blocks[:2]], self.rng)
            if isinstance(start, str) and scaled is not None:
                scale_to(self.data, factors, scaled)
            result = factorize(
                self.data if data is None else data,
                [*factors, *more],
                blocks,
                order=order,
                before=before,
                revive=revive,
                balance=balance,
                started=self.started,
                **limits,
            )
        return replace(result, encoder=self.encoder(blocks[0]))

    def limits(self, tol: float) -> dict[str, Any]:
        """When to stop, checked."""
        asked = self.options
        return {
            "max_iter": as_count(asked["max_iter"], "max_iter"),
            "tol": tol if asked["tol"] is None else as_amount(asked["tol"], "tol"),
            "kkt_tol": as_amount(asked["kkt_tol"], "kkt_tol"),
            "max_time": None if asked["max_time"] is None else as_amount(asked["max_time"], "max_time"),
            "callback": asked["callback"],
        }

    def encoder(self, block: Block) -> Block | None:
        """How the activations of new samples are found: as the fit's own, if samples do not bind each other."""
        if block.sets.nonnegative:
            return nonnegative_encoder(self.r, block.l1, block.l2, block.rows)
        return block if block.sets.by_rows else None


def gradual_factors(data: Data, r: int, blocks: Sequence[Block], order: Sequence[int], rng: Any) -> Factors:
    """A start by a few iterations at each of several lower sparsities."""
    factors = starting_factors("samples", data, r, [b.sets.relaxed(0.2) for b in blocks], rng)
    for share in (0.2, 0.4, 0.6, 0.8):
        relaxed = [replace(b, sets=b.sets.relaxed(share)) for b in blocks]
        factors = [b.sets.project(f) for b, f in zip(relaxed, factors, strict=True)]
        factors = factorize(data, factors, relaxed, order=order, before=order[1:], max_iter=10, tol=0).factors
    return [b.sets.project(f) for b, f in zip(blocks, factors, strict=True)]
