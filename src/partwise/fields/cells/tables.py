"""The tables of cNMF: usages, spectra in TPM, marker scores, and the reference of starCAT. Nothing is made dense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from partwise.data import as_data
from partwise.engine.solving import solve_activations
from partwise.selection.programs import Programs
from partwise.statistics import Array, as_factor

from .counts import MILLION, Prepared, deviations, scaled_columns
from .frames import Frame

if TYPE_CHECKING:
    import pandas as pd

CELLS = 512  # in a block
LEAST_VARIANCE = 1e-12  # cNMF's: a gene with less has no score
CNMF = {"solver": "cd", "tol": 1e-4, "max_iter": 1000, "init": "random", "alpha_W": 0.0, "alpha_H": 0.0}


@dataclass(frozen=True)
class Tables:
    """The results of cNMF for one rank; programs are numbered from 1.

    Attributes
    ----------
    usage : DataFrame of shape (cells, programs)
        How much each cell uses each program, not normalised.
    scores : DataFrame of shape (programs, genes)
        Coefficients of z-scored TPM on the usages: which genes mark a program.
    tpm : DataFrame of shape (programs, genes)
        The programs in TPM: the contribution of each gene.
    spectra : DataFrame of shape (programs, over-dispersed genes)
        The consensus components, with sum 1.
    starcat : DataFrame of shape (programs, over-dispersed genes)
        A reference for starCAT.
    """

    usage: pd.DataFrame
    scores: pd.DataFrame
    tpm: pd.DataFrame
    spectra: pd.DataFrame
    starcat: pd.DataFrame


def tables(
    ready: Prepared, found: Programs, refit: str, final_refit: bool = True, sums: bool = False
) -> dict[str, Frame]:
    """Build the tables, named as in `Tables`.

    ``refit`` is "exact", or "cnmf": coordinate descent that stops early, as in cNMF. Without ``final_refit``, the
    usages are those of the scaled counts. ``sums``: scale programs in TPM to a million.
    """
    solve = exact if refit == "exact" else like_cnmf
    spectra = found.components / found.components.sum(axis=1, keepdims=True)
    usage = found.activations * found.components.sum(axis=1)
    if refit == "cnmf":  # whose solution depends on the order of the components
        assert found.clusters is not None
        spectra = spectra[np.argsort(found.clusters)]
        usage = solve(ready.matrix, spectra)
    normed = of_rows(usage)
    order = np.argsort(-normed.sum(axis=0), kind="stable")
    usage, normed, spectra = usage[:, order], normed[:, order], spectra[order]
    tpm = solve(ready.tpm.T, normed.astype(ready.tpm.dtype).T).T
    if sums:
        tpm = MILLION * of_rows(tpm)
    scores = z_scores(ready, usage)
    some = ready.tpm[:, ready.chosen]
    inverse = np.divide(1.0, ready.std, out=np.zeros_like(ready.std), where=ready.std > 0)
    if final_refit:
        usage = solve(scaled_columns(some, deviations(some)), (tpm * inverse)[:, ready.chosen].astype(some.dtype))
    numbers = np.arange(1, len(spectra) + 1)
    reference = (MILLION * of_rows(tpm) * inverse)[:, ready.chosen]
    return {
        "usage": Frame(usage, ready.cells, numbers),
        "scores": Frame(scores, numbers, ready.genes),
        "tpm": Frame(tpm, numbers, ready.genes),
        "spectra": Frame(spectra, numbers, ready.chosen_genes),
        "starcat": Frame(reference, np.array([f"GEP{j}" for j in numbers], dtype=object), ready.chosen_genes),
    }


def data_frames(made: dict[str, Frame]) -> Tables:
    """The tables as data frames of pandas."""
    return Tables(**{name: frame.pandas() for name, frame in made.items()})


def of_rows(values: Array) -> Array:
    """Rows scaled to sum 1. Zero rows stay zero."""
    total = values.sum(axis=1, keepdims=True)
    return np.divide(values, total, out=np.zeros_like(values), where=total > 0)


def exact(X: Any, components: Array) -> Array:
    """Nonnegative least squares, exactly."""
    return np.ascontiguousarray(solve_activations(as_data(X), as_factor(components.T)).activations)


def like_cnmf(X: Any, components: Array) -> Array:
    """Nonnegative least squares by scikit-learn's coordinate descent from zero, which stops at cNMF's tolerance."""
    from sklearn.decomposition import non_negative_factorization

    fixed = np.ascontiguousarray(components, dtype=X.dtype)
    return non_negative_factorization(X, H=fixed, n_components=len(fixed), update_H=False, **CNMF)[0]


def z_scores(ready: Prepared, usage: Array) -> Array:
    """Least squares of z-scored TPM on the usages, from sums over cells: Uᵀ TPM, Uᵀ1, and the mean of each gene."""
    scale = np.sqrt(np.maximum(np.square(ready.std), LEAST_VARIANCE))
    cross = np.zeros((usage.shape[1], len(ready.genes)))
    for first in range(0, len(usage), CELLS):  # in double precision, which SciPy would copy all of the cells to
        rows = slice(first, first + CELLS)
        cross += (ready.tpm[rows].T @ usage[rows]).T
    cross = (cross - np.outer(usage.sum(axis=0), ready.mean)) / scale
    return np.linalg.lstsq(usage.T @ usage, cross, rcond=None)[0]
