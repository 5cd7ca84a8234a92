"""nsNMF: a smoothing matrix between the factors, which makes them sparse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from ..data import DivergenceData, Sliced
from ..engine.blocks import Block
from ..engine.middle_factor import WithMiddle
from ..engine.options import Keywords
from ..engine.result import Result
from ..engine.validation import as_amount, as_columns
from ..updates import Divergence
from .registry import recipe
from .task import Task


@recipe
async def nsnmf(
    X: Any,
    n_components: int,
    *,
    theta: float = 0.5,
    **options: Unpack[Keywords],
) -> Result:
    """Nonsmooth NMF (Pascual-Montano et al. 2006): a fixed smoothing matrix between the factors makes them sparse.

    X ≈ activations · S · components with S = (1 − theta)·I + theta/r. Both factors become sparser as ``theta`` grows,
    but their sparsity cannot be set. ``loss="squared"`` minimises ½‖X − model‖² by HALS, ``loss="kl"`` the
    Kullback–Leibler divergence by the published multiplicative updates. Neither loss ever rises: the factors are not
    rescaled during the fit, which would raise it because of S. ``Result.middle`` is S.

    Parameters
    ----------
    theta : float in [0, 1]
        The amount of smoothing. 0 is plain NMF; 1 averages all components into one.

    References
    ----------
    A. Pascual-Montano, J. M. Carazo, K. Kochi, D. Lehmann and R. D. Pascual-Marqui, "Nonsmooth nonnegative matrix
    factorization (nsNMF)", IEEE TPAMI 28 (2006).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> smooth, sharp = (nsnmf(X, 8, theta=t, random_state=0).sparsity.mean() for t in (0.0, 0.7))
    >>> bool(smooth < sharp)
    True
    """
    task = Task(X, n_components, options, divergence=True)
    theta = as_amount(theta, "theta", 1.0)
    smoothing = (1 - theta) * np.eye(task.r) + theta / task.r
    kl = task.divergence
    if kl:
        data: Sliced = DivergenceData(task.whole(), smoothing)
        blocks = [Block(Divergence(), as_columns(None, task.r))] * 2
    else:
        data = WithMiddle(task.whole(), smoothing)
        blocks = [task.hals(0), task.hals(1)]
    result = await task.run(
        blocks,
        data=data,
        before=() if kl else (0,),
        init="random" if kl else "samples",  # multiplicative updates keep zeros
        scaled=0,
        revive=False,
        balance=False,
        parameters={"theta": theta},
    )
    return replace(result, middle=smoothing)
