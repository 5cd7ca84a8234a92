"""Tensors of any order, for the CP model Σ_j a_j ∘ b_j ∘ c_j ∘ …, which has one factor for each mode.

With all other factors fixed, the statistics of one mode are those of its unfolding: cross is X times the Khatri–Rao
product of the other factors ("MTTKRP"), and gram is the entrywise product of their Gram matrices. The Khatri–Rao
product is never formed.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ..runtime.compiled import kernel
from ..statistics import Array, Stats
from .matrix import CHUNK_ENTRIES, InMemory, square_sums
from .protocols import Form
from .values import as_floats, check_scale, check_values

SHRINK = 4  # the first contraction reduces X by this factor, if possible


class Tensor(InMemory):
    """The base class of dense and sparse tensors."""

    def __init__(self, check: bool) -> None:
        super().__init__()
        if check:
            if len(self.shape) < 2 or not all(self.shape):
                raise ValueError(f"X has shape {self.shape}: X must have two or more modes, none of them empty")
            self.check()
            check_scale(self.peak, self.dtype)

    def counts(self, mode: int) -> Array:
        """The number of observed entries of each slice of one mode: all of them."""
        return np.full(self.shape[mode], math.prod(self.shape) // self.shape[mode])

    def statistics(self, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> Stats:
        others = [g for m, g in enumerate(grams) if m != mode]
        return Stats(self.cross(factors, grams, mode), np.prod(others, axis=0), self.sqnorm)

    def times(self, vectors: Sequence[Array], mode: int) -> Array:
        """X times one vector for every mode but ``mode``, in double precision. ``vectors[mode]`` is ignored."""
        columns = [np.asfortranarray(v[:, None], dtype=self.dtype) for v in vectors]
        return np.asarray(self.cross(columns, None, mode)[:, 0], dtype=float)

    def slice_residual(self, factors: Sequence[Array], mode: int, i: int) -> Form:
        own, others = self.slice(mode, i), [f for m, f in enumerate(factors) if m != mode]
        return lambda vectors, m: own.times(vectors, m) - model_times(vectors, others, m, factors[mode][i])

    def residual_times(self, vectors: Sequence[Array], factors: Sequence[Array], mode: int) -> Array:
        all_modes = [*vectors[:mode], factors[mode][:, 0], *vectors[mode:]]  # that of ``mode`` is ignored
        return self.times(all_modes, mode) - model_times(all_modes, factors, mode)

    def squared_error(self, factors: Sequence[Array]) -> float:
        """‖X − model‖², computed from the residual, a few rows of X's last mode at a time."""
        *leading, last = (np.asarray(f, dtype=self.dtype) for f in factors)
        shape = tuple(len(f) for f in leading)
        step, rows = max(1, CHUNK_ENTRIES // max(last.shape)), math.prod(shape)
        total = 0.0
        for start in range(0, rows, step):
            places = np.unravel_index(np.arange(start, min(start + step, rows)), shape)
            products = math.prod(f[at] for f, at in zip(leading, places, strict=True))
            residual = products @ last.T
            self.subtract_from(residual, start)
            total += float(square_sums(residual).sum())
        return total

    @abstractmethod
    def cross(self, factors: Sequence[Array], grams: Sequence[Array] | None, mode: int) -> Array:
        """Return the MTTKRP. The Gram matrices tell which cached products are still valid; None: no cache."""

    @abstractmethod
    def slice(self, mode: int, i: int) -> Tensor:
        """Return one slice: a tensor whose order is lower by one."""

    @abstractmethod
    def slice_products(self, mode: int, i: int) -> Array:
        """The inner products of all slices of one mode with slice i, in double precision."""

    @abstractmethod
    def subtract_from(self, model: Array, start: int) -> None:
        """model ← X − model, for rows of the last mode from row ``start`` on."""


class DenseTensor(Tensor):
    """A dense array in C or Fortran order. Other layouts are copied once.

    X is contracted with the factors of its first or of its last modes by a single BLAS product. The result is small and
    is contracted mode by mode. It is cached and serves all modes at the other end until one of those factors changes,
    so that an iteration takes two passes over X, whatever its order.
    """

    def __init__(self, X: npt.ArrayLike, check: bool = True) -> None:
        array = as_floats(X)
        self.backwards = array.flags.f_contiguous and not array.flags.c_contiguous
        self.matrix = np.ascontiguousarray(array.T if self.backwards else array)
        self.shape, self.dtype = array.shape, array.dtype
        self._partials: dict[range, tuple[list[Array], Array]] = {}
        super().__init__(check)

    def check(self) -> None:
        check_values(self.matrix.min(), self.peak, self._offenders)

    def _offenders(self) -> tuple[float, ...]:
        flat = self.matrix.reshape(-1)
        for start in range(0, flat.size, CHUNK_ENTRIES):
            part = flat[start : start + CHUNK_ENTRIES]
            bad = np.flatnonzero(~(np.isfinite(part) & (part >= 0)))
            if bad.size:
                place = [int(i) for i in np.unravel_index(start + bad[0], self.matrix.shape)]
                return *(place[::-1] if self.backwards else place), float(part[bad[0]])
        raise AssertionError("unreachable: the minimum or the maximum is invalid")

    def _turned(self, mode: int) -> int:
        """The axis of ``matrix`` for this mode."""
        return len(self.shape) - 1 - mode if self.backwards else mode

    def cross(self, factors: Sequence[Array], grams: Sequence[Array] | None, mode: int) -> Array:
        if len(self.shape) == 1:
            return np.asfortranarray(np.tile(self.matrix[:, None], factors[0].shape[1]))
        if self.backwards:
            factors, grams = factors[::-1], None if grams is None else grams[::-1]
        axis = self._turned(mode)
        ends = two_ends(self.matrix.shape, factors[0].shape[1], axis)
        known = [end for end in ends if self._is_known(end, grams)]
        end = (known or ends)[0]
        if known:
            left = self._partials[end][1]
        elif grams is None:
            left = self._contracted(factors, end, None)
        else:
            before = self._partials.get(end)
            left = self._contracted(factors, end, None if before is None else before[1])
            self._partials[end] = ([grams[m] for m in end], left)
        return reduced(left, factors, end, axis).T

    def _is_known(self, end: range, grams: Sequence[Array] | None) -> bool:
        """Whether the cached product with the factors at this end is valid. A changed factor has a new Gram matrix."""
        if grams is None or end not in self._partials:
            return False
        return all(a is grams[m] for a, m in zip(self._partials[end][0], end, strict=True))

    def _contracted(self, factors: Sequence[Array], end: range, out: Array | None) -> Array:
        """Contract X with the factors at one end in a single product: r × the remaining modes."""
        rest, sizes = khatri_rao([factors[m] for m in end]), self.matrix.shape
        if end.start == 0:
            matrix, left = self.matrix.reshape(len(rest), -1), sizes[end.stop :]
        else:
            matrix, left = self.matrix.reshape(-1, len(rest)).T, sizes[: end.start]
        shape = (rest.shape[1], matrix.shape[1])
        if out is None or out.size != math.prod(shape):
            out = np.empty(shape, dtype=self.dtype)
        np.matmul(rest.T, matrix, out=out.reshape(shape))
        return out.reshape(shape[0], *left)

    def pieces(self) -> Iterator[Array]:
        return iter(self.matrix.T if self.backwards else self.matrix)

    def summed_squares(self, mode: int) -> Array:
        return slice_square_sums(self._layers(mode))

    def slice(self, mode: int, i: int) -> DenseTensor:
        part = self.matrix[(np.s_[:],) * self._turned(mode) + (i,)]
        return DenseTensor(part.T if self.backwards else part, check=False)

    def slice_products(self, mode: int, i: int) -> Array:
        return inner_products(self._layers(mode), i)

    def _layers(self, mode: int) -> Array:
        """X reshaped to three axes, with this mode in the middle."""
        axis, sizes = self._turned(mode), self.matrix.shape
        return self.matrix.reshape(math.prod(sizes[:axis]), sizes[axis], -1)

    def subtract_from(self, model: Array, start: int) -> None:
        rows = self.matrix.reshape(-1, self.matrix.shape[-1])
        np.subtract(rows[start : start + len(model)], model, out=model)

    def squared_error(self, factors: Sequence[Array]) -> float:
        return super().squared_error(factors[::-1] if self.backwards else factors)


def model_times(vectors: Sequence[Array], factors: Sequence[Array], mode: int, weights: Array | float = 1.0) -> Array:
    """Σ_j weights_j · a_j ∘ b_j ∘ …, times one vector for every mode but one."""
    shares = [f.T @ v for m, (f, v) in enumerate(zip(factors, vectors, strict=True)) if m != mode]
    return np.asarray(factors[mode] @ math.prod(shares, start=weights))


def two_ends(shape: tuple[int, ...], r: int, mode: int) -> list[range]:
    """The modes to contract first for the statistics of ``mode``: the leading ones, the trailing ones, or either.

    An end has as few modes as make the product small relative to X. If both ends contain ``mode``, it has all modes on
    the larger side of ``mode``.
    """
    order = len(shape)
    first = next(m for m in range(1, order) if m == order - 1 or math.prod(shape[:m]) >= SHRINK * r)
    last = next(m for m in range(order - 1, 0, -1) if m == 1 or math.prod(shape[m:]) >= SHRINK * r)
    ends = [end for end in (range(first), range(last, order)) if mode not in end]
    return ends or [max(range(mode), range(mode + 1, order), key=lambda end: math.prod(shape[m] for m in end))]


def khatri_rao(factors: Sequence[Array]) -> Array:
    """The Khatri–Rao product: all products of one row of each factor, the last factor varying fastest."""
    product = factors[0]
    for f in factors[1:]:
        product = np.asfortranarray((product[:, None] * f).reshape(-1, f.shape[1]))
    return product


def reduced(left: Array, factors: Sequence[Array], gone: range, mode: int) -> Array:
    """Contract an array (r × all modes except ``gone``) with all factors except that of ``mode``: r × its length."""
    modes = [m for m in range(len(factors)) if m not in gone]
    r = len(left)
    while modes[-1] != mode:
        f = factors[modes.pop()]
        left = np.matmul(left.reshape(r, -1, len(f)), f.T[:, :, None])
    while modes[0] != mode:
        f = factors[modes.pop(0)]
        left = np.matmul(f.T[:, None, :], left.reshape(r, len(f), -1))
    return left.reshape(r, -1)


@kernel
def slice_square_sums(layers: Array) -> Array:
    """The sum of squares of each slice of the middle axis, in double precision."""
    sums = np.zeros(layers.shape[1])
    for l in range(layers.shape[0]):
        for i in range(layers.shape[1]):
            total = 0.0
            for j in range(layers.shape[2]):
                total += np.float64(layers[l, i, j]) * np.float64(layers[l, i, j])
            sums[i] += total
    return sums


@kernel
def inner_products(layers: Array, i: int) -> Array:
    """The inner product of slice i of the middle axis with each slice, in double precision."""
    sums = np.zeros(layers.shape[1])
    for l in range(layers.shape[0]):
        for k in range(layers.shape[1]):
            total = 0.0
            for j in range(layers.shape[2]):
                total += np.float64(layers[l, k, j]) * np.float64(layers[l, i, j])
            sums[k] += total
    return sums
