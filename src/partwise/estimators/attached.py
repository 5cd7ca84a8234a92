"""What is attached to a model for pictures and reports: activations, names, the shape and the origin of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array, check_is_fitted

from ..engine.origins import Brain, Origin
from ..statistics import Array

KEPT = ("activations_", "sample_names_", "part_shape_", "part_mask_", "origin_", "provenance_")


class Attached:
    """Adds `keep` to an estimator."""

    components_: Array
    n_components_: int

    def keep(
        self,
        activations: npt.ArrayLike | None = None,
        sample_names: Sequence[str] | None = None,
        part_shape: Sequence[int] | None = None,
        part_mask: npt.ArrayLike | None = None,
        origin: Origin | None = None,
        provenance: Mapping[str, str] | None = None,
    ) -> Self:
        """Attach data for pictures and reports to the model until the next fit. `save` stores it too.

        Parameters
        ----------
        activations : array of shape (samples, n_components), optional
            The result of ``fit_transform``, stored as ``activations_``.
        sample_names : sequence of str, optional
            One for each sample, stored as ``sample_names_``.
        part_shape : sequence of int, optional
            Shape of a component, for example (height, width) of an image, stored as ``part_shape_``.
        part_mask : array of bool, optional
            True at the pixels or voxels that are features, if not all are, stored as ``part_mask_``.
        origin : object, optional
            ``table.origin`` of data from files, stored as ``origin_``: the affine and mask of brain images, or the
            sampling rate of sound. New files can then be read in the same way.
        provenance : dict of str, optional
            Facts about the origin of the model that reports list, such as the data and the command, stored as
            ``provenance_``.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from partwise import SparseNMF
        >>> model = SparseNMF(4, max_iter=5, tol=0).fit(load_digits().data)
        >>> model.keep(part_shape=(8, 8)).part_shape_
        (8, 8)
        """
        check_is_fitted(self)
        if isinstance(origin, Brain) and origin.mask is None:
            part_shape = part_shape or origin.shape
        elif isinstance(origin, Brain) and part_mask is None:
            part_mask = origin.mask
        kept: dict[str, Any] = {
            "activations_": None if activations is None else kept_activations(activations, self.n_components_),
            "sample_names_": None if sample_names is None else kept_names(sample_names),
            "part_shape_": None if part_shape is None else kept_shape(part_shape, self.components_.shape[1]),
            "part_mask_": None if part_mask is None else kept_mask(part_mask, self.components_.shape[1]),
            "origin_": None if origin is None else kept_origin(origin, self.components_.shape[1]),
            "provenance_": None if provenance is None else kept_facts(provenance),
        }
        new = {name: value for name, value in kept.items() if value is not None}
        rows, names = (new.get(name, getattr(self, name, None)) for name in ("activations_", "sample_names_"))
        if rows is not None and names is not None and len(rows) != len(names):
            raise ValueError(f"{len(names)} sample names for {len(rows)} samples with activations: give one for each")
        for name, value in new.items():
            setattr(self, name, value)
        return self

    def _forget(self) -> None:
        """Remove what is attached, because it belongs to earlier components."""
        for name in KEPT:
            if hasattr(self, name):
                delattr(self, name)


def kept_activations(activations: npt.ArrayLike, r: int) -> Array:
    """Validate activations for `keep`."""
    array = check_array(activations, dtype=[np.float64, np.float32], copy=True)
    if array.shape[1] != r:
        raise ValueError(f"activations have {array.shape[1]} columns, but the model has {r} components")
    if array.min() < 0:
        raise ValueError(f"activations contain {array.min():g}: they must be nonnegative")
    return np.ascontiguousarray(array)


def kept_names(names: Sequence[str]) -> Array:
    """Validate names for `keep`, as an object array like scikit-learn's ``feature_names_in_``."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ValueError("names must be a sequence of str")
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:  # such as the name of a file in another encoding
            raise ValueError(f"the name {name!r} is not valid Unicode and cannot be saved: rename it") from None
    array = np.empty(len(names), dtype=object)
    array[:] = list(names)
    return array


def kept_facts(facts: Mapping[str, str]) -> dict[str, str]:
    """Validate facts for `keep`."""
    found = dict(facts)
    if not all(isinstance(word, str) for pair in found.items() for word in pair):
        raise ValueError("provenance must be a dict of str: give each fact as text")
    return dict(zip(kept_names([*found]), kept_names([*found.values()]), strict=True))


def kept_shape(shape: Sequence[int], m: int) -> tuple[int, ...]:
    """Validate the shape of a component of ``m`` features."""
    if not all(isinstance(n, int | np.integer) and n > 0 for n in shape) or np.prod(shape) != m:
        raise ValueError(f"part_shape={tuple(shape)} does not match the {m} features of a component")
    return tuple(int(n) for n in shape)


def kept_mask(mask: npt.ArrayLike, m: int) -> Array:
    """Validate the mask of a component of ``m`` features."""
    array = np.asarray(mask)
    if array.dtype != bool or np.count_nonzero(array) != m:
        raise ValueError(f"part_mask must be a bool array with {m} True entries, one for each feature")
    return array.copy()


def kept_origin(origin: object, m: int) -> Origin:
    """Validate the origin of samples with ``m`` features."""
    if not isinstance(origin, Origin) or origin.size != m:
        raise ValueError(f"origin={origin!r} does not describe samples of {m} features")
    return origin
