"""The setup that all recipes share: options, validation, checkpoints."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np

from ..data import Chunked, Held, Matrix, Sliced, Tensor, WeightedDense, as_data, check_seen, with_divergence
from ..engine.blocks import Block, divergence_encoder, nonnegative_encoder
from ..engine.checkpoint import Checkpoint, Resumed, check_place
from ..engine.loop import factorize
from ..engine.natural import advise
from ..engine.options import TABLE, TOL, WEIGHTS, Keywords
from ..engine.problem import Problem, factors_checksum, values_checksum
from ..engine.result import Result
from ..engine.starts import Factors
from ..engine.stopping import Callback, Iteration
from ..engine.validation import (
    as_amount,
    as_bytes,
    as_columns,
    as_count,
    as_generator,
    as_known,
    as_loss,
    as_missing,
    as_path,
    as_signed,
    seed_of,
    warn_user,
)
from ..runtime.compiled import clock
from ..runtime.interrupts import interrupts
from ..runtime.together import Job, job_of
from ..updates import Columns, Sequential
from .combinations import IN_CHUNKS, check_chunks, check_missing, check_signed
from .initial import Starting, StartRequest

Side = Literal["activations", "components"]
FIXED: tuple[Literal["fixed_activations"], Literal["fixed_components"]] = ("fixed_activations", "fixed_components")
COMPRESSIBLE = ("auto", "samples", "random", "gradual")  # starts after which a fit may begin on a low-rank X

OUTER = (("sample_weight", "activations"), ("feature_weight", "components"))  # weights, and the side that they scale
NO_WEIGHTS = "weights are not available for this method: use ssnmf"


def as_matrix(X: Any, options: Keywords) -> Matrix | Chunked:
    """Validate X and wrap it as data, as the options say."""
    missing = as_missing(options["missing"])
    signed = as_signed(options["negative"])
    limit = as_bytes(options["memory_limit"], "memory_limit")
    weights = [cast(Mapping[str, Any], options)[name] for name in WEIGHTS]
    data = as_data(X, limit, missing, options["observed"], signed, weights)
    if not data.complete:
        check_seen(data.counts(1))
    return data


class Task(Starting):
    """Validated X, number of components and options of a fit. `run` fits.

    ``divergence``: whether the recipe supports the Kullback–Leibler divergence and, as an attribute, whether that is
    the loss. ``weights``: whether it supports weights.
    """

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
        asked = StartRequest(start, scaled, more)
        compress = compress and accelerate and self.data.complete and asked.name in COMPRESSIBLE
        compress = compress and not any(b.penalised for b in blocks)
        if isinstance(self.data, Chunked):
            check_chunks(blocks, asked.name)
        if self.weighted:
            self.check_weighted(limits)
        if not self.data.complete:
            check_missing(self.data, order, asked.name)
        if self.data.signed:
            check_signed(blocks, data is None or data.squared)
        if self.resumed is None and not self.divergence and not isinstance(self.data, WeightedDense):
            advise(self.data, blocks[1].sets)
        plan = {"order": order, "before": before, "balance": balance, "revive": revive, "accelerate": accelerate}

        def fit(
            factors: Factors, blocks: Sequence[Block], *, source: Matrix | None = None, **changes: Any
        ) -> Job[Result]:
            how: dict[str, Any] = plan | {"started": self.started} | changes
            return job_of(factorize)(source or other or self.near, factors, blocks, **how)

        problem = self.problem(blocks, plan, asked, compress, parameters or {})
        with interrupts() as interrupted:
            extra: dict[str, Any] = {}
            if self.resumed is not None:
                factors = self.resumed.factors(self.data)
                self.resumed.set_generator(self.rng, "after")
            else:
                factors, extra = await self.begin(asked, blocks, fit, limits, interrupted, compress)
            random = {"before": self.before, "after": self.rng.bit_generator.state, "seed": self.seed}
            checkpoint = None if self.checkpoint is None else Checkpoint(self.checkpoint, self.every, problem, random)
            result = await fit(factors, blocks, **limits, checkpoint=checkpoint, resumed=self.resumed, **extra)
        encoder = self.encoder(blocks[0]) if data is None or data.squared else None
        loss = "kullback-leibler" if self.divergence else "squared"
        factors = self.data.scales.divided(result.factors) if self.data.scales else result.factors
        return replace(result, factors=factors, encoder=encoder, seed=self.seed, loss=loss)

    def problem(
        self,
        blocks: Sequence[Block],
        plan: Mapping[str, Any],
        asked: StartRequest,
        compress: bool,
        parameters: Mapping[str, Any],
    ) -> Problem:
        """Return the identity of the fit. Raises ValueError if that of the checkpoint to resume from is another one."""
        values, init = "", asked.name
        if self.checkpoint is not None or self.resumed is not None:  # checksums take time
            values = values_checksum(self.data)
            if init == "given":
                init = factors_checksum(self.scaled_start(asked.start, asked.sets(blocks), asked.scaled))
        problem = Problem(
            tuple(self.data.shape),
            self.data.dtype.name,
            values,
            self.r,
            tuple(blocks),
            tuple(plan["order"]),
            tuple(plan["before"]),
            plan["balance"],
            plan["revive"],
            plan["accelerate"],
            init,
            ({"loss": "kullback-leibler"} if self.divergence else {}) | dict(parameters),
            compress,
        )
        if self.resumed is not None:
            self.resumed.check(problem)
            self.resumed.check_known(self.known)
        return problem

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

    def encoder(self, block: Block) -> Block | None:
        """The block that solves for the activations of new samples; None if its sets couple the samples."""
        if self.divergence:
            return divergence_encoder(self.r)
        if block.sets.nonnegative:
            return nonnegative_encoder(self.r, block.l1, block.l2, block.rows)
        return block if block.sets.by_rows else None
