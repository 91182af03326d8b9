"""gemm.gemv against the interpreter by simulation and by OpenCL, and through NVRTC: few rows, both layouts, parts of k."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.gpu.run import check_on_opencl, check_simulated, compile_for_cuda, plan_for
from tests.tracea.kernels.gemm_programs import GemmCase, build, gemm_of, swap_output
from xyntra_ep.tracea.core_ir.dims import evaluate
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm, Product
from xyntra_ep.tracea.kernels.gpu.gemm import any_rows, gemv
from xyntra_ep.tracea.kernels.gpu.gemm._gemv_tiles import ROWS, THREADS, GemvTile, widest
from xyntra_ep.tracea.kernels.gpu.shared.sum_parts import parts_of
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU, SM_80, SM_90, SM_90A, Gpu

[GEMV] = gemv.VARIANTS
HALF, SHORT = (DType.F16, DType.F16, DType.F16), (DType.BF16, DType.BF16, DType.F32)
MAX_ERR = 2e-6


def with_config(rows: int, parts: int = 1) -> Variant[Gemm]:
    """The variant with another default, for any number of rows."""
    return replace(GEMV, default=lambda op, context: {"rows": rows, "parts": parts}, admits=lambda op, context: None)


def check(case: GemmCase, variant: Variant[Gemm], max_err: float = MAX_ERR, gpu: Gpu = SM_80) -> None:
    """As CUDA's kernel, simulated. Stores of results meet no conflicts."""
    program, inputs, constants = build(case)
    assert check_simulated(program, inputs, constants, max_err, variants=[variant], gpu=gpu).bank_conflicts == 0


def check_opencl(case: GemmCase, variant: Variant[Gemm], max_err: float = MAX_ERR) -> None:
    program, inputs, constants = build(case)
    check_on_opencl(program, inputs, constants, max_err, variants=[variant])


def tiles(subgroup: int) -> list[GemvTile]:
    """Everything that an operand may ask for."""
    return [
        GemvTile(rows=rows, along_k=along_k, packet=packet, dtype=dtype, subgroup=subgroup)
        for rows in ROWS
        for along_k in (False, True)
        for dtype in (DType.F32, DType.F16)
        for packet in (1, 2, 4, 8)
        if packet <= widest(dtype)
    ]


def test_every_element_of_b_is_read_once() -> None:
    for tile in tiles(32):
        lanes = tile.lanes()
        read = [
            (p["k"] * tile.deep + i, p["o"] * tile.wide + j)
            for p in map(lanes.at, range(THREADS))
            for i in range(tile.deep)
            for j in range(tile.wide)
        ]
        assert sorted(read) == [(k, o) for k in range(tile.depth) for o in range(tile.columns)], tile


def test_every_sum_meets_all_others_of_its_column() -> None:
    for tile in tiles(32) + tiles(1):
        lanes, masks = tile.lanes(), tile.exchanges()
        for mask in masks:
            assert all(lanes.at(t)["o"] == lanes.at(t ^ mask)["o"] for t in range(THREADS)), tile
        assert tile.meeting << len(masks) == lanes.extent("k") and sum(masks) < tile.subgroup, tile


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("transpose", ["", "b"])
def test_layouts_and_ragged_sizes(rows: int, transpose: str) -> None:
    for m, k, n in ((rows, 260, 36), (rows + 1, 131, 67)):
        check(GemmCase(m=m, k=k, n=n, transpose=transpose, symbolic="", epilogue="bias"), with_config(rows))


@pytest.mark.parametrize("transpose", ["", "b"])
def test_threads_that_exchange_nothing_meet_without_conflicts(transpose: str) -> None:
    case = GemmCase(m=2, k=260, n=36, transpose=transpose, symbolic="")
    check(case, with_config(2), gpu=replace(SM_80, subgroup=1))


@pytest.mark.parametrize("dtypes", [HALF, SHORT, (DType.F32, DType.BF16, DType.F32)], ids=["f16", "bf16", "mixed"])
def test_types(dtypes: tuple[DType, DType, DType]) -> None:
    for transpose in ("", "ab"):
        case = GemmCase(m=2, k=152, n=136, dtypes=dtypes, transpose=transpose, symbolic="")
        check(case, with_config(2), 1e-3 if dtypes is HALF else MAX_ERR)
    check(GemmCase(m=2, k=77, n=70, dtypes=dtypes, transpose="b", symbolic=""), with_config(2), 1e-3)


