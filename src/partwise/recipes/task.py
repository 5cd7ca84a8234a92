"""What all recipes share: how a fit starts, and when it stops."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from time import perf_counter
from typing import Any, Literal, TypedDict, TypeVar, cast

import numpy as np

from ..ask import as_amount, as_bytes, as_count, as_generator, as_jobs
from ..blocks import Block, nonnegative_encoder
from ..data import Chunked, Data, Matrix, as_data
from ..factorize import Callback, Result, factorize
from ..fit import Reviver, give_unit_norm
from ..interrupts import interrupts
from ..start import Factors, revive, scale_to, starting_factors
from ..statistics import gram
from ..updates import Sets

Side = Literal["activations", "components"]
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
    n_jobs : int
        Threads for matrix products and kernels; by default as many as BLAS may take. The answer does not depend on it,
        but for rounding.
    memory_limit : int or str
        Bytes of memory ("2 GB") for an X that is not in memory: a .npy path, a memory map, zarr, HDF5. If it takes more
        (1 GiB by default) it stays where it is, and each iteration reads it once, in chunks of samples.
    """

    init: Any
    max_iter: int
    tol: float | None
    kkt_tol: float
    max_time: float | None
    random_state: Any
    callback: Callback | None
    memory_limit: int | str | None
    n_jobs: int | None


DEFAULTS: dict[str, Any] = {
    "init": None,
    "max_iter": 200,
    "tol": None,
    "kkt_tol": 0.0,
    "max_time": None,
    "random_state": None,
    "callback": None,
    "memory_limit": None,
    "n_jobs": None,
}

RECIPES: dict[str, Callable[..., Result]] = {}

IN_CHUNKS = (
    "X comes in chunks of samples, and this method does not treat samples one by one: load X into memory, or take "
    "ssnmf with solver='hals', 'multiplicative', 'greedy' or 'pivot' and without extrapolation"
)

STAGES = (0.2, 0.4, 0.6, 0.8)  # shares of the sparsity, for the gradual start


def recipe(function: Function) -> Function:
    """Enter a function among the recipes for matrices, and spell out its `Options` in its signature."""
    checked = spelled_out(function)
    RECIPES[function.__name__] = checked
    return checked


def spelled_out(function: Function, without: Sequence[str] = ()) -> Function:
    """The function with its `Options`, but for those it does not take, in its signature; others are refused."""
    signature = inspect.signature(function)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=d)
        for name, d in DEFAULTS.items()
        if name not in without
    ]
    names = [p.name for p in own + shared]

    @wraps(function)
    def checked(*args: Any, **options: Any) -> Result:
        unknown = ", ".join(sorted(set(options) - set(names)))
        if unknown:
            raise TypeError(f"{function.__name__} does not take {unknown}; it takes {', '.join(names)}")
        return function(*args, **options)

    checked.__signature__ = signature.replace(parameters=own + shared)  # type: ignore[attr-defined]
    return cast(Function, checked)


class Task:
    """X, a rank, and the options, checked; `run` starts and ends the fit."""

    rank = "n_components"  # as the recipe calls it

    def __init__(self, X: Any, n_components: int, options: Options) -> None:
        self.started = perf_counter()
        self.options: dict[str, Any] = DEFAULTS | dict(options)
        if self.options["callback"] is not None and not callable(self.options["callback"]):
            raise ValueError(f"callback={self.options['callback']!r} cannot be called")
        self.data: Any = self.read(X)
        self.r = as_count(n_components, self.rank)
        self.rng = as_generator(self.options["random_state"])

    def read(self, X: Any) -> Data:
        """X as data."""
        return as_data(X, as_bytes(self.options["memory_limit"], "memory_limit"))

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
        if isinstance(self.data, Chunked):
            self.check_chunks(blocks, start)

        def fit(factors: Factors, blocks: Sequence[Block], **limits: Any) -> Result:
            return factorize(
                self.data if data is None else data,
                factors,
                blocks,
                order=order,
                before=before,
                revive=revive,
                balance=balance,
                started=self.started,
                **limits,
            )

        own = blocks[: len(blocks) - len(more)]
        with interrupts():
            if isinstance(start, str) and start == "gradual":
                first = [b.sets.relaxed(STAGES[0]) for b in own]
                factors = [*self.starting_factors("samples", first, scaled), *more]
                for share in STAGES if first != [b.sets for b in own] else ():
                    relaxed = [replace(b, sets=b.sets.relaxed(share)) for b in blocks]
                    factors = [b.sets.project(f) for b, f in zip(relaxed, factors, strict=True)]
                    factors = fit(
                        factors, relaxed, max_iter=10, tol=0, max_time=limits["max_time"], n_jobs=limits["n_jobs"]
                    ).factors
                factors = [b.sets.project(f) for b, f in zip(blocks, factors, strict=True)]
            else:
                factors = [*self.starting_factors(start, [b.sets for b in own], scaled), *more]
            result = fit(factors, blocks, **limits)
        whole = data is None or data.squared
        return replace(result, encoder=self.encoder(blocks[0]) if whole else None)

    def whole(self) -> Matrix:
        """The data, for methods that need all of it in one place."""
        if not isinstance(self.data, Matrix):
            raise ValueError(IN_CHUNKS)
        return self.data

    def check_chunks(self, blocks: Sequence[Block], start: Any) -> None:
        """Refuse what cannot be done chunk by chunk."""
        if not blocks[0].sets.by_rows:
            raise ValueError(
                "sparsity on the activations binds all samples together, and X comes in chunks of them: load X into "
                "memory, or put the sparsity on the components"
            )
        if not blocks[0].separable:
            raise ValueError(IN_CHUNKS)
        if isinstance(start, str) and start == "gradual":
            raise ValueError("init='gradual' needs X in memory: take 'samples' or 'random'")

    def starting_factors(self, start: Any, sets: Sequence[Sets], scaled: int | None) -> Factors:
        """Factors to start from; those by name are scaled to X, in the mode ``scaled``, the others having norm 1."""
        factors = self.first_factors(start, sets)
        if isinstance(start, str) and scaled is not None:
            for mode in range(len(factors)):
                if mode != scaled and sets[mode].scale_free:
                    give_unit_norm(factors, [gram(f) for f in factors], mode, scaled)
            scale_to(self.data, factors, scaled)
        return factors

    def first_factors(self, start: Any, sets: Sequence[Sets]) -> Factors:
        """Factors by name, or the user's own."""
        return starting_factors(start, self.data, self.r, sets, self.rng)

    def limits(self, tol: float) -> dict[str, Any]:
        """When to stop, checked."""
        asked = self.options
        return {
            "max_iter": as_count(asked["max_iter"], "max_iter"),
            "tol": tol if asked["tol"] is None else as_amount(asked["tol"], "tol"),
            "kkt_tol": as_amount(asked["kkt_tol"], "kkt_tol"),
            "max_time": None if asked["max_time"] is None else as_amount(asked["max_time"], "max_time", np.inf),
            "callback": asked["callback"],
            "n_jobs": None if asked["n_jobs"] is None else as_jobs(asked["n_jobs"]),
        }

    def encoder(self, block: Block) -> Block | None:
        """How the activations of new samples are found: as the fit's own, if samples do not bind each other."""
        if block.sets.nonnegative:
            return nonnegative_encoder(self.r, block.l1, block.l2, block.rows)
        return block if block.sets.by_rows else None
