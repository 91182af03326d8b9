"""gemm.wgmma against the interpreter by simulation, and through NVRTC: types, layouts, ragged sizes, batches, tiles."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.gpu.assembled import assembled
from tests.support.gpu.run import check_simulated, plan_for
from tests.tracea.kernels.gemm_programs import GemmCase, build, gemm_of
from xyntra_ep.tracea.core_ir.dims import evaluate
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm, Product
from xyntra_ep.tracea.kernels.gpu.tensor_cores._wgmma_tiles import COPYING, MULTIPLYING, all_configs, tile_of
from xyntra_ep.tracea.kernels.gpu.tensor_cores.gemm_wgmma import VARIANTS
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import SM_80, SM_90, SM_90A, Gpu
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_nodes import WARPGROUP

[WGMMA] = VARIANTS
HALF = (DType.F16, DType.F16, DType.F32)
SHORT = (DType.BF16, DType.BF16, DType.F32)
ALL_SHORT = (DType.BF16,) * 3
MAX_ERR = 3e-6  # products of 16-bit floats are exact in f32: what is left is the order of the sums
FEW = replace(SM_90A, units=2, shared_bytes=120 << 10)  # blocks have several tiles each, and few slots
CONFIGS = all_configs(FEW)
LAUNCHED = 168  # registers of a thread
# Half of them, in which any two choices meet in all ways: the rest take long and say little more.
OFTEN = [c for c in CONFIGS if (c["part"] + c["turns"] + c["cluster"]) % 2]
SELDOM = [pytest.param(c, marks=pytest.mark.slow) for c in CONFIGS if c not in OFTEN]


def with_tile(part: int, turns: int, parts: int = 1, cluster: int = 1) -> Variant[Gemm]:
    """The variant with another default."""
    config = {"part": part, "turns": turns, "cluster": cluster, "parts": parts}
    return replace(WGMMA, default=lambda op, context: config)


def name_of(config: Config) -> str:
    tile = tile_of(config, SM_90A)
    return f"{tile.rows}x{tile.columns}x{tile.turns}x{tile.cluster}"


def check(case: GemmCase, variant: Variant[Gemm] = WGMMA, max_err: float = MAX_ERR, gpu: Gpu = FEW) -> None:
    program, inputs, constants = build(case)
    planned = plan_for(program, gpu, [variant])
    assert any("wgmma" in source.symbol for source in planned.kernels)
    check_simulated(program, inputs, constants, max_err, variants=[variant], gpu=gpu)


@pytest.mark.parametrize(("transpose", "dtypes"), [("", HALF), ("a", SHORT), ("b", HALF), ("ab", SHORT), ("b", SHORT)])
def test_layouts(transpose: str, dtypes: tuple[DType, DType, DType]) -> None:
    """Both operands along k and across it, more than one tile of each."""
    case = GemmCase(m=136, k=200, n=136, transpose=transpose, dtypes=dtypes, epilogue="bias", symbolic="")
    check(case, with_tile(0, 1))
    check(replace(case, m=8, k=8, n=8), with_tile(0, 2))


@pytest.mark.parametrize("config", [*OFTEN, *SELDOM], ids=name_of)
def test_every_configuration(config: Config) -> None:
    """Several tiles a block, the last ones ragged, one of a cluster's outside; steps that are no multiple of the slots."""
    tile = tile_of(config, FEW)
    case = GemmCase(m=2 * tile.rows + 9, k=64 * 2 + 8, n=tile.columns + 8, dtypes=ALL_SHORT, epilogue="residual", symbolic="mk")
    check(replace(case, transpose="b" if config["part"] else "ab", m=2 * tile.rows + 16), with_tile(**config), max_err=8e-3)


def test_ragged_sizes_and_epilogues() -> None:
    check(GemmCase(m=70, k=56, n=67, transpose="b", dtypes=HALF, symbolic="mk", epilogue="gelu"), max_err=1e-5)
    check(GemmCase(m=1, k=24, n=8, dtypes=HALF, symbolic="m"))
    check(GemmCase(m=5, k=0, n=8, dtypes=HALF, epilogue="bias", symbolic="m"))


