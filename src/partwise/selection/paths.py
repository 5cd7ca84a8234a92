"""One rank, one pattern of held-out entries: fits along the sparsities, from several starts."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ..engine.loop import Result
from ..engine.metrics import match_parts
from ..engine.revival import dead_components
from ..engine.validation import CapacityWarning
from ..recipes import ssnmf
from ..runtime.interrupts import interrupts
from ..statistics import Array, gram
from .heldout import Observed, Split, hold_out

KEYWORDS = {"components": "sparsity", "activations": "activation_sparsity"}
Record = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """How every path is gone, whatever its rank."""

    sparsities: tuple[Any, ...]
    side: str
    holdout: float
    n_init: int
    init: Any
    max_iter: int
    tol: float
    seed: int

    def split(self, observed: Observed, number: int) -> Split:
        """The split of that number: the same for each rank and each sparsity."""
        return hold_out(observed, self.holdout, np.random.default_rng([self.seed, number]))

    def fit(self, split: Split, rank: int, sparsity: Any, start: Any, rng: np.random.Generator) -> Result:
        """One fit, in one thread."""
        with interrupts() as interrupted, warnings.catch_warnings():
            warnings.simplefilter("ignore", CapacityWarning)  # the error shows it
            result = ssnmf(
                split.seen,
                rank,
                **{KEYWORDS[self.side]: sparsity},
                init=start,
                max_iter=self.max_iter,
                tol=self.tol,
                random_state=rng,
                n_threads=1,
            )
            if interrupted:  # half a fit is not to be compared with whole ones
                raise KeyboardInterrupt
        return result


def go(observed: Observed, plan: Plan, rank: int, number: int) -> Record:
    """Fit along the sparsities, each from where the last one ended, from each start; what JSON can say of it.

    It depends on its arguments alone, so that it is the same in any process and in any order.
    """
    split = plan.split(observed, number)
    fits: list[Record] = []
    parts: list[list[Array]] = [[] for _ in plan.sparsities]
    for restart in range(plan.n_init):
        rng, start = np.random.default_rng([plan.seed, number, rank, restart]), plan.init
        for level, sparsity in enumerate(plan.sparsities):
            result = plan.fit(split, rank, sparsity, start, rng)
            start = (result.activations, result.components)
            parts[level].append(result.components)
            fits.append({"level": level, "restart": restart, **told(result, split, plan.side)})
    return {"rank": rank, "split": number, "fits": fits, "stability": [stability(found) for found in parts]}


def told(result: Result, split: Split, side: str) -> Record:
    """What the table needs to know of a fit."""
    sparsity = result.sparsity if side == "components" else result.activation_sparsity
    known = sparsity[~np.isnan(sparsity)]
    return {
        "heldout_error": split.error(result.factors),
        "train_error": result.relative_error,
        "achieved_sparsity": float(known.mean()) if known.size else None,
        "dead_parts": len(dead_components([gram(f) for f in result.factors])),
        "n_iter": result.n_iter,
        "converged": result.converged,
    }


def stability(parts: list[Array]) -> float | None:
    """The mean cosine of matched parts, over all pairs of starts; None for a single one."""
    pairs = [float(match_parts(a, b).cosines.mean()) for a, b in combinations(parts, 2)]
    return float(np.mean(pairs)) if pairs else None
