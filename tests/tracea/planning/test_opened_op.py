"""Kernels that serve many shapes: right for each of them, and one for all of a kind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.machine import WIDEST
from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.elementwise import here, pointwise
from tests.support.programs.random import RandomProgram
from tests.support.programs.recurrences import recurrence
from tests.support.run_program import check_program, general_kernels
from tests.tracea.kernels.attention_programs import AttentionCase
from tests.tracea.kernels.attention_programs import build as attention
from tests.tracea.kernels.block_programs import BlockCase
from tests.tracea.kernels.block_programs import build as blocks
from tests.tracea.kernels.conv_programs import ConvCase, conv_program
from tests.tracea.kernels.gemm_programs import GemmCase
from tests.tracea.kernels.gemm_programs import build as gemm
from xyntra_ep.tracea.core_ir.dims import Dim, symbols_of
from xyntra_ep.tracea.core_ir.expr import call
from xyntra_ep.tracea.core_ir.given_size import GivenSize
from xyntra_ep.tracea.core_ir.ops import Program
from xyntra_ep.tracea.doctor.variants import cpu_variants
from xyntra_ep.tracea.emitters.cpu import emit
from xyntra_ep.tracea.planning.builder import OpBuilder
from xyntra_ep.tracea.planning.opened_op import open_op
from xyntra_ep.tracea.planning.planner import plan_program
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, SCALAR, Capabilities

MACHINES = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, SCALAR)]
SAME = (1,) * 4
STORED_ERR = 5e-3  # half a unit in the last place of bfloat16, which random programs store
CONVS = [
    ConvCase(x=(2, 24, 13, 17), w=(40, 24, 1, 1), tail=("bias", "relu")),
    ConvCase(x=(1, 20, 14, 9), w=(33, 20, 3, 3), pads=SAME, tail=("bias", "residual", "relu")),
    ConvCase(x=(1, 3, 33, 40), w=(64, 3, 7, 7), pads=(3,) * 4, strides=(2, 2)),
    ConvCase(x=(1, 48, 13, 17), w=(48, 1, 3, 3), pads=SAME, group=48, tail=("bias", "relu")),
    ConvCase(x=(1, 32, 12, 12), w=(64, 8, 3, 3), pads=SAME, group=4),
]
GEMMS = [
    GemmCase(m=1, k=70, n=130, symbolic="", epilogue="bias"),
    GemmCase(m=37, k=96, n=65, symbolic="", epilogue="gelu"),
    GemmCase(m=9, k=33, n=20, batch=(3,), a_batch=(3,), b_batch=(3,), constant_b=False, symbolic=""),
    GemmCase(m=20, k=64, n=48, symbolic="m", epilogue="bias"),
]


def texts(program: Program, caps: Capabilities) -> list[str]:
    builder = OpBuilder(caps, cpu_variants(), emit, general=True)
    return [kernel.text for kernel in plan_program(program, caps, builder=builder).kernels]


@pytest.mark.compiler("cc")
@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("case", CONVS, ids=str)
def test_convolutions(case: ConvCase, caps: Capabilities) -> None:
    with general_kernels():
        check_program(*conv_program(case), caps, 3e-6)


@pytest.mark.compiler("cc")
@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("case", GEMMS, ids=str)
def test_products(case: GemmCase, caps: Capabilities) -> None:
    with general_kernels():
        check_program(*gemm(case), caps, 3e-6)


@pytest.mark.compiler("cc")
@pytest.mark.parametrize("caps", MACHINES)
def test_attention(caps: Capabilities) -> None:
    case = AttentionCase(b=2, h=3, s=21, t=34, d=24, e=24, masks=("row",), symbolic="")
    with general_kernels():
        program, inputs = attention(case)
        check_program(program, inputs, [], caps, 3e-6)


@pytest.mark.compiler("cc")
@pytest.mark.parametrize("caps", MACHINES)
def test_block_weights(caps: Capabilities) -> None:
    with general_kernels():
        check_program(*blocks(BlockCase(m=5, k=96, n=37, symbolic=False)), caps, 3e-6)


@pytest.mark.compiler("cc")
@pytest.mark.parametrize("seed", range(8))
def test_random_elementwise_programs(seed: int) -> None:
    made = RandomProgram(seed, rank=(1, 2, 3, 4)[seed % 4], symbolic=seed % 2 == 1, special=seed % 3 == 2)
    made.pointwise(depth=3)
    with general_kernels():
        check_program(made.program, made.inputs, [], WIDEST, STORED_ERR)


def test_layers_of_other_sizes_have_the_same_kernels() -> None:
    def of(m: int, k: int, n: int) -> list[str]:
        return texts(gemm(GemmCase(m=m, k=k, n=n, symbolic="", epilogue="bias"))[0], AVX512)

    assert of(77, 1536, 1536) == of(128, 3072, 2304) == of(9, 2048, 4608)
    assert of(77, 1536, 1536) != of(77, 1536, 1538), "the last vector of 1538 columns is not a whole one"
    assert "1536" not in "".join(of(77, 1536, 1536))


def test_images_of_other_sizes_have_the_same_kernels() -> None:
    def of(side: int, channels: int) -> list[str]:
        case = ConvCase(x=(1, channels, side, side), w=(2 * channels, channels, 1, 1), tail=("bias", "relu"))
        return texts(conv_program(case)[0], AVX2)

    assert of(28, 64) == of(30, 64) == of(28, 80)


def test_sizes_that_are_equal_by_chance_are_one_kernel_with_others() -> None:
    def of(rows: int, columns: int) -> list[str]:
        p = ProgramBuilder()
        x, y = p.input(rows, columns), p.input(rows, columns)
        return texts(pointwise((rows, columns), (x, y), call("add", here(x, 0), here(y, 1)), p), AVX2)

    assert of(24, 40) == of(40, 24) == of(56, 72)


def test_rows_are_symbols_and_channels_are_given() -> None:
    [op] = conv_program(CONVS[1])[0].ops
    opened = open_op(op)
    x, w = opened.op.inputs[:2]
    assert isinstance(x.shape[2], Dim) and type(x.shape[1]) is GivenSize
    assert [type(size) for size in w.shape] == [GivenSize, GivenSize, int, int], "taps are unrolled"
    assert opened.sizes == {name: size for name, size in opened.sizes.items() if size > 1}
    assert symbols_of(x.shape[2]) <= opened.sizes.keys()


def test_what_was_dynamic_stays_so() -> None:
    program, _, _ = gemm(GEMMS[3])
    [op] = program.ops
    assert open_op(op).op.inputs[0].shape[0] == op.inputs[0].shape[0]


def test_recurrences_are_planned() -> None:
    assert texts(recurrence("lstm", 24), AVX2)


def test_taps_of_another_number_are_another_kernel() -> None:
    small = ConvCase(x=(1, 16, 12, 12), w=(16, 16, 3, 3), pads=SAME)
    assert texts(conv_program(small)[0], AVX2) != texts(conv_program(replace(small, w=(16, 16, 5, 5), pads=(2,) * 4))[0], AVX2)