def test_batches() -> None:
    """Along which both operands move, or one; the rest are rows."""
    case = GemmCase(m=5, k=72, n=8, batch=(2, 3), b_batch=(2, 3), constant_b=False, dtypes=HALF, epilogue="residual")
    check(case)
    check(replace(case, b_batch=(2, 1), transpose="ab", m=8))
    check(replace(case, b_batch=(3,), a_batch=(2, 1), m=72))


def test_blocks_go_down_bands_of_rows() -> None:
    """More rows of tiles than a band has, the last band not whole; an odd row length is stored one by one."""
    for turns in (1, 2):
        case, tile = GemmCase(m=64 * 5 + 8, k=16, n=136, dtypes=HALF, symbolic="m"), with_tile(0, turns)
        check(replace(case, epilogue="residual"), tile, gpu=replace(FEW, units=3))
        check(replace(case, m=9, n=137, transpose="b"), tile)


def test_a_ring_goes_round_over_tiles() -> None:
    """More steps of k than slots and fewer, on both sides of wide tiles."""
    case = GemmCase(m=136, k=64 * 4 + 8, n=264, transpose="a", dtypes=SHORT, symbolic="mk")
    check(case, with_tile(1, 2), max_err=6e-6)
    check(replace(case, k=40, transpose="ab"), with_tile(1, 1), max_err=6e-6)


def test_blocks_are_as_many_as_multiprocessors_or_tiles() -> None:
    """Also where only a run knows how many tiles there are."""
    for symbolic in ("", "m", "mn"):
        program, _, _ = build(GemmCase(m=1000, k=64, n=256, transpose="b", constant_b=False, dtypes=SHORT, symbolic=symbolic))
        for cluster, known, others in ((1, 16, [0, 2, 4, 21]), (2, 16, [0, 2, 4, 20])):
            steps = plan_for(program, replace(FEW, units=21), [with_tile(0, 1, cluster=cluster)]).run
            assert sum(evaluate(step.units, {"sm": 1000, "sn": 256}) for step in steps) == known
            if symbolic:
                units = [[evaluate(step.units, {"sm": m, "sn": 256}) for step in steps] for m in (0, 1, 129, 5000)]
                assert [sum(n) for n in units] == others and all(n.count(0) >= len(n) - 1 for n in units)


@pytest.mark.parametrize("part", [0, 2])
@pytest.mark.parametrize("symbolic", ["", "m"])
def test_no_block_of_a_cluster_multiplies_nothing_but_zeros(part: int, symbolic: str) -> None:
    """Rows that are in one tile need no second block; where only a run knows, it launches the one kernel or the other."""
    config = {"part": part, "turns": 1, "cluster": 2, "parts": 4}
    rows = tile_of(config, SM_90A).rows
    for m, cluster in ((1, 1), (rows, 1), (rows + 1, 2), (3 * rows, 2)):
        case = GemmCase(m=m, k=768, n=1024, dtypes=SHORT, epilogue="bias", symbolic=symbolic)
        planned = plan_for(build(case)[0], SM_90A, [with_tile(**config)])
        steps = [(planned.kernels[s.kernel].symbol, s) for s in planned.run]
        products = [(name, s) for name, s in steps if "wgmma" in name]
        [done] = [name for name, s in products if evaluate(s.units, {"sm": m}) and evaluate(s.cost_ns, {"sm": m})]
        assert f"x1x{cluster}" in done and len(products) == (1 if symbolic == "" else 2)
    small, large = (GemmCase(m=m, k=96, n=72, dtypes=HALF, epilogue="bias", symbolic=symbolic) for m in (rows - 9, rows + 9))
    for case in (small, replace(small, k=64 * 9, n=72), large):
        check(case, with_tile(**config), gpu=replace(FEW, units=8, shared_bytes=SM_90A.shared_bytes))


def test_clusters_are_not_chosen_for_one_tile_of_rows() -> None:
    for m in (1, 64, 100, 128):
        program, _, _ = build(GemmCase(m=m, k=4096, n=4096, dtypes=SHORT, symbolic=""))
        config = WGMMA.default(gemm_of(program), BuildContext(caps=SCALAR, program=program, gpu=SM_90A))
        assert config["cluster"] == 1 or tile_of(config, SM_90A).rows < m


