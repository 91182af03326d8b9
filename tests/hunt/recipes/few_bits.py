"""Products with weights in few bits. ``accuracy_level`` stays where ONNX Runtime computes in float."""

from __future__ import annotations

import numpy as np

from tests.hunt.generation.builder import Builder
from tests.hunt.recipes._row import Recipe, maybe


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
    bias = maybe(b, b.constant(b.rng.standard_normal(n).astype(np.float32)), 0.3)
    y = b.one(
        "MatMulNBits",
        [x, q, scales, zeros, None, bias],
        domain="com.microsoft",
        K=k,
        N=n,
        bits=bits,
        block_size=block,
        accuracy_level=b.pick((None, 0, 1)),
    )
    if b.chance(0.4):
        b.one("Add", [y, b.partner(y)])


ROWS = [Recipe(name="com.microsoft.MatMulNBits", build=_matmul_nbits, weight=1.5)]
