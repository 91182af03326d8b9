"""Every CPU variant that NEON admits, carried out on NEON, against the interpreter in float64: where the machine is another, its
kernels are compiled by a cross compiler and run in QEMU. `make test-neon` runs all tests of NEON."""

from __future__ import annotations

import pytest

from tests.support.machine import need
from tests.support.run_program import carry_out, check_program
from tests.support.work import Array, Buffer, Output, Step, Work
from tests.tracea.emitters.test_cross_compile import admitted
from xyntra_ep.tracea.core_ir.dims import evaluate
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import Attention, Conv, Gemm, Product, Program, Value, ValueKind
from xyntra_ep.tracea.doctor.profile import lacking, this_machine
from xyntra_ep.tracea.planning.plan import BufferKind
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.semantic_ir.capabilities import NEON

pytestmark = pytest.mark.compiler("cc")

RAGGED = (19, 37, 23, 5)  # of symbols: no multiple of a vector or a tile
F32_ERR = 5e-6  # of up to some hundred products, each rounded once
STORED_ERR = {DType.F16: 1e-3, DType.BF16: 8e-3}  # half a unit in the last place of what is stored
# Of products whose operands the interpreter rounds and a processor without the instructions does not.
PRODUCT_ERR = {Product.BF16: 2e-2, Product.F16: 2e-3, Product.TF32: 2e-3, Product.INT8W: 2e-2}
VARIANTS = sorted({variant.name for variant, _, _ in admitted(NEON)})


def feeds(program: Program) -> tuple[list[Array], list[Array]]:
    """Random inputs and constants."""
    sizes = dict(zip([b.name for b in program.bindings], RAGGED, strict=False))
    known = program.with_definitions(sizes)

    def data(kind: ValueKind) -> list[Array]:
        values: list[Value] = sorted((v for v in program.values if v.kind is kind), key=lambda v: v.index)
        return [random_like(tuple(evaluate(s, known) for s in v.shape), v.dtype, 10 * v.index) for v in values]

    return data(ValueKind.INPUT), data(ValueKind.CONST)


def max_err(program: Program, rounds: bool) -> float:
    """``rounds``: what computes it rounds operands as the interpreter does."""
    [op] = program.ops
    product = op.product if isinstance(op, Attention | Conv | Gemm) and not rounds else Product.F32
    stored = [v.dtype for v in program.values if v.kind is ValueKind.OUTPUT]
    return max(PRODUCT_ERR.get(product, F32_ERR), *(STORED_ERR.get(dtype, F32_ERR) for dtype in stored))


@pytest.mark.parametrize("name", VARIANTS)
def test_neon_computes_what_the_variant_means(name: str) -> None:
    for variant, program, _ in admitted(NEON):
        if variant.name == name:
            inputs, constants = feeds(program)
            check_program(program, inputs, constants, NEON, max_err(program, name == "gemm.int8_weights"), variants=[variant])


# What an emulated kernel does wrong is seen: each of these is one mistake.
_BROKEN = {
    "in front of its first byte": "((float *)b[0])[-1] = 1;",
    "behind its last byte": "((float *)b[1])[p[0]] = 1;",
    "status": "((volatile float *)b[0])[p[0]];",
    "far outside": "((float *)b[1])[p[0] + 20] = 1;",
}


@pytest.mark.parametrize("says", _BROKEN)
def test_an_emulated_kernel_that_leaves_its_buffers_is_noticed(says: str) -> None:
    need(NEON)
    if not lacking(this_machine(), NEON):
        pytest.skip("nothing is emulated here: this is an Arm machine")
    text = (
        f'__attribute__((visibility("default"))) void f(void *const *b, const long *p, long begin, long end) '
        f"{{ (void)begin; (void)end; {_BROKEN[says]} }}\n"
    )
    work = Work(
        buffers=[Buffer(kind=BufferKind.OUTPUT, size_bytes=20), Buffer(kind=BufferKind.ARENA, size_bytes=20)],
        run=[Step(label="a step", kernel=0, buffers=[(0, 0), (1, 0)], params=[5], ranges=[(0, 1)])],
        outputs=[Output(buffer=0, shape=(5,), dtype=DType.F32)],
    )
    with pytest.raises(AssertionError, match=rf"a step on neon: .*{says}"):
        carry_out([work], [KernelSource.of_text("f", text)], NEON)