def test_parts_of_k() -> None:
    """The last part of k is not whole, or empty; what is behind k counts as 0."""
    case = GemmCase(m=70, k=64 * 13 + 8, n=67, transpose="b", dtypes=HALF, symbolic="", epilogue="gelu")
    check(case, with_tile(0, 2, 4), 1e-5, replace(FEW, units=9))
    case = replace(case, m=9, k=64 * 9, n=72, batch=(2,), b_batch=(2,), constant_b=False, symbolic="mk", epilogue="bias")
    check(case, with_tile(0, 1, 4), gpu=replace(FEW, units=8))
    check(replace(case, k=40), with_tile(0, 1, 4, cluster=2), gpu=replace(FEW, units=8))


@pytest.mark.parametrize("dtype", [DType.F32, DType.BF16])
@pytest.mark.parametrize("n", [136, 132, 134, 135])
def test_packets_of_results(dtype: DType, n: int) -> None:
    """As wide as rows are aligned to, with what the epilogue reads."""
    case = GemmCase(m=70, k=24, n=n, transpose="b", dtypes=(DType.F16, DType.F16, dtype), symbolic="")
    check(replace(case, epilogue="residual"), with_tile(0, 2), max_err=MAX_ERR if dtype is DType.F32 else 8e-3)


@pytest.mark.parametrize("constant", [True, False])
def test_operands_are_copied_where_tensor_copies_cannot_take_them(constant: bool) -> None:
    """f32 that may be multiplied in bf16, and rows that are not aligned to 16 bytes."""
    for dtypes in ((DType.F32,) * 3, HALF):
        case = GemmCase(m=37, k=43, n=67, dtypes=dtypes, product=Product.BF16, constant_b=constant, symbolic="m")
        check(replace(case, transpose="ab", batch=(2,), b_batch=(2,)), max_err=8e-3, gpu=SM_90A)


def reason(case: GemmCase, gpu: Gpu = SM_90A) -> str | None:
    program, _, _ = build(case)
    return WGMMA.admits(gemm_of(program), BuildContext(caps=SCALAR, program=program, gpu=gpu))


def test_what_is_not_for_warpgroups() -> None:
    good = GemmCase(m=64, k=64, n=64, dtypes=HALF)
    assert reason(good) is None
    for gpu in (SM_80, SM_90):
        assert reason(good, gpu) == "no products by warpgroups, which are compute capability 9.0's"
    assert reason(replace(good, dtypes=(DType.F32,) * 3)) == "no products of f32 and f32"
    many = (2, 2, 2, 2)
    assert reason(replace(good, batch=many, b_batch=many, constant_b=False)) == "tensors of more than 3 batch axes"


@pytest.mark.parametrize("stride", [-64, 0])
def test_operands_that_are_no_tensors(stride: int) -> None:
    """Rows backwards, or one row again and again: the driver takes no such strides."""
    program, _, _ = build(GemmCase(m=64, k=64, n=64, dtypes=HALF, symbolic=""))
    op = gemm_of(program)
    a = replace(op.inputs[0], strides=(stride, 1))
    odd = replace(op, inputs=(a, *op.inputs[1:]))
    why = WGMMA.admits(odd, BuildContext(caps=SCALAR, program=program, gpu=SM_90A))
    assert why == "an operand that goes backwards, or whose rows are one: no tensor to the driver"


def test_large_products_are_for_warpgroups_and_others_for_fragments() -> None:
    def chosen(gpu: Gpu, m: int) -> str:
        planned = plan_for(build(GemmCase(m=m, k=1024, n=1024, dtypes=SHORT, symbolic=""))[0], gpu)
        return planned.decisions[0][1].chosen.name

    assert chosen(SM_90A, 512) == "gemm.wgmma" and chosen(SM_90, 512) == "gemm.fragments"
    assert chosen(SM_90A, 1) != "gemm.wgmma"


# What an epilogue needs beside the sums: nothing, a column's value, arithmetic, another tensor.
EPILOGUES = ("none", "bias", "gelu", "residual")
# Of every tile one, of both ways that parts of k end, and of all epilogues: which is every choice with every tile's half.
SAMPLE = [(c, (1, 4)[i % 2], EPILOGUES[i % 4]) for i, c in enumerate(OFTEN)]
PRODUCTS = [(c, parts, e) for c in CONFIGS for parts in (1, 4) for e in EPILOGUES]


