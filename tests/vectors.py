"""Vectors of all kinds, the sets they are projected onto, and assertions on the results."""

import os
import zlib

import numpy as np

from partwise.projections import AtMost, Bounded, Hoyer, HoyerBetween, Nonnegative, Simplex

JIT = os.environ.get("NUMBA_DISABLE_JIT") != "1"
METHODS = ("fast", "sorted", "hoyer")
ULP = np.finfo(float).eps

ALIKE = 1e-7  # the loss is flat at its least and k² = d has a square root at it: enumeration sees points to √ε
FEASIBLE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-5}


def scattered(rng, m):
    """Most entries within a few roundings of 1, the others far below."""
    return np.where(rng.random(m) < 0.6, 1 + ULP * rng.integers(0, 4, m), rng.random(m))


def read_only(b):
    b.setflags(write=False)
    return b


ORDINARY = {
    "uniform": lambda rng, m: rng.random(m),
    "normal": lambda rng, m: rng.standard_normal(m),
    "exponential": lambda rng, m: rng.exponential(size=m),
    "all negative": lambda rng, m: -1 - rng.random(m),
    "one large": lambda rng, m: np.where(np.arange(m) == rng.integers(m), 1e6, rng.random(m)),
    "geometric": lambda rng, m: rng.permutation(2.0 ** (np.arange(m) % 40)),
    "geometric below zero": lambda rng, m: -rng.permutation(3.0 ** (np.arange(m) % 25)),
    "small spread on an offset": lambda rng, m: 1e8 + 1e-6 * rng.standard_normal(m),
    "float32": lambda rng, m: rng.standard_normal(m).astype(np.float32),
    "read-only": lambda rng, m: read_only(rng.random(m)),
    "every other": lambda rng, m: rng.random(2 * m)[::2],
    "backwards": lambda rng, m: rng.standard_normal(m)[::-1],
}
TIED = {
    "ties": lambda rng, m: rng.integers(0, 3, m).astype(float),
    "constant": lambda rng, m: np.full(m, rng.standard_normal()),
    "zeros": lambda rng, m: np.zeros(m),
    "integers": lambda rng, m: rng.integers(-4, 5, m),
    "booleans": lambda rng, m: rng.random(m) < 0.5,
}
EXTREME = {
    "last bits of 1": lambda rng, m: 1 + ULP * rng.integers(0, 4, m),
    "last bits of some": scattered,
    "last bits of 1e15": lambda rng, m: 1e15 + rng.standard_normal(m),
    "1e-300": lambda rng, m: 1e-300 * rng.standard_normal(m),
    "1e300": lambda rng, m: 1e300 * rng.standard_normal(m),
    "subnormal": lambda rng, m: 5e-324 * rng.integers(-5, 6, m),
    "largest": lambda rng, m: 1.79e308 * rng.uniform(-1, 1, m),
    "1e-300 and 1e300": lambda rng, m: rng.choice([1e-300, 2e-300, -1e-300, 1e300, -1e300, 3e299, 0.0, 1.0], m),
    "near the top at every scale": lambda rng, m: -rng.choice([1e-300, 2e-300, 1e-200, 1e-100, 3e-100, 1.0, 1e300], m),
    "orders of magnitude": lambda rng, m: -np.exp(rng.uniform(-690, 690, m)),
}
VECTORS = ORDINARY | TIED | EXTREME

SETS = [
    *(Hoyer(s, method) for s in (0.0, 0.35, 0.8, 1.0) for method in METHODS),
    *(HoyerBetween(0.3, 0.6, method) for method in METHODS),
    HoyerBetween(None, 0.4),
    HoyerBetween(0.7, None),
    AtMost(5),
    Nonnegative(),
    Simplex(),
    Bounded(0.5),
]


def seeded(name):
    return np.random.default_rng(zlib.crc32(name.encode()))


def assert_feasible(y, k, case=""):
    tolerance = FEASIBLE[y.dtype]
    y = y.astype(float)
    assert y.min() >= 0, case
    assert abs(y.sum() - k) <= tolerance * k, f"sum {y.sum()!r} instead of {k!r}; {case}"
    assert abs(np.linalg.norm(y) - 1) <= tolerance, f"norm {np.linalg.norm(y)!r}; {case}"


def assert_alike(y, other, tolerance=ALIKE, case=""):
    """Entrywise close (NumPy's assertion is too slow for thousands of cases)."""
    gap = np.abs(np.asarray(y, dtype=float) - other).max()
    assert gap <= tolerance, f"{y} and {other} differ by {gap:g}; {case}"
