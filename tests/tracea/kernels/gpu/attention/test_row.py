"""attention.row against the interpreter by simulation, by OpenCL, and through NVRTC."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.gpu.run import check_on_opencl, check_simulated, compile_for_cuda, plan_for
from tests.tracea.kernels.attention_programs import LOWEST, AttentionCase, build
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Attention, NoSoftmax
from xyntra_ep.tracea.kernels.gpu.attention.row import VARIANTS
from xyntra_ep.tracea.kernels.variant import Variant
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU

MAX_ERR = 3e-6
INF = float("inf")
NARROW: Variant[Attention] = replace(VARIANTS[0], default=lambda op, context: {"threads": 64})  # chunks of 64 columns


def check(case: AttentionCase, max_err: float = MAX_ERR) -> None:
    program, inputs = build(case)
    assert check_simulated(program, inputs, [], max_err, variants=[NARROW]).bank_conflicts == 0


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_edges_of_chunks(layout: str) -> None:
    for s, t in ((1, 1), (2, 63), (3, 64), (5, 65), (1, 200)):
        check(AttentionCase(b=2, s=s, t=t, layout=layout))


def test_head_sizes() -> None:
    for d, e in ((1, 1), (15, 64), (40, 130)):
        check(AttentionCase(s=3, t=20, d=d, e=e, symbolic=""))


@pytest.mark.parametrize(
    "masks", [("row",), ("full",), ("bool",), ("bias",), ("relative",), ("causal",), ("row", "causal")], ids="+".join
)
def test_masks(masks: tuple[str, ...]) -> None:
    check(AttentionCase(b=2, s=14, t=70, masks=masks, past=56, symbolic="t"))


@pytest.mark.parametrize("no_softmax", NoSoftmax)
def test_rows_that_see_nothing(no_softmax: NoSoftmax) -> None:
    check(AttentionCase(s=5, t=90, masks=("causal",), past=-3, no_softmax=no_softmax, symbolic=""))
    program, inputs = build(AttentionCase(s=3, t=150, masks=("full",), no_softmax=no_softmax, symbolic=""))
    inputs[3][..., 0, :] = -np.inf  # a row sees nothing, another only what is in its last chunk, a third has a NaN
    inputs[3][..., 1, :140] = -np.inf
    check_simulated(program, inputs, [], MAX_ERR, variants=[NARROW])


def test_special_scores() -> None:
    program, inputs = build(AttentionCase(s=4, t=80, masks=("full",), symbolic=""))
    inputs[3][..., 0, 70], inputs[3][..., 1, 3] = np.nan, np.inf
    inputs[3][..., 2, :] = LOWEST
    inputs[0][..., 2, :] = 0
    check_simulated(program, inputs, [], MAX_ERR, variants=[NARROW])


def test_shared_heads_and_half_precision() -> None:
    check(AttentionCase(b=2, h=3, s=4, t=9, shared=True, layout="bshd"))
    check(AttentionCase(s=4, t=9, dtype=DType.F16), 1e-3)


@pytest.mark.device("opencl")
def test_opencl() -> None:
    for case in (
        AttentionCase(b=2, s=3, t=65, layout="bshd", masks=("row", "causal"), past=62),
        AttentionCase(s=5, t=90, e=70, masks=("causal",), past=-3, no_softmax=NoSoftmax.ZERO, symbolic=""),
    ):
        program, inputs = build(case)
        check_on_opencl(program, inputs, [], MAX_ERR, variants=[NARROW])


def test_threads_follow_the_columns() -> None:
    for t, threads in ((10, 64), (128, 128), (1000, 256)):
        program, _ = build(AttentionCase(s=1, t=t, symbolic=""))
        assert plan_for(program, ANY_GPU).decisions[0][1].config == {"threads": threads}


@pytest.mark.compiler("nvrtc")
def test_cuda() -> None:
    compile_for_cuda(build(AttentionCase(s=5, t=70, d=64, e=64, masks=("causal",)))[0], VARIANTS)
    compile_for_cuda(build(AttentionCase(s=1, t=70, d=64, e=64, dtype=DType.F16))[0], VARIANTS)
