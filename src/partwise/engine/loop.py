"""The loop of all fits.

repeat: for each mode: stats = data.statistics(factors, grams, mode)   one pass over X
                       factor = block(factor, stats)                   without access to X
until:  components settled | fixed-point residual | time | max_iter | callback | Ctrl-C
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..data import Chunked, Held, Sliced
from ..runtime.compiled import clock
from ..runtime.interrupts import interrupts
from ..runtime.threads import fitting_threads
from ..runtime.together import single
from .accelerated import AcceleratedFit
from .accelerated_chunks import AcceleratedChunkedFit
from .blocks import Block
from .checkpoint import Checkpoint, Resumed
from .chunked_fit import ChunkedFit, TrialChunkedFit
from .projected import ProjectedFit
from .result import Result
from .running import Fit, RunningFit, WholeFit, give_unit_norm
from .solving import exact_relative_error
from .starts import Factors
from .stopping import Callback, Watch


@single
async def factorize(
    data: Sliced | Chunked,
    factors: Factors,
    blocks: Sequence[Block],
    *,
    order: Sequence[int] = (1, 0),
    before: Sequence[int] = (),
    max_iter: int,
    tol: float,
    kkt_tol: float = 0.0,
    max_time: float | None = None,
    callback: Callback | None = None,
    revive: bool = True,
    balance: bool = True,
    accelerate: bool = False,
    started: float | None = None,
    n_threads: int | None = None,
    checkpoint: Checkpoint | None = None,
    resumed: Resumed | None = None,
    compressed: int = 0,
) -> Result:
    """Improve ``factors`` (overwritten), one block after the other, until a stopping rule applies.

    Parameters
    ----------
    order : sequence of modes
        The order of the updates in each iteration. The loss comes from the statistics of the last one.
    before : sequence of modes
        Factors to update once before the first iteration.
    max_iter, max_time
        The largest number of iterations and of seconds.
    tol : float
        Stop when the `pace` of the fit is at most this; 0: never, and it is not computed.
    kkt_tol : float
        Stop when the fixed-point residual of every factor is at most this; 0: never, and it is not computed.
    callback : callable
        Called with an `Iteration` at the start and after each iteration; True stops the fit.
    revive : bool
        Whether dead components are restarted where the fit is worst (never under a penalty).
    balance : bool
        Give all factors but the first unit norm at the end, if sets and penalties allow it.
    accelerate : bool
        Extrapolate the factors (not for the divergence, or missing entries of X in chunks).
    started : float
        The start of ``times`` (`compiled.clock`); by default now.
    n_threads : int
        The number of threads; by default that of BLAS.
    checkpoint : Checkpoint
        Where the state of the fit is saved at intervals and at the end.
    resumed : Resumed
        The state to resume from; ``factors`` are its factors.
    compressed : int
        The number of iterations before, on a low-rank X. They count in ``max_iter``, and a tolerance is then applied
        after `OWN` further iterations only.
    """
    started = clock() if started is None else started
    fit = fit_of(data, factors, blocks, order, revive, accelerate)
    watch = Watch(fit, max_iter, tol, kkt_tol, max_time, callback, started, compressed)

    def save() -> None:
        if checkpoint is not None and (checkpoint.due(watch.n_iter) or watch.stop_reason):
            checkpoint.write(fit, watch.history())

    with fitting_threads(data.size * factors[1].shape[1], n_threads):
        if resumed is not None:
            await fit.restore(resumed.fit)
            watch.resume(**resumed.history)
        try:
            await iterate(fit, watch, order, before, save)
            fit.finish()
        except BaseException:
            if isinstance(factors[0], Held):  # a traceback would keep activations on the workers alive
                factors[0].release()
            raise
    if balance:
        give_unit_norms(fit)
    error = exact_relative_error(data, factors, watch.losses[-1], fit.penalties())
    return Result(
        [f.collected() if isinstance(f, Held) else f for f in factors],
        np.array(watch.losses),
        np.array(watch.times),
        watch.n_iter,
        watch.converged,
        watch.stop_reason,
        error,
        exhausted=watch.exhausted,
        states=[*fit.states],
    )


def fit_of(
    data: Sliced | Chunked,
    factors: Factors,
    blocks: Sequence[Block],
    order: Sequence[int],
    revive: bool,
    accelerate: bool,
) -> Fit:
    """The state of a fit before its first iteration, of the kind that suits the data."""
    chunked = ChunkedFit if data.squared else TrialChunkedFit
    whole = AcceleratedFit if data.complete and len(factors) == 2 else ProjectedFit
    plain, faster = (chunked, AcceleratedChunkedFit) if isinstance(data, Chunked) else (WholeFit, whole)
    kind = faster if accelerate else plain
    free = [mode for mode in sorted(order) if blocks[mode].sets.nonnegative]
    penalised = any(b.penalised for b in blocks)  # components that a penalty removes are not restarted
    return kind(data, factors, blocks, free[0] if revive and free and not penalised else None)


def give_unit_norms(fit: Fit) -> None:
    """Give all factors but the first unit norm, if sets and penalties allow it."""
    if all(b.sets.scale_free and not b.penalised for b in fit.blocks):
        for mode in range(1, len(fit.factors)):
            give_unit_norm(fit.factors, fit.grams, mode, kept=fit.kept)


async def iterate(
    fit: RunningFit,
    watch: Watch,
    order: Sequence[int],
    before: Sequence[int] = (),
    after: Callable[[], None] | None = None,
) -> None:
    """Update the modes in ``order`` until the watch has a reason to stop. Calls ``after`` after each iteration.

    At the start, that is if the watch has no history, the modes in ``before`` are updated once.
    """
    with interrupts() as interrupted:
        if not watch.losses:
            watch.note(await fit.first_loss((*before, *order)[0]))
            if before and not watch.stop_reason:
                await fit.step(before)
        while not watch.stop_reason:
            residual = await fit.step(order, measure=watch.kkt_tol > 0)
            watch.note(fit.loss(order[-1]), residual, bool(interrupted))
            if after is not None:
                after()
