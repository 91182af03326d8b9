"""Frozen dataclasses to JSON values and back. Strict: an unknown or missing field is an error.

A field is stored under its own name, or under the key in its metadata: `field(metadata={KEY: "turns"})`. So a field can get a
better name, and files that were written before can still be read. One that came later says so, `field(default=None,
metadata={LATER: True})`: it is stored only where it is not None, and a file may lack it.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
KEY = "key"
LATER = "later"


class CodecError(ValueError):
    """The text names the field by its path, as in `cases.0.baseline.status`."""


def encode(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        items = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {_key_of(field): encode(item) for field, item in items if item is not None or not _is_later(field)}
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    return value


def decode(cls: type[T], data: Any) -> T:
    return cast("T", _decode(cls, data, ""))


def _decode(hint: Any, data: Any, path: str) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if data is None:
            return None
        (inner,) = (argument for argument in arguments if argument is not types.NoneType)
        return _decode(inner, data, path)
    if origin is tuple:
        items = _expect(data, list, path)
        return tuple(_decode(arguments[0], item, f"{path}.{i}") for i, item in enumerate(items))
    if origin is Mapping:
        pairs = _expect(data, dict, path)
        return {key: _decode(arguments[1], item, f"{path}.{key}") for key, item in pairs.items()}
    if dataclasses.is_dataclass(hint):
        return _decode_dataclass(cast("type[Any]", hint), _expect(data, dict, path), path)
    if issubclass(hint, StrEnum):
        try:
            return hint(data)
        except ValueError:
            raise CodecError(f"{path.lstrip('.')}: '{data}' is not one of {[item.value for item in hint]}") from None
    if hint is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    return _expect(data, hint, path)


def _decode_dataclass(hint: type[Any], data: dict[str, Any], path: str) -> Any:
    hints = get_type_hints(hint)
    lacking = {field.name for field in dataclasses.fields(hint) if _is_later(field) and _key_of(field) not in data}
    keys = {field.name: _key_of(field) for field in dataclasses.fields(hint) if field.name not in lacking}
    if unlike := set(keys.values()) ^ set(data):
        raise CodecError(f"{path.lstrip('.') or hint.__name__}: fields differ: {sorted(unlike)}")
    return hint(**{name: _decode(hints[name], data[key], f"{path}.{key}") for name, key in keys.items()})


def _key_of(field: dataclasses.Field[Any]) -> str:
    return str(field.metadata.get(KEY, field.name))


def _is_later(field: dataclasses.Field[Any]) -> bool:
    return bool(field.metadata.get(LATER))


def _expect(data: Any, kind: type[Any], path: str) -> Any:
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise CodecError(f"{path.lstrip('.')}: {type(data).__name__} instead of {kind.__name__}")
    return data
