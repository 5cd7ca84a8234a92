"""The Kullback–Leibler divergence line by line: a line is a sample or a feature of X.

With the rest fixed, a line x with activations a has the model M = floor + Σ_j a_j·w_j, where w_j is column j of the
rest at the entries of the line, and the loss Σ_f x_f·log(x_f / M_f) − x_f + M_f. Entries with x = 0 only contribute M,
whose sum is known from the sums s_j = Σ w_j. The cost is therefore proportional to the nonzero entries.

For one coordinate a, with N = Σ x·w/M and h = Σ x·(w/M)², the derivative of the loss at a + d is
s − Σ (x·w/M) / (1 + d·w/M). Two bounds of the sum give steps that never pass the minimum, so that the loss never rises,
and that are Newton's step −(s − N)/h close to it:

    up (N > s):     d = (N/s − 1)·N/h            Jensen's inequality: 1 / (1 + t) is convex
    down (N < s):   d = −(s − N) / (h + (s − N)/a)    the chord of 1 / (1 − t), because w/M ≤ 1/a

References
----------
C.-J. Hsieh and I. S. Dhillon, "Fast coordinate descent methods with variable selection for non-negative matrix
factorization", KDD 2011: Newton steps for single coordinates.
L. T. K. Hien and N. Gillis, "Algorithms for nonnegative matrix factorization with the Kullback–Leibler divergence",
J. Sci. Comput. 87 (2021): such steps without a rise of the loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from ..runtime.compiled import apart, kernel, loop, piece
from ..runtime.threads import in_parts
from ..statistics import Array, as_factor
from .logarithms import line_loss
from .products import padded_rows
from .protocols import LineGroup

LEAST = 16  # lines per thread, at least
FEW = 0.25  # share of nonzeros of a dense line below which they are gathered first


class Rest(NamedTuple):
    """The matrix that a factor is multiplied with in the model: as columns, as padded rows, and its sums."""

    columns: Array
    rows: Array
    sums: Array

    @classmethod
    def of(cls, factor: Array) -> Rest:
        """The rest in the layouts that the kernels need."""
        return cls(as_factor(factor).T, padded_rows(factor), factor.sum(axis=0, dtype=float))


def solve_lines(
    lines: Iterator[LineGroup],
    rest: Rest,
    factor: Array,
    which: Array,
    sweeps: int,
    tol: float,
    floor: float,
    losses: Array,
) -> None:
    """Improve the columns ``which`` of a factor, line by line, and write the loss of each line, unless that is empty.

    At most ``sweeps`` sweeps, until no step is larger than ``tol``, relative to the model.
    """
    for some in lines:
        in_parts(partial(sweep_lines, *some, *rest, factor.T, which, sweeps, tol, floor, losses), some.number, LEAST)


def slopes_of_lines(
    lines: Iterator[LineGroup], rest: Rest, factor: Array, floor: float, numerator: Array, curvature: Array, sums: Array
) -> Array:
    """Write (X / M)·rest and (X / M²)·(rest ∘ Σ rest) and the sums of the rest, and return the loss of each line.

    The three arrays have a row for each line, or none: then they are not computed.
    """
    losses = np.empty(len(factor))
    for some in lines:
        outs = (numerator.T, curvature.T, sums.T, losses)
        in_parts(partial(measure_lines, *some, *rest, factor.T, floor, *outs), some.number, LEAST)
    return losses


@kernel
def sweep_lines(
    top: int,
    values: Array,
    indices: Array,
    starts: Array,
    whole: bool,
    columns: Array,
    rows: Array,
    sums: Array,
    factor: Array,
    which: Array,
    sweeps: int,
    tol: float,
    floor: float,
    losses: Array,
    first: int,
    end: int,
) -> None:
    """Sweep over the coordinates of lines from ``first`` to ``end``. Line 0 is column ``top`` of ``factor``."""
    r, width = columns.shape[0], longest(starts, first, end)
    gathered, x, places = np.empty((r, width), columns.dtype), np.empty(width, columns.dtype), np.empty(width, np.int64)
    model, own = np.empty(width, columns.dtype), sums.copy()
    ratios, mantissas, exponents = np.empty(width), np.empty(width), np.empty(width)
    idle = np.zeros(r, np.bool_)
    for i in range(top + first, top + end):
        direct, k = gather(values, indices, starts, i - top, whole, rows, x, places, gathered, own)
        w, here, m = columns if direct else gathered, x[:k], model[:k]
        begin(here, factor[:, i], own, which)
        build_model(m, w, factor[:, i], floor)
        for sweep in range(sweeps):
            step, last, furthest, size, shrunk = 0.0, which[0], 0.0, 0.0, False
            for j in which:
                if sweep % 2 and idle[j]:  # zeros that stayed zero are left out in every other sweep
                    continue
                n, h = shift(m, here, w[last, :k], step, w[j, :k], floor)
                a, step, last = np.float64(factor[j, i]), 0.0, j
                if n > own[j] and h > 0:
                    step = (n / own[j] - 1) * (n / h) if own[j] > 0 else 0.0
                elif a > 0 and n < own[j]:
                    step = -(own[j] - n) / (h + (own[j] - n) / a)
                    if a + step < 0.5 * a:
                        shrunk = True
                        if numerator_without(m, here, a, w[j, :k], floor) <= own[j]:
                            step = -a
                factor[j, i] = max(a + step, 0.0)  # rounding could pass zero
                step = np.float64(factor[j, i]) - a  # as rounded
                idle[j] = a == 0 and step == 0
                furthest = max(furthest, abs(step) * own[j])
                size += np.float64(factor[j, i]) * own[j]
            if shrunk:  # what is left of the model has lost its digits
                build_model(m, w, factor[:, i], floor)
            else:
                add_column(m, step, w[last, :k])
            if furthest <= tol * size and sweep % 2 == 0:
                break
        if losses.size:
            full = direct or not whole
            losses[i] = line_loss(here, m, factor[:, i], own, full, ratios[:k], mantissas[:k], exponents[:k])


@kernel
def measure_lines(
    top: int,
    values: Array,
    indices: Array,
    starts: Array,
    whole: bool,
    columns: Array,
    rows: Array,
    sums: Array,
    factor: Array,
    floor: float,
    numerator: Array,
    curvature: Array,
    line_sums: Array,
    losses: Array,
    first: int,
    end: int,
) -> None:
    """The statistics and the losses of lines from ``first`` to ``end``. Line 0 is column ``top`` of ``factor``."""
    r, width = columns.shape[0], longest(starts, first, end)
    gathered, x, places = np.empty((r, width), columns.dtype), np.empty(width, columns.dtype), np.empty(width, np.int64)
    model, own = np.empty(width, columns.dtype), sums.copy()
    ratios, mantissas, exponents = np.empty(width), np.empty(width), np.empty(width)
    total = np.empty(width, columns.dtype)
    for i in range(top + first, top + end):
        direct, k = gather(values, indices, starts, i - top, whole, rows, x, places, gathered, own)
        w, here, m = columns if direct else gathered, x[:k], model[:k]
        build_model(m, w, factor[:, i], floor)
        full = direct or not whole
        losses[i] = line_loss(here, m, factor[:, i], own, full, ratios[:k], mantissas[:k], exponents[:k])
        if line_sums.shape[1]:
            line_sums[:, i] = own
        if numerator.shape[1]:
            divide(here, m)
            for j in range(r):
                numerator[j, i] = dot_with(here, w[j, :k])
        if curvature.shape[1]:
            divide(here, m)
            total[:k] = 0
            for j in range(r):
                add_column(total[:k], 1.0, w[j, :k])
            multiply(here, total[:k])
            for j in range(r):
                curvature[j, i] = dot_with(here, w[j, :k])


@piece
def longest(starts: Array, first: int, end: int) -> int:
    """The largest number of entries of a line."""
    width = 0
    for i in range(first, end):
        width = max(width, starts[i + 1] - starts[i])
    return width


@piece
def gather(
    values: Array,
    indices: Array,
    starts: Array,
    i: int,
    whole: bool,
    rows: Array,
    x: Array,
    places: Array,
    gathered: Array,
    own: Array,
) -> tuple[bool, int]:
    """Copy the entries of a line to ``x``, and the rows of the rest that they meet to the columns of ``gathered``.

    Returns whether the rest itself can be used, because the line has an entry for each of its rows; and the number of
    entries. ``own`` are the sums of the rest over the entries that are not missing; they are known if a line is whole.
    """
    line, k = values[starts[i] : starts[i + 1]], 0
    listed = indices.size == 0
    count = 0
    if listed and whole:
        for f in range(line.size):
            x[f] = line[f]
            count += line[f] > 0
    direct = listed and whole and count > FEW * line.size
    if direct:
        k = line.size
    else:
        for e in range(line.size):
            if line[e] > 0 or (not whole and line[e] == 0):
                x[k], places[k] = line[e], e if listed else indices[starts[i] + e]
                k += 1
        r = gathered.shape[0]
        for e in range(k):
            row = rows[places[e]]
            for j in range(r):
                gathered[j, e] = row[j]
        if not whole:
            for j in range(r):
                own[j] = total_of(gathered[j, :k])
    return direct, k


@piece
def begin(x: Array, activations: Array, own: Array, which: Array) -> None:
    """If all activations are zero, share the line equally among all coordinates that can be used."""
    if which.size == activations.size and not activations.any():
        count = 0
        for j in which:
            count += own[j] > 0
        total = total_of(x)
        for j in which:
            if own[j] > 0:
                activations[j] = total / (count * own[j])


@piece
def build_model(model: Array, w: Array, activations: Array, floor: float) -> None:
    """model ← floor + Σ_j a_j·w_j"""
    model[:] = floor
    for j in range(activations.size):
        if activations[j] > 0:
            add_column(model, activations[j], w[j, : model.size])


@apart
def shift(model: Array, x: Array, last: Array, step: float, w: Array, floor: float) -> tuple[float, float]:
    """model ← model + step·last, at least ``floor``; then N and h of the column w."""
    n, h, move, least = 0.0, 0.0, model.dtype.type(step), model.dtype.type(floor)
    for e in range(x.size):
        model[e] = max(model[e] + move * last[e], least)
        t = w[e] / model[e]
        n += x[e] * t
        h += np.float64(x[e] * t) * np.float64(t)  # may overflow in single precision
    return n, h


@apart
def numerator_without(model: Array, x: Array, a: float, w: Array, floor: float) -> float:
    """N for a model without a·w."""
    n, amount, least = 0.0, model.dtype.type(a), model.dtype.type(floor)
    for e in range(x.size):
        n += x[e] * w[e] / max(model[e] - amount * w[e], least)
    return n


@apart
def add_column(model: Array, a: float, w: Array) -> None:
    """model ← model + a·w"""
    amount = model.dtype.type(a)
    for e in range(model.size):
        model[e] += amount * w[e]


@apart
def divide(x: Array, model: Array) -> None:
    """x ← x / model"""
    for e in range(x.size):
        x[e] /= model[e]


@apart
def multiply(x: Array, y: Array) -> None:
    """x ← x·y"""
    for e in range(x.size):
        x[e] *= y[e]


@loop
def dot_with(x: Array, w: Array) -> float:
    """xᵀw in double precision."""
    total = 0.0
    for e in range(x.size):
        total += np.float64(x[e]) * np.float64(w[e])
    return total


@loop
def total_of(x: Array) -> float:
    """Σ x in double precision."""
    total = 0.0
    for e in range(x.size):
        total += np.float64(x[e])
    return total
