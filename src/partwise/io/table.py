"""`Table`, the result of reading a file, and views of arrays on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data import is_lazy
from ..engine.origins import Origin
from ..runtime.untrusted import UnreadableError, reading
from ..statistics import Array
from .indices import checked_sparse

BLOCK = 2**22  # entries checked or copied at a time


@dataclass(frozen=True)
class LazyRows:
    """A view of an array on disk (transposed, flattened, or some columns); ``read`` returns a slice of its rows."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    read: Callable[[slice], Array]
    chunks: tuple[int, ...] = ()
    source: str = ""

    def __getitem__(self, rows: slice) -> Array:
        return self.read(rows)


@dataclass(frozen=True)
class Table:
    """Data read from a file.

    Attributes
    ----------
    X : array, scipy sparse matrix, or array on disk
        Samples × features.
    kind : str
        A description of the format.
    source : str
        The path.
    sample_names, feature_names : tuple of str, or None
    part_shape : tuple of int, or None
        The shape of a sample, and of a part, if it is an image or a volume.
    origin : Brain, Sound or None
        What is needed to read more such samples, and to write components back.
    home : path or None
        The .h5ad file to which results can be added.
    home_features : array of bool, or None
        Which features of ``home`` X has, if not all.
    """

    X: Any
    kind: str
    source: str
    sample_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    part_shape: tuple[int, ...] | None = None
    origin: Origin | None = None
    home: Path | None = None
    home_features: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(samples, features)."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    @property
    def lazy(self) -> bool:
        """Whether X is on disk."""
        return is_lazy(self.X)

    @property
    def samples(self) -> tuple[str, ...]:
        """Names of the samples; their numbers from 0 if they have none."""
        return self.sample_names or numbers(self.shape[0])

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features; their numbers from 0 if they have none."""
        return self.feature_names or numbers(self.shape[1])

    def transposed(self) -> Table:
        """The table with rows and columns swapped."""
        return replace(
            self,
            X=transposed(self.X),
            kind=f"{self.kind}, transposed",
            sample_names=self.feature_names,
            feature_names=self.sample_names,
            part_shape=None,
            origin=None,
            home=None,
            home_features=None,
        )

    def blocks(self) -> Iterator[tuple[int, Array]]:
        """Yield X in dense blocks of rows, each with the index of its first row."""
        X, step = self.X.tocsr() if is_sparse(self.X) else self.X, max(1, BLOCK // max(self.shape[1], 1))
        for first in range(0, self.shape[0], step):
            with reading(self.source):
                rows = X[first : first + step]
                block = rows.toarray() if is_sparse(rows) else np.asarray(rows)
            yield first, block

    def checked(self, signed: bool = False) -> Table:
        """Return the table if its shape, names and (in memory) signs are valid; raise an error otherwise."""
        if len(self.X.shape) != 2 or not all(self.X.shape):
            raise UnreadableError(
                f"{self.source} contains an array of shape {tuple(self.X.shape)}, not a nonempty samples × features "
                "matrix"
            )
        for names, count, what in zip(
            (self.sample_names, self.feature_names), self.shape, ("samples", "features"), strict=True
        ):
            if names is not None and len(names) != count:
                raise UnreadableError(f"{self.source} has {len(names)} names for {count} {what}")
        if is_sparse(self.X):
            checked_sparse(self.X)
        if not (self.lazy or signed):
            self._check_signs()
        return self

    def _check_signs(self) -> None:
        if (self.X.tocsr().data if is_sparse(self.X) else self.X).min(initial=0) >= 0:
            return
        for first, rows in self.blocks():
            bad = np.argwhere(rows < 0)
            if len(bad):
                i, j = first + int(bad[0, 0]), int(bad[0, 1])
                raise UnreadableError(
                    f"{self.source}: feature {self.features[j]} of sample {self.samples[i]} is "
                    f"{rows[bad[0, 0], j]:g}, but X must be nonnegative: shift or clip the data, "
                    "or set negative='allow' to fit it as it is"
                )


def numbers(count: int) -> tuple[str, ...]:
    """Default names: numbers from 0."""
    return tuple(str(k) for k in range(count))


def part_names(r: int) -> tuple[str, ...]:
    """Names of parts in files."""
    return tuple(f"part_{k}" for k in numbers(r))


def is_sparse(X: Any) -> bool:
    """Whether X is a scipy sparse matrix."""
    return bool(sp.issparse(X))


def transposed(X: Any) -> Any:
    """X with rows and columns swapped; an array on disk stays there."""
    if isinstance(X, np.ndarray) or is_sparse(X):
        return X.T
    chunks = getattr(X, "chunks", None) or ()
    return LazyRows(
        (X.shape[1], X.shape[0]), np.dtype(X.dtype), lambda rows: np.asarray(X[:, rows]).T, tuple(chunks[1:])
    )


def with_columns(X: Any, columns: Any) -> Any:
    """Some columns of X, by a mask or by their numbers; an array on disk stays there."""
    if isinstance(X, np.ndarray) or is_sparse(X):
        return X[:, columns]
    width = len(np.arange(X.shape[1])[columns])
    chunks = getattr(X, "chunks", None) or ()
    source = getattr(X, "source", "")
    return LazyRows(
        (X.shape[0], width), np.dtype(X.dtype), lambda rows: np.asarray(X[rows])[:, columns], chunks[:1], source
    )


def flattened(X: Any) -> tuple[Any, tuple[int, ...] | None]:
    """X as a matrix, and the shape of a sample if X has more than two dimensions."""
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
    """Names as a tuple of str."""
    return tuple(v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v) for v in np.ravel(values).tolist())


def numeric(X: Any, source: str) -> Any:
    """Return X if it has a real dtype; raise an error otherwise."""
    if np.dtype(X.dtype).kind not in "buif":
        raise UnreadableError(f"{source} has dtype {X.dtype}: real numbers are needed")
    return X


def chosen(found: Sequence[str], inner: str, source: str, what: str) -> str:
    """The item of a file selected by ``inner``, or the only one."""
    listed = ", ".join(found) or "nothing"
    if inner:
        if inner.strip("/") not in [name.strip("/") for name in found]:
            raise UnreadableError(f"{source} has no {what} {inner!r}; it has {listed}")
        return next(name for name in found if name.strip("/") == inner.strip("/"))
    if len(found) != 1:
        how = f": select one, as in {source}:{found[0]}" if found else ""
        raise UnreadableError(f"{source} has {len(found)} {what}s to choose from ({listed}){how}")
    return found[0]


def extra(module: str, name: str, what: str) -> Any:
    """Import an optional dependency, or raise an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(f"{what} needs {module}: pip install 'partwise[{name}]'") from None
