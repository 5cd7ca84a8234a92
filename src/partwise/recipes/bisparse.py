"""Bi-sparse NMF: both factors are sparse, and a matrix between them carries the scale."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np

from ..engine.blocks import Block
from ..engine.middle_factor import MIDDLE, MOST, WithMiddle
from ..engine.options import Keywords
from ..engine.result import Result
from ..engine.validation import Sparsity, as_choice, as_columns
from ..projections import Method
from ..updates import Multiplicative, Pivot, Sequential, Update
from .registry import recipe
from .task import Task


@recipe
async def bisparse(
    X: Any,
    n_components: int,
    *,
    sparsity: Sparsity,
    activation_sparsity: Sparsity,
    middle: Literal["diagonal", "full"] = "diagonal",
    middle_solver: Literal["nnls", "multiplicative"] | None = None,
    projection: Method = "fast",
    **options: Unpack[Keywords],
) -> Result:
    """Bi-sparse NMF (the paper's appendix): set the exact sparsity of both components and activations.

    min ½‖X − activations·D·components‖² with components and activations of unit norm and a diagonal or full matrix
    D ≥ 0 between them. Both factors are updated by sequential passes over Hoyer sets, and D by nonnegative least
    squares. The loss never rises. ``Result.middle`` is D (r × r).

    Parameters
    ----------
    sparsity, activation_sparsity : float, (lo, hi), or a list of n_components of these
        Hoyer sparsity in [0, 1] of each component over the features, and of its activations over the samples.
    middle : {"diagonal", "full"}
        The form of D. A full D can explain more, but may end in a worse minimum. Its cost grows with the fourth power
        of n_components (at most 64).
    middle_solver : {"nnls", "multiplicative"}, optional
        Solve for D exactly, or by the paper's Diag-mult (with its numerator read as WᵀXHᵀ). By default a diagonal D is
        solved exactly and a full one by Diag-mult: a full D that is solved exactly from the start has few nonzeros and
        leaves components unused.
    projection : {"fast", "sorted", "hoyer"}
        The algorithm of the projection. All give the same result.

    References
    ----------
    V. K. Potluru et al., "Block Coordinate Descent for Sparse NMF", 2013, appendix. C. Ding, T. Li, W. Peng and
    H. Park, "Orthogonal nonnegative matrix tri-factorizations for clustering", KDD 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> result = bisparse(load_digits().data, 8, sparsity=0.6, activation_sparsity=0.3, random_state=0)
    >>> bool(abs(result.sparsity - 0.6).max() < 1e-10), bool(abs(result.activation_sparsity - 0.3).max() < 1e-10)
    (True, True)
    >>> result.middle.shape
    (8, 8)
    """
    task = Task(X, n_components, options)
    r = task.r
    for name, asked in (("sparsity", sparsity), ("activation_sparsity", activation_sparsity)):
        if asked is None:
            raise ValueError(f"{name}=None: bisparse needs both sparsities; to constrain one side, use ssnmf")
    diagonal = as_choice(middle, "middle", ("diagonal", "full")) == "diagonal"
    if not diagonal and r > MOST:
        raise ValueError(
            f"n_components={r} is too large for middle='full': use at most {MOST} components, or middle='diagonal'"
        )
    if middle_solver is None:
        middle_solver = "nnls" if diagonal else "multiplicative"
    exact = as_choice(middle_solver, "middle_solver", ("nnls", "multiplicative")) == "nnls"
    solver: Update = Pivot() if exact else Multiplicative(10)
    sets = [
        as_columns(activation_sparsity, r, projection, "activation_sparsity"),
        as_columns(sparsity, r, projection),
    ]
    if not all(s.unit_norm for s in sets):
        raise ValueError("bisparse needs sets of unit norm on both sides: give sparsities, Hoyer or HoyerBetween sets")
    blocks = [Block(Sequential(task.sweeps(mode)), sets[mode]) for mode in (0, 1)]
    blocks.append(Block(solver, as_columns(None, r if diagonal else r * r)))
    start = np.ones(r) if diagonal else (np.eye(r) + 1e-3).ravel()
    result = await task.run(
        blocks,
        data=WithMiddle(task.whole()),
        more=[np.asfortranarray(start[None], dtype=task.data.dtype)],
        order=(1, 0, MIDDLE),
        before=(MIDDLE,),
        revive=diagonal,
    )
    row = result.factors[MIDDLE][0].astype(float)
    return replace(result, factors=result.factors[:2], middle=np.diag(row) if diagonal else row.reshape(r, r))
