"""The initial factors of a fit: given, by name, from short fits, and from a fit of a low-rank X."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..data import LIMIT, Chunked, Matrix, Tensor, WeightedDense
from ..engine.blocks import Block
from ..engine.compression import CHEAP, CHEAP_SPARSE, Compressed, compressed_iterations
from ..engine.options import Keywords
from ..engine.result import Result
from ..engine.running import give_unit_norm
from ..engine.starts import Factors, Given, scale_to, starting_factors
from ..engine.stopping import Callback
from ..engine.validation import as_bytes, as_jobs
from ..runtime.compiled import clock
from ..runtime.threads import fitting_threads
from ..runtime.together import Job
from ..statistics import as_factor, gram
from ..updates import Known, Sets
from .staged import (
    CLOSE,
    SETTLED,
    ShortFit,
    automatic,
    excerpt,
    for_all_samples,
    gradual,
    in_single_precision,
    least_squares,
    levels,
    projected,
)

Fitting = Callable[..., Job[Result]]  # factors, blocks, and keywords of `factorize` → result


@dataclass(frozen=True)
class StartRequest:
    """The start that is asked for.

    Attributes
    ----------
    start : str or factors
        A name, or what the user has given.
    scaled : int or None
        The mode whose factor is scaled such that a start by name has the norm of X.
    more : sequence of arrays
        Further factors, which follow those of the start.
    """

    start: Any
    scaled: int | None
    more: Sequence[np.ndarray[Any, Any]]

    @property
    def name(self) -> str:
        """The name of the start."""
        return self.start if isinstance(self.start, str) else "given"

    def sets(self, blocks: Sequence[Block]) -> list[Sets]:
        """The sets of the factors of the start."""
        return [b.sets for b in blocks[: len(blocks) - len(self.more)]]


class Starting:
    """Adds initial factors to a task, which has the following attributes.

    Attributes
    ----------
    data, near : data
        X, and what is fitted at the moment: X, or a low-rank X in its place.
    r : int
        The number of components.
    known : list
        What is fixed of each factor, or None.
    divergence : bool
        Whether the loss is the Kullback–Leibler divergence.
    rng, started, options
        The generator of random numbers, the time at which the task began, and its options.
    """

    data: Matrix | Chunked | Tensor
    near: Matrix | Chunked | Tensor
    r: int
    known: list[Known | None]
    divergence: bool
    rng: np.random.Generator
    started: float
    options: Keywords

    def first_factors(self, start: Any, sets: Sequence[Sets]) -> Factors:
        """Return the initial factors, by name or as given by the user."""
        assert not isinstance(self.near, Tensor)
        factors = starting_factors(start, self.unweighted, self.r, sets, self.rng, self.known)
        if isinstance(self.near, Matrix) and self.near.unseen.size:  # samples without any observed entry
            factors[0][self.near.unseen] = 0
            factors[0] = sets[0].project(factors[0])
            if self.known[0] is not None:
                self.known[0].put(factors[0])
        return factors

    @property
    def unweighted(self) -> Any:
        """X as starts see it: of weights of its entries, only which are not zero."""
        return self.near.subset(slice(None)) if isinstance(self.near, WeightedDense) else self.near

    def scaled_start(self, start: Any, sets: Sequence[Sets], scaled: int | None) -> Factors:
        """Return initial factors. In a start by name, the factor of mode ``scaled`` carries the norm of X."""
        with fitting_threads(self.near.size * self.r, self.threads()):
            factors = self.first_factors(start, sets)
        if isinstance(start, str) and scaled is not None:
            kept = [s.kept for s in sets]
            for mode in range(len(factors)):
                if mode != scaled and sets[mode].scale_free:
                    give_unit_norm(factors, [gram(f) for f in factors], mode, scaled, sum(kept, ()))
            scale_to(self.unweighted, factors, scaled, kept)
        return factors

    def by_name(self, asked: StartRequest, name: str, sets: Sequence[Sets]) -> Factors:
        """Return another start than the one that is asked for, with the same further factors."""
        return [*self.scaled_start(name, sets[: len(sets) - len(asked.more)], asked.scaled), *asked.more]

    async def begin(
        self,
        asked: StartRequest,
        blocks: Sequence[Block],
        fit: Fitting,
        limits: Mapping[str, Any],
        interrupted: Sequence[int],
        compress: bool,
    ) -> tuple[Factors, dict[str, Any]]:
        """Return the factors that the fit of X begins with, and what a fit of a low-rank X before it changes there."""
        few = await self.compressed(blocks, limits) if compress else None
        short = partial(self.short_fits, fit, limits, interrupted)
        if asked.name == "gradual":
            factors = await gradual(blocks, partial(self.by_name, asked), short())
        elif asked.name == "auto":
            factors = await self.automatic(asked, blocks, short)
        else:
            factors = [*self.scaled_start(asked.start, asked.sets(blocks), asked.scaled), *asked.more]
        return (factors, {}) if few is None else self.returned(await fit(factors, blocks, **few))

    async def automatic(
        self, asked: StartRequest, blocks: Sequence[Block], short_fits: Callable[..., ShortFit]
    ) -> Factors:
        """Return initial factors from samples or, with a sparsity or the divergence, from short fits to an excerpt."""
        sparse = any(levels(b.sets) for b in blocks)
        if not (sparse or self.divergence):
            return self.scaled_start("samples", [b.sets for b in blocks], asked.scaled)
        few: dict[str, Any] = {}
        if self.divergence:  # fits with the squared loss
            few = {"accelerate": self.data.complete, "balance": False}
            blocks = [replace(b, update=least_squares(b.update, self.sweeps(mode))) for mode, b in enumerate(blocks)]
        some, whole = copy(self), True
        if not isinstance(self.near, Tensor):
            some.near, some.known = excerpt(self.near, self.known, self.rng)
            whole = some.near is self.near
            if self.divergence and self.known == [None, None]:  # known components keep their bits
                some.near = in_single_precision(some.near)
            few["source"] = some.near
        start, short = partial(some.by_name, asked), short_fits(**few)
        factors = await automatic(blocks, start, short) if sparse else start("samples", [b.sets for b in blocks])
        if self.divergence:
            factors = await short(factors, blocks, CLOSE)
            factors = projected([as_factor(f, self.data.dtype) for f in factors], blocks)
        if whole:
            return factors
        assert not isinstance(self.near, Tensor)
        with fitting_threads(self.near.size * self.r, self.threads()):
            return for_all_samples(factors, blocks, self.near, self.known[0])

    def short_fits(
        self, fit: Fitting, limits: Mapping[str, Any], interrupted: Sequence[int], **changes: Any
    ) -> ShortFit:
        """Return the function that runs the short fits of a start; after Ctrl-C or max_time, it leaves them out."""
        few = {name: limits[name] for name in ("max_time", "n_threads")} | {"tol": SETTLED} | changes

        async def short(
            factors: Factors, blocks: Sequence[Block], iterations: int, callback: Callback | None = None
        ) -> Factors:
            over = few["max_time"] is not None and clock() - self.started >= few["max_time"]
            if interrupted or over:
                return factors
            return (await fit(factors, blocks, max_iter=iterations, callback=callback, **few)).factors

        return short

    async def compressed(self, blocks: Sequence[Block], limits: Mapping[str, Any]) -> dict[str, Any] | None:
        """Continue on a low-rank X, and return the limits of the fit there; None if that does not pay."""
        assert not isinstance(self.data, Tensor)
        most = CHEAP if all(b.sets.nonnegative for b in blocks) else CHEAP_SPARSE
        sweeps, chunked = [self.sweeps(0), self.sweeps(1)], isinstance(self.data, Chunked)
        many = compressed_iterations(self.data.shape, self.r, sweeps, limits["max_iter"], chunked, most)
        memory = as_bytes(self.options["memory_limit"], "memory_limit")
        asked = Compressed(self.data, self.r, LIMIT if memory is None else memory, limits["n_threads"])
        low = await asked if many else None
        if low is None:
            return None
        self.near = low
        half = None if limits["max_time"] is None else limits["max_time"] / 2
        return {**limits, "max_iter": many, "max_time": half, "callback": None}

    def returned(self, first: Result) -> tuple[Factors, dict[str, Any]]:
        """Return to X, with the factors of the low-rank X; activations go to their chunks. Also what changes there."""
        self.near = self.data
        activations, parts = first.factors
        held = self.data.hold(Given(activations), self.r) if isinstance(self.data, Chunked) else activations
        return [held, parts], {"compressed": first.n_iter, "before": ()}

    def sweeps(self, mode: int) -> int:
        """The number of sweeps over a factor: up to 4 that cost half as much as its statistics, 8 if they cost 1/6."""
        entries = math.prod(self.data.shape) // self.data.shape[mode]  # for each row of the factor
        return max(1, min(round(entries / self.r / 2), 4), min(round(entries / self.r / 50), 8))

    def threads(self) -> int | None:
        """The validated number of threads, if it is given."""
        asked = self.options["n_threads"]
        return None if asked is None else as_jobs(asked, "n_threads")
