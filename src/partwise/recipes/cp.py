"""CP: nonnegative tensor factorization with sparsity constraints on the modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Unpack

import numpy as np

from ..data import Tensor, as_tensor
from ..engine.blocks import Block, nonnegative_encoder
from ..engine.middle_factor import WithMiddle
from ..engine.options import WEIGHTS, Keywords
from ..engine.result import Result
from ..engine.running import split_weights
from ..engine.solving import exact_relative_error
from ..engine.starts import Factors
from ..engine.tensor_starts import starting_tensor_factors
from ..engine.validation import Sparsity, as_auto, as_columns, as_count
from ..projections import Method
from ..statistics import Array, as_factor, gram
from ..updates import Columns, Pivot, Sequential, Sets
from .registry import spelled_out
from .task import Task


@partial(
    spelled_out,
    without=(
        "loss",
        "memory_limit",
        "fixed_components",
        "fixed_activations",
        "missing",
        "negative",
        *WEIGHTS,
        "observed",
    ),
)
async def cp(
    X: Any,
    n_components: int,
    *,
    sparsity: Mapping[int, Sparsity] | None = None,
    projection: Method = "fast",
    sweeps: int | None = None,
    accelerate: Literal["auto", False] = "auto",
    **options: Unpack[Keywords],
) -> Result:
    """Nonnegative CP (PARAFAC) decomposition of a tensor, with the exact sparsity that you set in any of its modes.

    min ½‖X − Σ_j weights_j · a_j ∘ b_j ∘ c_j ∘ …‖² over nonnegative a, b, c, … of unit norm, each in its set. Each
    factor is updated by a sequential pass, given the statistics of its unfolding. The loss never rises. For a tensor of
    order 2 this is `ssnmf`, or `bisparse` if both modes are sparse.

    Parameters
    ----------
    X : array, `COO`, or sparse array of SciPy or pydata, of any order ≥ 2
        Nonnegative.
    n_components : int
        The number of components.
    sparsity : dict {mode: None, float, (lo, hi), or a list of n_components of these}, optional
        Hoyer sparsity in [0, 1] of each component's vectors in these modes. A *tuple* is an interval.
    projection : {"fast", "sorted", "hoyer"}
        The algorithm of the projection. All give the same result.
    sweeps : int, optional
        Passes over each factor for every product with X. By default 1 to 8, such that they are cheap relative to that
        product.
    accelerate : {"auto", False}
        Extrapolate all factors in the direction of their last change. A step that would raise the loss is undone.
        "auto" does so unless ``kkt_tol`` is set; False never does.
    init : {"samples", "gradual", "random"}, a list with a factor for each mode, or (weights, factors)
        "samples": rank-one approximations of slices of X that are far apart, the default without sparsity. "gradual":
        the same, followed by a few iterations at each of several lower sparsities, the default with sparsity. Factors
        may be given as a list or as a tensorly `CPTensor`.

    Returns
    -------
    Result
        ``factors`` has one array for each mode (its length × n_components) with columns of unit norm, and ``weights``
        one number for each component. An unused component has weight 0, and may have a column of zeros. ``sparsities``
        has one array for each mode. During the fit, the first unconstrained factor carries the weights, as
        `Iteration.factors` shows.

    References
    ----------
    A. Cichocki and A. H. Phan, "Fast local algorithms for large scale nonnegative matrix and tensor factorizations",
    IEICE 92 (2009). V. K. Potluru et al., "Block Coordinate Descent for Sparse NMF", 2013 (its outlook). A.-H. Phan,
    P. Tichavský and A. Cichocki, "Fast alternating LS algorithms for high order CANDECOMP/PARAFAC tensor
    factorizations", IEEE Trans. Signal Process. 61 (2013): products shared by modes.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((8, 9, 10))
    >>> result = cp(X, 3, sparsity={1: 0.4, 2: (0.2, 0.3)}, random_state=0)
    >>> [f.shape for f in result.factors], bool(abs(result.sparsities[1] - 0.4).max() < 1e-10)
    ([(8, 3), (9, 3), (10, 3)], True)
    """
    task = TensorTask(X, n_components, options)
    shape, r = task.data.shape, task.r
    sets = as_modes(sparsity, len(shape), r, projection)
    asked = None if sweeps is None else as_count(sweeps, "sweeps")
    blocks = [Block(Sequential(asked or task.sweeps(mode)), s) for mode, s in enumerate(sets)]
    faster = as_auto(accelerate, "accelerate")
    init = "gradual" if sparsity else "samples"
    free = carrier(sets)
    others = [mode for mode in reversed(range(len(shape))) if mode != free]  # backwards: two passes over X suffice
    if free is None:  # a factor of one row carries the scale
        data, last, more = WithMiddle(task.data), len(shape), [np.ones((1, r), dtype=task.data.dtype, order="F")]
        blocks.append(Block(Pivot(), as_columns(None, r)))
    else:
        data, last, more = None, free, []
    order = (*others, last)
    result = await task.run(
        blocks,
        data=data,
        more=more,
        order=order,
        before=(last,),
        init=init,
        scaled=free,
        balance=False,
        accelerate=faster,
    )
    factors = result.factors[: len(shape)]
    weights = split_weights(factors, sets)
    if free is None:
        weights = weights * result.factors[last][0].astype(float)
    return replace(result, factors=factors, weights=weights, middle=np.diag(weights) if len(shape) == 2 else None)


def as_modes(sparsity: Mapping[int, Sparsity] | None, order: int, r: int, method: Method) -> list[Columns]:
    """The sets of each mode."""
    if sparsity is not None and not isinstance(sparsity, Mapping):
        raise ValueError(f"sparsity={sparsity!r} names no mode: give {{mode: sparsity}}, for example {{0: 0.5}}")
    asked = dict(sparsity or {})
    for mode in asked:
        if isinstance(mode, bool) or not isinstance(mode, int | np.integer) or not 0 <= mode < order:
            raise ValueError(f"sparsity has the key {mode!r}, but the modes of X are 0 to {order - 1}")
    return [as_columns(asked.get(mode), r, method, f"sparsity[{mode}]") for mode in range(order)]


def carrier(sets: Sequence[Sets]) -> int | None:
    """The mode whose factor carries the scale: the first unconstrained one, else the first without a fixed norm."""
    free = [m for m, s in enumerate(sets) if s.nonnegative] or [m for m, s in enumerate(sets) if s.scale_free]
    return free[0] if free else None


class TensorTask(Task):
    """The task of a tensor X."""

    data: Tensor

    def read(self, X: Any) -> Tensor:
        """Validate X and wrap it as a tensor."""
        return as_tensor(X)

    def first_factors(self, start: Any, sets: Sequence[Sets]) -> Factors:
        """Return the initial factors, by name or as given by the user."""
        return starting_tensor_factors(start, self.data, self.r, sets, self.rng)


def encode(data: Tensor, factors: Sequence[Array], encoder: Block | None = None) -> tuple[Array, float]:
    """Return the activations of mode 0 for fixed ``factors`` of the other modes, and the relative error."""
    r = factors[0].shape[1]
    rest = [as_factor(f, data.dtype) for f in factors]
    activations = np.zeros((data.shape[0], r), dtype=data.dtype, order="F")
    everything = [activations, *rest]
    stats = data.statistics(everything, [gram(f) for f in everything], 0)
    activations, _ = (encoder or nonnegative_encoder(r))(activations, stats, {})
    return activations, exact_relative_error(data, [activations, *rest], stats.loss(activations))
