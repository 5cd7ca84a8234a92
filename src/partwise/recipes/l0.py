"""L0: a limited number of nonzeros in each component or in each sample."""

from __future__ import annotations

from typing import Any, Literal, Unpack

from ..engine.blocks import Block
from ..engine.options import Keywords
from ..engine.result import Result
from ..engine.validation import as_choice, as_count, as_side
from ..projections import AtMost
from ..updates import Coding, Columns, Path, Pruned, Rows, Sequential, Update
from .registry import recipe
from .task import Side, Task


@recipe
async def l0(
    X: Any,
    n_components: int,
    *,
    nonzeros: int,
    side: Side = "components",
    method: Literal["prune", "sequential", "forward", "reverse"] | None = None,
    every: int = 1,
    **options: Unpack[Keywords],
) -> Result:
    """NMF with ℓ0 constraints (Peharz & Pernkopf 2012): set the largest number of nonzeros.

    min ½‖X − activations·components‖² with at most ``nonzeros`` nonzero features in each component (NMFL0-W), or at
    most ``nonzeros`` active components in each sample (NMFL0-H). The constraint holds exactly. The published methods
    are heuristics whose loss may rise. ``method="sequential"`` solves for one component after the other exactly, and
    its loss never rises.

    Parameters
    ----------
    nonzeros : int
        The largest number of nonzeros.
    side : {"components", "activations"}
        Limit the nonzeros of each component, or those of each sample.
    method : str, optional
        For components: "prune" (default), which keeps and improves the largest entries of the least squares solution,
        or "sequential". For activations: "reverse" (default), which repeatedly drops the smallest entry of the least
        squares solution, or "forward", Lawson and Hanson's method stopped when the support is full.
    every : int
        Choose supports in every ``every``-th iteration, and improve both factors on fixed supports in between, as
        Peharz and Pernkopf do. Set ``tol=0`` then, so that the fit does not stop before the next choice. Ignored by
        "sequential".

    Notes
    -----
    The result is that of the last iteration. For the heuristics this need not be the best one.

    References
    ----------
    Robert Peharz and Franz Pernkopf, "Sparse nonnegative matrix factorization with ℓ0-constraints", Neurocomputing 80
    (2012).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> result = l0(load_digits().data, 8, nonzeros=12, random_state=0)
    >>> int((result.components > 0).sum(axis=1).max())
    12
    """
    task = Task(X, n_components, options)
    count, mode, every = as_count(nonzeros, "nonzeros"), as_side(side), as_count(every, "every")
    blocks = [task.hals(0), task.hals(1)]
    if mode == 1:
        method = as_choice("prune" if method is None else method, "method", ("prune", "sequential"))
        update: Update = Pruned(every=every) if method == "prune" else Sequential(task.sweeps(1))
        blocks[1] = Block(update, Columns.same(AtMost(count), task.r))
    else:
        method = as_choice("reverse" if method is None else method, "method", ("reverse", "forward"))
        blocks[0] = Block(Coding(count, method == "reverse", every), Rows(AtMost(count), task.r))
    return await task.run(blocks, before=(0,), scaled=0, revive=mode == 1)


@recipe
async def l0_path(
    X: Any,
    n_components: int,
    *,
    nonzeros: int,
    side: Side = "activations",
    refit: bool = True,
    **options: Unpack[Keywords],
) -> Result:
    """NMF with approximate ℓ0 constraints by the ℓ1 regularisation path (Mørup et al. 2008).

    For each sample, the path of nonnegative ℓ1-penalised least squares is followed to its last point with at most
    ``nonzeros`` active components, which chooses the penalty of the sample. The constraint holds exactly. The loss may
    rise occasionally.

    Parameters
    ----------
    nonzeros : int
        The largest number of nonzeros.
    side : {"activations", "components"}
        Limit the components in each sample, or (the same for X transposed) in each feature.
    refit : bool
        Solve again for the selected components without the penalty, which removes its shrinkage.

    References
    ----------
    M. Mørup, K. H. Madsen and L. K. Hansen, "Approximate L0 constrained non-negative matrix and tensor factorization",
    ISCAS 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> result = l0_path(load_digits().data, 8, nonzeros=3, max_iter=20, tol=0, random_state=0)
    >>> int((result.activations > 0).sum(axis=1).max())
    3
    """
    task = Task(X, n_components, options)
    count, mode = as_count(nonzeros, "nonzeros"), as_side(side)
    blocks = [task.hals(0), task.hals(1)]
    blocks[mode] = Block(Path(count, bool(refit)), Rows(AtMost(count), task.r))
    return await task.run(blocks, order=(1 - mode, mode), before=(mode,), scaled=0, revive=False)
