"""Saving and loading models. Only the classes and attributes listed here can be read from a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..engine.blocks import Block
from ..engine.online import Running
from ..engine.origins import ORIGINS
from ..projections import AtMost, FreeNorm, Grouped, Hoyer, HoyerBetween, Nonnegative
from ..runtime.archive import Header, UnreadableError, read, write
from ..runtime.packing import StorageError, packed, unpacked
from ..statistics import Array, Stats
from ..updates import Coding, Columns, Path, Pivot, Rows, Sequential
from .base import kept_activations, kept_mask, kept_names, kept_origin, kept_shape
from .batch import SparseNMF
from .minibatch import MiniBatchSparseNMF
from .tensor import SparseCP, sparsities

CLASSES: dict[str, type[Any]] = {c.__name__: c for c in (SparseNMF, MiniBatchSparseNMF, SparseCP)}
SETS = {c.__name__: c for c in (AtMost, FreeNorm, Grouped, Hoyer, HoyerBetween, Nonnegative)}
BLOCKS = SETS | {c.__name__: c for c in (Block, Coding, Columns, Path, Pivot, Rows, Sequential)}

SHAPES: dict[str, tuple[str, ...]] = {  # r components of m features; equal letters are equal lengths
    "components_": ("r", "m"),
    "sparsity_": ("r",),
    "explained_": ("r",),
    "scaling_": ("r", "r"),
    "loss_curve_": ("t",),
    "time_curve_": ("t",),
    "activations_": ("n", "r"),
    "weights_": ("r",),
}
NUMBERS: dict[str, Any] = {
    "n_features_in_": int,
    "n_iter_": int,
    "n_steps_": int,
    "reconstruction_err_": (int, float),
    "stop_reason_": str,
    "data_shape_": tuple,
    "part_shape_": tuple,
}
MASK = "part_mask_"
ORIGIN = "origin_"
NAMES = {"feature_names_in_": "m", "sample_names_": "n"}
NEEDED = ("components_", "sparsity_", "n_features_in_")
OF_TENSORS = ("factors_", "weights_", "loss_curve_", "n_iter_", "reconstruction_err_", "stop_reason_")
OUTPUTS = ("default", "pandas", "polars")


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted model to a file."""
    kind = type(model).__name__
    if CLASSES.get(kind) is not type(model):
        raise ValueError(f"{kind} cannot be saved, only {', '.join(CLASSES)}")
    arrays: dict[str, Array] = {}
    notes: dict[str, str] = {}

    def stored(value: Any, name: str) -> Any:
        found: dict[str, Array] = {}
        try:
            plain = packed(value, name, found, BLOCKS | ORIGINS)
        except StorageError as error:
            notes[name] = str(error)
            return None
        arrays.update(found)
        return plain

    names = OF_TENSORS if isinstance(model, SparseCP) else (*SHAPES, *NUMBERS, MASK, ORIGIN)
    attributes = {name: getattr(model, name) for name in names if hasattr(model, name)}
    attributes |= {
        name: kept_names([str(n) for n in getattr(model, name)]).tolist() for name in NAMES if hasattr(model, name)
    }
    header: Header = {
        "kind": "model",
        "class": kind,
        "params": {name: stored(value, f"params.{name}") for name, value in model.get_params(deep=False).items()},
        "attributes": {name: stored(value, name) for name, value in attributes.items()},
        "encoder": stored(model._encoder, "encoder"),
        "output": getattr(model, "_sklearn_output_config", {}).get("transform", "default"),
    }
    running = getattr(model, "_running", None)
    if running is not None:
        stats = (running.stats.cross, running.stats.gram, running.stats.sqnorm)
        header["block"] = stored(model._block, "block")
        header["running"] = stored({"state": running.state, "stats": stats}, "running")
    write(path, {**header, "not_stored": notes}, arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model that was saved with ``model.save``.

    The loaded model gives bit-identical results in `transform` and, for `MiniBatchSparseNMF`, in `partial_fit`.
    Loading executes no code from the file. A damaged or foreign file raises a `ValueError`.

    Examples
    --------
    >>> import tempfile
    >>> model = SparseNMF(2, sparsity=0.5, random_state=0).fit(np.eye(4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/parts.pw")
    ...     load(f"{folder}/parts.pw")
    SparseNMF(n_components=2, random_state=0, sparsity=0.5)
    """
    header, arrays = read(path)
    if header.get("kind") == "checkpoint":
        raise UnreadableError(
            f"{os.fspath(path)} is a checkpoint, not a model: pass it as resume_from to continue the fit"
        )
    try:
        return restored(header, arrays)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError, OverflowError) as error:
        raise UnreadableError(f"{os.fspath(path)} is not a valid model file: {error}") from error


def restored(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Any:
    """The model in the contents of a file."""
    if header.get("kind") != "model" or header.get("class") not in CLASSES:
        raise ValueError(f"class {header.get('class')!r} is not one of {', '.join(CLASSES)}")
    kind, left_out = CLASSES[header["class"]], header.get("not_stored", {})
    known = kind().get_params(deep=False)  # a later version may have written more
    params = {k: v for k, v in header["params"].items() if k in known and f"params.{k}" not in left_out}
    model = kind(**unpacked({"dict": params}, arrays, SETS))
    attributes = unpacked({"dict": header["attributes"]}, arrays, ORIGINS)
    for name, value in (checked_tensor if kind is SparseCP else checked)(attributes).items():
        setattr(model, name, value)
    model._encoder = checked_block(header["encoder"], arrays, model.n_components_)
    if kind is MiniBatchSparseNMF:
        resume_learning(model, header, arrays)
    if header.get("output", "default") in OUTPUTS[1:]:
        model.set_output(transform=header["output"])
    return model


def checked(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a matrix model, validated."""
    found = {name: attributes[name] for name in (*SHAPES, *NUMBERS, MASK, ORIGIN, *NAMES) if name in attributes}
    missing = [name for name in NEEDED if name not in found]
    if missing:
        raise ValueError(f"{missing[0]} is missing")
    sizes = checked_sizes(found, SHAPES)
    check_components(found)
    for name in [name for name in NAMES if name in found]:
        found[name] = kept_names(found[name])
        if sizes.setdefault(NAMES[name], len(found[name])) != len(found[name]):
            raise ValueError(f"{name} has {len(found[name])} entries instead of {sizes[NAMES[name]]}")
    return {**found, "n_components_": sizes["r"]}


def checked_tensor(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a tensor model, validated."""
    found = {name: attributes[name] for name in OF_TENSORS if name in attributes}
    factors = {f"factors_[{mode}]": factor for mode, factor in enumerate(found["factors_"])}
    sizes = checked_sizes(found | factors, SHAPES | {name: (name, "r") for name in factors})
    if len(factors) < 2 or "weights_" not in found or len({f.dtype for f in factors.values()}) > 1:
        raise ValueError("factors_ and weights_ are missing or inconsistent")
    for name, value in (*factors.items(), ("weights_", found["weights_"])):
        check_nonnegative(name, value)
    return {**found, "n_components_": sizes["r"], "sparsity_": sparsities(found["factors_"])}


def checked_sizes(found: Mapping[str, Any], shapes: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """Check types and shapes; return the length of each letter in ``shapes``."""
    sizes: dict[str, int] = {}
    for name in [name for name in shapes if name in found]:
        letters, value = shapes[name], found[name]
        if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or value.ndim != len(letters):
            raise ValueError(f"{name} is not a {len(letters)}-D array of floats")
        if any(sizes.setdefault(s, n) != n for s, n in zip(letters, value.shape, strict=True)):
            raise ValueError(f"{name} has shape {value.shape}, which does not match the other attributes")
    for name, kind in NUMBERS.items():
        if name in found and (not isinstance(found[name], kind) or isinstance(found[name], bool)):
            raise ValueError(f"{name}={found[name]!r} has the wrong type")
    return sizes


def check_nonnegative(name: str, values: Array) -> None:
    """Raise if values are empty, negative or not finite."""
    if not (values.size and np.isfinite(values).all() and values.min() >= 0):
        raise ValueError(f"{name} is empty, or has negative or non-finite values")


def check_components(found: dict[str, Any]) -> None:
    """Raise if components, activations and the attributes about them are inconsistent."""
    components = found["components_"]
    if found["n_features_in_"] != components.shape[1]:
        raise ValueError(f"components_ has shape {components.shape}, but n_features_in_ is {found['n_features_in_']}")
    for name in [name for name in ("components_", "scaling_") if name in found]:
        check_nonnegative(name, found[name])
    if "activations_" in found:
        kept_activations(found["activations_"], len(components))
    if "part_shape_" in found:
        kept_shape(found["part_shape_"], components.shape[1])
    if MASK in found:
        found[MASK] = kept_mask(found[MASK], components.shape[1])
    if ORIGIN in found:
        found[ORIGIN] = kept_origin(found[ORIGIN], components.shape[1])
    shape = found.get("data_shape_", (1, components.shape[1]))
    if len(shape) != 2 or not all(type(n) is int and n > 0 for n in shape) or shape[1] != components.shape[1]:
        raise ValueError(f"data_shape_ is {shape}, but components have {components.shape[1]} features")


def checked_block(plain: Any, arrays: Mapping[str, Array], r: int) -> Block | None:
    """The update and its constraint sets for ``r`` components, validated, or None."""
    block = unpacked(plain, arrays, BLOCKS)
    if block is None:
        return None
    if not isinstance(block, Block) or not isinstance(block.update, Coding | Path | Pivot | Sequential):
        raise ValueError("unknown solver")
    sets = block.sets
    own = (sets.row,) if isinstance(sets, Rows) else sets.sets if isinstance(sets, Columns) else ()
    if not own or len(sets) != r or not all(type(s) in SETS.values() for s in own):
        raise ValueError(f"the solver does not match {r} components")
    if not all(np.isfinite(p) and p >= 0 for p in (block.l1, block.l2, block.rows)):
        raise ValueError("penalties must be finite and nonnegative")
    return block


def resume_learning(model: Any, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Restore the running statistics that `partial_fit` continues from."""
    parts = np.array(model.components_.T, order="F")
    block = checked_block(header.get("block"), arrays, len(model.components_))
    if block is None:  # it had custom constraints, which are not stored
        return
    running = unpacked(header["running"], arrays)
    cross, own, sqnorm = running["stats"]
    fits = cross.shape == parts.shape and cross.dtype == parts.dtype and own.shape == (parts.shape[1],) * 2
    if not fits or own.dtype != float or not isinstance(sqnorm, float) or not isinstance(running["state"], dict):
        raise ValueError("the running statistics do not match the components")
    if not np.isfinite(cross).all() or not np.isfinite(own).all():
        raise ValueError("the running statistics are not finite")
    model._block, model._running = block, Running(parts, Stats(np.asfortranarray(cross), own, sqnorm), running["state"])
