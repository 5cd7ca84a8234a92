"""The activations of X for parts that stay."""

from __future__ import annotations

import numpy as np

from ..data import Matrix
from ..statistics import Array
from .blocks import Block
from .metrics import fits


def solved(block: Block, data: Matrix, parts: Array, activations: Array) -> tuple[Array, float, Array]:
    """The activations for given parts, exactly if the block's update is exact, from ``activations`` (overwritten).

    Also their loss without penalties, and what each part fits of X (`metrics.fits`). Samples that are observed at the
    same features are solved together: each pattern has a Gram matrix of its own.
    """
    loss, fitted = 0.0, np.zeros(parts.shape[1])
    for rows, stats in data.patterns(parts):
        some, _ = block(np.asfortranarray(activations[rows]), stats, {})
        activations[rows] = some
        loss, fitted = loss + stats.loss(some), fitted + fits(some, stats)
    return activations, loss, fitted
