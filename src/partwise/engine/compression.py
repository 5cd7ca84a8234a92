"""Compression: a fit begins on a low-rank X, where an iteration costs less, and ends on X itself.

With l directions for r components, l = 2r, and a random start V, two passes over X find its approximation C·Bᵀ:

    V ← orth(Xᵀ(X·V)),      C = X·V,  B = (XᵀC)(CᵀC)⁺,

the projection of X to the span of C. All of these are sums over samples, except C itself (samples × l). The products of
an iteration then cost 4(n + m)·l·r operations instead of 4·n·m·r. The optimum is not that of X, so a fit ends on X.

Reference: N. Halko, P. G. Martinsson and J. A. Tropp, "Finding structure with randomness: probabilistic algorithms for
constructing approximate matrix decompositions", SIAM Review 53 (2011).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..data import Chunked, DenseData, LowRank, Matrix
from ..runtime.threads import fitting_threads
from ..runtime.together import Request
from ..statistics import Array, gram
from .stopping import OWN

DIRECTIONS = 2  # for each component
WORK = 5  # a sweep over a factor takes about as long as a product with so many times r² operations per row
READING = 25  # reading an entry of X in chunks takes about as long as its products with so many components
SMALL = 2e7  # multiplications of a product with X: below this, there was no gain (1000 × 500, 10 components)
CHEAP = 0.5  # of the cost of an iteration: a compressed one must cost less
CHEAP_SPARSE = 0.2  # the same under a sparsity constraint, where the effect was mixed at 0.35 (ORL)
DECAYED = 0.4  # of the mean square of singular values 2 … r: that of values r + 1 … 2r must be smaller
WORTH, MOST = 10, 40  # compressed iterations: as many as cost this many iterations on X, and at most so many


@dataclass(frozen=True)
class Sketch:
    """Sums over chunks: XᵀC and CᵀC of the images C = X·basis, which are listed; and whether all chunks are dense."""

    back: Array
    gram: Array
    images: list[Array]
    dense: bool

    def __add__(self, other: Sketch) -> Sketch:
        images, dense = self.images + other.images, self.dense and other.dense
        return Sketch(self.back + other.back, self.gram + other.gram, images, dense)

    def inverse(self) -> tuple[Array, float]:
        """T with T·Tᵀ = (CᵀC)⁺ times a scale, and that scale, the trace of CᵀC."""
        scale = float(np.trace(self.gram))
        values, vectors = np.linalg.eigh(self.gram / scale)
        kept = values > len(values) * np.finfo(self.back.dtype).eps
        return vectors[:, kept] / np.sqrt(values[kept]), scale

    def sizes(self) -> Array:
        """‖·‖² of the directions of X in the span of C, the largest first, relative to each other."""
        roots, _ = self.inverse()
        found = np.linalg.eigvalsh(roots.T @ gram(self.back / np.abs(self.back).max()) @ roots)[::-1]
        return np.append(found, np.zeros(len(self.gram) - len(found)))

    def projected(self) -> LowRank:
        """X projected to the span of C. Empties the list of images, to free their memory."""
        left = np.empty((sum(map(len, self.images)), len(self.gram)), dtype=self.back.dtype, order="F")
        first = 0
        while self.images:
            image = self.images.pop(0)
            left[first : first + len(image)] = image
            first += len(image)
        roots, scale = self.inverse()
        return LowRank(left, np.asfortranarray((self.back / scale) @ (roots @ roots.T), dtype=left.dtype))


@dataclass(frozen=True)
class Sketched:
    """A question to a chunk: its sketch for these directions. ``keep``: list its images."""

    basis: Array
    keep: bool

    def __call__(self, chunk: Matrix) -> Sketch:
        """Return the sums of the chunk."""
        image = chunk.cross(self.basis, 0)
        images = [image.copy(order="F")] if self.keep else []
        return Sketch(chunk.cross(image, 1), gram(image), images, isinstance(chunk, DenseData))


def compressed_iterations(
    shape: Sequence[int], r: int, sweeps: Sequence[int], max_iter: int, chunked: bool, most: float = CHEAP
) -> int:
    """How many iterations to make on a low-rank X, judged by the shape of X; 0 if that does not pay.

    ``most`` is the largest cost of such an iteration, relative to one on X.
    """
    n, m = shape
    own = WORK * r**2 * (n * sweeps[0] + m * sweeps[1])
    whole = 4 * n * m * (r + READING * chunked) + own
    cost = (4 * (n + m) * DIRECTIONS * r**2 + own) / whole  # of a compressed iteration, relative to one on X
    small = r < 2 or DIRECTIONS * r >= min(shape) or n * m * r < SMALL
    count = min(int(WORTH / cost), MOST, max_iter - OWN)
    return 0 if small or cost > most or count < OWN else count


@dataclass(frozen=True, eq=False)
class Compressed(Request):
    """What a fit awaits: a `low_rank` X. Fits with the same number of components share it."""

    data: Matrix | Chunked
    r: int
    memory: int
    n_threads: int | None

    @property
    def kind(self) -> Hashable:
        """The same X and options."""
        return id(self.data), self.r, self.memory, self.n_threads

    def answers(self, requests: Sequence[Self]) -> list[LowRank | None]:
        """The same low-rank X for all."""
        return [low_rank(self.data, self.r, self.memory, self.n_threads)] * len(requests)


def low_rank(data: Matrix | Chunked, r: int, memory: int, n_threads: int | None = None) -> LowRank | None:
    """A low-rank X, from two passes over X; None if X is sparse or its spectrum does not decay, or without memory.

    X in chunks needs C in memory: at most ``memory`` bytes. It is the same for every seed.
    """
    (n, m), l = data.shape, DIRECTIONS * r
    chunked = isinstance(data, Chunked)
    if (chunked and (n + m) * l * data.dtype.itemsize > memory) or not (chunked or isinstance(data, DenseData)):
        return None
    with fitting_threads(data.size * l, n_threads):
        start = np.random.default_rng(0).standard_normal((m, l)).astype(data.dtype)
        first = ask(data, Sketched(np.asfortranarray(start), keep=False))
        if not first.dense or not decays(first, r):
            return None
        basis, _ = np.linalg.qr(first.back / np.abs(first.back).max())
        return ask(data, Sketched(np.asfortranarray(basis), keep=True)).projected()


def ask(data: Matrix | Chunked, question: Sketched) -> Sketch:
    """The sum of the answers of all chunks. In the first pass over X, its values are checked, too."""
    found: Sketch = data.first_total(question) if isinstance(data, Chunked) else question(data)
    return found


def decays(sketch: Sketch, r: int) -> bool:
    """Whether directions beyond the ``r`` largest are small. The largest one, mostly the mean of X, is left out."""
    if not np.trace(sketch.gram) > 0:
        return False
    sizes = sketch.sizes()
    return bool(sizes[r:].mean() <= DECAYED * sizes[1:r].mean())
