"""What a program means, in float64 (int64, bool): the reference that all kernels are checked against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xyntra_ep.tracea.core_ir.dtypes import DType, from_float64, to_float64
from xyntra_ep.tracea.core_ir.ops import Program, ValueKind
from xyntra_ep.tracea.core_ir.ops.memory import Array, Memory


def interpret(
    program: Program,
    inputs: Sequence[Array],
    constants: Sequence[Array] = (),
    *,
    keep_float64: bool = True,
) -> list[Array]:
    """Run ``program``; returns the island's outputs (float64 when ``keep_float64``, else rounded to their stored types)."""
    symbols: dict[str, int] = {}
    for b in program.bindings:
        source = inputs[b.input]
        symbols[b.name] = int(source.shape[b.index] if b.kind == "dim" else source.reshape(-1)[b.index])
    memory = Memory(program.values, program.with_definitions(symbols), keep_float64)
    for i, value in enumerate(program.values):
        if value.kind is ValueKind.INPUT:
            memory.flat[i] = to_float64(np.ascontiguousarray(inputs[value.index]).reshape(-1), value.dtype)
        elif value.kind is ValueKind.CONST:
            memory.flat[i] = to_float64(np.ascontiguousarray(constants[value.index]).reshape(-1), value.dtype)
        elif value.kind is ValueKind.LITERAL:
            memory.flat[i] = to_float64(np.frombuffer(value.literal, dtype=value.dtype.numpy), value.dtype)
    with np.errstate(all="ignore"):
        for op in program.ops:
            op.interpret(memory)
    outputs = sorted((v.index, i) for i, v in enumerate(program.values) if v.kind is ValueKind.OUTPUT)
    results = []
    for _, i in outputs:
        value = program.values[i]
        array = memory.flat[i].reshape(memory.shape(value.shape))
        results.append(array if keep_float64 else from_float64(array, value.dtype))
    return results


def random_like(shape: tuple[int, ...], dtype: DType, seed: int) -> Array:
    """Seeded test data in the stored type: normal floats, small integers, any bytes (packed weights are), fair bools."""
    rng = np.random.default_rng(seed)
    if dtype.is_float:
        return from_float64(rng.standard_normal(shape), dtype)
    return rng.integers(0, {DType.BOOL: 2, DType.U8: 256}.get(dtype, 7), shape).astype(dtype.numpy)
