"""The graph that ONNX Runtime showed the provider, read from the flat buffer of `docs/graph-buffer.md`.

    raw = read(memoryview(buffer))
    raw.values[raw.nodes[0].inputs[0]].name

Weights are not copied: `RawValue.array()` looks at ONNX Runtime's memory, valid only during the callback.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from struct import Struct
from struct import error as StructError
from typing import Any

import numpy as np
import numpy.typing as npt

VERSION = 1
Attribute = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | npt.NDArray[Any]

GRAPH_INPUT, GRAPH_OUTPUT, CONSTANT, OUTER_SCOPE, OVERRIDABLE, ZEROS = 1, 2, 4, 8, 16, 32

# By ONNX Runtime's element type. Types that numpy lacks are shown as their bits; of 4-bit and 2-bit types, which are
# packed, only the bytes are.
_DTYPES: dict[int, npt.DTypeLike] = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
    10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64, 14: np.complex64, 15: np.complex128,
    16: np.uint16, 17: np.uint8, 18: np.uint8, 19: np.uint8, 20: np.uint8, 26: np.uint8,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RawValue:
    """A tensor of the graph; `elem_type` 0 when it is not one, `shape` None when the rank is unknown.

    A dimension is a number, a name, or None when it is neither.
    """

    name: str
    elem_type: int
    shape: tuple[int | str | None, ...] | None
    flags: int
    nbytes: int
    address: int

    @property
    def is_input(self) -> bool:
        return bool(self.flags & GRAPH_INPUT)

    @property
    def is_output(self) -> bool:
        return bool(self.flags & GRAPH_OUTPUT)

    @property
    def is_constant(self) -> bool:
        return bool(self.flags & CONSTANT)

    @property
    def has_zeros(self) -> bool:
        """Is at least a quarter of what native code looked at of a constant zero?"""
        return bool(self.flags & ZEROS)

    @property
    def is_outer(self) -> bool:
        """Does it come from the graph around this one?"""
        return bool(self.flags & OUTER_SCOPE)

    @property
    def is_overridable(self) -> bool:
        """Is it an initializer that a caller may replace?"""
        return bool(self.flags & OVERRIDABLE)

    def array(self) -> npt.NDArray[Any]:
        """A constant's data, read-only and not copied."""
        if not self.is_constant or self.elem_type == 8:
            raise ValueError(f"{self.name!r} has no data to look at")
        data = bytes(0)
        if self.nbytes:
            data = (ctypes.c_char * self.nbytes).from_address(self.address)  # type: ignore[assignment]
        shape = tuple(dim for dim in self.shape or () if isinstance(dim, int))
        return _as_array(data, self.elem_type, shape)


@dataclass(frozen=True, slots=True)
class RawNode:
    """One node; inputs and outputs are indices of `RawGraph.values`, -1 where an optional one is missing."""

    id: int
    name: str
    op_type: str
    domain: str
    since_version: int
    ep_name: str
    n_subgraphs: int
    inputs: tuple[int, ...]
    implicit_inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attrs: dict[str, Attribute | None]  # None: it has a value that is not carried


@dataclass(frozen=True, slots=True)
class RawGraph:
    """What one call of GetCapability saw. Nodes are in topological order."""

    api_version: int
    ort_version: str
    model_path: str
    name: str
    is_subgraph: bool
    opsets: dict[str, int]
    options: dict[str, str]
    values: tuple[RawValue, ...]
    nodes: tuple[RawNode, ...]


def read(buffer: memoryview) -> RawGraph:
    """Parse a graph buffer; raises ValueError when it is not one."""
    try:
        return _Reader(bytes(buffer)).graph()
    except (StructError, OverflowError) as error:
        raise ValueError(f"the graph buffer is cut short or damaged ({error})") from error


