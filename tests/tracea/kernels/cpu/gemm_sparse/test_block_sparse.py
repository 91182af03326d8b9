"""Products that go by lists of the steps that are not zero, against the interpreter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.machine import WIDEST
from tests.support.run_program import check_program, run_program
from tests.tracea.kernels.gemm_programs import Array, GemmCase, build, gemm_of
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import Program
from xyntra_ep.tracea.core_ir.zeros import Filled, filled_of
from xyntra_ep.tracea.doctor.decision import decide
from xyntra_ep.tracea.kernels.cpu.gemm import generic, packed_b
from xyntra_ep.tracea.kernels.cpu.gemm_sparse import block_sparse
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

SPARSE = block_sparse.VARIANTS
MACHINES = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, NEON, SCALAR)]
MAX_ERR = 3e-6
TOLD = ((64, 64),)  # a quarter of the steps


def pruned(
    case: GemmCase, share: float = 0.25, block: int = 16, told: Filled | None = None
) -> tuple[Program, list[Array], list[Array]]:
    """(program, inputs, constants), with about ``share`` of the blocks of b left; ``told``: what the plan knows of it."""
    program, inputs, constants = build(case)
    b = constants[0].reshape(constants[0].shape[-2:])
    b = b.T if "b" in case.transpose else b
    kept = np.random.default_rng(5).random((-(-case.k // block), -(-case.n // block))) < share
    kept[0, 0] = True
    b *= np.kron(kept, np.ones((block, block), np.bool_))[: case.k, : case.n]
    program.ops[0] = replace(gemm_of(program), filled=filled_of(b) if told is None else told)
    return program, inputs, constants


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("transpose", ["", "b"])
def test_ragged_sizes(caps: Capabilities, transpose: str) -> None:
    for m, k, n in ((9, 65, 165), (1, 64, 192), (37, 100, 80), (0, 48, 33)):
        case = GemmCase(m=m, k=k, n=n, transpose=transpose, epilogue="bias")
        check_program(*pruned(case, told=TOLD), caps, MAX_ERR, variants=SPARSE)


@pytest.mark.parametrize("m", [1, 2, 5, 16, 33])
@pytest.mark.parametrize("epilogue", ["none", "gelu", "residual"])
def test_numbers_of_rows_that_are_known(m: int, epilogue: str) -> None:
    check_program(
        *pruned(GemmCase(m=m, k=96, n=160, symbolic="", epilogue=epilogue), told=TOLD), WIDEST, MAX_ERR, variants=SPARSE
    )


def test_batches() -> None:
    check_program(*pruned(GemmCase(m=5, k=64, n=96, batch=(3,), epilogue="row"), told=TOLD), WIDEST, MAX_ERR, variants=SPARSE)


@pytest.mark.parametrize("caps", MACHINES)
def test_weights_decide_and_not_what_the_plan_knew(caps: Capabilities) -> None:
    """A plan is for all models of its graph: there may be more that is not zero than it was told, or nothing."""
    for share in (1.0, 0.0):
        program, inputs, constants = pruned(GemmCase(m=7, k=64, n=96), share, told=TOLD)
        if not share:
            constants[0][:] = 0
        check_program(program, inputs, constants, caps, MAX_ERR, variants=SPARSE)


def test_special_values_of_weights_are_no_zeros() -> None:
    program, inputs, constants = pruned(GemmCase(m=6, k=64, n=64, symbolic=""), told=TOLD)
    constants[0][...] = 0
    constants[0][3, 5], constants[0][7, 40], constants[0][9, 20], constants[0][11, 33] = np.nan, np.inf, -0.0, 1e-42
    [want] = interpret(program, inputs, constants)
    [got] = run_program(program, inputs, constants, WIDEST, variants=SPARSE)
    assert np.isnan(got[:, 5]).all() and not np.isfinite(got[:, 40]).any()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))


def chosen(share: float, block: int, caps: Capabilities = AVX512) -> str:
    program, _, _ = pruned(GemmCase(m=128, k=256, n=256, symbolic=""), share, block)
    op = gemm_of(program)
    context = BuildContext(caps=caps, program=program, constants=frozenset({op.inputs[1].value}))
    return decide(op, context, [*SPARSE, *packed_b.VARIANTS, *generic.VARIANTS]).chosen.name


@pytest.mark.parametrize("caps", [AVX512, AVX2], ids=["avx512", "avx2"])
def test_lists_are_taken_where_enough_is_zero(caps: Capabilities) -> None:
    assert chosen(0.25, 16, caps) == chosen(0.5, 32, caps) == "gemm.block_sparse"
    assert chosen(1.0, 16, caps) == chosen(0.9, 32, caps) == "gemm.packed_b"
    assert chosen(0.25, 1, caps) == "gemm.packed_b"  # element by element


def test_the_tile_is_as_narrow_as_the_blocks() -> None:
    program, _, _ = pruned(GemmCase(m=128, k=512, n=512, symbolic=""), 0.2, 16)
    op = gemm_of(program)
    context = BuildContext(caps=AVX512, program=program, constants=frozenset({op.inputs[1].value}))
    assert block_sparse.default(op, context)["columns"] == 16
