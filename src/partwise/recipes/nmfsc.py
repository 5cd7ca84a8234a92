"""NMFSC: the same sets as SSNMF, with a gradient step."""

from __future__ import annotations

from typing import Any, Unpack

from ..engine.blocks import Block
from ..engine.loop import Result
from ..engine.options import Keywords
from ..engine.validation import as_columns, warn_of_capacity
from ..projections import FreeNorm, Method
from ..updates import Columns, Halving, Multiplicative
from .task import Task, recipe


@recipe
def nmfsc(
    X: Any,
    n_components: int,
    *,
    sparsity: Any = None,
    activation_sparsity: Any = None,
    projection: Method = "hoyer",
    **options: Unpack[Keywords],
) -> Result:
    """NMF with sparseness constraints (Hoyer 2004), as published: SSNMF's classic rival.

    min ½‖X − activations·components‖² with exact Hoyer sparsity on the parts, on the activations, or on both. The
    constrained factor takes a gradient step and is projected, the step halved until the loss does not rise; the free
    one is updated multiplicatively. On the way activations have unit norm, and parts keep the norm that the gradient
    gives them; at the end, where nothing fixes the activations' norm, parts have unit norm as everywhere else. The loss
    never rises. ``init`` is "random" by default.

    Parameters
    ----------
    X : array or scipy sparse of shape (samples, features)
        Nonnegative.
    n_components : int
    sparsity, activation_sparsity : None, float, (lo, hi), or a list of n_components of these
        Hoyer sparsity in [0, 1] of each part, and of each part's activations over the samples.
    projection : {"hoyer", "fast", "sorted"}
        Hoyer's own projection, or ours; the answers are equal.

    Returns
    -------
    Result

    References
    ----------
    P. O. Hoyer, "Non-negative matrix factorization with sparseness constraints", JMLR 5 (2004).

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
    if task.known[1] is None:
        warn_of_capacity(parts, task.data)
    if sparsity is not None:
        parts = Columns(tuple(FreeNorm(s, keep=True) for s in parts))
    free = activation_sparsity is None
    blocks = [
        Block(Multiplicative() if free else Halving(), activations, normalised=free),
        Block(Multiplicative() if sparsity is None else Halving(), parts),
    ]
    return task.run(blocks, order=(0, 1), init="random", scaled=1, revive=False)
