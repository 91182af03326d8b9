"""Layers of a quantised model share kernels, which are given the scales and zero points of each."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.gpu.run import plan_for as gpu_plan_for
from tests.support.machine import VBMI, VNNI
from tests.support.models.alternatives import OneIsland, one_island
from tests.support.models.model_text import normal, parse
from tests.support.programs.builder import ProgramBuilder
from tests.support.run_program import check_program, plan_for
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import axis, call, const, load
from xyntra_ep.tracea.core_ir.ops import Pointwise, Program, ValueKind
from xyntra_ep.tracea.core_ir.ops.memory import Array
from xyntra_ep.tracea.planning.plan import BufferKind, PlannedProgram
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, SCALAR, Capabilities
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU, SM_80, Gpu

MACHINES = pytest.mark.parametrize("caps", [SCALAR, AVX2, VNNI, VBMI], ids=["scalar", "avx2", "vnni", "vbmi"])
SCALES = ((0.0412, 0.0077), (0.0395, 0.0081), (0.0621, 0.0064), (0.0587, 0.0093))  # of what a layer gives, of its weights
ZEROS = (119, 131, 126, 140)


def layers(count: int, activation: str = "Relu") -> OneIsland:
    """A quantised product and an activation after the other, each with numbers of its own."""
    rng = np.random.default_rng(0)
    nodes = ["q0 = QuantizeLinear (x, s, z)"]
    constants: dict[str, Array] = {"s": np.asarray(0.031, np.float32), "z": np.asarray(128, np.uint8)}
    source, scale, zero = "q0", "s", "z"
    for i, ((of_result, of_weights), point) in enumerate(zip(SCALES[:count], ZEROS, strict=False), 1):
        constants |= {f"w{i}": rng.integers(-40, 41, (32, 32)).astype(np.int8), f"v{i}": np.asarray(of_weights, np.float32)}
        constants |= {f"s{i}": np.asarray(of_result, np.float32), f"z{i}": np.asarray(point, np.uint8)}
        nodes += [
            f"d{i} = DequantizeLinear ({source}, {scale}, {zero}) e{i} = DequantizeLinear (w{i}, v{i})",
            f"m{i} = MatMul (d{i}, e{i}) q{i} = QuantizeLinear (m{i}, s{i}, z{i}) f{i} = DequantizeLinear (q{i}, s{i}, z{i})",
            f"a{i} = {activation} (f{i}) p{i} = QuantizeLinear (a{i}, s{i}, z{i})",
        ]
        source, scale, zero = f"p{i}", f"s{i}", f"z{i}"
    text = f"(float[9,32] x) => (float[9,32] y) {{ {' '.join(nodes)} y = DequantizeLinear ({source}, {scale}, {zero}) }}"
    return one_island(parse(text, 19, **constants))


def kernels(planned: PlannedProgram) -> set[str]:
    return {kernel.text for kernel in planned.kernels}


def given(planned: PlannedProgram) -> list[bytes]:
    """What is in the buffers of numbers."""
    return [buffer.literal for buffer in planned.buffers if buffer.kind is BufferKind.LITERAL]


@MACHINES
@pytest.mark.parametrize("activation", ["Relu", "Sigmoid"])  # the latter is looked up in a table
def test_layers_share_their_kernels(caps: Capabilities, activation: str) -> None:
    three, four = (
        plan_for(layers(n, activation).program, caps) for n in (3, 4)
    )  # the first one quantises, the last one gives floats
    assert kernels(four) == kernels(three)
    assert len(given(four)) == len(given(three)) + 1 > 3, "each layer has its own"
    assert len(set(given(four))) == len(given(four)), "equal ones are one"


@MACHINES
@pytest.mark.parametrize("activation", ["Relu", "Sigmoid"])
def test_each_layer_has_its_own_numbers(caps: Capabilities, activation: str) -> None:
    island = layers(3, activation)
    check_program(island.program, [normal(9, 32)], island.constants(), caps, 1e-6)


def test_what_is_done_once_is_given_numbers_too() -> None:
    p = ProgramBuilder()
    weights = [p.value(ValueKind.CONST, 5, 7, dtype=DType.I8) for _ in range(2)]
    for w, scale in zip(weights, (0.3, 0.7), strict=True):
        out = p.output(p.temp(5, 7))
        body = call("mul", call("to_f", load(0, axis(0), axis(1), dtype=w.dtype)), const(scale))
        p.op(Pointwise(domain=(5, 7), inputs=(w,), bodies=(body,), outputs=(out,)))
    planned = plan_for(p.program, SCALAR)
    assert len(planned.init) == len(given(planned)) == 2
    assert len(planned.kernels) == 2, "one computes, one copies what it gave to the outputs"
    data = [np.arange(35, dtype=np.int8).reshape(5, 7) - k for k in (3, 30)]
    check_program(p.program, [], data, SCALAR, 1e-6)


def _scaled(*factors: float) -> PlannedProgram:
    p = ProgramBuilder()
    for factor in factors:
        x = p.input(5, 7)
        out = p.output(p.temp(5, 7))
        body = call("mul", load(0, axis(0), axis(1), dtype=x.dtype), const(factor))
        p.op(Pointwise(domain=(5, 7), inputs=(x,), bodies=(body,), outputs=(out,)))
    return plan_for(p.program, SCALAR)


def test_kernels_of_floats_have_their_numbers_in_them() -> None:
    planned = _scaled(0.3, 0.7)
    assert (len(planned.kernels), given(planned)) == (2, [])


@pytest.mark.parametrize("gpu", [ANY_GPU, SM_80], ids=["opencl", "cuda"])
def test_kernels_of_devices_have_their_numbers_in_them(gpu: Gpu) -> None:
    three, four = (gpu_plan_for(_quantised(n), gpu) for n in (3, 4))
    assert given(four) == []
    assert len(four.kernels) == len(three.kernels) + 1


def _quantised(count: int) -> Program:
    """Each result is quantised by numbers of its own."""
    p = ProgramBuilder()
    for scale, zero in [(scale, float(zero)) for (scale, _), zero in zip(SCALES, ZEROS, strict=True)][:count]:
        x = p.input(5, 7)
        out = p.output(p.value(ValueKind.TEMP, 5, 7, dtype=DType.U8))
        level = call("quantise", load(0, axis(0), axis(1), dtype=x.dtype), const(scale), const(zero), const(0.0), const(255.0))
        p.op(Pointwise(domain=(5, 7), inputs=(x,), bodies=(call("to_i", level),), outputs=(out,)))
    return p.program


@MACHINES
def test_what_is_quantised_alone(caps: Capabilities) -> None:
    planned = plan_for(_quantised(4), caps)
    assert (len(planned.kernels), len(given(planned))) == (1, 4)
