"""Why something is not fused, in one form for all that refuse; `xyntra explain` shows it.

Reason(kind=Kind.COST, text="declined: est. 3 us, ORT 2 us", nodes=(4, 5))
Reason(kind=Kind.VARIANT, text="needs AVX", about="gemm.packed_b")
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from xyntra_ep.errors import InternalError, XyntraError


class Kind(StrEnum):
    """Who refuses."""

    LEGALITY = "legality"  # an operator's lowering: nothing here computes this operator, type, attribute or shape
    COST = "cost"  # the estimate: ONNX Runtime would be faster
    PATTERN = "pattern"  # a pass: nodes look like what it fuses, and something about them forbids it
    VARIANT = "variant"  # a kernel variant does not take an op, or another was better; for a node: none was left that works
    FAULT = "fault"  # nobody: a fault of ours
    OTHER = "other"  # what is about the node's place: an option, another provider, a machine without a compiler


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """``nodes`` of the graph (by number), or what else it is ``about``: the name of a variant."""

    kind: Kind
    text: str
    nodes: tuple[int, ...] = ()
    about: str = ""

    def __str__(self) -> str:
        return self.text

    @staticmethod
    def of(error: Exception, kind: Kind, nodes: Collection[int] = ()) -> Reason:
        """Of what refused by raising ``error``."""
        text = error.what if isinstance(error, XyntraError) else str(error)
        return Reason(kind=Kind.FAULT if isinstance(error, InternalError) else kind, text=text, nodes=tuple(sorted(nodes)))

    @staticmethod
    def of_row(row: Mapping[str, Any]) -> Reason:
        """From what `dataclasses.asdict` and JSON made of it."""
        nodes = tuple(map(int, row["nodes"]))
        return Reason(kind=Kind(row["kind"]), text=str(row["text"]), nodes=nodes, about=str(row["about"]))
