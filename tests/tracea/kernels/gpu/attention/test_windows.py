"""Windows on every variant of attention: tiles before and behind what a block's rows see are left out, and computed all the same
where they may have weight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.gpu.run import check_on_opencl, check_simulated, compile_for_cuda
from tests.tracea.kernels.attention_programs import LOWEST, AttentionCase, build
from tests.tracea.kernels.gpu.attention.test_block import SMALL as BLOCK
from tests.tracea.kernels.gpu.attention.test_fragments import SMALL as FRAGMENTS
from tests.tracea.kernels.gpu.attention.test_row import NARROW as ROW
from tests.tracea.kernels.gpu.attention.test_split import with_config
from tests.tracea.kernels.gpu.attention.test_warpgroups import with_tile
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.variant import Variant
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import SM_80, SM_90A, Gpu

F32, F16 = (DType.F32, 3e-6), (DType.F16, 1e-3)
VARIANTS: dict[str, tuple[Variant[Any], Gpu, tuple[DType, float]]] = {
    "block": (BLOCK, SM_80, F32),
    "row": (ROW, SM_80, F32),
    "split": (with_config(rows=2), replace(SM_80, units=2), F32),
    "fragments": (FRAGMENTS, SM_80, F16),
    "warpgroups": (with_tile(2, 64), replace(SM_90A, units=2), F16),
}


def windows() -> Iterator[AttentionCase]:
    base = AttentionCase(h=1, masks=("window",), window=20)
    yield replace(base, s=70, t=200, past=60, symbolic="t")
    yield replace(base, s=150, t=150, window=3, past=3, symbolic="")
    yield replace(base, s=33, t=40, past=-30)  # rows that see nothing
    # Query heads that share a key head, and a number of keys that is read.
    ends = replace(base, masks=("ends",), b=2, queries=24, symbolic="t")
    yield replace(ends, s=48, t=170, lasts=(140, 3))


@pytest.mark.parametrize("name", VARIANTS)
def test_windows(name: str) -> None:
    variant, gpu, (dtype, max_err) = VARIANTS[name]
    for case in windows():
        program, inputs = build(replace(case, dtype=dtype))
        check_simulated(program, inputs, [], max_err, variants=[variant], gpu=gpu)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("masked", [LOWEST, -2.0])
def test_windows_that_put_a_number(name: str, masked: float) -> None:
    variant, gpu, (dtype, max_err) = VARIANTS[name]
    for past in (60, -30):
        case = AttentionCase(h=1, masks=("window",), window=20, masked=masked, past=past, s=40, t=130, dtype=dtype)
        program, inputs = build(case)
        check_simulated(program, inputs, [], max_err, variants=[variant], gpu=gpu)


@pytest.mark.parametrize("name", VARIANTS)
def test_what_is_outside_is_left_out(name: str) -> None:
    """Only the interpreter meets the NaN there, with weights of 0."""
    variant, gpu, (dtype, max_err) = VARIANTS[name]
    for place in (0, -1):  # before all rows' windows, and behind them
        case = AttentionCase(h=1, masks=("window",), window=-100, past=150, s=16, t=400, dtype=dtype)
        program, inputs = build(case)
        inputs[2][:, :, place] = np.nan
        with pytest.raises(AssertionError, match="NaN/Inf are wrong"):
            check_simulated(program, inputs, [], max_err, variants=[variant], gpu=gpu)


@pytest.mark.device("opencl")
@pytest.mark.parametrize("name", ["block", "row"])
def test_on_a_device(name: str) -> None:
    for case in windows():
        program, inputs = build(case)
        check_on_opencl(program, inputs, [], 3e-6, variants=[VARIANTS[name][0]])


@pytest.mark.compiler("nvrtc")
def test_kernels_compile() -> None:
    for name in ("block", "split", "fragments"):
        variant, gpu, (dtype, _) = VARIANTS[name]
        program, _ = build(replace(next(windows()), dtype=dtype))
        compile_for_cuda(program, variants=[variant], gpu=gpu)