def test_parts_of_k_are_added_up() -> None:
    for transpose in ("", "b"):
        check(GemmCase(m=3, k=700, n=36, transpose=transpose, epilogue="gelu", symbolic="", batch=(2,)), with_config(4, 4), 1e-5)
    # How many there are is known when the run's sizes are; then blocks may finish alone.
    for m in (1, 3):
        case = GemmCase(m=m, k=530, n=36, epilogue="residual", symbolic="mk", constant_b=False)
        check(case, with_config(1, 4), 1e-5, gpu=replace(SM_80, units=3))
    check(GemmCase(m=2, k=0, n=6, epilogue="bias", symbolic="k", constant_b=False), with_config(2, 4))


def test_as_many_parts_as_fill_the_device() -> None:
    assert parts_of(768, 32, blocks=24, wanted=132, most=16).count == 5
    assert parts_of(768, 32, blocks=24, wanted=132, most=4).count == 4
    assert parts_of(768, 32, blocks=1, wanted=132, most=16).count == 6  # of four steps
    assert parts_of(64, 32, blocks=1, wanted=132, most=16, fewest=1).count == 2  # none is empty
    assert parts_of(9 * 32, 32, blocks=1, wanted=6, most=16, fewest=1).count == 5
    assert not parts_of(0, 32, blocks=1, wanted=132, most=16).is_cut
    assert not parts_of(768, 32, blocks=133, wanted=132, most=16).is_cut


@pytest.mark.device("opencl")
@pytest.mark.parametrize("transpose", ["", "b"])
def test_opencl(transpose: str) -> None:
    check_opencl(GemmCase(m=1, k=131, n=67, transpose=transpose, symbolic="m", epilogue="bias"), with_config(1))
    check_opencl(GemmCase(m=5, k=260, n=36, transpose=transpose, symbolic="", epilogue="gelu"), with_config(4, 4), 1e-5)
    check_opencl(GemmCase(m=2, k=152, n=136, transpose=transpose, symbolic="", dtypes=HALF), with_config(2), 1e-3)


@pytest.mark.device("opencl")
def test_batches_and_a_result_with_swapped_axes() -> None:
    check_opencl(GemmCase(m=2, k=12, n=20, batch=(2, 3), a_batch=(1, 3), b_batch=(2, 1), constant_b=False), with_config(2))
    check_opencl(GemmCase(m=3, k=20, n=36, batch=(3,), b_batch=(3,), constant_b=False, symbolic="0m"), with_config(4))
    check_opencl(GemmCase(m=0, k=4, n=6), with_config(1))
    program, inputs, constants = build(GemmCase(m=3, k=19, n=70, symbolic=""))
    swap_output(program)
    check_on_opencl(program, inputs, constants, MAX_ERR, variants=[with_config(1, 4)])


def test_constant_weights_are_read_in_bf16_where_that_may_be() -> None:
    case = GemmCase(m=2, k=43, n=67, product=Product.BF16, symbolic="", epilogue="residual")
    check(case, with_config(2), 8e-3)
    names = [k.symbol for k in plan_for(build(case)[0], SM_80, [with_config(2)]).kernels]
    assert any(name.startswith("xy_gemv_f32_bf16") for name in names)
    names = [k.symbol for k in plan_for(build(replace(case, constant_b=False))[0], SM_80, [with_config(2)]).kernels]
    assert any(name.startswith("xy_gemv_f32_f32") for name in names)


def choice(case: GemmCase, gpu: Gpu = SM_90) -> tuple[str, dict[str, int]]:
    decision = plan_for(build(case)[0], gpu).decisions[0][1]
    return decision.chosen.name, dict(decision.config)


