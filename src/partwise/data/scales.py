"""Weights of samples and features as scales of X.

Σ v_i·u_f·(x_if − a_i·w_f)² is the squared error of √v_i·x_if·√u_f with activations √v_i·a_i and components √u_f·w_f. If
y ≥ 0 is the only constraint of the scaled factors, a weighted fit is therefore an ordinary fit to a scaled X of any
kind, whose factors are divided by the scales at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..runtime.arrays import Sparse
from ..statistics import Array


@dataclass(frozen=True, eq=False)
class Scales:
    """What the samples and features of data were multiplied by: the roots of their weights; None: by nothing."""

    samples: Array | None = None
    features: Array | None = None

    def __bool__(self) -> bool:
        return self.samples is not None or self.features is not None

    def hindered(self, activations: bool, components: bool = True) -> list[int]:
        """The modes that are scaled, but may not be: each argument says whether that factor may."""
        sides = zip((self.samples, self.features), (activations, components), strict=True)
        return [mode for mode, (scale, free) in enumerate(sides) if scale is not None and not free]

    def rows(self, values: Array, first: int = 0) -> Array:
        """Samples of X, the first of which is sample ``first``, scaled. A copy, unless there are no scales."""
        if self.samples is not None:
            values = values * self.samples[first : first + len(values), None]
        return values if self.features is None else values * self.features

    def stored(self, X: Sparse) -> Sparse:
        """A scaled copy of the stored values of a compressed matrix, with its indices."""
        scales = (self.samples, self.features)
        outer, inner = scales if X.format == "csr" else scales[::-1]
        values = X.data
        if outer is not None:
            values = values * np.repeat(outer, np.diff(X.indptr))
        if inner is not None:
            values = values * inner[X.indices]
        return type(X)((values, X.indices, X.indptr), shape=X.shape)

    def parts(self, parts: Array) -> Array:
        """The components of the scaled X, given those of X (features × r)."""
        return parts if self.features is None else parts * self.features[:, None]

    def times(self, factors: Sequence[Array]) -> list[Array]:
        """The factors of the scaled X, given those of X."""
        activations, parts = factors
        scaled = activations if self.samples is None else activations * self.samples[:, None]
        return [scaled, self.parts(parts)]

    def activations(self, activations: Any) -> Any:
        """The activations of X, given those of the scaled X (NumPy or Dask); zero for samples of weight zero."""
        if self.samples is None:
            return activations
        inverse = np.divide(1, self.samples, out=np.zeros_like(self.samples), where=self.samples > 0)
        return activations * inverse[:, None]

    def unscaled_parts(self, parts: Array) -> tuple[Array, Array | float]:
        """The components of X, given those of the scaled X, and their norms before they got unit norm."""
        if self.features is None:
            return parts, 1.0
        parts = parts / self.features[:, None]
        norms = np.linalg.norm(parts, axis=0)
        norms[norms == 0] = 1
        return parts / norms, norms

    def divided(self, factors: Sequence[Any]) -> list[Any]:
        """The factors of X, given those of the scaled X."""
        parts, norms = self.unscaled_parts(factors[1])
        return [self.activations(factors[0]) * norms, parts]
