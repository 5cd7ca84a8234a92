"""TPC: intervals of sparsity by second-order cone programs."""

from __future__ import annotations

from typing import Any, Unpack

from ..engine.blocks import Block
from ..engine.options import Keywords
from ..engine.result import Result
from ..engine.validation import Sparsity, as_columns
from ..projections import FreeNorm
from ..updates import Columns, Cone, Pivot
from ..updates.cone import load_clarabel
from .registry import recipe
from .task import Task


@recipe
async def tpc(
    X: Any,
    n_components: int,
    *,
    sparsity: Sparsity = None,
    activation_sparsity: Sparsity = None,
    **options: Unpack[Keywords],
) -> Result:
    """The tangent-plane constraint algorithm (Heiler & Schnörr 2006): intervals of sparsity by convex programs.

    min ½‖X − activations·components‖² with the Hoyer sparsity of each component, or of its activations, in an interval.
    Each constrained factor is a second-order cone program, solved by Clarabel (``pip install 'partwise[cone]'``). The
    method is therefore for small problems: a factor of 10⁴ entries takes seconds. A free factor is solved exactly. The
    loss never rises.

    A single number is an interval of width 0, in which the algorithm cannot move. Use a width of at least 0.01, or one
    open end.

    Parameters
    ----------
    sparsity, activation_sparsity : None, float, (lo, hi), or a list of n_components of these
        Hoyer sparsity in [0, 1] of each component over the features, and of its activations over the samples. A *tuple*
        is an interval; None is an open end.

    References
    ----------
    M. Heiler and C. Schnörr, "Learning sparse representations by non-negative matrix factorization and sequential cone
    programming", JMLR 7 (2006).
    """
    load_clarabel()
    task = Task(X, n_components, options)
    blocks = []
    for name, asked in (("activation_sparsity", activation_sparsity), ("sparsity", sparsity)):
        sets = as_columns(asked, task.r, name=name)
        if asked is None:
            blocks.append(Block(Pivot(), sets))
        else:
            blocks.append(Block(Cone(), Columns(tuple(FreeNorm(s) for s in sets))))
    return await task.run(blocks, before=(0,), scaled=0, revive=False)
