"""Run a core-IR program through the GPU variants by OpenCL, and compile it for CUDA.

check_on_opencl(program, [x], [w], max_err=1e-6)     # against core_ir.interpreter, in float64
compile_for_cuda(program)                            # every kernel, for each architecture

Buffers of the device have margins of a pattern that must survive, and start with a pattern that is a NaN as floats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.run_program import compare
from xyntra_ep.tracea.core_ir.dims import evaluate
from xyntra_ep.tracea.core_ir.dtypes import to_float64
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import Program, ValueKind
from xyntra_ep.tracea.doctor.variants import AnyVariant, by_op, gpu_variants
from xyntra_ep.tracea.emitters import cuda, opencl
from xyntra_ep.tracea.planning.builder import OpBuilder
from xyntra_ep.tracea.planning.plan import BufferKind, PlannedProgram, PlanStep
from xyntra_ep.tracea.planning.planner import plan_program
from xyntra_ep.tracea.runtime import nvrtc
from xyntra_ep.tracea.runtime.opencl import Queue, survey
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR
from xyntra_ep.tracea.semantic_ir.gpu_capabilities import OPENCL, SM_80, Gpu

Array = NDArray[Any]
ARCHITECTURES = ("sm_80", "sm_90", "sm_90a")
_MARGIN = 256
_UNTOUCHED = 0xFF  # as floats of any width: NaN


def plan_for(program: Program, gpu: Gpu, variants: Iterable[AnyVariant] | None = None) -> PlannedProgram:
    """Plan with all GPU variants, or with only ``variants`` for the ops that these compute."""
    emit = opencl.emit if gpu.subgroup == 1 else cuda.emit
    table = {**gpu_variants(), **by_op(variants or ())}
    return plan_program(program, SCALAR, builder=OpBuilder(SCALAR, table, lambda kernel, _: emit(kernel), gpu=gpu))


def check_on_opencl(
    program: Program,
    inputs: Sequence[Array],
    constants: Sequence[Array],
    max_err: float,
    *,
    variants: Iterable[AnyVariant] | None = None,
) -> None:
    """Assert that the generated code agrees with the interpreter; ``max_err`` as in run_program."""
    planned = plan_for(program, OPENCL, variants)
    wanted = interpret(program, inputs, constants)
    values = sorted((v for v in program.values if v.kind is ValueKind.OUTPUT), key=lambda v: v.index)
    for i, (value, got, w) in enumerate(zip(values, run_planned(planned, inputs, constants), wanted, strict=True)):
        where = f"output {i}, kernels {[k.symbol for k in planned.kernels]}"
        compare(to_float64(got, value.dtype), w, max_err if value.dtype.is_float else 0.0, where)


def compile_for_cuda(program: Program, variants: Iterable[AnyVariant] | None = None, gpu: Gpu = SM_80) -> PlannedProgram:
    """Compile every kernel for each architecture; none may need more registers than there are."""
    planned = plan_for(program, gpu, variants)
    for source in planned.kernels:
        for architecture in ARCHITECTURES:
            cubin = nvrtc.load().compile(source.symbol, source.text, architecture)
            assert cubin.spilled_bytes == 0, f"{source.symbol} spills on {architecture}"
    return planned


@cache
def queue() -> Queue:
    return Queue(survey().working[0])


@cache
def _built(symbol: str, text: str) -> Any:
    return queue().build(symbol, text)


def run_planned(planned: PlannedProgram, inputs: Sequence[Array], constants: Sequence[Array]) -> list[Array]:
    """Carry out a plan for OpenCL."""
    program = planned.program
    symbols = program.with_definitions(
        {
            b.name: int(inputs[b.input].shape[b.index] if b.kind == "dim" else inputs[b.input].reshape(-1)[b.index])
            for b in program.bindings
        }
    )
    given = {BufferKind.INPUT: inputs, BufferKind.CONSTANT: constants}
    shapes = [tuple(evaluate(s, symbols) for s in shape) for shape in planned.output_shapes]
    dtypes = [v.dtype for v in sorted((v for v in program.values if v.kind is ValueKind.OUTPUT), key=lambda v: v.index)]
    memory: dict[int, tuple[Any, int]] = {}
    for number, buffer in enumerate(planned.buffers):
        if buffer.kind in given:
            data = np.ascontiguousarray(given[buffer.kind][buffer.index]).reshape(-1).view(np.uint8)
        elif buffer.kind is BufferKind.LITERAL:
            data = np.frombuffer(buffer.literal, dtype=np.uint8)
        else:
            size = evaluate(buffer.size_bytes, symbols)
            if buffer.kind is BufferKind.OUTPUT:
                size = int(np.prod(shapes[buffer.index], dtype=np.int64)) * dtypes[buffer.index].bytes
            data = np.full(size, _UNTOUCHED, dtype=np.uint8)
        whole = np.concatenate([data, np.full(_MARGIN, _UNTOUCHED, dtype=np.uint8)])
        memory[number] = (queue().upload(whole), data.size)
    for step in (*planned.init, *planned.run):
        _launch(planned, step, memory, symbols)
    results: dict[int, Array] = {}
    for number, (handle, size) in memory.items():
        data = queue().download(handle, size + _MARGIN)
        assert (data[size:] == _UNTOUCHED).all(), f"{planned.buffers[number].kind.name} {number} is written past its end"
        if planned.buffers[number].kind is BufferKind.OUTPUT:
            index = planned.buffers[number].index
            results[index] = data[:size].view(dtypes[index].numpy).reshape(shapes[index])
    return [results[i] for i in sorted(results)]


def _launch(planned: PlannedProgram, step: PlanStep, memory: Mapping[int, tuple[Any, int]], symbols: Mapping[str, int]) -> None:
    source = planned.kernels[step.kernel]
    assert all(evaluate(use.offset_bytes, symbols) == 0 for use in step.buffers), "GPU kernels take whole buffers"
    queue().launch(
        _built(source.symbol, source.text),
        evaluate(step.units, symbols),
        [memory[use.buffer][0] for use in step.buffers],
        [evaluate(p, symbols) for p in step.params],
    )
