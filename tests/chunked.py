"""X in nine chunks, recipes that accept chunks and recipes that do not, and fixtures for tests of both.

Import the fixtures into the test files that use them.
"""

import numpy as np
import pytest
from catalogues import RECIPES, Recipe, one_of_each, planted
from stores import Rows

from partwise.engine.chunked_fit import ChunkedFit
from partwise.recipes import SOLVERS

R = 4

BOUND = {  # these couple samples, or need the previous factors, and so need X in memory
    "ssnmf, activations": "a sparsity of the activations couples",
    "nmfsc, activations": "a sparsity of the activations couples",
    "nmfsc, both": "a sparsity of the activations couples",
    "nmfsc, sorted": "a sparsity of the activations couples",
    "tpc, activations": "a sparsity of the activations couples",
    "tpc, both": "a sparsity of the activations couples",
    "nnsc, components, sequential": "couples all samples",
    "nnsc, components, hoyer": "couples all samples",
    "grouped, activations": "a sparsity of the activations couples",
    **{name: "load X into memory" for name in RECIPES if RECIPES[name].name in ("nsnmf", "bisparse")},
    "ssnmf, gradient": "load X into memory",
    "ssnmf, sparse, gradient": "load X into memory",
    "l0, in pairs": "load X into memory",
    "ssnmf, nndsvd": "init='nndsvd' needs X in memory",
    "ssnmf, gradual": "init='gradual' needs X in memory",
}
MORE = {
    **{f"ssnmf, {solver}": Recipe("ssnmf", {"solver": solver}) for solver in SOLVERS},
    **{f"ssnmf, sparse, {solver}": Recipe("ssnmf", {"sparsity": 0.5, "solver": solver}) for solver in SOLVERS},
    "ssnmf, not accelerated": Recipe("ssnmf", {"sparsity": 0.5, "accelerate": False}),
    "ssnmf, interval": Recipe("ssnmf", {"sparsity": (0.3, 0.5)}),
    "ssnmf, faithful, free": Recipe("ssnmf", {"faithful": True}),
    "ssnmf, penalised twice": Recipe("ssnmf", {"l1": (0.05, 0.02), "l2": (0.1, 0.2), "solver": "pivot"}),
    "ssnmf, penalised to death": Recipe("ssnmf", {"sparsity": 0.5, "l1": 0.6}),
    "ssnmf, at random": Recipe("ssnmf", {"sparsity": 0.5, "init": "random"}),
    "nnsc, unpenalised": Recipe("nnsc", {"l1": 0.0}),
    "snmf, unpenalised": Recipe("snmf", {"beta": 0.0, "eta": 0.0}),
    "l0, in pairs": Recipe("l0", {"nonzeros": 2, "side": "activations", "every": 2}),
    "l0, components in pairs": Recipe("l0", {"nonzeros": 5, "every": 2}),
    "nmfsc, samples": Recipe("nmfsc", {"sparsity": 0.5, "init": "samples"}),
    "ssnmf, nndsvd": Recipe("ssnmf", {"sparsity": 0.5, "init": "nndsvd"}),
    "ssnmf, gradual": Recipe("ssnmf", {"sparsity": 0.5, "init": "gradual"}),
}
ALL = RECIPES | MORE
CHUNKED = [name for name in ALL if name not in BOUND]
FEW = one_of_each({name: ALL[name] for name in CHUNKED})


@pytest.fixture(name="X")
def small(rng):
    return planted(rng, n=61, m=20, r=R, noise=0.05).X


def seven(X):
    """The memory limit for seven samples per chunk: 61 samples are nine chunks, the last of five."""
    return 4 * 7 * X.shape[1] * 8


class Watched(Rows):
    """Records which rows are read."""

    def __init__(self, X):
        super().__init__(X)
        self.read = []

    def __getitem__(self, rows):
        self.read.append((rows.start, rows.stop))
        return super().__getitem__(rows)

    def times(self):
        """How often each row has been read."""
        counts = np.zeros(self.shape[0], dtype=int)
        for first, end in self.read:
            counts[first:end] += 1
        return counts


def deadly(X, rng, dead):
    """X with zeros in its first features, and a start whose ``dead`` components use only those, so they stay dead."""
    X[:, :8] = 0
    activations, components = 0.1 * rng.random((len(X), R)), rng.random((R, 20))
    components[dead, :8] += 5
    components[dead, 8:] = 0
    return activations, components


@pytest.fixture(name="restarts")
def spied(monkeypatch):
    """The result of each search for dead components."""
    found = []

    async def spy(self, restarted=ChunkedFit.restarted):
        found.append(await restarted(self))
        return found[-1]

    monkeypatch.setattr(ChunkedFit, "restarted", spy)
    return found