@pytest.mark.compiler("nvrtc")
@pytest.mark.parametrize(
    ("config", "parts", "epilogue"),
    [*SAMPLE, *(pytest.param(*p, marks=pytest.mark.slow) for p in PRODUCTS if p not in SAMPLE)],
    ids=lambda x: name_of(x) if isinstance(x, dict) else str(x),
)
def test_cuda(config: Config, parts: int, epilogue: str) -> None:
    """Sums stay in registers, which is what `setmaxnreg` is for; nor does the compiler make products wait for each other, as it
    does where it cannot keep sums where they are. A launch brings as many registers as it is compiled for: with fewer, the
    warpgroups that multiply would wait for ever for those that they ask for; more, it does not have."""
    program, _, _ = build(GemmCase(m=72, k=40, n=136, dtypes=ALL_SHORT, epilogue=epilogue, symbolic="mk"))
    sources = plan_for(program, SM_90A, [with_tile(**config, parts=parts)]).kernels
    products = [source for source in sources if "wgmma" in source.symbol]
    assert len(products) == config["cluster"], "with clusters one for few rows, too"
    for source in sources:
        made = assembled(source.symbol, source.text, SM_90A.target)
        assert not made.flaws and source.shared_bytes <= SM_90A.shared_bytes
        if source in products:
            assert made.report.registers == LAUNCHED and source.threads == 3 * WARPGROUP


@pytest.mark.compiler("nvrtc")
def test_flaws_are_seen() -> None:
    """In texts that have them."""
    k = 'extern "C" __global__ void __launch_bounds__(1024) k(float *x, int i) {{ float a[{n}]; {fill} x[0] = {use}; }}'
    fill = "for (int j = 0; j < 64; ++j) a[j] = x[j];"
    assert "an array in local memory" in assembled("k", k.format(n=64, fill=fill, use="a[i]"), "sm_80").flaws
    each = "\n#pragma unroll\nfor (int j = 0; j < 200; ++j) "
    many = k.format(n=200, fill=f"{each}a[j] = x[j]; __syncthreads(); {each}x[j + i] = a[j] + a[199 - j];", use="0")
    assert any("spilled" in flaw for flaw in assembled("k", many, "sm_80").flaws)
    program, _, _ = build(GemmCase(m=72, k=40, n=136, dtypes=ALL_SHORT, epilogue="gelu", symbolic="mk"))
    [source] = [s for s in plan_for(program, SM_90A, [with_tile(1, 1)]).kernels if "wgmma" in s.symbol]
    few = re.sub(r"setmaxnreg\.inc\.sync\.aligned\.u32 \d+", "setmaxnreg.inc.sync.aligned.u32 96", source.text)
    made = assembled("k", few, SM_90A.target)
    assert "setmaxnreg" in made.flaws and made.report.registers != LAUNCHED


def test_tiles() -> None:
    # What is given up and asked for is what the launch brought, which is all that a multiprocessor has in eights a thread.
    assert COPYING + 2 * MULTIPLYING == 3 * LAUNCHED and LAUNCHED == 65536 // (3 * WARPGROUP) // 8 * 8
    tiles = [tile_of(config, SM_90A) for config in CONFIGS]
    assert all(tile.shared_bytes <= SM_90A.shared_bytes for tile in tiles)
    assert {(t.rows, t.columns, t.turns): t.slots for t in tiles} == {
        (128, 128, 1): 7, (64, 128, 2): 8, (128, 256, 1): 4, (64, 256, 2): 5,
        (256, 128, 1): 4, (128, 128, 2): 7,
    }  # fmt: skip
    # Of what 132 multiprocessors have at a time, about a square.
    assert {t.band(SM_90A) * t.group_rows for t in tiles if (t.rows, t.columns) == (128, 256)} == {16 * 128, 8 * 256}
    assert all(config["cluster"] == 1 for config in all_configs(replace(FEW, units=1)))


def test_text(golden: Callable[[str, str], None]) -> None:
    program, _, _ = build(GemmCase(m=64, k=768, n=768, dtypes=SHORT, symbolic="m"))
    [source] = [s for s in plan_for(program, SM_90A, [with_tile(0, 2)]).kernels if "gemm" in s.symbol]
    golden(source.text, ".cu")
