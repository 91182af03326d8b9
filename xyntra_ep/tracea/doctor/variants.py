"""All variants that Tracea knows, by the op they compute. A file with a VARIANTS list, in a folder of kernels/cpu or kernels/gpu,
is all it takes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from xyntra_ep.registry import Registry
from xyntra_ep.tracea.core_ir.ops import CoreOp
from xyntra_ep.tracea.kernels.variant import Variant

AnyVariant = Variant[Any]
VariantTable = Mapping[type[CoreOp], tuple[AnyVariant, ...]]

CPU = Registry[AnyVariant]("xyntra_ep.tracea.kernels.cpu", "VARIANTS")
GPU = Registry[AnyVariant]("xyntra_ep.tracea.kernels.gpu", "VARIANTS")


@cache
def cpu_variants() -> VariantTable:
    """The CPU variants of each op, in the order of the registry."""
    return by_op(CPU)


@cache
def gpu_variants() -> VariantTable:
    """The GPU variants of each op."""
    return by_op(GPU)


def by_op(variants: Any) -> VariantTable:
    """Group an iterable of variants by their op."""
    table: dict[type[CoreOp], tuple[AnyVariant, ...]] = {}
    for variant in variants:
        table[variant.op] = (*table.get(variant.op, ()), variant)
    return table
