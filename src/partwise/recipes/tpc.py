"""TPC: intervals of sparsity by cone programs."""

from __future__ import annotations

from typing import Any, Unpack

from ..engine.blocks import Block
from ..engine.loop import Result
from ..engine.options import Keywords
from ..engine.validation import as_columns
from ..projections import FreeNorm
from ..updates import Columns, Cone, Pivot
from ..updates.cone import load_clarabel
from .task import Task, recipe


@recipe
def tpc(
    X: Any, n_components: int, *, sparsity: Any = None, activation_sparsity: Any = None, **options: Unpack[Keywords]
) -> Result:
    """The tangent-plane constraint algorithm (Heiler & Schnörr 2006): intervals of sparsity by convex programs.

    min ½‖X − activations·components‖² with the Hoyer sparsity of each part, or of each part's activations, in an
    interval. Each factor is one second-order cone program, solved by Clarabel (``pip install 'partwise[cone]'``), so
    this is for small problems: 10⁴ entries of a factor take seconds. A free factor is solved exactly. The loss never
    rises.

    A single number asks for an interval of no width, in which the planes leave no room to move: give a gap of .01 or
    more, or one open end.

    Parameters
    ----------
    X : array or scipy sparse of shape (samples, features)
        Nonnegative.
    n_components : int
    sparsity, activation_sparsity : None, float, (lo, hi), or a list of n_components of these

    Returns
    -------
    Result

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
    return task.run(blocks, before=(0,), scaled=0, revive=False)
