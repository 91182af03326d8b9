"""Real elementwise kernels in the memory of their operand: tails and lines shorter than a vector must not read what they
wrote.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.programs.builder import ProgramBuilder
from tests.support.run_program import check_program, plan_for
from xyntra_ep.tracea.planning.plan import BufferKind
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")


@pytest.mark.parametrize("caps", [AVX512, AVX2, NEON, SCALAR], ids=lambda caps: caps.isa)
@pytest.mark.parametrize("n", [3, 17, 64])
def test_a_chain_runs_in_one_buffer(n: int, caps: Capabilities) -> None:
    p = ProgramBuilder()
    x, w = p.input("s", n), p.constant(n)
    y = p.add(x, w)
    for _ in range(2):
        y = p.mul(p.add(y, x), w)
    p.output(p.add(y, y))
    assert sum(b.kind is BufferKind.ARENA for b in plan_for(p.program, caps).buffers) == 1
    rng = np.random.default_rng(n)
    for rows in (1, 5):
        inputs = [rng.standard_normal((rows, n)).astype(np.float32)]
        constants = [rng.standard_normal(n).astype(np.float32)]
        # one rounding per op, of values that grow by a factor of a few
        check_program(p.program, inputs, constants, caps, max_err=1e-6)