def test_few_rows_are_read_in_packets() -> None:
    """GPT-2's products when it decodes; more rows go to tiles."""
    assert choice(GemmCase(m=1, k=768, n=3072, symbolic=""))[0] == "gemm.gemv"
    assert choice(GemmCase(m=8, k=768, n=3072, dtypes=SHORT, symbolic=""))[0] == "gemm.gemv"
    assert choice(GemmCase(m=1, k=768, n=3072, symbolic=""), ANY_GPU)[0] == "gemm.gemv"
    assert choice(GemmCase(m=128, k=768, n=3072, symbolic=""))[0] == "gemm.block_tiles"
    integers = (DType.I8, DType.I8, DType.I64)
    for case, reason in (
        (GemmCase(m=17, k=8, n=8, symbolic=""), "17 rows, more than 16, are for tiles"),
        (GemmCase(m=1, k=8, n=8), "the number of rows is not known"),
        (GemmCase(m=1, k=8, n=8, dtypes=integers, constant_b=False), "no product of i8 and i8"),
    ):
        program, _, _ = build(case)
        assert GEMV.admits(gemm_of(program), BuildContext(caps=SCALAR, program=program, gpu=SM_80)) == reason


@pytest.mark.parametrize("dtypes", [SHORT, (DType.F32,) * 3], ids=["fragments", "block_tiles"])
@pytest.mark.parametrize("constant", [True, False])
def test_where_only_a_run_knows_the_rows_it_chooses(dtypes: tuple[DType, DType, DType], constant: bool) -> None:
    tiles = "gemm.fragments_or_gemv" if dtypes is SHORT else "gemm.block_tiles_or_gemv"
    case = GemmCase(m=1, k=264, n=36, transpose="a", dtypes=dtypes, epilogue="bias", constant_b=constant, symbolic="m")
    planned = plan_for(build(case)[0], SM_80)
    assert planned.decisions[0][1].chosen.name == tiles
    for m in (1, 8, 9, 200):
        run = [planned.kernels[step.kernel].symbol for step in planned.run if evaluate(step.units, {"sm": m}) > 0]
        ours = [name for name in run if "gemv" in name], [name for name in run if "fragments" in name or "x" in name[8:]]
        assert [len(names) for names in ours] == ([1, 0] if m <= 8 else [0, 1]), run
    for m in (1, 8, 9):
        program, inputs, constants = build(replace(case, m=m))
        check_simulated(program, inputs, constants, 1e-5)


def test_warpgroups_have_it_beside_them_too() -> None:
    case = GemmCase(m=1, k=128, n=72, dtypes=SHORT, batch=(4,), b_batch=(4,), constant_b=False, symbolic="0m")
    [wide] = [v for v in any_rows.VARIANTS if v.name == "gemm.wgmma_or_gemv"]
    for m in (1, 9):
        program, inputs, constants = build(replace(case, m=m))
        check_simulated(program, inputs, constants, 1e-5, variants=[wide], gpu=SM_90A)


def test_constants_are_copied_once_for_both() -> None:
    case = GemmCase(m=3, k=67, n=67, product=Product.BF16)
    planned = plan_for(build(case)[0], SM_80)
    assert planned.decisions[0][1].chosen.name == "gemm.fragments_or_gemv"
    assert ["narrow" in planned.kernels[step.kernel].symbol for step in planned.init] == [True]
    program, inputs, constants = build(case)
    check_simulated(program, inputs, constants, 8e-3)


def test_every_configuration_is_legal() -> None:
    for gpu in (ANY_GPU, SM_80):
        for transpose in ("", "b"):
            program, _, _ = build(GemmCase(m=8, k=64, n=64, transpose=transpose, dtypes=SHORT, symbolic=""))
            context = BuildContext(caps=SCALAR, program=program, gpu=gpu)
            rows = next(axis for axis in GEMV.space(gemm_of(program), context) if axis.name == "rows").values
            assert rows and set(rows) <= set(ROWS) and (gpu is ANY_GPU or rows == ROWS)


@pytest.mark.compiler("nvrtc")
def test_cuda() -> None:
    case = GemmCase(m=8, k=768, n=776, dtypes=SHORT, symbolic="", epilogue="gelu")
    compile_for_cuda(build(case)[0], [with_config(8, 4)], SM_90)
    compile_for_cuda(build(GemmCase(m=1, k=771, n=50257, transpose="b"))[0], [with_config(4, 4)], SM_90)


def test_text(golden: Callable[[str, str], None]) -> None:
    program, _, _ = build(GemmCase(m=2, k=768, n=768, epilogue="bias", symbolic=""))
    sources = plan_for(program, SM_80, [with_config(2, 4)]).kernels
    golden("\n".join(source.text for source in sources), ".cu")
