"""Products with weights in few bits, and tables of them. ``accuracy_level`` stays where ONNX Runtime computes in float."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper

from tests.hunt.generation.builder import Builder, Value
from tests.hunt.generation.feeds import Fill, Kind
from tests.hunt.recipes._row import Recipe, maybe

INT4, UINT4 = (helper.tensor_dtype_to_np_dtype(t) for t in (TensorProto.INT4, TensorProto.UINT4))


def _matmul_nbits(b: Builder) -> None:
    k = b.pick((1, 8, 16, 31, 64, 77))
    x = b.input([*b.extents(b.whole(1, 2)), (k, k, k)]) if b.chance(0.6) else b.any((np.float32,), least=2)
    k, n = x.shape[-1], b.pick((1, 3, 16, 49))
    bits, block = b.pick((4, 4, 8)), b.pick((16, 32, 32, 64, 128))
    blocks = -(-max(1, k) // block)

    def packed(*shape: int) -> np.ndarray:
        return b.rng.integers(0, 256, shape).astype(np.uint8)

    q = b.constant(packed(n, blocks, block * bits // 8))
    scales = b.constant(b.rng.uniform(-0.1, 0.1, (n, blocks)).astype(np.float32))
    integers = b.constant(packed(n, -(-blocks * bits // 8)))
    floats = b.constant(b.rng.uniform(0, 15, (n, blocks)).astype(np.float32))
    zeros = b.pick((None, None, integers, floats if bits == 4 else None))
    groups = None  # ONNX Runtime has them for 4 bits, and forgets packed zero points then
    if k and bits == 4 and zeros is not integers and b.chance(0.2):
        order = b.rng.permutation(k) if b.chance(0.8) else b.rng.integers(0, k, k)
        groups = b.constant((order // block).astype(np.int32))
    bias = maybe(b, b.constant(b.rng.standard_normal(n).astype(np.float32)), 0.3)
    y = b.one(
        "MatMulNBits",
        [x, q, scales, zeros, groups, bias],
        domain="com.microsoft",
        K=k,
        N=n,
        bits=bits,
        block_size=block,
        accuracy_level=b.pick((None, 0, 1)),
    )
    if b.chance(0.4):
        b.one("Add", [y, b.partner(y)])


def _integers(b: Builder, dtype: Any, *shape: int) -> Value:
    """Of 4 bits numpy has no arithmetic."""
    low, high = {"int4": (-8, 8), "uint4": (0, 16), "int8": (-128, 128), "uint8": (0, 256)}[np.dtype(dtype).name]
    return b.constant(b.rng.integers(low, high, shape).astype(dtype))


def _gather(b: Builder) -> None:
    rows, width, block = b.pick((1, 5, 40)), b.pick((8, 16, 40, 64)), b.pick((16, 32))
    dtype = b.pick((np.uint8, np.uint8, INT4, UINT4))
    bits = b.pick((4, 4, 8)) if dtype is np.uint8 else 4
    per_byte = 8 // bits if dtype is np.uint8 else 1
    blocks = -(-width // block)
    table = _integers(b, dtype, rows, width // per_byte)
    scales = b.constant(b.rng.uniform(-0.1, 0.1, (rows, blocks)).astype(b.pick((np.float32, np.float32, np.float16))))
    zeros = maybe(b, _integers(b, dtype, rows, -(-blocks // per_byte)))
    indices = b.input(b.extents(b.whole(0, 2)), b.pick((np.int64, np.int32)), Fill(Kind.INDEX, -rows, rows + b.chance(0.1)))
    attrs = {"block_size": block, "bits": bits, "gather_axis": 0, "quantize_axis": 1}
    y = b.one("GatherBlockQuantized", [table, indices, scales, zeros], domain="com.microsoft", **attrs)
    if b.chance(0.4):
        b.one("Relu", [y])


def _blocks(b: Builder) -> None:
    """DequantizeLinear of a constant in blocks, before a product."""
    k, n, block = b.pick((16, 31, 64)), b.pick((1, 3, 16, 49)), b.pick((16, 16, 32, 8))
    x = b.input([*b.extents(b.whole(1, 2)), (k, k, k)])
    dtype, blocks = b.pick((INT4, UINT4, np.int8, np.uint8)), -(-k // block)
    operands = [_integers(b, dtype, k, n), b.constant(b.rng.uniform(-0.1, 0.1, (blocks, n)).astype(np.float32))]
    zeros = maybe(b, _integers(b, dtype, blocks, n))
    b.one("MatMul", [x, b.one("DequantizeLinear", [*operands, zeros], axis=0, block_size=block)])


ROWS = [
    Recipe(name="com.microsoft.MatMulNBits", build=_matmul_nbits, weight=1.5),
    Recipe(name="com.microsoft.GatherBlockQuantized", build=_gather),
    Recipe(name="chain.blocks", build=_blocks, since=21),
]
