"""NMFSC: the same sets as SSNMF, with projected gradient steps."""

from __future__ import annotations

from typing import Any, Unpack

from ..engine.blocks import Block
from ..engine.options import Keywords
from ..engine.result import Result
from ..engine.validation import Sparsity, as_columns
from ..projections import FreeNorm, Method
from ..updates import Columns, Halving, Multiplicative
from .registry import recipe
from .task import Task


@recipe
async def nmfsc(
    X: Any,
    n_components: int,
    *,
    sparsity: Sparsity = None,
    activation_sparsity: Sparsity = None,
    projection: Method = "hoyer",
    **options: Unpack[Keywords],
) -> Result:
    """NMF with sparseness constraints (Hoyer 2004), as published.

    min ½‖X − activations·components‖² with exact Hoyer sparsity of the components, of the activations, or of both. A
    constrained factor takes a projected gradient step, which is halved until the loss does not rise. A free factor is
    updated multiplicatively. During the fit activations have unit norm, and components have the norm that the gradient
    step gives them. The result has components of unit norm, unless the activations are constrained. The loss never
    rises. ``init`` is "random" by default.

    Parameters
    ----------
    sparsity, activation_sparsity : None, float, (lo, hi), or a list of n_components of these
        Hoyer sparsity in [0, 1] of each component over the features, and of its activations over the samples. A *tuple*
        is an interval.
    projection : {"hoyer", "fast", "sorted"}
        The algorithm of the projection: Hoyer's, or a faster one. All give the same result.

    References
    ----------
    Patrik O. Hoyer, "Non-negative matrix factorization with sparseness constraints", JMLR 5 (2004).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> result = nmfsc(load_digits().data, 8, sparsity=0.6, max_iter=20, random_state=0)
    >>> bool(abs(result.sparsity - 0.6).max() < 1e-10)
    True
    """
    task = Task(X, n_components, options)
    activations = as_columns(activation_sparsity, task.r, projection, "activation_sparsity")
    parts = as_columns(sparsity, task.r, projection)
    if sparsity is not None:
        parts = Columns(tuple(FreeNorm(s, keep=True) for s in parts))
    free = activation_sparsity is None
    blocks = [
        Block(Multiplicative() if free else Halving(), activations, normalised=free),
        Block(Multiplicative() if sparsity is None else Halving(), parts),
    ]
    return await task.run(blocks, order=(0, 1), init="random", scaled=1, revive=False)
