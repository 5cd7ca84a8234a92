"""Saving and loading models. Only the classes and attributes listed here can be read from a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..engine.blocks import Block
from ..engine.online import BatchLearner
from ..engine.origins import ORIGINS
from ..engine.validation import as_bytes
from ..projections import AtMost, Bounded, FreeNorm, Grouped, Hoyer, HoyerBetween, Nonnegative, Simplex
from ..runtime.archive import Header, UnreadableError, read, write
from ..runtime.packing import StorageError, packed, unpacked
from ..runtime.untrusted import limited
from ..statistics import Array, Quadratic, Stats
from ..updates import Coding, Columns, Newton, Path, Pivot, Rows, Sequential, SumToOne, WithinBounds
from .attached import KEPT, kept_names
from .batch import SparseNMF
from .minibatch import MiniBatchSparseNMF
from .tensor import SparseCP, sparsities

CLASSES: dict[str, type[Any]] = {c.__name__: c for c in (SparseNMF, MiniBatchSparseNMF, SparseCP)}
SETS = {c.__name__: c for c in (AtMost, Bounded, FreeNorm, Grouped, Hoyer, HoyerBetween, Nonnegative, Simplex)}
UPDATES = Coding, Newton, Path, Pivot, Sequential, SumToOne, WithinBounds
BLOCKS = SETS | {c.__name__: c for c in (Block, Columns, Rows, *UPDATES)}

ATTRIBUTES: dict[str, tuple[str, ...] | type] = {  # the shape of an array of floats, or another type
    "components_": ("r", "m"),
    "sparsity_": ("r",),
    "explained_": ("r",),
    "scaling_": ("r", "r"),
    "weights_": ("r",),
    "loss_curve_": ("t",),
    "time_curve_": ("t",),
    "factors_": list,
    "feature_names_in_": list,
    "n_features_in_": int,
    "n_iter_": int,
    "n_steps_": int,
    "reconstruction_err_": float,
    "converged_": bool,
    "stop_reason_": str,
    "seed_": int,
    "data_shape_": tuple,
}
OUTPUTS = ("default", "pandas", "polars")


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted model to a file."""
    kind = type(model).__name__
    if CLASSES.get(kind) is not type(model):
        raise ValueError(f"{kind} cannot be saved, only {', '.join(CLASSES)}")
    arrays: dict[str, Array] = {}
    notes: dict[str, str] = {}

    def stored(value: object, name: str) -> Any:
        found: dict[str, Array] = {}
        try:
            plain = packed(value, name, found, BLOCKS | ORIGINS)
        except StorageError as error:
            notes[name] = str(error)
            return None
        arrays.update(found)
        return plain

    attributes = {name: getattr(model, name) for name in (*ATTRIBUTES, *KEPT) if hasattr(model, name)}
    names = attributes.keys() & {"feature_names_in_", "sample_names_"}
    attributes |= {name: kept_names(list(map(str, attributes[name]))).tolist() for name in names}
    if isinstance(model, SparseCP):
        del attributes["sparsity_"]  # that of the factors
    if attributes.get("seed_") is None:
        attributes.pop("seed_", None)  # a generator was given
    header: Header = {
        "kind": "model",
        "class": kind,
        "params": {name: stored(value, f"params.{name}") for name, value in model.get_params(deep=False).items()},
        "attributes": {name: stored(value, name) for name, value in attributes.items()},
        "encoder": stored(model._encoder, "encoder"),
        "output": getattr(model, "_sklearn_output_config", {}).get("transform", "default"),
    }
    running = getattr(model, "_learner", None)
    if running is not None:
        stats = running.stats.numbers()
        header["block"] = stored(model._block, "block")
        header["running"] = stored({"state": running.state, "stats": stats}, "running")
    write(path, {**header, "not_stored": notes}, arrays)


def load(path: str | os.PathLike[str], *, max_bytes: int | str | None = None) -> Any:
    """Load a model that was saved with ``model.save``, or a `Consensus`.

    The loaded model gives bit-identical results in `transform` and, for `MiniBatchSparseNMF`, in `partial_fit`.
    Loading executes no code from the file. A damaged or foreign file, or one that takes more memory than ``max_bytes``,
    raises an `UnreadableError`. By default, ``max_bytes`` is 1000 times the file's size, but at most half
    of the free memory.

    Examples
    --------
    >>> import tempfile
    >>> model = SparseNMF(2, sparsity=0.5, random_state=0).fit(np.eye(4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/parts.pw")
    ...     load(f"{folder}/parts.pw")
    SparseNMF(n_components=2, random_state=0, sparsity=0.5)
    """
    with limited(as_bytes(max_bytes, "max_bytes")):
        header, arrays = read(path)
    if header.get("kind") == "checkpoint":
        raise UnreadableError(
            f"{os.fspath(path)} is a checkpoint, not a model: pass it as resume_from to continue the fit"
        )
    if header.get("kind") == "consensus":
        from ..selection.stability import loaded  # on the same floor

        return loaded(path)
    try:
        return restored(header, arrays)
    except Exception as error:
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
    found = checked({name: attributes[name] for name in ATTRIBUTES if name in attributes}, kind)
    for name, value in found.items():
        setattr(model, name, value)
    kept = {name.removesuffix("_"): attributes[name] for name in KEPT if name in attributes}
    if kept:
        model.keep(**kept)
    model._encoder = checked_block(header["encoder"], arrays, model.n_components_)
    if kind is MiniBatchSparseNMF:
        resume_learning(model, header, arrays)
    if header.get("output", "default") in OUTPUTS[1:]:
        model.set_output(transform=header["output"])
    return model


