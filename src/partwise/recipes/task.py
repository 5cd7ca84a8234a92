"""The setup that all recipes share: options, validation, initial factors, checkpoints."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Callable, Coroutine, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import wraps
from typing import Any, Literal, ParamSpec, cast

import numpy as np

from ..data import (
    LIMIT,
    Chunked,
    Held,
    Matrix,
    Sliced,
    Tensor,
    WeightedDense,
    as_data,
    check_seen,
    with_divergence,
)
from ..engine.blocks import Block, divergence_encoder, nonnegative_encoder
from ..engine.checkpoint import Checkpoint, Resumed, check_place
from ..engine.compression import CHEAP, CHEAP_SPARSE, Compressed, compressed_iterations
from ..engine.loop import Callback, Iteration, Result, factorize
from ..engine.natural import advise
from ..engine.options import FIRST, NEGATIVE, TABLE, TOL, WEIGHTS, Keywords, entries, full_docstring, parameters
from ..engine.problem import Problem, factors_checksum, values_checksum
from ..engine.running import give_unit_norm
from ..engine.starts import Factors, Given, scale_to, starting_factors
from ..engine.validation import (
    as_amount,
    as_bytes,
    as_choice,
    as_columns,
    as_count,
    as_generator,
    as_jobs,
    as_known,
    as_loss,
    as_path,
    seed_of,
    warn_user,
)
from ..runtime.compiled import clock
from ..runtime.interrupts import interrupts
from ..runtime.threads import fitting_threads
from ..runtime.together import Job, job_of, single
from ..statistics import as_factor, gram
from ..updates import Columns, Multiplicative, Sequential, Sets
from .staged import (
    CLOSE,
    SETTLED,
    automatic,
    excerpt,
    for_all_samples,
    gradual,
    in_single_precision,
    least_squares,
    levels,
    projected,
)

Side = Literal["activations", "components"]
FIXED: tuple[Literal["fixed_activations"], Literal["fixed_components"]] = ("fixed_activations", "fixed_components")
P = ParamSpec("P")
COMPRESSIBLE = ("auto", "samples", "random", "gradual")  # starts after which a fit may begin on a low-rank X


RECIPES: dict[str, Callable[..., Result]] = {}

IN_CHUNKS = (
    "X is read in chunks of samples, and this method needs all samples at once: load X into memory, or use ssnmf with "
    "solver='hals', 'multiplicative', 'greedy' or 'pivot'"
)

OUTER = (("sample_weight", "activations"), ("feature_weight", "components"))  # weights, and the side that they scale
NO_WEIGHTS = "weights are not available for this method: use ssnmf"


def recipe(function: Callable[P, Coroutine[Any, Any, Result]]) -> Callable[P, Result]:
    """Register a function as a recipe for matrices, and add the options to its signature and docstring."""
    checked = spelled_out(function)
    RECIPES[function.__name__] = checked
    return checked


def spelled_out(function: Callable[P, Coroutine[Any, Any, Result]], without: Sequence[str] = ()) -> Callable[P, Result]:
    """Add the options, except those in ``without``, to the signature and docstring of a recipe, and make it `single`.

    X, n_components and the result are added to the docstring, too. Unknown options raise TypeError.
    """
    signature = inspect.signature(function)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    shared = [p for p in parameters() if p.name not in without]
    names = [p.name for p in own + shared]

    @single
    @wraps(function)
    async def checked(*args: P.args, **options: P.kwargs) -> Result:
        unknown = ", ".join(sorted(set(options) - set(names)))
        if unknown:
            raise TypeError(f"{function.__name__} does not take {unknown}; it takes {', '.join(names)}")
        return await function(*args, **options)

    signature = signature.replace(parameters=own + shared)
    checked.__signature__ = signature  # type: ignore[attr-defined]
    checked.__doc__ = full_docstring(function.__doc__, FIRST, entries(signature), "Result")
    return checked


def as_matrix(X: Any, options: Keywords) -> Matrix | Chunked:
    """Validate X and wrap it as data, as the options say."""
    missing = as_choice(options["missing"], "missing", ("error", "em")) == "em"
    signed = as_choice(options["negative"], "negative", NEGATIVE) == "allow"
    limit = as_bytes(options["memory_limit"], "memory_limit")
    weights = [cast(Mapping[str, Any], options)[name] for name in WEIGHTS]
    data = as_data(X, limit, missing, options["observed"], signed, weights)
    if not data.complete:
        check_seen(data.counts(1), "have weight 0 or are" if isinstance(data, WeightedDense) else "are")
    return data


class Task:
    """Validated X, number of components and options of a fit. `run` fits.

    ``divergence``: whether the recipe supports the Kullback–Leibler divergence and, as an attribute, whether that is
    the loss. ``weights``: whether it supports weights.
    """

    data: Matrix | Chunked | Tensor
    near: Matrix | Chunked | Tensor  # what is fitted at the moment: X, or a low-rank X in its place

    def __init__(
        self, X: Any, n_components: int, options: Keywords, divergence: bool = False, weights: bool = False
    ) -> None:
        self.started = clock()
        self.options = cast(Keywords, {name: option.default for name, option in TABLE.items()} | options)
        self.divergence = as_loss(self.options["loss"])
        if self.divergence and not divergence:
            raise ValueError(f"loss={self.options['loss']!r} is not available for this method: use ssnmf or nsnmf")
        if self.divergence and self.options["kkt_tol"]:
            raise ValueError(f"kkt_tol is not available with loss={self.options['loss']!r}: omit it, and use tol")
        callback = self.options["callback"]
        if callback is not None and not callable(callback):
            raise ValueError(f"callback={callback!r} is not callable: give a function of an Iteration")
        self.checkpoint = as_path(self.options["checkpoint"], "checkpoint")
        source = as_path(self.options["resume_from"], "resume_from")
        if self.checkpoint is not None:
            check_place(self.checkpoint)
        self.every = as_count(self.options["checkpoint_every"], "checkpoint_every")
        self.resumed = None if source is None else Resumed.read(source)
        self.near = self.data = self.read(X)
        if self.weighted and not weights:
            raise ValueError(NO_WEIGHTS)
        if isinstance(self.data, Chunked) and not self.data.here and (self.checkpoint or self.resumed):
            raise ValueError("checkpoints are not available for Dask arrays: their activations stay on the workers")
        self.r = as_count(n_components, "n_components")
        if len(self.data.shape) == 2 and self.r > min(self.data.shape):  # the rank of a tensor may exceed its sides
            n, which = min(zip(self.data.shape, ("samples", "features"), strict=False))
            warn_user(f"n_components={self.r}, but X has only {n} {which}: use at most {n} components", UserWarning)
        self.rng = as_generator(self.options["random_state"])
        if self.resumed is not None:
            given = isinstance(self.options["random_state"], numbers.Integral)
            self.resumed.set_generator(self.rng, "before", must_agree=given)
        self.seed = seed_of(self.rng, self.options["random_state"]) if self.resumed is None else self.resumed.seed
        self.before = self.rng.bit_generator.state
        fixed = {name: self.options[name] for name in FIXED}
        self.known = [
            as_known(rows, self.r, length, name, self.data.dtype, self.data)
            for (name, rows), length in zip(fixed.items(), self.data.shape, strict=False)
        ]

    @property
    def weighted(self) -> bool:
        """Whether samples, features or entries of X have weights."""
        return isinstance(self.data, WeightedDense) or bool(self.data.scales)

    def read(self, X: Any) -> Matrix | Chunked | Tensor:
        """Validate X and wrap it as data."""
        return as_matrix(X, self.options)

    async def run(
        self,
        blocks: Sequence[Block],
        *,
        data: Sliced | None = None,
        more: Sequence[np.ndarray[Any, Any]] = (),
        order: Sequence[int] = (1, 0),
        before: Sequence[int] = (),
        init: str = "samples",
        scaled: int | None = None,
        tol: float = TOL,
        revive: bool = True,
        balance: bool = True,
        accelerate: bool = False,
        compress: bool = False,
        parameters: Mapping[str, Any] | None = None,
    ) -> Result:
        """Fit ``blocks`` to ``data`` (by default that of the task), with the recipe's defaults.

        ``more`` are further factors. ``scaled`` is the mode whose factor is scaled such that a start by name has the
        norm of X. With ``compress``, an accelerated fit may begin on a low-rank X. ``parameters`` identify the fit in a
        checkpoint, beyond the blocks and the shape of X.
        """
        limits = self.limits(tol)
        other = with_divergence(self.data) if self.divergence and data is None else data
        accelerate = accelerate and self.data.can_accelerate and not limits["kkt_tol"]
        blocks = self.partly(blocks, plain=data is None)
        start = self.options["init"]
        start = init if start is None or (isinstance(start, str) and start == "auto") else start
        name = start if isinstance(start, str) else "given"
        compress = compress and accelerate and self.data.complete and name in COMPRESSIBLE
        compress = compress and not any(b.penalised for b in blocks)
        if isinstance(self.data, Chunked):
            self.check_chunks(blocks, name)
        if self.weighted:
            self.check_weighted(limits)
        if not self.data.complete:
            self.check_missing(order, name)
        if self.data.signed:
            check_signed(blocks, data is None or data.squared)
        if self.resumed is None and not self.divergence:
            advise(self.data, blocks[1].sets)

        async def fit(
            factors: Factors,
            blocks: Sequence[Block],
            *,
            source: Matrix | None = None,
            before: Sequence[int] = before,
            balance: bool = balance,
            accelerate: bool = accelerate,
            **limits: Any,
        ) -> Result:
            return await job_of(factorize)(
                source or other or self.near,
                factors,
                blocks,
                order=order,
                before=before,
                revive=revive,
                balance=balance,
                accelerate=accelerate,
                started=self.started,
                **limits,
            )

        sets = [b.sets for b in blocks[: len(blocks) - len(more)]]
        saved = self.checkpoint is not None or self.resumed is not None  # checksums take time
        problem = Problem(
            tuple(self.data.shape),
            self.data.dtype.name,
            values_checksum(self.data) if saved else "",
            self.r,
            tuple(blocks),
            tuple(order),
            tuple(before),
            balance,
            revive,
            accelerate,
            factors_checksum(self.scaled_start(start, sets, scaled)) if saved and name == "given" else name,
            ({"loss": "kullback-leibler"} if self.divergence else {}) | dict(parameters or {}),
            compress,
        )
        if self.resumed is not None:
            self.resumed.check(problem)
            self.resumed.check_known(self.known)
        with interrupts() as interrupted:
            extra: dict[str, Any] = {}
            if self.resumed is not None:
                factors = self.resumed.factors(self.data)
                self.resumed.set_generator(self.rng, "after")
            else:
                few = await self.compressed(blocks, limits) if compress else None
                if name in ("gradual", "auto"):
                    factors = await self.staged(name, blocks, more, scaled, fit, limits, interrupted)
                else:
                    factors = [*self.scaled_start(start, sets, scaled), *more]
                if few is not None:
                    factors, extra = self.returned(await fit(factors, blocks, **few))
            random = {"before": self.before, "after": self.rng.bit_generator.state, "seed": self.seed}
            checkpoint = None if self.checkpoint is None else Checkpoint(self.checkpoint, self.every, problem, random)
            result = await fit(factors, blocks, **limits, checkpoint=checkpoint, resumed=self.resumed, **extra)
        encoder = self.encoder(blocks[0]) if data is None or data.squared else None
        loss = "kullback-leibler" if self.divergence else "squared"
        factors = self.data.scales.divided(result.factors) if self.data.scales else result.factors
        return replace(result, factors=factors, encoder=encoder, seed=self.seed, loss=loss)

    async def staged(
        self,
        name: str,
        blocks: Sequence[Block],
        more: Sequence[Any],
        scaled: int | None,
        fit: Callable[..., Job[Result]],
        limits: Mapping[str, Any],
        interrupted: Sequence[int],
    ) -> Factors:
        """Return initial factors from short fits. After Ctrl-C or max_time, the remaining ones are left out."""
        sparse = any(levels(b.sets) for b in blocks)
        if name == "auto" and not (sparse or self.divergence):
            return self.scaled_start("samples", [b.sets for b in blocks], scaled)
        few = {name: limits[name] for name in ("max_time", "n_threads")} | {"tol": SETTLED}
        if name == "auto" and self.divergence:  # fits with the squared loss
            few |= {"accelerate": self.data.complete, "balance": False}
            blocks = [replace(b, update=least_squares(b.update, self.sweeps(mode))) for mode, b in enumerate(blocks)]
        some, whole = copy(self), True
        if name == "auto" and not isinstance(self.near, Tensor):
            some.near, some.known = excerpt(self.near, self.known, self.rng)
            whole = some.near is self.near
            if self.divergence and self.known == [None, None]:  # known components keep their bits
                some.near = in_single_precision(some.near)
            few["source"] = some.near

        def start(init: str, sets: Sequence[Sets]) -> Factors:
            return [*some.scaled_start(init, sets[: len(blocks) - len(more)], scaled), *more]

        async def short(factors: Factors, blocks: Sequence[Block], iterations: int) -> Factors:
            over = few["max_time"] is not None and clock() - self.started >= few["max_time"]
            if interrupted or over:
                return factors
            return (await fit(factors, blocks, max_iter=iterations, **few)).factors

        if name == "gradual":
            return await gradual(blocks, start, short)
        factors = await automatic(blocks, start, short) if sparse else start("samples", [b.sets for b in blocks])
        if self.divergence:
            factors = await short(factors, blocks, CLOSE)
            factors = projected([as_factor(f, self.data.dtype) for f in factors], blocks)
        if whole:
            return factors
        assert not isinstance(self.near, Tensor)
        with fitting_threads(self.near.size * self.r, limits["n_threads"]):
            return for_all_samples(factors, blocks, self.near, self.known[0])

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

    def partly(self, blocks: Sequence[Block], plain: bool) -> list[Block]:
        """Return the blocks with known columns kept fixed. The other side carries their scale."""
        blocks = list(blocks)
        for mode, known in enumerate(self.known):
            if known is None:
                continue
            sets, others = blocks[mode].sets, blocks[1 - mode].sets
            if not plain or not isinstance(sets, Columns) or not (isinstance(others, Columns) or others.scale_free):
                raise ValueError(
                    f"{FIXED[mode]} is not available for this method, which couples all components: use ssnmf"
                )
            blocks[mode] = blocks[mode].keeping(known)
            if isinstance(others, Columns):
                blocks[1 - mode] = replace(blocks[1 - mode], sets=known.scaling(others))
        return blocks

    def sweeps(self, mode: int) -> int:
        """The number of sweeps over a factor: up to 4 that cost half as much as its statistics, 8 if they cost 1/6."""
        entries = math.prod(self.data.shape) // self.data.shape[mode]  # for each row of the factor
        return max(1, min(round(entries / self.r / 2), 4), min(round(entries / self.r / 50), 8))

    def hals(self, mode: int) -> Block:
        """The block of an unconstrained factor, updated by HALS."""
        return Block(Sequential(self.sweeps(mode)), as_columns(None, self.r))

    def whole(self) -> Matrix:
        """Return the data, for methods that need it in memory and without missing entries."""
        if not isinstance(self.data, Matrix):
            raise ValueError(IN_CHUNKS)
        if not self.data.complete:
            raise ValueError("this method needs all entries of X: impute missing entries, or use ssnmf")
        return self.data

    def check_chunks(self, blocks: Sequence[Block], start: str) -> None:
        """Raise ValueError for methods and starts that are not available for X in chunks."""
        if not blocks[0].sets.by_rows:
            raise ValueError(
                "a sparsity of the activations couples all samples, but X is read in chunks of samples: load X into "
                "memory, or set the sparsity of the components instead"
            )
        if not blocks[0].separable:
            raise ValueError(IN_CHUNKS)
        if start == "gradual":
            raise ValueError("init='gradual' needs X in memory: use 'samples' or 'random'")

    def weigh(self, free: Sequence[bool]) -> None:
        """Choose how X is weighted: by scales if the scaled sides are ``free`` of all but y ≥ 0, else entry by entry.

        Raises ValueError if that needs a dense X.
        """
        if self.data.scales.hindered(*free):
            self.near = self.data = self.data.entrywise()
        for mode in self.data.scales.hindered(*free):
            name, side = OUTER[mode]
            raise ValueError(
                f"{name} cannot be combined with a sparsity, bound or penalty of the {side} if X is sparse or read in "
                "chunks: omit one of them, or load X as a dense array"
            )

    def check_weighted(self, limits: Mapping[str, Any]) -> None:
        """Raise ValueError for what is not available with weights."""
        for known, name in zip(self.known, FIXED, strict=False):
            if known is not None:
                raise ValueError(f"weights cannot be combined with {name}: omit one of them")
        if limits["kkt_tol"]:
            raise ValueError("kkt_tol is not available with weights: omit it, and use tol")

    def check_missing(self, order: Sequence[int], start: str) -> None:
        """Raise ValueError for methods and starts that are not available with missing entries."""
        if isinstance(self.data, Chunked) and order[-1] != 0:  # the loss would need another pass
            raise ValueError("X has missing entries and is read in chunks: load X into memory, or use ssnmf")
        if start == "nndsvd":
            raise ValueError("init='nndsvd' needs all entries of X: use 'samples' or 'random'")

    def scaled_start(self, start: Any, sets: Sequence[Sets], scaled: int | None) -> Factors:
        """Return initial factors. In a start by name, the factor of mode ``scaled`` carries the norm of X."""
        with fitting_threads(self.near.size * self.r, self.threads()):
            factors = self.first_factors(start, sets)
        if isinstance(start, str) and scaled is not None:
            kept = [s.kept for s in sets]
            for mode in range(len(factors)):
                if mode != scaled and sets[mode].scale_free:
                    give_unit_norm(factors, [gram(f) for f in factors], mode, scaled, sum(kept, ()))
            scale_to(self.near, factors, scaled, kept)
        return factors

    def first_factors(self, start: Any, sets: Sequence[Sets]) -> Factors:
        """Return the initial factors, by name or as given by the user."""
        assert not isinstance(self.near, Tensor)
        factors = starting_factors(start, self.near, self.r, sets, self.rng, self.known)
        if isinstance(self.near, Matrix) and self.near.unseen.size:  # samples without any observed entry
            factors[0][self.near.unseen] = 0
            factors[0] = sets[0].project(factors[0])
            if self.known[0] is not None:
                self.known[0].put(factors[0])
        return factors

    def limits(self, tol: float) -> dict[str, Any]:
        """Return the validated limits of the loop."""
        asked = self.options
        return {
            "max_iter": as_count(asked["max_iter"], "max_iter"),
            "tol": tol if asked["tol"] is None else as_amount(asked["tol"], "tol"),
            "kkt_tol": as_amount(asked["kkt_tol"], "kkt_tol"),
            "max_time": None if asked["max_time"] is None else as_amount(asked["max_time"], "max_time", np.inf),
            "callback": self.callback(),
            "n_threads": self.threads(),
        }

    def callback(self) -> Callback | None:
        """The user's callback. It sees the factors of X, also if X is scaled."""
        asked, scales = self.options["callback"], self.data.scales
        if asked is None or not scales:
            return asked

        def of_x(one: Iteration) -> Any:
            activations, parts = one.factors
            if isinstance(activations, Held):  # not available to callbacks
                return asked(replace(one, factors=[activations, scales.unscaled_parts(parts)[0]]))
            return asked(replace(one, factors=scales.divided(one.factors)))

        return of_x

    def threads(self) -> int | None:
        """The validated number of threads, if it is given."""
        asked = self.options["n_threads"]
        return None if asked is None else as_jobs(asked, "n_threads")

    def encoder(self, block: Block) -> Block | None:
        """The block that solves for the activations of new samples; None if its sets couple the samples."""
        if self.divergence:
            return divergence_encoder(self.r)
        if block.sets.nonnegative:
            return nonnegative_encoder(self.r, block.l1, block.l2, block.rows)
        return block if block.sets.by_rows else None


def check_signed(blocks: Sequence[Block], squared: bool) -> None:
    """Raise ValueError for losses and updates that need X ≥ 0."""
    if not squared:
        raise ValueError("negative='allow' needs the squared loss: use ssnmf, or shift or clip the data")
    if any(isinstance(getattr(b.update, "update", b.update), Multiplicative) for b in blocks):
        raise ValueError("negative='allow' is not available for multiplicative updates: use ssnmf with solver='hals'")
