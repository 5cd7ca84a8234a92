"""Grouped: the mean sparsity of the components is set."""

from __future__ import annotations

from typing import Any, Unpack

from ..engine.blocks import Block
from ..engine.options import Keywords
from ..engine.result import Result
from ..engine.validation import as_side
from ..projections import Grouped
from ..updates import Shared, WholeFactor
from .registry import recipe
from .task import Side, Task


@recipe
async def grouped(
    X: Any,
    n_components: int,
    *,
    sparsity: float,
    side: Side = "components",
    **options: Unpack[Keywords],
) -> Result:
    """Grouped sparse NMF (Ohib et al. 2022): set the mean sparsity; the fit chooses that of each component.

    min ½‖X − activations·components‖² with components of unit norm whose Hoyer sparsities have exactly the mean
    ``sparsity``. A gradient step with one threshold for all components shifts sparsity between them, and a sequential
    pass improves each at its own sparsity. The other side is updated by HALS. The loss never rises.

    Parameters
    ----------
    sparsity : float in [0, 1]
        The mean Hoyer sparsity over all components.
    side : {"components", "activations"}
        Constrain the components, or their activations over the samples.
    kkt_tol : float, default=0.0
        Stop when no column, at its current sparsity, would move by more than this fraction of its norm. 0 disables
        this.

    References
    ----------
    R. Ohib, N. Gillis, N. Dalmasso, S. Shah, V. K. Potluru and S. Plis, "Explicit group sparse projection with
    applications to deep learning and NMF", TMLR 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> result = grouped(load_digits().data, 8, sparsity=0.6, max_iter=30, tol=0, random_state=0)
    >>> round(float(result.sparsity.mean()), 9), bool(result.sparsity.std() > 0.01)
    (0.6, True)
    """
    task = Task(X, n_components, options)
    mode = as_side(side)
    blocks = [task.hals(0), task.hals(1)]
    blocks[mode] = Block(Shared(task.sweeps(mode)), WholeFactor(Grouped(sparsity), task.r))
    return await task.run(blocks, order=(mode, 1 - mode), before=(1 - mode,), scaled=1 - mode, revive=False)
