"""Logarithms in the Kullback–Leibler divergence, in loops that vectorise, which calls of log do not."""

from __future__ import annotations

import numpy as np

from ..runtime.compiled import apart, kernel, piece
from ..statistics import Array

MAGIC = 0x3FE6A09E667F3BCD  # the bits of √½: mantissas are taken between √½ and √2
CHUNK = 1024  # entries whose logarithms are taken together
LOG2 = 0.6931471805599453


@kernel
def add_lines(values: Array, indices: Array, starts: Array, sums: Array) -> None:
    """sums ← sums + the sum of some lines, entry by entry in double precision, without NaN."""
    for i in range(starts.size - 1):
        line = values[starts[i] : starts[i + 1]]
        if indices.size == 0:  # all entries are listed
            for f in range(line.size):
                sums[f] += np.float64(line[f]) if line[f] > 0 else 0.0
        else:
            for e in range(line.size):
                sums[indices[starts[i] + e]] += np.float64(line[e]) if line[e] > 0 else 0.0


@kernel
def entropy(values: Array) -> float:
    """Σ x·log x over the entries that are neither zero nor NaN."""
    x, mantissas, exponents, total = np.empty(CHUNK), np.empty(CHUNK), np.empty(CHUNK), 0.0
    for first in range(0, values.size, CHUNK):
        k = min(CHUNK, values.size - first)
        for e in range(k):
            x[e] = values[first + e] if values[first + e] > 0 else 1.0
        split(x[:k].view(np.int64), mantissas[:k].view(np.int64), exponents[:k])
        total += divergence(x[:k], x[:k], mantissas[:k], exponents[:k])
    return total


@piece
def line_loss(
    x: Array,
    model: Array,
    activations: Array,
    own: Array,
    full: bool,
    ratios: Array,
    mantissas: Array,
    exponents: Array,
) -> float:
    """The divergence of a line. If not all entries are listed, the sum of the model over the others is added."""
    inside = divided(x, model, ratios)
    split(ratios.view(np.int64), mantissas.view(np.int64), exponents)
    loss = divergence(x, model, mantissas, exponents)
    if not full:
        outside = -inside
        for j in range(activations.size):
            outside += np.float64(activations[j]) * own[j]
        loss += max(outside, 0.0)
    return loss


@apart
def divided(x: Array, model: Array, ratios: Array) -> float:
    """ratios ← x / model. Returns the sum of the model."""
    total = 0.0
    for e in range(x.size):
        ratios[e] = np.float64(x[e]) / np.float64(model[e])
        total += np.float64(model[e])
    return total


@apart
def split(bits: Array, mantissas: Array, exponents: Array) -> None:
    """Split numbers into mantissas between √½ and √2 and exponents of 2; both first are given by their bits."""
    for e in range(bits.size):
        exponent = (bits[e] - MAGIC) >> 52
        exponents[e] = exponent
        mantissas[e] = bits[e] - (exponent << 52)


@apart
def divergence(x: Array, model: Array, mantissas: Array, exponents: Array) -> float:
    """Σ x·log(mantissa·2^exponent) − x + model, by the series of 2·artanh, which unlike a call of log vectorises."""
    total = 0.0
    for e in range(x.size):
        f = (mantissas[e] - 1) / (mantissas[e] + 1)
        s = f * f
        tail = 1 / 13 + s * (1 / 15 + s * (1 / 17 + s * (1 / 19 + s * (1 / 21))))
        series = 1 / 3 + s * (1 / 5 + s * (1 / 7 + s * (1 / 9 + s * (1 / 11 + s * tail))))
        logarithm = 2 * f + 2 * f * s * series + exponents[e] * LOG2
        total += np.float64(x[e]) * logarithm - np.float64(x[e]) + np.float64(model[e])
    return total
