"""What an ONNX operator means to us, and which of its nodes that meaning was written for.

An attribute, a value of it, a version, an input or an element type that a row does not name is declined with that reason: whoever
added it to the operator may have changed what the others mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.tensor import Tensor
from xyntra_ep.tracea.core_ir.dtypes import DType

if TYPE_CHECKING:  # the walk imports this module
    from xyntra_ep.fusion.trace import Context

Lowered = Tensor | Sequence[Tensor]
Values = tuple[object, ...]
ANY: Values = ()  # the lowering reads whatever an attribute says, or knows why it need not

FLAG: Values = (0, 1)
AUTO_PAD: Values = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")

FLOATS = (DType.F32, DType.F16, DType.BF16)
INTEGERS = (DType.I64, DType.I32, DType.I8, DType.U8)
NUMBERS = FLOATS + INTEGERS
BOOLS = (DType.BOOL,)
SHORTS = (DType.U16, DType.I16)
ALL = NUMBERS + SHORTS + BOOLS
INDICES = (DType.I64, DType.I32)

WITHOUT_MEANING = ("consumed_inputs",)  # a hint of opsets below 6 about memory


@dataclass(frozen=True, slots=True, kw_only=True)
class OpSpec:
    """What an ONNX operator means to us. ``name`` is the operator's, with its domain in front unless it is ONNX's own
    ("com.microsoft.Gelu"). What is not said is not claimed:

    versions    first and last since_version that ``lower`` was written for
    inputs      how many of them it reads at most; None: as many as there are
    attributes  the values that each may have (``ANY``), besides being left out
    types       element types of each input; the last entry is that of all further ones, none at all allows what we have
    note        what a reader of the table should know
    """

    name: str
    lower: Callable[[Context, Node, list[Tensor | None]], Lowered]
    versions: tuple[int, int] = (1, 1)
    inputs: int | None = 1
    attributes: Mapping[str, Values] = field(default_factory=dict)
    types: tuple[tuple[DType, ...], ...] = ()
    note: str = ""

    def types_of(self, i: int) -> tuple[DType, ...]:
        """Element types that input ``i`` may have."""
        return self.types[min(i, len(self.types) - 1)] if self.types else ALL


def takes(*free: str, **limited: Values) -> Mapping[str, Values]:
    """Attributes of a row: ``free`` ones may have any value."""
    return {**dict.fromkeys(free, ANY), **limited}


def admit(spec: OpSpec, node: Node) -> None:
    """Declines a node that ``spec`` was not written for."""
    if not spec.versions[0] <= node.version <= spec.versions[1]:
        raise UnsupportedError(f"unsupported at opset {node.version}")
    for name in node.attrs:
        if name in WITHOUT_MEANING:
            continue
        value = node.attr(name)
        if name not in spec.attributes:
            raise UnsupportedError(f"unknown attribute {name} = {value}")
        allowed = spec.attributes[name]
        if value is None:  # it has a payload that the graph buffer does not carry
            raise UnsupportedError(f"attribute {name} is of an unknown kind")
        if allowed and not (isinstance(value, (int, float, str)) and value in allowed):
            raise UnsupportedError(f"{name} = {value}")
    if spec.inputs is not None and any(node.inputs[spec.inputs :]):
        number = max(i for i, name in enumerate(node.inputs) if name)
        raise UnsupportedError(f"input {number} is not read")


def admit_types(spec: OpSpec, inputs: Sequence[Tensor | None]) -> None:
    """Declines operands of types that ``spec`` was not written for."""
    for i, t in enumerate(inputs):
        if t is not None and t.dtype not in spec.types_of(i):
            raise UnsupportedError(f"dtype {t.dtype}")
