"""Regularisation paths: for one rank and one split, fits from low to high sparsity, from several starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from ..engine.metrics import match_parts
from ..engine.natural import no_advice
from ..engine.options import Keywords
from ..engine.result import Result
from ..recipes import RECIPES
from ..runtime.interrupts import interrupts
from ..statistics import Array, dead_components, gram
from .heldout import Observed, Split, hold_out

SPARSE = {"activations": "activation_sparsity", "components": "sparsity"}  # side → its parameter in recipes
SIDES = tuple(SPARSE)
Record = dict[str, Any]
Level: TypeAlias = float | tuple[float | None, float | None] | None


@dataclass(frozen=True)
class Plan:
    """Settings shared by all paths of a search."""

    sparsities: tuple[Level, ...]
    side: str
    holdout: float
    n_init: int
    init: str
    max_iter: int | None  # None: the default of the recipe
    tol: float | None
    seed: int
    loss: str = "squared"
    recipe: str = "ssnmf"
    recipe_params: Mapping[str, Any] = field(default_factory=dict)

    def fit(self, split: Split, rank: int, sparsity: Level, start: Any, rng: np.random.Generator) -> Result:
        """Fit one model, in one thread."""
        options = Keywords(init=start, random_state=rng, n_threads=1, loss=self.loss)  # type: ignore[typeddict-item]
        if self.max_iter is not None:
            options["max_iter"] = self.max_iter
        if self.tol is not None:
            options["tol"] = self.tol
        asked = {} if sparsity is None else {SPARSE[self.side]: sparsity}
        with interrupts() as interrupted, no_advice():  # the held-out error shows it
            result = RECIPES[self.recipe](split.seen, rank, **asked, **self.recipe_params, **options)
            if interrupted:  # an unfinished fit is not comparable
                raise KeyboardInterrupt
        return result


def fit_path(observed: Observed, plan: Plan, rank: int, number: int) -> Record:
    """Fit all sparsities in order, each warm-started from the previous one, and return JSON-serialisable measurements.

    The result depends only on the arguments, not on the process or the order of the paths.
    """
    split = hold_out(observed, plan.holdout, np.random.default_rng([plan.seed, number]))  # one for all ranks
    fits: list[Record] = []
    parts: list[list[Array]] = [[] for _ in plan.sparsities]
    for restart in range(plan.n_init):
        rng = np.random.default_rng([plan.seed, number, rank, restart])
        start: Any = plan.init
        for level, sparsity in enumerate(plan.sparsities):
            result = plan.fit(split, rank, sparsity, start, rng)
            start = (result.activations, result.components)
            parts[level].append(result.components)
            fits.append({"level": level, "restart": restart, **measurements(result, split, plan.side)})
    return {"rank": rank, "split": number, "fits": fits, "stability": [stability(found) for found in parts]}


def measurements(result: Result, split: Split, side: str) -> Record:
    """The quantities of one fit that the table shows."""
    sparsity = result.sparsity if side == "components" else result.activation_sparsity
    known = sparsity[~np.isnan(sparsity)]
    return {
        "heldout_error": split.measured(result.factors, result.loss),
        "train_error": result.relative_error,
        "achieved_sparsity": float(known.mean()) if known.size else None,
        "dead_parts": len(dead_components([gram(f) for f in result.factors])),
        "n_iter": result.n_iter,
        "converged": result.converged,
    }


def stability(parts: list[Array]) -> float | None:
    """Mean cosine of matched parts over all pairs of starts; None for a single start."""
    pairs = [float(match_parts(a, b).cosines.mean()) for a, b in combinations(parts, 2)]
    return float(np.mean(pairs)) if pairs else None
