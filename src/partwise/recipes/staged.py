"""Starts that are short fits themselves: without the sparsity constraint, or with a lower sparsity.

A sparse column changes its support with difficulty. A fit that starts at a sparsity above that of unconstrained
components therefore tends to stop in a poor local minimum, close to its start. It does better if it starts from
unconstrained components.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from ..data import Chunked, DenseData, Matrix, SparseData
from ..data.values import scale_limit
from ..engine.blocks import Block
from ..engine.running import give_unit_norm
from ..engine.solving import Solved, solve_activations
from ..engine.starts import Factors, Given, Knowledge
from ..engine.stopping import Iteration
from ..projections import Hoyer, HoyerBetween, Nonnegative, Projection, hoyer_sparsity
from ..runtime.together import Job
from ..statistics import Array, as_factor, gram
from ..updates import Columns, Kept, Known, Partly, Sequential, Sets, Update

ShortFit = Callable[..., Job[Factors]]  # factors, blocks, number of iterations, callback → factors
Start = Callable[[str, Sequence[Sets]], Factors]

SAMPLES, ENTRIES = 500, 2**20  # the default start looks at so many samples, or at so many entries of X
GRADUAL = (0.2, 0.4, 0.6, 0.8)  # sparsities of the gradual start, relative to the requested one
SHORT, LONG = 10, 40  # iterations without the constraint: at least, and at most
LITTLE, MOST = 0.2, 0.7  # they go on if the constraint would remove a share of the components between these
SETTLED = 0.2  # the tolerance of these iterations
STEPS = 4  # from the sparsity of their result to the requested one, if it has not settled
CLOSE = 10  # iterations with the squared loss, before those with the Kullback–Leibler divergence


async def gradual(blocks: Sequence[Block], start: Start, fit: ShortFit) -> Factors:
    """Initial factors from a few iterations at each of several lower sparsities."""
    first = [b.sets.relaxed(GRADUAL[0]) for b in blocks]
    factors = start("samples", first)
    for share in GRADUAL if first != [b.sets for b in blocks] else ():
        relaxed = [replace(b, sets=b.sets.relaxed(share)) for b in blocks]
        factors = await fit(projected(factors, relaxed), relaxed, 10)
    return projected(factors, blocks)


async def automatic(blocks: Sequence[Block], start: Start, fit: ShortFit) -> Factors:
    """Initial factors for two blocks, of which one has sparse columns.

    Ten iterations without the constraint lead from samples to components. If the constraint would remove much of the
    components, there are up to forty and, if the components have not settled by then, ten more at each of three
    sparsities on the way to the requested one. If it would remove most of them, ten are enough: all starts end alike.
    Different levels go to the components that they suit best.
    """
    sets = [b.sets for b in blocks]
    mode = 0 if levels(sets[0]) else 1
    listed = differ([sets[mode][j] for j in range(len(sets[mode])) if j not in sets[mode].kept])
    free = [replace(b, sets=unconstrained(b.sets)) for b in blocks]

    def close(factor: Array) -> bool:
        return not LITTLE < removed(factor, sets[mode]) < MOST

    n_iter = 0

    def enough(now: Iteration) -> bool:
        nonlocal n_iter
        n_iter = now.n_iter
        return not listed and n_iter == SHORT and close(now.factors[mode])

    factors = await fit(start("samples", [b.sets for b in free]), free, LONG, enough)
    factors = assigned(with_unit_columns(factors, sets, mode), sets, mode)
    if n_iter == LONG and not listed and not close(factors[mode]):
        for share in on_the_way(factors[mode], sets[mode]):
            relaxed = [replace(b, sets=b.sets.relaxed(share)) for b in blocks]
            factors = await fit(projected(factors, relaxed), relaxed, SHORT)
    return projected(factors, blocks)


def excerpt(data: Matrix | Chunked, known: Knowledge, rng: np.random.Generator) -> tuple[Matrix, list[Known | None]]:
    """Some samples in memory, and what is known about their factors; all if X is small, or in memory and incomplete."""
    n, m = data.shape
    most = max(SAMPLES, ENTRIES // m)
    if isinstance(data, Matrix) and (n <= most or not data.complete):
        return data, [*known]
    which = np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
    if isinstance(data, Chunked):
        data.check()
    given = known[0]
    return data.subset(which), [None if given is None else replace(given, columns=given.columns[which]), known[1]]


def in_single_precision(data: Matrix) -> Matrix:
    """The data of a start in single precision, where products with X cost half; the same data if that is not safe."""
    limit = scale_limit(np.dtype(np.float32))
    if not data.complete or not 1 / limit < data.peak < limit:
        return data
    values = data.matrix.astype(np.float32, copy=False)
    return SparseData(values, check=False) if isinstance(data, SparseData) else DenseData(values, check=False)


def for_all_samples(factors: Factors, blocks: Sequence[Block], data: Matrix | Chunked, known: Known | None) -> Factors:
    """Initial factors, given those of an excerpt. The activations of the other samples take one pass over X."""
    activations, parts = factors
    if len(activations) == data.shape[0]:
        assert isinstance(data, Chunked)
        return [data.hold(Given(activations), parts.shape[1]), parts]
    solved = solve_activations(data, parts, known=known)
    if isinstance(solved, Solved):
        factors = [as_factor(solved.activations, data.dtype), parts]
        sets = [b.sets for b in blocks]
        return projected(with_unit_columns(factors, sets, 0) if levels(sets[0]) else factors, blocks)
    return [solved.summed[0], parts]


def least_squares(update: Update, sweeps: int) -> Update:
    """The update with the squared loss in place of one with the divergence, next to the same known columns."""
    return Partly(least_squares(update.update, sweeps)) if isinstance(update, Partly) else Sequential(sweeps)


def levels(sets: Sets) -> dict[int, float]:
    """The lowest sparsity that is allowed, for each column with a constraint on it."""
    columns = enumerate(sets[j] for j in range(len(sets)))
    found = {j: s.sparsity if isinstance(s, Hoyer) else s.lo for j, s in columns if isinstance(s, Hoyer | HoyerBetween)}
    return {j: level for j, level in found.items() if level is not None}


def removed(factor: Array, sets: Sets) -> float:
    """The share of a component that its set removes, on average. It counts where sparsity must rise."""
    asked = levels(sets)
    rising = [j for j, own in zip(asked, sparsities(factor, asked), strict=True) if own < asked[j]]
    return sum(1 - likeness(factor[:, j], sets[j]) ** 2 for j in rising) / len(asked)


def on_the_way(factor: Array, sets: Sets) -> list[float]:
    """Shares of the requested sparsity, in equal steps between the sparsity of a factor and the requested one."""
    asked = levels(sets)
    own = float(sparsities(factor, asked).mean() / np.mean([*asked.values()]))
    return np.linspace(min(own, 1.0), 1, STEPS + 1)[1:-1].tolist()


def sparsities(factor: Array, columns: Iterable[int]) -> Array:
    """The sparsities of some columns of a factor; 0 for columns of zeros."""
    return np.nan_to_num(hoyer_sparsity(factor[:, [*columns]], axis=0))


def likeness(column: Array, one: Projection) -> float:
    """The cosine of a column and the nearest point of a set to it, as a unit vector; 1 for a column of zeros."""
    unit = column.astype(float)
    unit /= float(np.linalg.norm(unit)) or 1.0
    nearest = np.asarray(one(unit), dtype=float)
    return float(unit @ nearest) / (float(np.linalg.norm(nearest)) or 1.0) if unit.any() else 1.0


def differ(some: Sequence[object]) -> bool:
    """Whether these are not all equal."""
    return any(one != some[0] for one in some[1:])


def unconstrained(sets: Sets) -> Columns:
    """The same sets without a constraint but y ≥ 0. Known columns are kept."""
    return Columns(tuple(s if isinstance(s, Kept) else Nonnegative() for s in (sets[j] for j in range(len(sets)))))


def projected(factors: Factors, blocks: Sequence[Block]) -> Factors:
    """Project factors to the sets of their blocks."""
    return [b.sets.project(f) for b, f in zip(blocks, factors, strict=True)]


def with_unit_columns(factors: Factors, sets: Sequence[Sets], mode: int) -> Factors:
    """Move the scale of one factor, which is about to be projected to unit vectors, to the other one, in place."""
    give_unit_norm(factors, [gram(f) for f in factors], mode, kept=sorted({j for s in sets for j in s.kept}))
    return factors


def assigned(factors: Factors, sets: Sequence[Sets], mode: int) -> Factors:
    """Reorder the components such that each gets the set of columns that changes the model least.

    Projecting component j, of squared norm s, to a set of unit vectors y removes s − (its largest part along y)² from
    the model. The sum of these is minimised over all assignments. Components with known columns stay where they are.
    """
    kept = {j for s in sets for j in s.kept}
    free = np.array([j for j in range(len(sets[mode])) if j not in kept], dtype=int)
    if not differ([sets[mode][j] for j in free.tolist()]):
        return factors
    from scipy.optimize import linear_sum_assignment  # takes 20 MB and is needed only here

    sizes = np.prod([gram(f).diagonal() for f in factors], axis=0)
    costs = np.zeros((len(free), len(free)))
    done: list[int] = []
    for i in free.tolist():
        one = sets[mode][i]
        same = [place for place, j in enumerate(free.tolist()) if sets[mode][j] == one]
        if same[0] in done:
            continue
        done.append(same[0])
        for row, j in enumerate(free.tolist()):
            costs[row, same] = sizes[j] * (1 - likeness(factors[mode][:, j], one) ** 2)
    rows, places = linear_sum_assignment(costs)
    order = np.arange(len(sets[mode]))
    order[free[places]] = free[rows]
    return [np.asfortranarray(f[:, order]) for f in factors]
