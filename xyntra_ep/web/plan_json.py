"""What a browser reads of a plan: the rows of docs/plan-format.md as JSON, and the constants in one file.

`plan.json` has a part for each target, made from the very bytes that a session would have. Buffers name their constants by
position in `weights.parts`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xyntra_ep.errors import XyntraError
from xyntra_ep.fusion.graph import Graph, GraphValue
from xyntra_ep.tracea.core_ir.dtypes import from_ort
from xyntra_ep.tracea.planning.manifest_reader import ReadAlternative, ReadBuffer, ReadStep, read_island
from xyntra_ep.tracea.planning.plan import BufferKind
from xyntra_ep.web.whole_plan import WholePlan

_EXACT = 1 << 53  # larger integers are no numbers of JavaScript's
_ALIGNMENT = 64
_OPERANDS = (1, 1, *[2] * 14, 1, 3)  # of the operations of sizes, by number


@dataclass(slots=True)
class Weights:
    """The constants of all targets, equal ones once."""

    data: bytearray = field(default_factory=bytearray)
    parts: list[tuple[int, int]] = field(default_factory=list)  # where each begins, and its bytes
    _known: dict[bytes, int] = field(default_factory=dict)

    def add(self, data: bytes) -> int:
        """The position of ``data`` among the parts."""
        digest = hashlib.sha256(data).digest()
        if digest not in self._known:
            self.data += bytes(-len(self.data) % _ALIGNMENT)
            self._known[digest] = len(self.parts)
            self.parts.append((len(self.data), len(data)))
            self.data += data
        return self._known[digest]

    def json(self, file: str) -> dict[str, Any]:
        digest = hashlib.sha256(self.data).hexdigest()[:16]
        return {"file": file, "bytes": len(self.data), "digest": digest, "parts": self.parts}


def tensor_json(value: GraphValue) -> dict[str, Any]:
    dtype = from_ort(value.elem_type)
    if dtype is None:
        raise XyntraError(f"{value.name!r} is of a type that kernels do not have", where="web")
    shape = None if value.shape is None else list(value.shape)
    return {"name": value.name, "type": value.elem_type, "bytes": dtype.bytes, "shape": shape}


def island_json(plan: WholePlan, graph: Graph, weights: Weights) -> dict[str, Any]:
    """The part of plan.json that is about one target, but for its kernels."""
    island = read_island(plan.entry.data)
    constants = {name: _constant(graph.values[name], weights) for name in island.constants}
    return {
        "inputs": [tensor.name for tensor in island.inputs],
        "ranks": [tensor.rank for tensor in island.inputs],
        "outputs": [tensor.name for tensor in island.outputs],
        "alternatives": [_alternative(a, list(constants.values()), weights) for a in island.alternatives],
    }


def _constant(value: GraphValue, weights: Weights) -> int:
    assert value.read is not None
    return weights.add(np.ascontiguousarray(value.read()).tobytes())


def _alternative(one: ReadAlternative, constants: list[int], weights: Weights) -> Mapping[str, Any]:
    found: dict[str, Any] = {
        "symbols": one.symbols,
        "sizes": [[op, *(_number(x) for x in (a, b, c)[: _OPERANDS[op]])] for op, a, b, c in one.sizes],
        "guards": one.guards,
        "checks": one.checks,
        "outputs": one.output_shapes,
        "buffers": [_buffer(buffer, constants, weights) for buffer in one.buffers],
        "init": [_step(step) for step in one.init],
        "run": [_step(step) for step in one.run],
    }
    if one.faults:
        found["faults"] = one.faults
    if one.loops:
        found["loops"] = [[loop.first, loop.last, loop.images, loop.strides] for loop in one.loops]
    return found


def _number(value: int) -> int | str:
    return value if abs(value) < _EXACT else str(value)


def _buffer(buffer: ReadBuffer, constants: list[int], weights: Weights) -> list[int]:
    """Kind; what it is of its kind, a size where it has one; and the steps between which an arena's lives."""
    match buffer.kind:
        case BufferKind.CONSTANT:
            return [buffer.kind, constants[buffer.index]]
        case BufferKind.LITERAL:
            return [buffer.kind, weights.add(buffer.literal)]
        case BufferKind.ARENA:
            return [buffer.kind, buffer.size, buffer.first, buffer.last]
        case BufferKind.POOL | BufferKind.INIT:
            return [buffer.kind, buffer.size]
        case _:
            return [buffer.kind, buffer.index]


def _step(step: ReadStep) -> dict[str, Any]:
    if step.tensors:
        raise XyntraError(f"step {step.label!r} copies tensors in boxes, which browsers have no way to", where="web")
    return {
        "kernel": step.kernel,
        "label": step.label,
        "buffers": [[buffer] if offset is None else [buffer, offset] for buffer, offset in step.buffers],
        "params": step.params,
        "units": step.units,
    }
