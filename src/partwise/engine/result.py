"""The result of a fit."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..projections import hoyer_sparsity
from ..statistics import Array
from ..updates import State
from .blocks import Block
from .starts import Factors
from .summary import summary


@dataclass(frozen=True)
class Result:
    """The result of a fit: factors, history, and why the fit stopped.

    Attributes
    ----------
    factors : list
        [activations (samples × r), components (features × r)]: X ≈ factors[0] factors[1]ᵀ. For a tensor, one per mode.
    losses, times : arrays
        The loss ½‖X − model‖² plus penalties, or the divergence, and the seconds since the call, at the start and after
        each iteration. Time spent on compiling is not counted. A compressed fit records them from its first iteration
        on X itself.
    n_iter : int
        The number of iterations, compressed ones included.
    converged : bool
        Whether a tolerance was met.
    stop_reason : str
        Why the fit stopped.
    relative_error : float
        ‖X − model‖ / ‖X‖ or, with the Kullback–Leibler divergence, √(divergence / divergence of the features' means).
    exhausted : bool
        Whether the fit reached max_iter before it met its tolerance.
    middle : array or None
        D (r × r), if the model is activations · D · components.
    weights : array of shape (r,), or None
        The weights of the components of a tensor. The model is Σ_j weights_j · factors[0][:, j] ∘ factors[1][:, j] ∘ …
    encoder : Block or None
        How activations of new samples are computed, if samples are independent of each other.
    seed : int or None
        The ``random_state`` that repeats the fit, drawn if none was given; None if a generator was given.
    loss : str
        The name of the loss: "squared" or "kullback-leibler".
    """

    factors: Factors
    losses: Array
    times: Array
    n_iter: int
    converged: bool
    stop_reason: str
    relative_error: float
    exhausted: bool = False
    middle: Array | None = None
    weights: Array | None = None
    encoder: Block | None = None
    seed: int | None = None
    loss: str = "squared"
    states: list[State] = field(default_factory=list, repr=False)

    @property
    def activations(self) -> Array:
        """The activations (samples × r). For matrices only."""
        return self._of_matrix("activations")[0]

    @property
    def components(self) -> Array:
        """The components as rows (r × features). For matrices only."""
        return self._of_matrix("components")[1].T

    @property
    def sparsity(self) -> Array:
        """The Hoyer sparsity of each component."""
        return np.asarray(hoyer_sparsity(self.components, axis=1))

    @property
    def activation_sparsity(self) -> Array:
        """The Hoyer sparsity of each column of the activations."""
        return np.asarray(hoyer_sparsity(self.activations, axis=0))

    @property
    def sparsities(self) -> list[Array]:
        """The Hoyer sparsity of each column, as one array per factor."""
        return [np.asarray(hoyer_sparsity(f, axis=0)) for f in self.factors]

    def _of_matrix(self, name: str) -> Factors:
        if len(self.factors) != 2:
            raise AttributeError(
                f"{name}: a tensor of {len(self.factors)} modes has no {name}; use factors[mode], sparsities[mode] and "
                "weights"
            )
        return self.factors

    def _repr_html_(self) -> str | None:
        return summary(self).to_html() if len(self.factors) == 2 else None  # a notebook then shows the text

    def __repr__(self) -> str:
        shape = " × ".join(str(len(f)) for f in self.factors)
        return (
            f"Result({shape}, {self.factors[0].shape[1]} components, relative error {self.relative_error:.4g}, "
            f"{self.n_iter} iterations: {self.stop_reason})"
        )
