"""NNSC and SNMF: sparsity by a penalty instead of a constraint."""

from __future__ import annotations

from typing import Any, Literal, Unpack

from ..engine.blocks import Block
from ..engine.options import Keywords
from ..engine.result import Result
from ..engine.validation import as_amount, as_choice, as_columns, as_side
from ..projections import HoyerBetween
from ..updates import Columns, Halving, Multiplicative, Pivot, Sequential, Update
from .registry import recipe
from .task import Side, Task


@recipe
async def nnsc(
    X: Any,
    n_components: int,
    *,
    l1: float,
    side: Side = "activations",
    method: Literal["sequential", "hoyer"] = "sequential",
    **options: Unpack[Keywords],
) -> Result:
    """Nonnegative sparse coding (Hoyer 2002): an ℓ1 penalty on one side, unit norm on the other.

    min ½‖X − activations·components‖² + l1·Σ activations  with components of norm 1 (or with the two sides exchanged).
    The resulting sparsity cannot be set: it depends on ``l1``, on the scale of X and on n_components. The loss never
    rises. A component that the penalty sets to zero stays zero.

    Parameters
    ----------
    l1 : float
        The penalty. Its effect depends on the scale of X.
    side : {"activations", "components"}
        The side to penalise. The other side has unit norm.
    method : {"sequential", "hoyer"}
        Sequential passes for both factors, or Hoyer's updates: multiplicative for the penalised side, a gradient step
        and normalisation for the other.

    References
    ----------
    Patrik O. Hoyer, "Non-negative sparse coding", NNSP 2002.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> sparse, sparser = (nnsc(X, 8, l1=l1, random_state=0).activation_sparsity.mean() for l1 in (1, 10))
    >>> bool(sparse < sparser)
    True
    """
    task = Task(X, n_components, options)
    mode, l1 = as_side(side), as_amount(l1, "l1")
    if as_choice(method, "method", ("sequential", "hoyer")) == "hoyer":
        updates: tuple[Update, Update] = Multiplicative(l1=l1), Halving()
    else:
        updates = Sequential(task.sweeps(mode)), Sequential(task.sweeps(1 - mode))
    penalised = Block(updates[0], as_columns(None, task.r), l1=l1)
    unit = Block(updates[1], Columns.same(HoyerBetween(), task.r))
    blocks = [penalised, unit] if mode == 0 else [unit, penalised]
    return await task.run(blocks, order=(1 - mode, mode), before=(mode,), scaled=mode)


@recipe
async def snmf(
    X: Any,
    n_components: int,
    *,
    beta: float = 0.01,
    eta: float | None = None,
    side: Side = "activations",
    **options: Unpack[Keywords],
) -> Result:
    """Sparse NMF by alternating nonnegative least squares (Kim & Park 2007): SNMF/R and SNMF/L.

    min ½(‖X − activations·components‖² + eta·‖components‖² + beta·Σ_i ‖activations of sample i‖₁²), so that each sample
    has few active components. With ``side="components"`` the two penalties are exchanged, so that each feature belongs
    to few components. Kim and Park's columns are our samples: their SNMF/R (sparse H) is ``side="activations"``, their
    SNMF/L is ``side="components"``. Every factor is solved exactly, so the loss never rises. A component that the
    penalty sets to zero stays zero.

    Parameters
    ----------
    beta : float
        The squared ℓ1 penalty, which makes one side sparse.
    eta : float, optional
        The squared ℓ2 penalty on the other side. By default the square of X's largest entry, as in Kim and Park's code.
    side : {"activations", "components"}
        The side to make sparse.

    References
    ----------
    H. Kim and H. Park, "Sparse non-negative matrix factorizations via alternating non-negativity-constrained least
    squares for microarray data analysis", Bioinformatics 23 (2007).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data / 16
    >>> sparse, sparser = (snmf(X, 8, beta=b, random_state=0).activation_sparsity.mean() for b in (0.01, 3))
    >>> bool(sparse < sparser)
    True
    """
    task = Task(X, n_components, options)
    mode, free = as_side(side), as_columns(None, task.r)
    size = task.data.peak**2 if eta is None else as_amount(eta, "eta")
    sparse = Block(Pivot(), free, rows=as_amount(beta, "beta"))
    other = Block(Pivot(), free, l2=size)
    blocks = [sparse, other] if mode == 0 else [other, sparse]
    return await task.run(blocks, order=(1 - mode, mode), before=(mode,), scaled=mode)
