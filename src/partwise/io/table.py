"""What a file holds, once it is read; and arrays on disk that are seen in another form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data import is_lazy
from ..statistics import Array

BLOCK = 2**22  # entries that are looked at or copied at a time


@dataclass(frozen=True)
class LazyRows:
    """An array on disk in another form (turned, flattened, some of its columns): ``read`` gives some of its rows."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    read: Callable[[slice], Array]
    chunks: tuple[int, ...] = ()

    def __getitem__(self, rows: slice) -> Array:
        return self.read(rows)


@dataclass(frozen=True)
class Brain:
    """Where voxels lie: the affine of the images, and which voxels of the volume are features (None: all)."""

    affine: Array
    shape: tuple[int, ...]
    mask: Array | None = None

    def volumes(self, parts: Array) -> Array:
        """Parts (one a row) as volumes, zero outside of the mask."""
        if self.mask is None:
            return parts.reshape(-1, *self.shape)
        volumes = np.zeros((len(parts), *self.shape), dtype=parts.dtype)
        volumes[:, self.mask] = parts
        return volumes


@dataclass(frozen=True)
class Table:
    """Data as it was found.

    Attributes
    ----------
    X : array, scipy sparse, or an array that stays on disk
        Samples × features.
    kind : str
        What it was, in words.
    source : str
        Where it was.
    sample_names, feature_names : tuple of str, or None
    part_shape : tuple of int, or None
        The shape of a sample, and so of a part, where that is an image or a volume.
    home : Brain, path or None
        What parts can be put back into: a brain, or an .h5ad file.
    """

    X: Any
    kind: str
    source: str
    sample_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    part_shape: tuple[int, ...] | None = None
    home: Brain | Path | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Samples, features."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    @property
    def lazy(self) -> bool:
        """Whether X stays on disk."""
        return is_lazy(self.X)

    @property
    def samples(self) -> tuple[str, ...]:
        """A name for each sample, its number (from 1) if it has none."""
        return self.sample_names or numbers(self.shape[0])

    @property
    def features(self) -> tuple[str, ...]:
        """A name for each feature, its number (from 1) if it has none."""
        return self.feature_names or numbers(self.shape[1])

    def turned(self) -> Table:
        """The same with rows and columns exchanged."""
        return replace(
            self,
            X=turned(self.X),
            kind=f"{self.kind}, rows and columns exchanged",
            sample_names=self.feature_names,
            feature_names=self.sample_names,
            part_shape=None,
            home=None,
        )

    def blocks(self) -> Iterator[tuple[int, Array]]:
        """X as dense blocks of samples, each with the number of its first."""
        X, step = self.X.tocsr() if is_sparse(self.X) else self.X, max(1, BLOCK // max(self.shape[1], 1))
        for first in range(0, self.shape[0], step):
            rows = X[first : first + step]
            yield first, rows.toarray() if is_sparse(rows) else np.asarray(rows)

    def checked(self) -> Table:
        """The table, found to have samples and features, names for all or none, and (in memory) no negative value."""
        if len(self.X.shape) != 2 or not all(self.X.shape):
            raise ValueError(f"{self.source} holds an array of shape {tuple(self.X.shape)}: nothing to find parts in")
        for names, count, what in zip(
            (self.sample_names, self.feature_names), self.shape, ("samples", "features"), strict=True
        ):
            if names is not None and len(names) != count:
                raise ValueError(f"{self.source} has {len(names)} names for {count} {what}")
        if hasattr(self.X, "check_format"):
            self._check_indices()
        if not self.lazy:
            self._check_signs()
        return self

    def _check_indices(self) -> None:
        """Refuse a damaged sparse matrix, whose indices would lead out of memory."""
        try:
            self.X.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"{self.source} holds a damaged sparse matrix: {error}") from error

    def _check_signs(self) -> None:
        if (self.X.tocsr().data if is_sparse(self.X) else self.X).min(initial=0) >= 0:
            return
        for first, rows in self.blocks():
            bad = np.argwhere(rows < 0)
            if len(bad):
                i, j = first + int(bad[0, 0]), int(bad[0, 1])
                raise ValueError(
                    f"{self.source}: feature {self.features[j]} of sample {self.samples[i]} is "
                    f"{rows[bad[0, 0], j]:g}, and a sum of nonnegative parts cannot be negative; shift or clip the data"
                )


def numbers(count: int) -> tuple[str, ...]:
    """Names for what has none: counted from 0, as Python does."""
    return tuple(str(k) for k in range(count))


def part_names(r: int) -> tuple[str, ...]:
    """What parts are called in files."""
    return tuple(f"part_{k}" for k in numbers(r))


def is_sparse(X: Any) -> bool:
    """Whether X is scipy's."""
    return bool(sp.issparse(X))


def turned(X: Any) -> Any:
    """X with rows and columns exchanged; what is on disk stays there."""
    if isinstance(X, np.ndarray) or is_sparse(X):
        return X.T
    chunks = getattr(X, "chunks", None) or ()
    return LazyRows(
        (X.shape[1], X.shape[0]), np.dtype(X.dtype), lambda rows: np.asarray(X[:, rows]).T, tuple(chunks[1:])
    )


def flattened(X: Any) -> tuple[Any, tuple[int, ...] | None]:
    """X as a matrix, and the shape of a sample if it was an image or a volume."""
    if len(X.shape) < 3:
        return X, None
    shape = tuple(map(int, X.shape[1:]))
    width = int(np.prod(shape))
    if isinstance(X, np.ndarray):
        return X.reshape(len(X), width), shape
    chunks = getattr(X, "chunks", None) or ()
    return LazyRows(
        (X.shape[0], width), np.dtype(X.dtype), lambda rows: np.asarray(X[rows]).reshape(-1, width), chunks[:1]
    ), shape


def as_names(values: Any) -> tuple[str, ...]:
    """Names as texts."""
    return tuple(v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v) for v in np.ravel(values).tolist())


def numeric(X: Any, source: str) -> Any:
    """X, found to hold real numbers."""
    if np.dtype(X.dtype).kind not in "buif":
        raise ValueError(f"{source} holds {X.dtype}, not real numbers")
    return X


def the_one(found: Sequence[str], inner: str, source: str, what: str) -> str:
    """Which of several things in a file is meant: the one named, or the only one."""
    listed = ", ".join(found) or "nothing"
    if inner:
        if inner.strip("/") not in [name.strip("/") for name in found]:
            raise ValueError(f"{source} has no {what} {inner!r}; it has {listed}")
        return next(name for name in found if name.strip("/") == inner.strip("/"))
    if len(found) != 1:
        how = f": name one, as in {source}:{found[0]}" if found else ""
        raise ValueError(f"{source} has {len(found)} {what}s to choose from ({listed}){how}")
    return found[0]


def extra(module: str, name: str, what: str) -> Any:
    """A library that only some files need."""
    try:
        return import_module(module)
    except ImportError:
        library = {"PIL.Image": "pillow"}.get(module, module.split(".")[0])
        raise ImportError(f"{what} needs {library}: pip install 'partwise[{name}]'") from None
