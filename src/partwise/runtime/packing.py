"""Convert parameters, states and sets to JSON, with their arrays stored separately, and back.

========================= ========================================================================
None, bool, int, str      unchanged; finite floats too, others as ``{"float": "inf"}``
list                      a list
tuple                     ``{"tuple": [...]}``, because a tuple is another sparsity than a list
dict with str keys        ``{"dict": {...}}``; with int keys, ``{"numbered": [[key, value], ...]}``
array                     ``{"array": name}``
scipy sparse              ``{"sparse": name}``; read back as CSR
frozen dataclass          ``{"value": class, "fields": {...}}``, for known classes
========================= ========================================================================
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .arrays import Array, Sparse

Classes = Mapping[str, type[Any]]
KINDS: dict[str, Any] = {"int": int, "float": (int, float), "bool": bool, "tuple[Projection, ...]": tuple}


class StorageError(TypeError):
    """Raised for a value that cannot be stored in a file."""


def packed(value: object, name: str, arrays: dict[str, Array], known: Classes = {}) -> Any:  # noqa: B006
    """Convert ``value`` for JSON, and add its arrays to ``arrays`` under names that begin with ``name``.

    >>> arrays = {}
    >>> packed({"step": 0.5, "ends": (0.2, None), "last": np.ones(3)}, "state", arrays)
    {'dict': {'step': 0.5, 'ends': {'tuple': [0.2, None]}, 'last': {'array': 'state.last'}}}
    >>> arrays
    {'state.last': array([1., 1., 1.])}
    """

    def inside(items: Mapping[str, object]) -> dict[str, Any]:
        keys = {key: key if key.isascii() and key.isidentifier() else str(i) for i, key in enumerate(items)}
        return {key: packed(item, f"{name}.{keys[key]}", arrays, known) for key, item in items.items()}

    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "buif" and value.dtype.itemsize <= 8:
        arrays[name] = np.asarray(value)
        return {"array": name}
    if sp.issparse(value):
        matrix: Sparse = value
        return {"sparse": packed(matrix.toarray(), name, arrays)["array"]}
    if isinstance(value, list | tuple):
        items = list(inside({str(i): item for i, item in enumerate(value)}).values())
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": inside(value)}
    if isinstance(value, dict) and all(isinstance(key, int | np.integer) for key in value):
        numbered = inside({str(key): item for key, item in value.items()})
        return {"numbered": [[int(key), item] for key, item in numbered.items()]}
    if is_dataclass(value) and known.get(type(value).__name__) is type(value):
        return {
            "value": type(value).__name__,
            "fields": inside({f.name: getattr(value, f.name) for f in fields(value)}),
        }
    raise StorageError(f"{name} has type {type(value).__name__}, which cannot be stored in a file")


def unpacked(plain: object, arrays: Mapping[str, Array], known: Classes = {}) -> Any:  # noqa: B006
    """Invert `packed`; raise ValueError for anything that `packed` does not return.

    >>> unpacked({"tuple": [0.2, {"float": "inf"}]}, {})
    (0.2, inf)
    """
    if plain is None or isinstance(plain, bool | int | float | str):
        return plain
    if isinstance(plain, list):
        return [unpacked(item, arrays, known) for item in plain]
    match plain:
        case {"float": "inf" | "-inf" | "nan" as number}:
            return float(number)
        case {"tuple": list(items)}:
            return tuple(unpacked(items, arrays, known))
        case {"dict": dict(items)}:
            return {key: unpacked(item, arrays, known) for key, item in items.items()}
        case {"numbered": list(pairs)}:
            return {int(key): unpacked(item, arrays, known) for key, item in pairs}
        case {"array": str(name)} if name in arrays:
            return arrays[name]
        case {"sparse": str(name)} if name in arrays:
            return sp.csr_array(arrays[name])
        case {"value": str(name), "fields": dict(items)} if name in known:
            return construct(known[name], {key: unpacked(item, arrays, known) for key, item in items.items()})
    raise ValueError(f"{str(plain)[:60]} is not a valid value")


def construct(kind: type[Any], values: Mapping[str, object]) -> Any:
    """Construct a frozen dataclass after checking the types of its fields."""
    for field in fields(kind):
        want = KINDS.get(str(field.type))
        if want and field.name in values and not isinstance(values[field.name], want):
            raise ValueError(f"{kind.__name__} has {field.name}={values[field.name]!r}, which is not {field.type}")
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(f"{kind.__name__} does not accept the fields {', '.join(values)}") from error