def _as_array(data: Any, elem_type: int, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = np.frombuffer(data, _DTYPES.get(elem_type, np.uint8))
    if elem_type in _DTYPES:
        array = array.reshape(shape)
    array.flags.writeable = False
    return array


_U32 = Struct("<I").unpack_from
_I32 = Struct("<i").unpack_from
_U8 = Struct("<B").unpack_from
_I64 = Struct("<q").unpack_from
_F32 = Struct("<f").unpack_from
_TYPE_RANK = Struct("<ii").unpack_from
_FLAGS_BYTES_DATA = Struct("<IQQ").unpack_from
_U64 = Struct("<Q").unpack_from
# Most lists are short, so the formats of such are compiled once.
_SHORT = 64
_LISTS: dict[tuple[str, int], Struct] = {}


class _Reader:
    """A cursor over the bytes. Session creation waits for this, hence the plain loops and the memory for strings."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.n_values = 0
        self.known: dict[bytes, str] = {}

    def graph(self) -> RawGraph:
        if self.data[:4] != b"XYGB":
            raise ValueError("this is no graph buffer")
        self.at = 4
        if (version := self.u32()) != VERSION:
            raise ValueError(f"the graph buffer has version {version}, this is for {VERSION}")
        api_version = self.u32()
        ort_version, model_path, name = self.text(), self.text(), self.text()
        is_subgraph = bool(self.scalar(_U8, 1))
        opsets = {self.text(): self.scalar(_I64, 8) for _ in range(self.u32())}
        options = {self.text(): self.text() for _ in range(self.u32())}
        values = tuple([self.value() for _ in range(self.u32())])
        self.n_values = len(values)
        nodes = tuple([self.node() for _ in range(self.u32())])
        if self.at != len(self.data):
            raise ValueError("the graph buffer has bytes too many")
        return RawGraph(
            api_version=api_version,
            ort_version=ort_version,
            model_path=model_path,
            name=name,
            is_subgraph=is_subgraph,
            opsets=opsets,
            options=options,
            values=values,
            nodes=nodes,
        )

    def value(self) -> RawValue:
        name = self.text()
        elem_type, rank = _TYPE_RANK(self.data, self.at)
        self.at += 8
        shape = None if rank < 0 else tuple([self.dim() for _ in range(rank)])
        flags, nbytes, address = _FLAGS_BYTES_DATA(self.data, self.at)
        self.at += 20
        return RawValue(name, elem_type, shape, flags, nbytes, address)

    def dim(self) -> int | str | None:
        (size,) = _I64(self.data, self.at)
        self.at += 8
        symbol = self.text()
        return int(size) if size >= 0 else (symbol or None)

    def node(self) -> RawNode:
        node_id = self.scalar(_U64, 8)
        name, op_type, domain = self.text(), self.text(), self.text()
        since_version = self.scalar(_I32, 4)
        ep_name = self.text()
        n_subgraphs = self.u32()
        inputs, implicit, outputs = self.numbers("i", 4), self.numbers("i", 4), self.numbers("i", 4)
        used = (*inputs, *implicit, *outputs)
        if used and not (min(used) >= -1 and max(used) < self.n_values):
            raise ValueError(f"node {name!r} names a value that is not there")
        attrs: dict[str, Attribute | None] = {}
        for _ in range(self.u32()):
            key = self.text()
            attrs[key] = self.attribute(self.scalar(_I32, 4))
        return RawNode(node_id, name, op_type, domain, since_version, ep_name, n_subgraphs, inputs, implicit, outputs, attrs)

    def attribute(self, kind: int) -> Attribute | None:
        """None for what has no payload: subgraphs, and kinds that this version does not know."""
        if kind == 1:
            return int(self.scalar(_I64, 8))
        if kind == 2:
            return self.numbers("q", 8)
        if kind == 3:
            return float(self.scalar(_F32, 4))
        if kind == 4:
            return self.numbers("f", 4)
        if kind == 5:
            return self.text()
        if kind == 6:
            return tuple([self.text() for _ in range(self.u32())])
        return self.tensor() if kind == 8 else None

    def tensor(self) -> npt.NDArray[Any]:
        elem_type = self.scalar(_I32, 4)
        shape = self.numbers("q", 8)
        nbytes = self.scalar(_U64, 8)
        data = self.data[self.at : self.at + nbytes]
        self.at += nbytes
        if self.at > len(self.data):
            raise ValueError("the graph buffer ends too early")
        if elem_type == 8:  # the buffer does not carry strings
            return np.broadcast_to(np.array(None, dtype=object), shape)
        return _as_array(data, elem_type, shape)

    def u32(self) -> int:
        (value,) = _U32(self.data, self.at)
        self.at += 4
        return int(value)

    def scalar(self, unpack: Any, size: int) -> Any:
        (value,) = unpack(self.data, self.at)
        self.at += size
        return value

    def numbers(self, code: str, size: int) -> tuple[Any, ...]:
        (n,) = _U32(self.data, self.at)
        at = self.at + 4
        self.at = at + n * size
        if n == 0:
            return ()
        if self.at > len(self.data):
            raise ValueError("the graph buffer ends too early")
        layout = _LISTS.get((code, n))
        if layout is None:
            layout = Struct(f"<{n}{code}")
            if n <= _SHORT:
                _LISTS[code, n] = layout
        return layout.unpack_from(self.data, at)

    def text(self) -> str:
        data, at = self.data, self.at
        (n,) = _U32(data, at)
        at += 4
        self.at = at + n
        raw = data[at : at + n]
        text = self.known.get(raw)
        if text is None:
            text = self.known[raw] = raw.decode("utf-8", "surrogateescape")
        return text
