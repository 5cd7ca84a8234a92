"""Starts that are short fits themselves: without the sparsity constraint, or with a lower sparsity.

A sparse column changes its support with difficulty. A fit that starts at a sparsity above that of unconstrained
components therefore tends to stop in a poor local minimum, close to its start. It does better if it starts from
unconstrained components, and if their sparsity is raised in steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..data import Held, Matrix
from ..engine.blocks import Block
from ..engine.natural import Natural
from ..engine.starts import Factors
from ..projections import Hoyer, HoyerBetween, Nonnegative, hoyer_sparsity
from ..runtime.together import Job
from ..statistics import Array, gram
from ..updates import Columns, Kept, Sets

ShortFit = Callable[[Factors, Sequence[Block], int], Job[Factors]]  # factors, blocks, iterations → factors
Start = Callable[[str, Sequence[Sets]], Factors]

GRADUAL = (0.2, 0.4, 0.6, 0.8)  # sparsities of the gradual start, relative to the requested one
FREE, STAGES, EACH = 40, 4, 5  # iterations without the constraint; then stages of so many iterations
MARGIN, FAR = 0.05, 0.2  # below the usual sparsity, a constraint is easy to meet; far above it, it is met in stages


async def gradual(blocks: Sequence[Block], start: Start, fit: ShortFit) -> Factors:
    """Initial factors from a few iterations at each of several lower sparsities."""
    first = [b.sets.relaxed(GRADUAL[0]) for b in blocks]
    factors = start("samples", first)
    for share in GRADUAL if first != [b.sets for b in blocks] else ():
        relaxed = [replace(b, sets=b.sets.relaxed(share)) for b in blocks]
        factors = await fit(projected(factors, relaxed), relaxed, 10)
    return projected(factors, blocks)


async def automatic(
    blocks: Sequence[Block], start: Start, fit: ShortFit, natural: Callable[[], Natural | None]
) -> Factors:
    """Initial factors for two blocks, of which at most one has sparse columns.

    If the requested sparsity is at most that of unconstrained components, these are samples. Otherwise they come from
    a short fit without the constraint. Different levels go to the components that they suit best, and a level far
    above the sparsity of these components is reached in stages.
    """
    sets = [b.sets for b in blocks]
    mode = 0 if levels(sets[0]) else 1
    if not levels(sets[mode]) or not demanding(sets[mode], mode, natural):
        return start("samples", sets)
    free = [replace(b, sets=unconstrained(b.sets)) for b in blocks]
    factors = await fit(start("samples", [b.sets for b in free]), free, FREE)
    factors = assigned(factors, sets, mode)
    usual = np.nan_to_num(hoyer_sparsity(factors[mode], axis=0))
    asked = levels(sets[mode])
    far = not differ([*asked.values()]) and max(asked.values()) > np.median(usual[[*asked]]) + FAR
    for stage in range(1, STAGES + 1) if far else ():
        raised = [*blocks]
        raised[mode] = replace(blocks[mode], sets=at_least(sets[mode], usual, stage / (STAGES + 1)))
        factors = await fit(projected(factors, raised), raised, EACH)
    return projected(factors, blocks)


def levels(sets: Sets) -> dict[int, float]:
    """The lowest sparsity that is allowed, for each column with a constraint on it."""
    columns = enumerate(sets[j] for j in range(len(sets)))
    found = {j: s.sparsity if isinstance(s, Hoyer) else s.lo for j, s in columns if isinstance(s, Hoyer | HoyerBetween)}
    return {j: level for j, level in found.items() if level is not None}


def demanding(sets: Sets, mode: int, natural: Callable[[], Natural | None]) -> bool:
    """Whether a requested sparsity is above that of unconstrained components, or differs between components."""
    asked = levels(sets)
    if differ([sets[j] for j in range(len(sets)) if j not in sets.kept]):
        return True
    found = natural()
    if found is None:
        return False
    usual = found.sparsity if mode else found.activation_sparsity
    return bool(usual.size) and max(asked.values()) > float(np.median(usual)) - MARGIN


def differ(some: Sequence[object]) -> bool:
    """Whether these are not all equal."""
    return any(one != some[0] for one in some[1:])


def unconstrained(sets: Sets) -> Columns:
    """The same sets without a constraint but y ≥ 0. Known columns are kept."""
    return Columns(tuple(s if isinstance(s, Kept) else Nonnegative() for s in (sets[j] for j in range(len(sets)))))


def at_least(sets: Sets, usual: Array, share: float) -> Columns:
    """Intervals whose lower ends lie between the ``usual`` sparsity of each column and the requested one."""
    raised = [sets[j] for j in range(len(sets))]
    for j, level in levels(sets).items():
        raised[j] = HoyerBetween(min(level, usual[j] + share * max(level - usual[j], 0)), None)
    return Columns(tuple(raised))


def projected(factors: Factors, blocks: Sequence[Block]) -> Factors:
    """Project factors to the sets of their blocks. Activations that stay with their chunks are in their sets."""
    return [f if isinstance(f, Held) else b.sets.project(f) for b, f in zip(blocks, factors, strict=True)]


def assigned(factors: Factors, sets: Sequence[Sets], mode: int) -> Factors:
    """Reorder the components such that each gets the set of columns that changes the model least.

    Projecting component j, of squared norm s, to a set of unit vectors y removes s − (its largest part along y)² from
    the model. The sum of these is minimised over all assignments. Components with known columns stay where they are.
    """
    kept = {j for s in sets for j in s.kept}
    free = np.array([j for j in range(len(sets[mode])) if j not in kept], dtype=int)
    if not differ([sets[mode][j] for j in free.tolist()]):
        return factors
    sizes = np.prod([gram(f).diagonal() for f in factors], axis=0)
    norms = np.linalg.norm(factors[mode], axis=0)
    costs = np.zeros((len(free), len(free)))
    done: list[int] = []
    for i in free.tolist():
        one = sets[mode][i]
        same = [place for place, j in enumerate(free.tolist()) if sets[mode][j] == one]
        if same[0] in done:
            continue
        done.append(same[0])
        for row, j in enumerate(free.tolist()):
            unit = factors[mode][:, j].astype(float) / max(norms[j], np.finfo(float).tiny)
            nearest = np.asarray(one(unit), dtype=float)
            fitted = float(unit @ nearest) / max(float(np.linalg.norm(nearest)), np.finfo(float).tiny)
            costs[row, same] = sizes[j] * (1 - fitted**2)
    rows, places = linear_sum_assignment(costs)
    order = np.arange(len(sets[mode]))
    order[free[places]] = free[rows]
    return [reordered(f, order) for f in factors]


def reordered(factor: Array | Held, order: Array) -> Array | Held:
    """A factor with its columns in this order."""
    if isinstance(factor, Held):
        factor.sweep(Reorder(order))
        return factor
    return np.asfortranarray(factor[:, order])


@dataclass(frozen=True)
class Reorder:
    """A step that reorders the columns of the activations."""

    order: Array

    def __call__(self, chunk: Matrix, activations: Array) -> tuple[Array, int]:
        """Return the reordered activations."""
        return np.asfortranarray(activations[:, self.order]), 0
