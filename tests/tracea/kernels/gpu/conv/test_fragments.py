"""conv.fragments against the interpreter by simulation, and through NVRTC: types, strides and pads, ragged sizes, groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.gpu.run import check_simulated, compile_for_cuda, plan_for
from tests.tracea.kernels.conv_programs import ConvCase, conv_program
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv, Product
from xyntra_ep.tracea.doctor.occupancy import occupancy
from xyntra_ep.tracea.kernels.gpu.conv import fragments as conv_fragments
from xyntra_ep.tracea.kernels.gpu.conv._places import hoisting
from xyntra_ep.tracea.kernels.gpu.conv._product import product_of
from xyntra_ep.tracea.kernels.gpu.conv.fragments import VARIANTS
from xyntra_ep.tracea.kernels.gpu.tensor_cores._fragment_tiles import Copy, FragmentTile
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant
from xyntra_ep.tracea.runtime import nvrtc
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU, SM_80, SM_90, Gpu

[FRAGMENTS] = VARIANTS
ALL_TILES = conv_fragments.all_tiles(DType.F16)
ONES = (1,) * 4
HALF = ConvCase(x=(2, 16, 7, 6), w=(24, 16, 3, 3), pads=ONES, dtype=DType.F16, w_dtype=DType.F16)
SHORT = replace(HALF, dtype=DType.BF16, w_dtype=DType.BF16)
TF32 = replace(HALF, dtype=DType.F32, w_dtype=DType.F32, out_dtype=DType.F32, product=Product.TF32)
CASES = (
    replace(HALF, tail=("bias", "residual", "relu"), symbolic="nhw"),
    replace(SHORT, x=(2, 32, 9, 8), w=(16, 32, 2, 3), strides=(2, 1), dilations=(1, 2), out_dtype=DType.F32),
    replace(HALF, x=(3, 64, 5, 5), w=(72, 64, 1, 1), pads=(), out_dtype=DType.F32),
    replace(HALF, x=(1, 16, 6, 6), w=(14, 8, 3, 3), group=2, out_dtype=DType.F32),
    replace(SHORT, w_dtype=DType.F32, product=Product.BF16, out_dtype=DType.F32),
    replace(HALF, x=(1, 16, 4, 5), w_dtype=DType.F32, product=Product.F16, out_dtype=DType.F32),
    replace(HALF, x=(1, 8, 9), w=(5, 8, 3), pads=(1, 1), slice_of=24, constant_w=False),
    replace(TF32, tail=("bias", "residual", "relu"), symbolic="nhw"),
    replace(TF32, x=(2, 12, 9, 8), w=(16, 12, 2, 3), strides=(2, 1), dilations=(1, 2)),
    replace(TF32, x=(1, 8, 6, 6), w=(14, 4, 3, 3), group=2),
    replace(TF32, x=(2, 3, 9, 8), w=(16, 3, 3, 3), strides=(2, 2)),
)


def with_tile(rows: int, columns: int, slots: int, parts: int = 1) -> Variant[Conv]:
    """The variant with another default."""
    config = {"rows": rows, "columns": columns, "slots": slots, "parts": parts}
    return replace(FRAGMENTS, default=lambda op, context: config)


def max_err(case: ConvCase) -> float:
    """Products of 16-bit floats are exact in f32: what is left is the order of the sums, and what is stored."""
    return 3e-6 if case.out_dtype is DType.F32 else 1e-3 if case.dtype is DType.F16 else 8e-3


@pytest.mark.parametrize("case", CASES, ids=ConvCase.name)
def test_convolutions(case: ConvCase) -> None:
    gpu = check_simulated(*conv_program(case), max_err(case), variants=[with_tile(64, 64, 2)])
    assert gpu.bank_conflicts == 0


def test_parts_of_the_sum() -> None:
    """In NHWC, where images are one product, and in a slice of channels, where each is one of its own; or as a run asks for."""
    few = replace(SM_80, units=1)
    for case in (
        replace(HALF, x=(2, 32, 5, 4), w=(24, 32, 3, 3), tail=("bias", "residual", "relu")),
        replace(HALF, x=(2, 64, 3, 4), w=(24, 32, 3, 3), group=2, out_dtype=DType.F32),
        replace(HALF, x=(1, 32, 5, 4), w=(24, 32, 3, 3), symbolic="n", out_dtype=DType.F32),
        replace(HALF, x=(9, 32, 5, 4), w=(24, 32, 3, 3), symbolic="n", out_dtype=DType.F32),
    ):
        program, inputs, constants = conv_program(case)
        gpu = few if case.symbolic else SM_80
        assert any("parts" in k.symbol for k in plan_for(program, gpu, [with_tile(64, 64, 2, 4)]).kernels)
        check_simulated(program, inputs, constants, max_err(case), variants=[with_tile(64, 64, 2, 4)], gpu=gpu)


@pytest.mark.parametrize(
    "case",
    [
        replace(SHORT, x=(2, 3, 9, 8), w=(16, 3, 3, 3), strides=(2, 2), dtype=DType.F32, w_dtype=DType.F32, product=Product.BF16),
        replace(SHORT, x=(1, 16, 4, 5), dtype=DType.F32, product=Product.BF16, out_dtype=DType.F32),
        replace(HALF, x=(2, 12, 7, 6), w=(24, 12, 3, 3), symbolic="nhw"),
        replace(HALF, x=(1, 16, 6), w=(14, 8, 3), pads=(1, 1), group=2, slice_of=20, out_dtype=DType.F32),
    ],
    ids=ConvCase.name,
)
def test_x_is_copied_where_it_is_stored_otherwise(case: ConvCase) -> None:
    program, inputs, constants = conv_program(case)
    assert any("channels" in kernel.symbol for kernel in plan_for(program, SM_80, [FRAGMENTS]).kernels)
    check_simulated(program, inputs, constants, max_err(case), variants=[with_tile(64, 64, 2)])


def test_three_channels_of_an_image_are_for_matrix_units() -> None:
    image = replace(SHORT, x=(8, 3, 224, 224), w=(64, 3, 7, 7), strides=(2, 2), pads=(3, 3, 3, 3))
    for case in (replace(image, w_dtype=DType.F32, product=Product.BF16), image):
        assert plan_for(conv_program(case)[0], SM_90).decisions[0][1].chosen.name == "conv.fragments"


@pytest.mark.parametrize("tile", [t for t in ALL_TILES if t.slots == 3], ids=lambda t: f"{t.rows}x{t.columns}")
@pytest.mark.parametrize("kind", [HALF, TF32], ids=["f16", "tf32"])
def test_every_tile(tile: FragmentTile, kind: ConvCase) -> None:
    """The largest leaves no room for coordinates."""
    case = replace(kind, x=(3, 40, 5, 5), w=(72, 40, 1, 2), pads=(), out_dtype=DType.F32)
    gpu = check_simulated(*conv_program(case), max_err(case), variants=[with_tile(tile.rows, tile.columns, tile.slots)])
    assert gpu.bank_conflicts == 0


def test_what_is_not_for_fragments() -> None:
    def reason(case: ConvCase, gpu: Gpu = SM_80) -> str | None:
        program = conv_program(case)[0]
        op = program.ops[0]
        assert isinstance(op, Conv)
        return FRAGMENTS.admits(op, BuildContext(caps=SCALAR, program=program, gpu=gpu))

    assert reason(HALF) is None
    assert plan_for(conv_program(HALF)[0], SM_80).decisions[0][1].chosen.name == "conv.fragments"
    assert reason(HALF, ANY_GPU) == "the GPU has no matrix units that are known"
    assert reason(replace(HALF, w_dtype=DType.F32)) == "no fragments of f16 and f32"
    assert reason(replace(HALF, channels_last=False)) == "channels of the result are not neighbours"
    assert reason(replace(HALF, x=(2, 24, 7, 6), w=(24, 12, 3, 3), group=2)) == "channels of a group are not whole packets"


def test_the_largest_tile_leaves_room_for_coordinates() -> None:
    case = replace(HALF, x=(32, 256, 28, 28), w=(512, 256, 3, 3))
    config = plan_for(conv_program(case)[0], SM_80).decisions[0][1].config
    assert config == {"rows": 128, "columns": 128, "slots": 3, "parts": 1}
    program, tile = conv_program(case)[0], conv_fragments.tile_of(config, DType.F16)
    [op] = program.ops
    assert isinstance(op, Conv)
    shape, copy = product_of(op), Copy(tile, tile.rows, along_k=True, is_a=True)
    assert hoisting(shape, copy, SM_80.shared_bytes).pixels and not hoisting(shape, copy, SM_80.common_shared_bytes).pixels


@pytest.mark.compiler("nvrtc")
@pytest.mark.parametrize("kind", [HALF, TF32], ids=["f16", "tf32"])
def test_cuda(kind: ConvCase) -> None:
    program = conv_program(replace(kind, tail=("bias", "residual", "relu"), symbolic="nhw"))[0]
    for rows, columns, slots in ((64, 64, 3), (128, 128, 2)):
        planned = compile_for_cuda(program, [with_tile(rows, columns, slots)], SM_90)
        [source] = [s for s in planned.kernels if "fragments" in s.symbol]
        cubin = nvrtc.load().compile(source.symbol, source.text, "sm_80")
        threads = conv_fragments.tile_of({"rows": rows, "columns": columns, "slots": slots}, kind.dtype).threads
        assert occupancy("sm_80", threads=threads, registers=cubin.registers, shared_bytes=cubin.shared_bytes).blocks >= 2


def test_text(golden: Callable[[str, str], None]) -> None:
    case = replace(HALF, x=(8, 64, 28, 28), w=(64, 64, 3, 3), symbolic="n")
    planned = plan_for(conv_program(case)[0], SM_80, [with_tile(64, 64, 3)])
    [source] = [s for s in planned.kernels if "conv2d" in s.symbol]
    golden(source.text, ".cu")
