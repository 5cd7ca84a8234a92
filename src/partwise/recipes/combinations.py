"""Methods, starts and kinds of X that cannot be combined. Each check raises ValueError, before the fit starts."""

from __future__ import annotations

from collections.abc import Sequence

from ..data import Chunked, Data
from ..engine.blocks import Block
from ..updates import Multiplicative

IN_CHUNKS = (
    "X is read in chunks of samples, and this method needs all samples at once: load X into memory, or use ssnmf with "
    "solver='hals', 'multiplicative', 'greedy' or 'pivot'"
)


def check_chunks(blocks: Sequence[Block], start: str) -> None:
    """Raise ValueError for methods and starts that are not available for X in chunks."""
    if not blocks[0].sets.by_rows:
        raise ValueError(
            "a sparsity of the activations couples all samples, but X is read in chunks of samples: load X into "
            "memory, or set the sparsity of the components instead"
        )
    if not blocks[0].separable:
        raise ValueError(IN_CHUNKS)
    if start == "gradual":
        raise ValueError("init='gradual' needs X in memory: use 'samples' or 'random'")


def check_missing(data: Data, order: Sequence[int], start: str) -> None:
    """Raise ValueError for methods and starts that are not available with missing entries."""
    if isinstance(data, Chunked) and order[-1] != 0:  # the loss would need another pass
        raise ValueError("X has missing entries and is read in chunks: load X into memory, or use ssnmf")
    if start == "nndsvd":
        raise ValueError("init='nndsvd' needs all entries of X: use 'samples' or 'random'")


def check_signed(blocks: Sequence[Block], squared: bool) -> None:
    """Raise ValueError for losses and updates that need X ≥ 0."""
    if not squared:
        raise ValueError("negative='allow' needs the squared loss: use ssnmf, or shift or clip the data")
    if any(isinstance(getattr(b.update, "update", b.update), Multiplicative) for b in blocks):
        raise ValueError("negative='allow' is not available for multiplicative updates: use ssnmf with solver='hals'")