def checked(found: dict[str, Any], kind: type[Any]) -> dict[str, Any]:
    """The attributes of a model, validated and completed."""
    needed = ("factors_", "weights_") if kind is SparseCP else ("components_", "sparsity_", "n_features_in_")
    missing = [name for name in needed if name not in found]
    if missing:
        raise ValueError(f"{missing[0]} is missing")
    factors = {f"factors_[{mode}]": factor for mode, factor in enumerate(found.get("factors_", ()))}
    shapes = ATTRIBUTES | {name: (name, "r") for name in factors}
    sizes = {"m": found["n_features_in_"]} if "n_features_in_" in found else {}
    for name, value in (found | factors).items():
        check_attribute(name, value, shapes[name], sizes)
        nonnegative = name in ("components_", "scaling_", "weights_", *factors)
        if nonnegative and not (value.size and np.isfinite(value).all() and value.min() >= 0):
            raise ValueError(f"{name} is empty, or has negative or non-finite values")
    if kind is SparseCP:
        if len(factors) < 2 or len({factor.dtype for factor in factors.values()}) > 1:
            raise ValueError("factors_ is too short, or its arrays have different types")
        found["sparsity_"] = sparsities(found["factors_"])
    if "feature_names_in_" in found:
        found["feature_names_in_"] = kept_names(found["feature_names_in_"])
        if len(found["feature_names_in_"]) != sizes["m"]:
            raise ValueError(f"feature_names_in_ does not have {sizes['m']} entries")
    if "data_shape_" in found:
        samples, features = found["data_shape_"]
        if type(samples) is not int or samples < 1 or features != sizes["m"]:
            raise ValueError(f"data_shape_ is {found['data_shape_']}, but components have {sizes['m']} features")
    return {**found, "n_components_": sizes["r"]}


def check_attribute(name: str, value: object, wanted: tuple[str, ...] | type, sizes: dict[str, int]) -> None:
    """Check the type or the shape of an attribute; ``sizes`` are the lengths that the letters of shapes stand for."""
    if isinstance(wanted, type):
        if type(value) is not wanted:
            raise ValueError(f"{name}={value!r} has the wrong type")
    elif not isinstance(value, np.ndarray) or value.dtype.kind != "f" or value.ndim != len(wanted):
        raise ValueError(f"{name} is not a {len(wanted)}-D array of floats")
    elif any(sizes.setdefault(letter, n) != n for letter, n in zip(wanted, value.shape, strict=True)):
        raise ValueError(f"{name} has shape {value.shape}, which does not match the other attributes")


def checked_block(plain: object, arrays: Mapping[str, Array], r: int) -> Block | None:
    """The update and its constraint sets for ``r`` components, validated, or None."""
    block = unpacked(plain, arrays, BLOCKS)
    if block is None:
        return None
    if not isinstance(block, Block) or not isinstance(block.update, UPDATES):
        raise ValueError("unknown solver")
    sets = block.sets
    own = (sets.row,) if isinstance(sets, Rows) else sets.sets if isinstance(sets, Columns) else ()
    if not own or len(sets) != r or not all(type(s) in SETS.values() for s in own):
        raise ValueError(f"the solver does not match {r} components")
    if not all(np.isfinite(p) and p >= 0 for p in (block.l1, block.l2, block.rows)):
        raise ValueError("penalties must be finite and nonnegative")
    return block


def resume_learning(model: MiniBatchSparseNMF, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Restore the running statistics that `partial_fit` continues from."""
    parts = np.array(model.components_.T, order="F")
    block = checked_block(header.get("block"), arrays, len(model.components_))
    if block is None:  # it had custom constraints, which are not stored
        return
    running = unpacked(header["running"], arrays)
    kind: Any = Quadratic if isinstance(block.update, Newton) else Stats
    stats = kind(*running["stats"])
    main, own = stats.numbers()[: 2 if kind is Quadratic else 1], stats.gram
    if not all(array.shape == parts.shape for array in main) or own.shape != (parts.shape[1],) * 2:
        raise ValueError("the running statistics do not match the components")
    kinds = {own.dtype} if kind is Quadratic else {parts.dtype}
    if own.dtype != float or {array.dtype for array in main} != kinds or not isinstance(running["state"], dict):
        raise ValueError("the running statistics do not match the components")
    if not all(np.isfinite(number).all() for number in stats.numbers()):
        raise ValueError("the running statistics are not finite")
    numbers = [np.asfortranarray(number) if np.ndim(number) else float(number) for number in stats.numbers()]
    model._block, model._learner = block, BatchLearner(parts, kind(*numbers), running["state"])
