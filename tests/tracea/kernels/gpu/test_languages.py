"""Every variant in the languages that are not C of CUDA's or OpenCL's kind: Metal's on the host (tests/support/metal/shim.h), for
no kernel has run on an Apple GPU, and WGSL on an adapter of WebGPU. The samples of a device's trials, sizes that are no multiple
of anything, and special values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.support.gpu.run import check_on_metal, check_on_webgpu
from tests.support.programs.elementwise import elementwise, special_floats
from tests.support.programs.random import RandomProgram
from tests.tracea.kernels import attention_programs, gemm_programs
from tests.tracea.kernels.attention_programs import LOWEST, AttentionCase
from tests.tracea.kernels.conv_programs import ConvCase, conv_program
from tests.tracea.kernels.cpu.rows.test_row_reduce import layer_norm, reduction, softmax
from tests.tracea.kernels.cpu.rows.test_scan import scan
from tests.tracea.kernels.cpu.rows.test_topk import top_k
from tests.tracea.kernels.gemm_programs import GemmCase
from tests.tracea.kernels.gpu.rows.test_topk import special_rows
from xyntra_ep.tracea.backends.metal import APPLE_GPU, Metal
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import call
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import Product, Program, ReduceKind, ValueKind
from xyntra_ep.tracea.doctor.variants import gpu_variants
from xyntra_ep.tracea.interface.devices import known_target
from xyntra_ep.tracea.interface.trial_jobs import values_of
from xyntra_ep.tracea.interface.trials import Trial, trials
from xyntra_ep.tracea.kernels.gpu.matrix_cores.gemm_matrix import VARIANTS as MATRICES
from xyntra_ep.tracea.kernels.gpu.rows.row_reduce_block import VARIANTS as BLOCK
from xyntra_ep.tracea.runtime.metal.devices import MetalDevice
from xyntra_ep.tracea.semantic_ir.gpu.matrix_dot import SIMDGROUP_SHAPES

M1 = MetalDevice(identity="Metal / M1 / 1", name="M1", system="1", family=7, shared_bytes=32 << 10, memory_bytes=1 << 33)
NEED_EXCHANGE = ("attention.split",)  # between threads, which WGSL's kernels do not use
OTHER_MATRICES = ("fragments", "fragments_or_gemv", "wgmma", "wgmma_or_gemv")
MAX_ERR = {Product.F32: 1e-5} | dict.fromkeys((Product.TF32, Product.F16, Product.BF16), 2e-2)


Check = Callable[..., None]
EACH = [
    pytest.param(check_on_metal, id="metal", marks=pytest.mark.slow),
    pytest.param(check_on_webgpu, id="webgpu", marks=pytest.mark.device("webgpu")),
]
on_each = pytest.mark.parametrize("check", EACH)


@cache
def all_trials() -> tuple[Trial, ...]:
    return tuple(trials(Metal().open(M1)))


EVERY = sorted({variant.name for variants in gpu_variants().values() for variant in variants})
GIVEN = [name for name in EVERY if name.partition(".")[2] not in OTHER_MATRICES]


def test_what_needs_other_matrix_units_is_not_given() -> None:
    assert sorted({trial.variant.name for trial in all_trials()}) == GIVEN


@pytest.mark.parametrize("name", GIVEN)
def test_the_samples_of_trials(name: str) -> None:
    found = {trial.sample.product: trial for trial in all_trials() if trial.variant.name == name}
    for trial in found.values():
        extents, program = trial.sample.extents, trial.program
        inputs = [random_like(extents(v), v.dtype, i) for i, v in enumerate(values_of(program, ValueKind.INPUT))]
        gpu = replace(APPLE_GPU, units=trial.sample.units or APPLE_GPU.units)
        check_on_metal(program, inputs, [], MAX_ERR[trial.sample.product], variants=[trial.variant], gpu=gpu)


@pytest.mark.device("webgpu")
@pytest.mark.parametrize("name", [name for name in GIVEN if "matrix" not in name])
def test_the_samples_of_trials_on_webgpu(name: str) -> None:
    """By what a page in any browser may count on."""
    target = known_target("webgpu")
    made = {trial.sample.product: trial for trial in trials(target) if trial.variant.name == name}
    assert made or name in NEED_EXCHANGE
    for trial in made.values():
        inputs = [
            random_like(trial.sample.extents(v), v.dtype, i) for i, v in enumerate(values_of(trial.program, ValueKind.INPUT))
        ]
        gpu = replace(target.gpu, units=trial.sample.units or target.gpu.units)
        check_on_webgpu(trial.program, inputs, [], MAX_ERR[trial.sample.product], variants=[trial.variant], gpu=gpu)


@on_each
@pytest.mark.parametrize("transpose", ["", "a", "b", "ab"])
def test_ragged_products(transpose: str, check: Check) -> None:
    for m, k, n, symbolic in ((33, 17, 65, "mkn"), (5, 0, 6, ""), (1, 70, 33, "m")):
        case = GemmCase(m=m, k=k, n=n, transpose=transpose, symbolic=symbolic, constant_b=False, epilogue="residual")
        check(*gemm_programs.build(case), 3e-6)


def test_lanes_of_matrices_are_those_of_mlx() -> None:
    for shape in SIMDGROUP_SHAPES.values():
        for lane in range(32):
            quad = lane // 4
            row, column = (quad & 4) + lane // 2 % 4, (quad & 2) * 2 + lane % 2 * 2
            for part, down, across in ((shape.a, "m", "k"), (shape.b, "k", "n"), (shape.c, "m", "n")):
                assert [shape.place(part, lane, i) for i in range(2)] == [{down: row, across: column + i} for i in range(2)]


@pytest.mark.parametrize("dtype", [DType.F32, DType.F16])
def test_products_by_matrices(dtype: DType) -> None:
    """Operands in packets and one by one, along k and across it."""
    half = dtype is DType.F16
    for transpose, m, k, n, symbolic in (("", 70, 41, 65, "mkn"), ("b", 64, 48, 72, ""), ("a", 33, 64, 128, "m")):
        product = Product.F16 if half else Product.F32
        case = GemmCase(
            m=m, k=k, n=n, transpose=transpose, symbolic=symbolic, constant_b=False, epilogue="residual", product=product
        )
        check_on_metal(*gemm_programs.build(case), 2e-3 if half else 3e-6, variants=MATRICES)


@on_each
@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16])
def test_halves(dtype: DType, check: Check) -> None:
    for symbolic, n in (("mkn", 65), ("", 72)):
        case = GemmCase(m=33, k=40, n=n, symbolic=symbolic, constant_b=False, dtypes=(dtype,) * 3)
        check(*gemm_programs.build(case), 8e-3)
    program, inputs = elementwise((41,), lambda x: call("tanh", x), dtype, result=dtype)
    check(program, inputs, [], 8e-3)


@on_each
def test_convolutions(check: Check) -> None:
    for case in (
        ConvCase(x=(1, 6, 7, 5), w=(8, 3, 3, 3), pads=(1,) * 4, strides=(2, 1), group=2),
        ConvCase(x=(2, 5, 9, 7), w=(11, 5, 3, 3), pads=(1,) * 4),
        ConvCase(x=(1, 8, 7, 9), w=(8, 1, 3, 3), pads=(1,) * 4, group=8),
    ):
        check(*conv_program(case), 3e-6)


@on_each
@pytest.mark.parametrize("make", [layer_norm, softmax])
def test_normalisations(make: Callable[[int | str, int | str], Program], check: Check) -> None:
    for n in (1, 33, 770):
        data = [random_like((3, n), DType.F32, n), *[random_like((n,), DType.F32, 1)] * (make is layer_norm)]
        check(make("m", "n"), data, [], 1e-5, variants=BLOCK)


@on_each
@pytest.mark.parametrize("kind", list(ReduceKind))
def test_every_kind_with_a_nan(kind: ReduceKind, check: Check) -> None:
    x = random_like((3, 300), DType.F32, 0)
    x[1, 7] = np.nan
    check(reduction(kind, (3, 300), 1, DType.F32), [x], [], 1e-5)
    check(reduction(kind, (3, 70), 1, DType.I64), [random_like((3, 70), DType.I64, 0)], [], 0)


@on_each
def test_scores_that_are_special(check: Check) -> None:
    for s, t in ((5, 150), (1, 130)):
        program, inputs = attention_programs.build(AttentionCase(s=s, t=t, h=1, masks=("full",), symbolic=""))
        mask = inputs[3]
        mask[..., 0, :] = -np.inf  # sees nothing
        if s > 1:
            mask[..., 1, : t - 10], mask[..., 2, :], mask[..., 3, 75], mask[..., 4, 3] = -np.inf, LOWEST, np.nan, np.inf
        check(program, inputs, [], 3e-6)


def test_special_values_of_functions() -> None:
    """NaN and infinities stay what they are; what is subnormal may be 0 on a GPU, and is not looked at here."""
    x = special_floats((300,))
    x[np.abs(x) < 1e-30] = 0
    for name in ("exp", "log", "tanh", "sqrt", "erf", "sigmoid", "relu", "gelu_erf", "round", "floor", "sin"):
        program, _ = elementwise((300,), lambda a, name=name: call(name, a), DType.F32)
        check_on_metal(program, [x], [], 3e-6)


@on_each
def test_the_best_of_rows(check: Check) -> None:
    for data in special_rows():
        check(top_k(4, True), [data], [], 0.0)
    check(top_k(7, False, DType.I64), [random_like((2, 70), DType.I64, 0)], [], 0.0)


@on_each
def test_scans(check: Check) -> None:
    check(scan(ReduceKind.SUM, DType.F32, True, True), [random_like((2, 3, 7), DType.F32, 0)], [], 1e-5)


@on_each
@pytest.mark.parametrize("seed", range(6))
def test_random_expressions(seed: int, check: Check) -> None:
    made = RandomProgram(seed, rank=(0, 1, 2, 3)[seed % 4], symbolic=seed % 2 == 1, special=seed % 3 == 2)
    made.pointwise(depth=1 + seed % 3)
    check(made.program, made.inputs, [], 8e-3)
    made = RandomProgram(seed, rank=(2, 1, 3)[seed % 3], symbolic=seed % 2 == 1, special=seed % 3 == 2)
    made.row_reduce(inner=1 + (seed % 3 == 2), depth=seed % 3)
    check(made.program, made.inputs, [], 3e-5)
