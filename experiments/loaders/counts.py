"""Counts as sparse matrices: words of newsgroups, and genes of blood cells."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from partwise.statistics import Array

from .fetch import find, in_words
from .packed_files import arrays_in

NEWSGROUPS, PBMC = "newsgroups.npz", "pbmc_facs.npz"
SOURCE = "https://github.com/stephenslab/fastTopics"


def load_newsgroups(path: str | os.PathLike[str] | None = None) -> tuple[sp.csr_array, Array]:
    """How often each of 55,911 words occurs in each of 18,774 posts to 20 newsgroups.

    These data are not available for download in this form: provide the file yourself.

    Parameters
    ----------
    path : path, optional
        An .npz file with the arrays of a CSR matrix (`data`, `indices`, `indptr`, `shape`) and `topic`, or a folder
        with newsgroups.npz. Without it, the folders of `load_orl` are searched.

    Returns
    -------
    X : CSR array of shape (18774, 55911), float64
        The counts.
    topic : array of shape (18774,)
        The number of the newsgroup of each post.

    Examples
    --------
    >>> X, topic = load_newsgroups("Downloads/newsgroups.npz")  # doctest: +SKIP
    """
    return _counts(path, NEWSGROUPS, "topic")


def load_pbmc(path: str | os.PathLike[str] | None = None) -> tuple[sp.csr_array, Array]:
    """How many molecules of each of 16,791 genes were found in each of 3,774 blood cells, which were sorted by FACS.

    These data are not available for download in this form: provide the file yourself.

    Parameters
    ----------
    path : path, optional
        As for `load_newsgroups`, with `subpop` instead of `topic`, or a folder with pbmc_facs.npz.

    Returns
    -------
    X : CSR array of shape (3774, 16791), float64
        The counts.
    subpop : array of shape (3774,)
        The kind of each cell, out of five.

    Examples
    --------
    >>> X, subpop = load_pbmc("Downloads/pbmc_facs.npz")  # doctest: +SKIP
    """
    return _counts(path, PBMC, "subpop")


def _counts(path: str | os.PathLike[str] | None, file: str, labels: str) -> tuple[sp.csr_array, Array]:
    place = find(file) if path is None else Path(path)
    if place is not None and place.is_dir():
        place = place / file
    if place is None or not place.is_file():
        where = in_words() if place is None else place.parent
        raise FileNotFoundError(
            f"{file} is not in {where}, and it cannot be downloaded: make it from the data of fastTopics ({SOURCE}), "
            f"with data, indices, indptr and shape of a CSR matrix, and {labels}, and set PARTWISE_DATA to its folder"
        )
    values, indices, starts, shape, known = arrays_in(place, "data", "indices", "indptr", "shape", labels)
    if shape.shape != (2,) or known.shape != (shape[0],):
        raise ValueError(
            f"{place} has X of shape {shape.tolist()} and {labels} of shape {known.shape}: there must be a label for "
            "each row"
        )
    try:
        X = sp.csr_array((values.astype(np.float64), indices, starts), shape=tuple(shape.tolist()))
        X.check_format()
    except ValueError as error:
        raise ValueError(f"{place} has no valid CSR matrix: {error}") from error
    return X, known
