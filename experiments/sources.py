"""The data of the experiments: the paper's own where available, and small substitutes for quick runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from partwise import datasets
from partwise.statistics import Array

from . import loaders


class MissingDataError(OSError):
    """The data of an experiment was not found."""


@dataclass(frozen=True)
class Source:
    """X (samples × features), its name, and the shape of a sample."""

    name: str
    X: Array
    shape: tuple[int, ...]


def loaded(name: str, load: Callable[[], tuple[Array, Any]]) -> Source:
    """Call ``load``; raise `MissingDataError` if it finds no data."""
    try:
        X, shape = load()
    except OSError as error:
        raise MissingDataError(str(error)) from None
    return Source(name, X, shape)


def orl() -> Source:
    """The ORL faces."""
    return loaded("ORL", loaders.load_orl)


def cbcl() -> Source:
    """The CBCL faces, as Hoyer prepares them."""
    return loaded("CBCL", loaders.load_cbcl)


def smri() -> Source:
    """Grey matter of the IXI subjects, in place of the paper's private scans."""
    found = loaded("sMRI of 185 IXI subjects", loaders.load_smri)
    return Source(found.name, found.X, found.X.shape[1:])


def volume() -> Source:
    """A generated volume of the paper's size: 269 subjects of 105 × 127 × 46 voxels."""
    data = datasets.brain_volume()
    return Source("generated volume 269 × 105·127·46", data.X, data.shape)


def nine_by_nine() -> Source:
    """Generated images of 9 × 9 pixels, of the size of the paper's synthetic set."""
    data = datasets.nine_by_nine()
    return Source("generated 9 × 9", data.X, data.shape)


def few_digits() -> Source:
    """Handwritten digits, in place of faces."""
    X, shape = datasets.load_digits()
    return Source("200 digits as a stand-in", X[:200], shape)


def few_nines() -> Source:
    """Fewer images of 9 × 9 pixels."""
    data = datasets.nine_by_nine(40)
    return Source("40 generated 9 × 9 as a stand-in", data.X, data.shape)


def small_volume() -> Source:
    """A generated volume of a few hundred voxels."""
    data = datasets.brain_volume(samples=12, shape=(9, 10, 6))
    return Source("generated volume 12 × 540 as a stand-in", data.X, data.shape)
