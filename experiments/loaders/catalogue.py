"""The data sets of the benchmarks of defaults: faces, digits, text, cells and generated data, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from partwise.datasets import load_digits, load_swimmer
from partwise.statistics import Array

from .counts import load_newsgroups, load_pbmc
from .faces import load_cbcl, load_orl
from .smri import load_smri

GENES = 2000


def newsgroups() -> sp.csr_array:
    """tf-idf of the posts."""
    from sklearn.feature_extraction.text import TfidfTransformer

    return sp.csr_array(TfidfTransformer().fit_transform(load_newsgroups()[0]))


def all_genes() -> sp.csr_array:
    """Blood cells, normalised to the median number of molecules and log-transformed."""
    counts, _ = load_pbmc()
    sums = np.asarray(counts.sum(axis=1)).ravel()
    X = sp.csr_array(sp.diags_array(np.median(sums) / sums) @ counts)
    X.data = np.log1p(X.data)
    return X


def variable_genes() -> sp.csr_array:
    """The same, for the genes that vary most."""
    X = all_genes()
    means = np.asarray(X.mean(axis=0)).ravel()
    variances = np.asarray(X.multiply(X).mean(axis=0)).ravel() - means**2
    return sp.csr_array(X[:, np.sort(np.argsort(-variances)[:GENES])])


def smri() -> Array:
    """Grey matter, in single precision."""
    return np.asarray(load_smri()[0], dtype=np.float32)


def poisson(n: int = 1000, m: int = 500, r: int = 10) -> Array:
    """Generated counts with a mean of 1."""
    rng = np.random.default_rng(0)
    means = rng.gamma(0.3, size=(n, r)) @ rng.gamma(0.2, size=(r, m))
    return rng.poisson(means / means.mean()).astype(float)


DATA: dict[str, tuple[Callable[[], Any], int]] = {  # X, and a number of components
    "digits": (lambda: load_digits()[0], 16),
    "Swimmer": (lambda: load_swimmer()[0], 17),
    "counts": (poisson, 10),
    "CBCL": (lambda: load_cbcl()[0], 49),
    "ORL": (lambda: load_orl()[0], 25),
    "cells": (variable_genes, 10),
    "cells, all genes": (all_genes, 10),
    "newsgroups, 10": (newsgroups, 10),
    "newsgroups, 20": (newsgroups, 20),
    "sMRI": (smri, 40),
}


def data_sets(names: Sequence[str] = tuple(DATA)) -> Iterator[tuple[str, Any, int]]:
    """Yield names, X and numbers of components. Data that cannot be loaded are skipped with a sentence."""
    for name in names:
        load, r = DATA[name]
        try:
            X = load()
        except (FileNotFoundError, ImportError) as error:
            print(f"{name} is skipped: {error}")
            continue
        yield name, X, r
