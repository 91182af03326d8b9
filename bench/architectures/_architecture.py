"""What a row of `bench architectures` declares. PyTorch is imported when a model is built, not when rows are read."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from xyntra_bench.contenders import DEFAULT_MAX_ERR
from xyntra_zoo.registry import Registry

Dims = tuple[int | str, ...]
BATCH = "batch"  # the dimension that is called so


class Exporter(StrEnum):
    """``torch.onnx.export`` with dynamo=True, which is its default now, and with dynamo=False, which most models were made by."""

    DYNAMO = "dynamo"
    TRACED = "traced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """``dims``: a number, or the name of a dimension that stays dynamic. Integers are token numbers, or ones in a mask."""

    dims: Dims
    type: str = "tensor(float)"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredInput:
    """An input as ONNX Runtime's sessions tell it."""

    name: str
    type: str
    shape: Dims


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """``build`` makes the module, and ``call(module, *inputs)`` the output that is compared. ``sizes``: what the dimensions that
    have names are when it is measured, 1 where nothing is said. ``max_err``: of an output, relative to its largest element."""

    name: str
    build: Callable[[], Any]
    inputs: Mapping[str, Input]
    sizes: Mapping[str, int] = field(default_factory=dict)
    call: Callable[..., Any] = lambda module, *inputs: module(*inputs)
    exporter: Exporter = Exporter.DYNAMO
    max_err: float = DEFAULT_MAX_ERR

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of each input as it is measured."""
        return {name: sized(value.dims, self.sizes) for name, value in self.inputs.items()}

    def shapes_of(self, batch: int) -> dict[str, tuple[int, ...]]:
        """Of each input as it is measured, in a batch."""
        return {name: sized(value.dims, {**self.sizes, BATCH: batch}) for name, value in self.inputs.items()}

    @property
    def declared(self) -> list[DeclaredInput]:
        return [DeclaredInput(name=name, type=value.type, shape=value.dims) for name, value in self.inputs.items()]

    @property
    def is_dynamic(self) -> bool:
        return any(isinstance(dim, str) for value in self.inputs.values() for dim in value.dims)


def sized(dims: Dims, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """
    >>> sized(("batch", 3, "height"), {"height": 224})
    (1, 3, 224)
    """
    return tuple(sizes.get(dim, 1) if isinstance(dim, str) else dim for dim in dims)


def transformer(model: str, **settings: Any) -> Callable[[], Any]:
    """A class of `transformers`, from its configuration's defaults and these settings."""

    def build() -> Any:
        import transformers

        made = getattr(transformers, model)
        return made(made.config_class(**settings))

    return build


def net(name: str, **settings: Any) -> Callable[[], Any]:
    """A class of a module in `_nets`, as in ``pictures.UNet``."""

    def build() -> Any:
        module, _, kind = name.partition(".")
        return getattr(importlib.import_module(f"{__package__}._nets.{module}"), kind)(**settings)

    return build


TOKENS = {name: Input(dims=("batch", "sequence"), type="tensor(int64)") for name in ("input_ids", "attention_mask")}
ANY_IMAGE = {"pixel_values": Input(dims=("batch", 3, "height", "width"))}


def image(side: int, channels: int = 3) -> dict[str, Input]:
    """Images of one size, any number of them."""
    return {"pixel_values": Input(dims=("batch", channels, side, side))}


def hidden(module: Any, *inputs: Any) -> Any:
    """Of an encoder of token numbers with their mask, or of anything with one input."""
    return module(*inputs, return_dict=True).last_hidden_state


def logits(module: Any, *inputs: Any) -> Any:
    return module(*inputs, return_dict=True).logits


def causal(module: Any, *inputs: Any) -> Any:
    """Logits of all tokens of a prompt."""
    ids, mask = inputs
    return module(input_ids=ids, attention_mask=mask, use_cache=False, return_dict=True).logits


architectures: Registry[Architecture] = Registry("xyntra_bench.architectures", "ARCHITECTURES")
