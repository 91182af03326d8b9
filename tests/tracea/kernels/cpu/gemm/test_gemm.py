"""Every GEMM variant against the interpreter, at the edges of its tiles, on every instruction set this machine has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.support.machine import WIDEST, widest_vectors
from tests.support.printed import c_text
from tests.support.run_program import check_program, plan_for, run_program
from tests.tracea.kernels.gemm_programs import GemmCase, build, gemm_of, swap_output
from xyntra_ep.tracea.core_ir.dtypes import BYTES, DType
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import Gemm, Product
from xyntra_ep.tracea.kernels.cpu.gemm import batched, generic, packed_b
from xyntra_ep.tracea.kernels.cpu.gemm._choice import best_even_tile, best_tile, few_rows_tile
from xyntra_ep.tracea.kernels.cpu.gemm._columns import even_panels
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Tile
from xyntra_ep.tracea.kernels.shared.gemm_shape import shape_of
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities, Prefetching

pytestmark = pytest.mark.compiler("cc")

PACKED, BATCHED, GENERIC = packed_b.VARIANTS, batched.VARIANTS, generic.VARIANTS
MACHINES = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, NEON, SCALAR)]
F32_ERR = 3e-6  # k <= 300 products, each rounded once
STORED_ERR = {DType.F32: F32_ERR, DType.F16: 6e-4, DType.BF16: 5e-3}  # half a unit in the last place of the result


def check(case: GemmCase, caps: Capabilities, variants: list[Variant[Gemm]], max_err: float = F32_ERR) -> None:
    program, inputs, constants = build(case)
    check_program(program, inputs, constants, caps, max_err, variants=variants)


def edges(caps: Capabilities) -> Iterator[tuple[int, int, int]]:
    """(m, k, n) at the edges of the default tile, with a k that is a multiple of the unrolling and one that is not."""
    tile = best_tile(96, caps)
    rows, columns = tile["rows"], tile["columns"]
    for n in (1, columns - 1, columns, columns + 1, columns + caps.lanes + 1, 3 * columns):
        yield rows + 1, 13, n
    for m in (0, 1, 2, rows - 1, rows, rows + 1, 2 * rows + 1, 5 * rows + 3):
        yield m, 16, columns + 2
    for k in (0, 1, 3, 5):
        yield 3, k, columns


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("variants", [PACKED, BATCHED, GENERIC], ids=["packed_b", "batched", "generic"])
def test_edges_of_the_tile(caps: Capabilities, variants: list[Variant[Gemm]]) -> None:
    for m, k, n in edges(caps):
        check(GemmCase(m=m, k=k, n=n, constant_b=variants is PACKED), caps, variants)


@pytest.mark.parametrize("m", range(1, 20))
def test_every_number_of_rows(m: int) -> None:
    check(GemmCase(m=m, k=21, n=96, epilogue="bias"), WIDEST, PACKED)


@pytest.mark.parametrize("caps", MACHINES)
def test_deep_sums_are_as_exact_as_short_ones(caps: Capabilities) -> None:
    check(GemmCase(m=12, k=2541, n=32, symbolic=""), caps, PACKED, max_err=7e-7)  # in one chain of additions 1.5e-6


@pytest.mark.parametrize("caps", MACHINES[:2])
@pytest.mark.parametrize(("depth", "symbolic"), [(420, "m"), (421, "")])
def test_a_long_depth_is_taken_in_parts(caps: Capabilities, depth: int, symbolic: str) -> None:
    """150 rows are more blocks than go through the parts together, 65 columns two widths, 421 steps no whole number of
    iterations."""
    check(GemmCase(m=150, k=depth, n=65, epilogue="residual", symbolic=symbolic), caps, PACKED)


def test_parts_of_a_matrix_in_place() -> None:
    check(GemmCase(m=20, k=421, n=65, epilogue="bias", constant_b=False, symbolic=""), WIDEST, BATCHED)


@pytest.mark.parametrize("caps", MACHINES[:2])
@pytest.mark.parametrize("transpose", ["", "b"])
def test_panels_of_a_run_time_b_are_copied_in_parts(caps: Capabilities, transpose: str) -> None:
    """300 rows are more blocks than go through the parts together, 65 columns two widths and a rest, 590 steps two parts."""
    far = replace(caps, l2_bytes=1 << 12)
    case = GemmCase(m=300, k=590, n=65, transpose=transpose, constant_b=False, symbolic="m", epilogue="residual")
    check(case, far, BATCHED)
    own = GemmCase(m=52, k=37, n=53, batch=(2,), b_batch=(2,), transpose=transpose, constant_b=False, symbolic="")
    check(own, far, BATCHED)
    check(replace(own, dtypes=(DType.F16, DType.F16, DType.F32)), far, BATCHED)


def test_products_of_any_depth_have_tiles_in_common() -> None:
    def tiles(depth: int, epilogue: str) -> dict[str, int]:
        program, _, _ = build(GemmCase(m=150, k=depth, n=96, epilogue=epilogue))
        op = gemm_of(program)
        context = BuildContext(caps=AVX512, program=program, constants=frozenset({op.inputs[1].value}))
        [variant] = PACKED
        functions = variant.build(op, variant.default(op, context), context)[-1].kernel.functions
        return {f.name: id(f) for f in functions if not f.name.startswith("finish")}

    assert len(tiles(768, "none")) > 8
    assert tiles(768, "none") == tiles(3072, "bias") != tiles(770, "bias")


EPILOGUES = (
    "bias", "gelu", "residual", "row", "swapped", "mask", "gather", "lookup", "window", "ahead", "wrapped", "sizes",
)  # fmt: skip


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_epilogues(caps: Capabilities, epilogue: str) -> None:
    for n in (96, 53):
        check(GemmCase(m=9, k=24, n=n, epilogue=epilogue, symbolic=""), caps, PACKED)
    symbolic = "mn" if caps is AVX512 else "n"  # without m: few tiles to compile
    check(GemmCase(m=5, k=9, n=53, batch=(2,), epilogue=epilogue, constant_b=False, symbolic=symbolic), caps, BATCHED)


@pytest.mark.parametrize("epilogue", ["bias", "residual", "mask", "swapped"])
def test_generic_epilogues(epilogue: str) -> None:
    check(GemmCase(m=5, k=9, n=11, batch=(2,), epilogue=epilogue, constant_b=False), SCALAR, GENERIC)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("transpose", ["a", "b", "ab"])
def test_transposed_operands(caps: Capabilities, transpose: str) -> None:
    for m, k, n in ((9, 40, 96), (3, 37, 65)):  # 65: panels of two widths
        check(GemmCase(m=m, k=k, n=n, transpose=transpose, symbolic=""), caps, PACKED)
        symbolic = "mkn" if caps is AVX512 else "kn"  # without m: few tiles to compile
        check(GemmCase(m=m, k=k, n=n, transpose=transpose, constant_b=False, symbolic=symbolic), caps, BATCHED)
    check(GemmCase(m=3, k=37, n=50, transpose=transpose), caps, GENERIC)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("variants", [PACKED, BATCHED], ids=["packed_b", "batched"])
def test_result_with_strided_columns(caps: Capabilities, variants: list[Variant[Gemm]]) -> None:
    program, inputs, constants = build(GemmCase(m=11, k=16, n=50, batch=(2,), epilogue="bias", constant_b=variants is PACKED))
    swap_output(program)
    check_program(program, inputs, constants, caps, F32_ERR, variants=variants)


@pytest.mark.parametrize("batch", [(3,), (2, 3), (1, 4), (0,)])
@pytest.mark.parametrize("epilogue", ["none", "residual", "mask"])
def test_batch_axes_become_rows(batch: tuple[int, ...], epilogue: str) -> None:
    check(GemmCase(m=7, k=12, n=48, batch=batch, epilogue=epilogue, symbolic="0m"), WIDEST, PACKED)


def test_batch_axes_that_do_not_follow_each_other_are_looped_over() -> None:
    case = GemmCase(m=7, k=12, n=48, batch=(3, 2), a_batch=(3, 1), epilogue="residual")
    check(case, WIDEST, PACKED)
    check(case, AVX2, BATCHED)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize(
    ("a_batch", "b_batch"),
    [((2, 3), (2, 3)), ((2, 1), (1, 3)), ((1, 1), (2, 3)), ((2, 3), (3,)), ((2, 3), ()), ((1, 3), (2, 1))],
)
@pytest.mark.parametrize("transpose", ["", "b"])
def test_broadcast_batches(caps: Capabilities, a_batch: tuple[int, ...], b_batch: tuple[int, ...], transpose: str) -> None:
    for symbolic in ("", "01kn"):  # without m: few tiles to compile
        case = GemmCase(
            m=5, k=20, n=37, batch=(2, 3), a_batch=a_batch, b_batch=b_batch, transpose=transpose,
            constant_b=False, symbolic=symbolic, epilogue="residual",
        )  # fmt: skip
        check(case, caps, BATCHED)


@pytest.mark.parametrize("sizes", [(0, 5, 5), (5, 0, 5), (5, 5, 0), (0, 0, 0)])
def test_empty_axes(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    for symbolic in ("", "mkn"):
        check(GemmCase(m=m, k=k, n=n, constant_b=False, symbolic=symbolic), WIDEST, BATCHED)
        check(GemmCase(m=m, k=k, n=n, constant_b=False, symbolic=symbolic), SCALAR, GENERIC)
    check(GemmCase(m=m, k=k, n=n), WIDEST, PACKED)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("stored", [DType.F16, DType.BF16])
def test_narrow_storage(caps: Capabilities, stored: DType) -> None:
    err = STORED_ERR[stored]
    for n in (48, 53):
        for dtypes in ((stored, stored, stored), (DType.F32, stored, DType.F32), (stored, DType.F32, stored)):
            weights = GemmCase(m=3, k=30, n=n, dtypes=dtypes, epilogue="residual", symbolic="")
            check(weights, caps, PACKED, err)
            dynamic = GemmCase(m=3, k=30, n=n, dtypes=dtypes, constant_b=False, symbolic="")
            check(dynamic, caps, BATCHED, err)
    check(GemmCase(m=3, k=30, n=48, dtypes=(stored,) * 3, transpose="b", symbolic=""), caps, PACKED, err)
    check(GemmCase(m=9, k=30, n=11, dtypes=(stored,) * 3), caps, GENERIC, err)


@pytest.mark.parametrize("stored", [DType.I64, DType.I32, DType.I8, DType.U8])
def test_integers_are_exact(stored: DType) -> None:
    product = Product.I32 if stored in BYTES else Product.F32
    dtypes = (stored, stored, DType.I64)
    case = GemmCase(m=5, k=11, n=7, dtypes=dtypes, epilogue="integer", constant_b=False, product=product)
    check(case, SCALAR, GENERIC)
    check(case, WIDEST, GENERIC)


@pytest.mark.parametrize("caps", MACHINES)
def test_special_values_go_through(caps: Capabilities) -> None:
    program, inputs, constants = build(GemmCase(m=9, k=16, n=50, epilogue="bias"))
    inputs[0][2, 3], inputs[0][4, 0], inputs[0][8, 15] = np.nan, np.inf, -np.inf
    inputs[1][7] = np.nan
    check_program(program, inputs, constants, caps, F32_ERR, variants=PACKED)


def test_many_rows_are_divided_into_units() -> None:
    """A weight that fits the cache puts rows first; one that does not puts panels first, then shares out the rows."""
    check(GemmCase(m=700, k=24, n=96, epilogue="bias"), WIDEST, PACKED)
    wide = GemmCase(m=300, k=300, n=576, epilogue="bias")
    check(wide, WIDEST, PACKED)
    program, _, constants = build(wide)
    context = BuildContext(caps=AVX512, program=program, constants=frozenset({1}))
    run = PACKED[0].build(gemm_of(program), PACKED[0].default(gemm_of(program), context), context)[-1]
    assert str(run.units) == "12*max(1, min(3, ceildiv(ceildiv(sm, 8), 4)))"
    assert len(constants) == 1


def test_rows_do_not_depend_on_their_number() -> None:
    """Above two rows, a row's result is the same bits however many rows there are beside it. Narrower machines keep several
    partial sums for more rows than two."""
    program, inputs, constants = build(GemmCase(m=40, k=77, n=96, epilogue="gelu"))
    whole = run_program(program, inputs, constants, AVX512, variants=PACKED)[0]
    for m in (3, 9, 17):
        part = run_program(program, [inputs[0][:m], *inputs[1:]], constants, AVX512, variants=PACKED)[0]
        assert part.tobytes() == whole[:m].tobytes()


@pytest.mark.parametrize("rows", [6, 8, 12, 16])
@pytest.mark.parametrize("columns", [16, 32, 48, 64])
def test_every_configuration_is_legal(rows: int, columns: int) -> None:
    program, inputs, constants = build(GemmCase(m=13, k=20, n=70, epilogue="bias"))
    [variant] = PACKED
    forced = Variant(
        name=variant.name,
        op=Gemm,
        admits=variant.admits,
        space=variant.space,
        default=lambda op, context: {"rows": rows, "columns": columns},
        cost_ns=variant.cost_ns,
        build=variant.build,
    )
    check_program(program, inputs, constants, widest_vectors(), F32_ERR, variants=[forced])


def test_the_choice_between_variants() -> None:
    def chosen(case: GemmCase) -> str:
        program, _, _ = build(case)
        [(_, decision)] = plan_for(program, AVX512).decisions
        return decision.chosen.name

    assert chosen(GemmCase(m=128, k=768, n=768)) == "gemm.packed_b"
    assert chosen(GemmCase(m=1, k=768, n=768, symbolic="")) == "gemm.packed_b"
    assert chosen(GemmCase(m=64, k=64, n=64, batch=(12,), b_batch=(12,))) == "gemm.batched"
    assert chosen(GemmCase(m=128, k=64, n=128, constant_b=False)) == "gemm.batched"
    assert chosen(GemmCase(m=8, k=8, n=8, constant_b=False, dtypes=(DType.I64,) * 3)) == "gemm.generic"


def test_reasons_for_refusing() -> None:
    program, _, _ = build(GemmCase(m=2, k=2, n=2, batch=(3,), b_batch=(3,)))
    op = gemm_of(program)
    known = BuildContext(caps=AVX512, program=program, constants=frozenset({1}))
    unknown = BuildContext(caps=AVX512, program=program)
    assert PACKED[0].admits(op, unknown) == "b is not a constant"
    assert PACKED[0].admits(op, known) == "b differs between batches"
    integers, _, _ = build(GemmCase(m=2, k=2, n=2, dtypes=(DType.I64,) * 3))
    context = BuildContext(caps=AVX512, program=integers, constants=frozenset({1}))
    assert PACKED[0].admits(gemm_of(integers), context) == "a is i64 and b i64, not floats"
    assert BATCHED[0].admits(gemm_of(integers), context) == "a is i64 and b i64, not floats"
    assert GENERIC[0].admits(gemm_of(integers), context) is None


def test_best_tile_pads_least() -> None:
    assert best_tile(768, AVX512) == {"rows": 8, "columns": 48}
    assert best_tile(64, AVX512) == {"rows": 12, "columns": 32}
    assert best_tile(10, AVX512) == {"rows": 16, "columns": 16}
    assert best_tile(50257, AVX512) == {"rows": 12, "columns": 32}
    assert best_tile(768, AVX2) == {"rows": 4, "columns": 24}
    assert best_tile(64, AVX2) == {"rows": 6, "columns": 16}


def test_best_even_tile_has_few_panels_that_are_not_narrow() -> None:
    assert best_even_tile(768, AVX512) == {"rows": 8, "columns": 48}
    assert best_even_tile(65, AVX512) == {"rows": 8, "columns": 48}
    assert best_even_tile(64, AVX512) == {"rows": 12, "columns": 32}
    assert best_even_tile(10, AVX512) == {"rows": 16, "columns": 16}
    assert best_even_tile(24, AVX2) == {"rows": 4, "columns": 24}
    assert best_even_tile(16, AVX2) == {"rows": 6, "columns": 16}
    assert best_even_tile(8, AVX2) == {"rows": 12, "columns": 8}


def few_rows(m: int, caps: Capabilities, *, k: int = 1024, n: int = 1024, symbolic: str = "") -> dict[str, int] | None:
    machine = replace(caps, fma_gflops=115.0, dram_gbs=27.0, l2_bytes=1 << 20)
    program, _, _ = build(GemmCase(m=m, k=k, n=n, symbolic=symbolic))
    tile = few_rows_tile(shape_of(gemm_of(program)), machine)
    return None if tile is None else dict(tile)


def test_few_rows_of_weights_from_memory_are_one_block_or_enough_of_them() -> None:
    """Where a few blocks fetch nothing ahead."""
    narrow, wide = (replace(caps, prefetching=Prefetching.BURST) for caps in (AVX2, AVX512))
    for m in (1, 4, 8, 12, 16, 24):
        assert few_rows(m, narrow) is None, "the usual tile is right, or no other is better"
    for m in (5, 6, 20):
        assert few_rows(m, narrow) == few_rows(m, narrow, k=1021, n=1028) == {"rows": 6, "columns": 16}
    assert few_rows(8, wide) is None and few_rows(16, wide) is None
    assert few_rows(12, wide) == {"rows": 12, "columns": 32}
    assert few_rows(6, narrow, k=512, n=512) is None, "the weights stay near"
    assert few_rows(6, narrow, symbolic="m") is None
    for prefetching in (Prefetching.NEAR, Prefetching.FAR):
        assert few_rows(6, replace(AVX2, prefetching=prefetching)) is None


@pytest.mark.parametrize(("caps", "rows"), [(AVX512, (9, 12)), (AVX2, (5, 6, 19, 20))], ids=["avx512", "avx2"])
def test_few_rows_of_weights_from_memory(caps: Capabilities, rows: tuple[int, ...]) -> None:
    """With a last panel that is not whole and a last turn of k that is not."""
    for m in rows:
        case = GemmCase(m=m, k=131, n=187, epilogue="bias", symbolic="")
        program, _, _ = build(case)
        for prefetching in Prefetching:
            machine = replace(caps, l2_bytes=64 << 10, prefetching=prefetching)
            is_special = few_rows_tile(shape_of(gemm_of(program)), machine) is not None
            assert is_special == (prefetching is Prefetching.BURST)
            check(case, machine, PACKED)


@pytest.mark.parametrize("columns", [1, 16, 17, 48, 49, 64, 65, 80, 112, 113, 333, 768])
def test_panels_are_even_and_pad_less_than_a_vector(columns: int) -> None:
    panels = even_panels(columns, Tile(rows=8, vectors=3, lanes=16))
    assert isinstance(panels.number, int)
    widths = [16 * (panels.least + (i < panels.larger)) for i in range(panels.number)]
    assert columns <= sum(widths) < columns + 16
    assert panels.columns == sum(widths)
    assert max(widths) <= 48
    assert max(widths) - min(widths) <= 16


@pytest.mark.parametrize(
    ("variants", "caps", "transpose"),
    [
        pytest.param(PACKED, AVX512, "", id="packed_b-avx512"),
        pytest.param(PACKED, NEON, "b", id="packed_b-neon"),
        pytest.param(BATCHED, AVX2, "", id="batched-avx2"),
        pytest.param(GENERIC, SCALAR, "", id="generic-scalar"),
    ],
)
def test_text(variants: list[Variant[Gemm]], caps: Capabilities, transpose: str, golden: Callable[[str, str], None]) -> None:
    case = GemmCase(m=2, k=5, n=12, epilogue="bias", symbolic="", transpose=transpose)
    program, _, _ = build(case)
    context = BuildContext(caps=caps, program=program, constants=frozenset({1}))
    [variant], op = variants, gemm_of(program)
    calls = variant.build(op, variant.default(op, context), context)
    golden("\n".join(c_text(call.kernel, caps) for call in calls), ".c")


def test_interpreter_agrees_with_numpy() -> None:
    """The reference of this file is itself tied to something else."""
    program, [a, bias], [b] = build(GemmCase(m=4, k=5, n=6, epilogue="bias", symbolic=""))
    expected = a.astype(np.float64) @ b.astype(np.float64) + bias
    np.testing.assert_allclose(interpret(program, [a, bias], [b])[0], expected)
