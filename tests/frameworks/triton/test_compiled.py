"""Written kernels are taken by Triton's compiler, to machine code of GPUs that need not be here."""

from __future__ import annotations

import pytest

from tests.frameworks.triton.interpreted import needs_triton
from tests.frameworks.triton.test_emission import FULL, PROGRAMS, TINY, islands_of
from tests.tracea.kernels import attention_programs, gemm_programs
from tests.tracea.kernels.attention_programs import AttentionCase
from tests.tracea.kernels.conv_programs import ConvCase, conv_program
from tests.tracea.kernels.gemm_programs import GemmCase
from xyntra_ep.errors import CompileError
from xyntra_ep.frameworks.triton.compiled import compiled
from xyntra_ep.frameworks.triton.module import TritonModule, module_text
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Product, Program

pytestmark = needs_triton[1:]  # by `make test-exports` all but the models of full size
CAPABILITIES = (80, 90)
DAILY = ("bert-base-tiny", "mobilenetv2-qdq-tiny")  # a model takes ten seconds
HALVES: dict[str, Program] = {
    "bf16 product": gemm_programs.build(GemmCase(m=17, k=40, n=24, product=Product.BF16))[0],
    "bf16": gemm_programs.build(GemmCase(m=17, k=40, n=24, dtypes=(DType.BF16, DType.BF16, DType.BF16)))[0],
    "bf16 attention": attention_programs.build(AttentionCase(s=70, t=70, dtype=DType.BF16))[0],
    "bf16 convolution": conv_program(ConvCase(x=(1, 6, 5, 5), w=(20, 6, 3, 3), dtype=DType.BF16, w_dtype=DType.BF16))[0],
}


def check(module: TritonModule, capability: int) -> None:
    found = list(compiled(module, capability=capability))
    assert [kernel.name for kernel in found] == [kernel.name for kernel in module.kernels]
    for kernel in found:
        assert "tt.store" in kernel.ttir and f".target sm_{capability}" in kernel.ptx
        assert kernel.cubin.startswith(b"\x7fELF")


@pytest.mark.torch
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_kinds_of_ops(capability: int) -> None:
    check(module_text("kinds", [make() for make in PROGRAMS.values()]), capability)


@pytest.mark.torch
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_narrow_floats(capability: int) -> None:
    check(module_text("halves", [*HALVES.values()]), capability)


@pytest.mark.torch
@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize("name", [name if name in DAILY else pytest.param(name, marks=pytest.mark.slow) for name in TINY])
def test_islands_of_the_zoo(name: str, capability: int) -> None:
    check(module_text(name, islands_of(name)), capability)


@pytest.mark.slow
@pytest.mark.parametrize("name", FULL)
def test_islands_of_the_full_zoo(name: str) -> None:
    check(module_text(name, islands_of(name)), 90)


@pytest.mark.torch
def test_what_the_compiler_refuses_is_told() -> None:
    module = module_text("bias", [PROGRAMS["bias_gelu"]()])
    wrong = TritonModule(text=module.text.replace("tl.load", "tl.lood"), kernels=module.kernels, refused=())
    with pytest.raises(CompileError, match="Triton refuses pointwise_0 for sm_90"):
        list(compiled(wrong, capability=90))
