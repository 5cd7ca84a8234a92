"""MiniBatchSparseNMF: learns from batches of samples, for streams and very large data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..data import Chunked, Matrix, check_seen
from ..engine.blocks import Block, divergence_encoder, nonnegative_encoder
from ..engine.loop import iterate
from ..engine.natural import advise
from ..engine.online import BatchLearner, Epochs, batches
from ..engine.options import TOL, with_options
from ..engine.starts import starting_parts
from ..engine.stopping import Watch
from ..engine.validation import (
    Seed,
    Sparsity,
    as_amount,
    as_columns,
    as_count,
    as_generator,
    as_known,
    as_loss,
    as_penalties,
    as_switch,
    seed_of,
)
from ..runtime.compiled import clock
from ..runtime.interrupts import interrupts
from ..runtime.together import alone
from ..statistics import refuse_penalties
from ..updates import Newton, Sequential
from .base import Parts, as_output
from .fits import progress, warn_if_exhausted


@with_options
class MiniBatchSparseNMF(Parts):
    """`SparseNMF` for streams: learns components of exactly the sparsity you specify from batches of samples.

    For each batch, the activations are solved exactly. The statistics of the batch are added to those of earlier
    batches, which decay, and the components are updated one after the other. The sparsity is exact after every batch.

    Parameters
    ----------
    n_components : int, default=10
    sparsity : None, float, (lo, hi), or a list of n_components of these
        As in `SparseNMF`, but the entries of a list belong to the initial components in their order.
    batch_size : int, default=1024
        Number of samples per batch in `fit`. `partial_fit` treats its argument as one batch.
    forget_factor : float, default=0.7
        The weight of earlier batches is multiplied by this after each batch: 1 never forgets, 0 uses the last batch
        only. Larger values learn more slowly, because earlier activations belong to earlier components. Smaller values
        follow the noise of each batch.
    component_sweeps : int, default=1
        Sweeps over the components per batch; one step with the Kullback–Leibler divergence.
    l1, l2 : float, or a pair (activations, components)
        Penalties on the activations and on the components.
    init : {"samples", "random"} or array of shape (n_components, n_features)
        Initial components; "samples" chooses samples of the first batch that are far apart.
    max_iter : int, default=20
        Maximum number of passes over X in `fit`.
    tol : float, default=0.05
        Stop when the components have settled: if the fit continued at its present speed for as many passes over X
        again, no component would change by more than ``tol``, relative to its distance from the component that is
        most like it, nor the loss, relative to its size. 0 disables this.
    shuffle : bool, default=True
        Shuffle the samples before each pass (only for X in memory).
    verbose : int, default=0
        1 shows a progress line.

    Attributes
    ----------
    components_, sparsity_, reconstruction_err_, time_curve_, converged_, stop_reason_, data_shape_, n_features_in_
        As in `SparseNMF`. `partial_fit` sets only the first two and the last.
    seed_ : int or None
        The ``random_state`` that repeats the fit, drawn if none was given; None if a generator was given.
    n_iter_ : int
        Number of passes over X in `fit`.
    n_steps_ : int
        Number of batches so far.
    loss_curve_ : array
        Mean loss of a sample, without penalties, for each pass over X in `fit`.

    See Also
    --------
    SparseNMF : uses all samples in each iteration; reaches a lower loss, given enough time.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> model = MiniBatchSparseNMF(16, sparsity=0.7, random_state=0)
    >>> for batch in np.array_split(load_digits().data, 10):
    ...     model = model.partial_fit(batch)
    >>> model.components_.shape, float(abs(model.sparsity_ - 0.7).max()) < 1e-10
    ((16, 64), True)
    """

    _encoder: Block

    def __init__(
        self,
        n_components: int = 10,
        *,
        sparsity: Sparsity = None,
        batch_size: int = 1024,
        forget_factor: float = 0.7,
        component_sweeps: int = 1,
        loss: str = "squared",
        l1: float | Sequence[float] = 0.0,
        l2: float | Sequence[float] = 0.0,
        fixed_components: npt.ArrayLike | None = None,
        missing: str = "error",
        negative: str = "error",
        init: str | npt.ArrayLike = "samples",
        max_iter: int = 20,
        tol: float = TOL,
        max_time: float | None = None,
        shuffle: bool = True,
        memory_limit: int | str | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.sparsity = sparsity
        self.batch_size = batch_size
        self.forget_factor = forget_factor
        self.component_sweeps = component_sweeps
        self.loss = loss
        self.l1 = l1
        self.l2 = l2
        self.fixed_components = fixed_components
        self.missing = missing
        self.negative = negative
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.max_time = max_time
        self.shuffle = shuffle
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.verbose = verbose

    def partial_fit(self, X: Any, y: object = None, *, observed: Any = None) -> Self:
        """Learn from one batch of samples. Entries where ``observed`` is False are missing."""
        first = not hasattr(self, "components_")
        data = self._validated(X, first, observed)
        if not isinstance(data, Matrix):
            raise ValueError(
                "partial_fit needs a batch that fits in memory: use fit, which reads larger data in batches"
            )
        if first:
            self._begin(data)
        elif not hasattr(self, "_learner"):
            raise ValueError(
                "custom constraints cannot be saved, so partial_fit is unavailable on this model: fit a new one"
            )
        self._check_unchanged()
        forget = as_amount(self.forget_factor, "forget_factor", 1.0)
        self._learner.step(self._with_loss(data), self._encoder, self._block, forget)
        self.n_steps_ += 1
        self._store_parts(self._learner.parts.T)
        return self

    def fit(self, X: Any, y: object = None, *, observed: Any = None) -> Self:
        """Learn from X (samples × features, nonnegative) in batches, with several passes until convergence.

        Entries where ``observed`` is False are missing.
        """
        self.fit_transform(X, observed=observed)
        return self

    def fit_transform(self, X: Any, y: object = None, *, observed: Any = None) -> Any:
        """Learn from X and return the activations of its samples."""
        data = self._validated(X, reset=True, observed=observed)
        if not data.complete:
            check_seen(data.counts(1))
        size, most = as_count(self.batch_size, "batch_size"), as_count(self.max_iter, "max_iter")
        tol, forget = as_amount(self.tol, "tol"), as_amount(self.forget_factor, "forget_factor", 1.0)
        max_time = None if self.max_time is None else as_amount(self.max_time, "max_time", np.inf)
        shuffle, started = as_switch(self.shuffle, "shuffle"), clock()
        with interrupts(), progress(self) as lines:
            if isinstance(data, Chunked):
                data.check()
            self._begin(data if isinstance(data, Matrix) else next(batches(data, size)))
            rng = self._rng if shuffle else None
            epochs = Epochs(self._with_loss(data), self._learner, self._encoder, self._block, size, forget, rng)
            watch = Watch(epochs, most, tol, 0.0, max_time, lines(0) if lines else None, started)
            alone(iterate(epochs, watch, order=(1,)))
        self._store_parts(self._learner.parts.T)
        self.n_iter_, self.n_steps_ = watch.n_iter, epochs.steps
        self.converged_, self.stop_reason_ = watch.converged, watch.stop_reason
        self.loss_curve_, self.time_curve_ = np.array(watch.losses[1:]) / data.shape[0], np.array(watch.times[1:])
        self.data_shape_ = (int(data.shape[0]), int(data.shape[1]))
        solved = self._solve(data)
        self.reconstruction_err_ = solved.error
        warn_if_exhausted(watch)
        return as_output(solved.activations)

    def _begin(self, data: Matrix) -> None:
        """Initialize the components and their constraints."""
        r = as_count(self.n_components, "n_components")
        self._rng = as_generator(self.random_state)
        self.seed_ = seed_of(self._rng, self.random_state)
        sets = [as_columns(None, r), as_columns(self.sparsity, r)]
        known = as_known(self.fixed_components, r, data.shape[1], "fixed_components", data.dtype, data)
        divergence = as_loss(self.loss)
        if known is None and not divergence:
            advise(data, sets[1])
        penalties = as_penalties(self.l1, self.l2, sets)
        refuse_penalties(*(divergence and any(pair) for pair in penalties))
        self._encoder = divergence_encoder(r) if divergence else nonnegative_encoder(r, *penalties[0])
        sweeps = as_count(self.component_sweeps, "component_sweeps")
        self._block = Block(Newton() if divergence else Sequential(sweeps), sets[1], *penalties[1])
        if known is not None:
            self._block = self._block.keeping(known)
            sets[1] = known.kept(sets[1])
        self._learner = BatchLearner(starting_parts(self.init, data, r, sets, self._rng, known), None, {})
        self.n_steps_ = 0

    def _check_unchanged(self) -> None:
        """Raise ValueError if later batches ask for other components than the first one."""
        asked, sets = as_columns(self.sparsity, as_count(self.n_components, "n_components")), self._block.sets
        if len(asked) != len(sets) or any(asked[j] != sets[j] for j in range(len(sets)) if j not in sets.kept):
            raise ValueError(
                f"n_components={self.n_components}, sparsity={self.sparsity!r}: these were different at the first "
                "batch, and partial_fit does not change them: set them back, or fit a new model"
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "components_")
