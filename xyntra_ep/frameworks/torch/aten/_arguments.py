"""Arguments of ATen calls by the names of the operator's schema, defaults filled in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.fx import Node as FxNode

from xyntra_ep.errors import UnsupportedError


def arguments(node: FxNode) -> dict[str, Any]:
    schema = node.target._schema
    found = {argument.name: argument.default_value for argument in schema.arguments if argument.has_default_value()}
    names = [argument.name for argument in schema.arguments if not argument.kwarg_only]
    return {**found, **dict(zip(names, node.args, strict=False)), **node.kwargs}


def rank(node: Any) -> int:
    return len(node.meta["val"].shape)


def normal(axis: int, count: int) -> int:
    return axis + count if axis < 0 else axis


def axes_of(dim: Any, count: int) -> list[int]:
    """The axes that ``dim`` names; None and an empty list are all."""
    if dim is None or (isinstance(dim, Sequence) and not dim):
        return list(range(count))
    return [normal(int(axis), count) for axis in (dim if isinstance(dim, Sequence) else [dim])]


def known_ints(values: Sequence[Any], what: str) -> list[int]:
    if not all(isinstance(value, int) for value in values):
        raise UnsupportedError(f"{what} of a size that is known at run time only")
    return [int(value) for value in values]


def is_used(node: FxNode, index: int) -> bool:
    """Whether somebody reads a result of a call that has several."""
    return any(len(user.args) > 1 and user.args[1] == index and user.users for user in node.users)
