"""Run a core-IR program through the GPU variants by OpenCL, and compile it for CUDA.

check_on_opencl(program, [x], [w], max_err=1e-6)     # against core_ir.interpreter, in float64
check_on_webgpu(program, [x], [w], max_err=1e-6)     # the same for WebGPU's kernels
check_on_metal(program, [x], [w], max_err=1e-6)      # the same for Metal's kernels, on the host (metal/shim.h)
check_simulated(program, [x], [w], max_err=1e-6)     # the same for CUDA's kernels, in gpu/simulated.py
compile_for_cuda(program)                            # every kernel, for each architecture

What kernels write starts with a pattern that is a NaN as floats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tests.support.gpu.opencl_queue import Queue
from tests.support.gpu.simulated import SimulatedGpu, Tensor
from tests.support.gpu.webgpu_queue import Queue as WebGpuQueue
from tests.support.metal.host import MetalOnHost
from tests.support.run_program import compare
from xyntra_ep.tracea.backends.metal import APPLE_GPU
from xyntra_ep.tracea.core_ir.dims import evaluate
from xyntra_ep.tracea.core_ir.dtypes import to_float64
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import Program, Value, ValueKind
from xyntra_ep.tracea.doctor.variants import AnyVariant, by_op, gpu_variants
from xyntra_ep.tracea.emitters import cuda, hip, metal, opencl
from xyntra_ep.tracea.emitters.webgpu import text as webgpu
from xyntra_ep.tracea.planning.builder import OpBuilder
from xyntra_ep.tracea.planning.plan import BufferKind, PlannedProgram, PlanTensor
from xyntra_ep.tracea.planning.planner import plan_program
from xyntra_ep.tracea.runtime import nvrtc
from xyntra_ep.tracea.runtime.kernel_source import Definitions, KernelSource, text_of
from xyntra_ep.tracea.runtime.opencl import survey
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR, Capabilities
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU, SM_80, Gpu
from xyntra_ep.tracea.semantic_ir.nodes import Kernel

Array = NDArray[Any]
Bytes = NDArray[np.uint8]
ARCHITECTURES = ("sm_80", "sm_90", "sm_90a")
_MARGIN = 256
_UNTOUCHED = 0xFF  # as floats of any width: NaN


def plan_for(
    program: Program,
    gpu: Gpu,
    variants: Iterable[AnyVariant] | None = None,
    kernels: dict[str, Kernel] | None = None,
    emit: Callable[[Kernel], Definitions] | None = None,
) -> PlannedProgram:
    """Plan with all GPU variants, or with only ``variants`` for the ops that these compute. ``kernels`` gets each one by its
    text."""
    emit = emit or (opencl.emit if gpu.subgroup == 1 else hip.emit if gpu.matrix_units else cuda.emit)

    def remember(kernel: Kernel, caps: Capabilities) -> Definitions:
        definitions = emit(kernel)
        if kernels is not None:
            kernels[text_of(definitions, kernel.name)] = kernel
        return definitions

    table = {**gpu_variants(), **by_op(variants or ())}
    return plan_program(program, SCALAR, builder=OpBuilder(SCALAR, table, remember, gpu=gpu))


def check_on_opencl(
    program: Program,
    inputs: Sequence[Array],
    constants: Sequence[Array],
    max_err: float,
    *,
    variants: Iterable[AnyVariant] | None = None,
    gpu: Gpu = ANY_GPU,
) -> None:
    """Assert that the generated code agrees with the interpreter; ``max_err`` as in run_program."""
    planned = plan_for(program, gpu, variants, emit=opencl.emit)
    got = run_planned(planned, inputs, constants, _Queued(_opencl()))
    _compare(planned, got, interpret(program, inputs, constants), max_err)


def check_on_webgpu(
    program: Program,
    inputs: Sequence[Array],
    constants: Sequence[Array],
    max_err: float,
    *,
    variants: Iterable[AnyVariant] | None = None,
    gpu: Gpu = ANY_GPU,
) -> None:
    """The same on the first adapter of WebGPU."""
    planned = plan_for(program, gpu, variants, emit=webgpu.emit)
    got = run_planned(planned, inputs, constants, _Queued(_webgpu()))
    _compare(planned, got, interpret(program, inputs, constants), max_err)


def check_on_metal(
    program: Program,
    inputs: Sequence[Array],
    constants: Sequence[Array],
    max_err: float,
    *,
    variants: Iterable[AnyVariant] | None = None,
    gpu: Gpu = APPLE_GPU,
) -> None:
    """The same for kernels made for Apple's GPUs."""
    planned = plan_for(program, gpu, variants, emit=metal.emit)
    got = run_planned(planned, inputs, constants, MetalOnHost(planned.kernels))
    _compare(planned, got, interpret(program, inputs, constants), max_err)


def check_simulated(
    program: Program,
    inputs: Sequence[Array],
    constants: Sequence[Array],
    max_err: float,
    *,
    variants: Iterable[AnyVariant] | None = None,
    gpu: Gpu = SM_80,
) -> SimulatedGpu:
    """The same for kernels made for ``gpu``, carried out and watched by the simulation."""
    kernels: dict[str, Kernel] = {}
    planned = plan_for(program, gpu, variants, kernels)
    device = _Simulated(kernels)
    _compare(planned, run_planned(planned, inputs, constants, device), interpret(program, inputs, constants), max_err)
    return device.gpu


def simulate(program: Program, inputs: Sequence[Array], constants: Sequence[Array], gpu: Gpu) -> list[Array]:
    """The outputs of ``program`` by the simulation."""
    kernels: dict[str, Kernel] = {}
    return run_planned(plan_for(program, gpu, None, kernels), inputs, constants, _Simulated(kernels))


def _compare(planned: PlannedProgram, got: Sequence[Array], wanted: Sequence[Array], max_err: float) -> None:
    for i, (value, a, b) in enumerate(zip(_outputs(planned.program), got, wanted, strict=True)):
        where = f"output {i}, kernels {[k.symbol for k in planned.kernels]}"
        compare(to_float64(a, value.dtype), b, max_err if value.dtype.is_float else 0.0, where)


def compile_for_cuda(program: Program, variants: Iterable[AnyVariant] | None = None, gpu: Gpu = SM_80) -> PlannedProgram:
    """Compile every kernel for each architecture that ``gpu`` stands for; none may need more registers than there are."""
    planned = plan_for(program, gpu, variants)
    for source in planned.kernels:
        for architecture in (gpu.target,) if gpu.warpgroups else ARCHITECTURES:
            cubin = nvrtc.load().compile(source.symbol, source.text, architecture)
            assert cubin.spilled_bytes == 0, f"{source.symbol} spills on {architecture}"
    return planned


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorAt:
    """A step's tensor in a run: ``tensor``, its offset, extents and strides as numbers."""

    tensor: PlanTensor
    offset_bytes: int
    extents: list[int]
    strides_bytes: list[int]

    def made(self, buffers: Sequence[Bytes]) -> Tensor:
        dtype = self.tensor.dtype
        return Tensor(
            data=buffers[self.tensor.view.buffer].view(dtype.numpy),
            offset=self.offset_bytes // dtype.bytes,
            extents=[max(1, extent) for extent in self.extents],  # as the driver wants them; nothing is copied of an empty one
            strides=[1, *(stride // dtype.bytes for stride in self.strides_bytes)],
            box=self.tensor.box,
        )


def _tensor_at(tensor: PlanTensor, symbols: Mapping[str, int]) -> TensorAt:
    view = tensor.view
    return TensorAt(
        tensor=tensor,
        offset_bytes=evaluate(view.offset_bytes, symbols),
        extents=[evaluate(s, symbols) for s in view.extents],
        strides_bytes=[evaluate(s, symbols) for s in view.strides_bytes],
    )


class _Device(Protocol):
    """Where a plan is carried out."""

    def upload(self, data: Bytes) -> Any: ...
    def download(self, buffer: Any) -> Bytes: ...
    def launch(
        self, source: KernelSource, blocks: int, buffers: list[Any], params: list[int], tensors: Sequence[TensorAt] = ()
    ) -> None: ...


@cache
def _opencl() -> Queue:
    return Queue(survey().working[0])


@cache
def _webgpu() -> WebGpuQueue:
    return WebGpuQueue()


@cache
def _built(queue: Queue | WebGpuQueue, source: KernelSource) -> Any:
    return queue.build(source.symbol, source.text)


class _Queued:
    """A device that works. Buffers end in a margin that must survive."""

    def __init__(self, queue: Queue | WebGpuQueue) -> None:
        self._queue = queue

    def upload(self, data: Bytes) -> Any:
        return self._queue.upload(np.concatenate([data, np.full(_MARGIN, _UNTOUCHED, dtype=np.uint8)])), data.size

    def download(self, buffer: Any) -> Bytes:
        handle, size = buffer
        data = self._queue.download(handle, size + _MARGIN)
        assert (data[size:] == _UNTOUCHED).all(), "a buffer is written past its end"
        return data[:size]

    def launch(
        self, source: KernelSource, blocks: int, buffers: list[Any], params: list[int], tensors: Sequence[TensorAt] = ()
    ) -> None:
        assert not tensors, "this device copies no tensors"
        self._queue.launch(_built(self._queue, source), blocks, [handle for handle, _ in buffers], params)


class _Simulated:
    """Runs the semantic IR itself."""

    def __init__(self, kernels: Mapping[str, Kernel]) -> None:
        self.gpu = SimulatedGpu()
        self._kernels = kernels

    def upload(self, data: Bytes) -> Any:
        return data.copy()

    def download(self, buffer: Any) -> Bytes:
        return buffer  # type: ignore[no-any-return]  # an array that upload has made

    def launch(
        self, source: KernelSource, blocks: int, buffers: list[Any], params: list[int], tensors: Sequence[TensorAt] = ()
    ) -> None:
        made = [t.made(buffers) for t in tensors]
        self.gpu.launch(self._kernels[source.text], blocks, buffers, params, made)


def run_planned(
    planned: PlannedProgram, inputs: Sequence[Array], constants: Sequence[Array], device: _Device | None = None
) -> list[Array]:
    """Carry out a plan, by OpenCL unless told otherwise."""
    device = device or _Queued(_opencl())
    program = planned.program
    symbols = program.with_definitions(
        {
            b.name: int(inputs[b.input].shape[b.index] if b.kind == "dim" else inputs[b.input].reshape(-1)[b.index])
            for b in program.bindings
        }
    )
    given = {BufferKind.INPUT: inputs, BufferKind.CONSTANT: constants}
    shapes = [tuple(evaluate(s, symbols) for s in shape) for shape in planned.output_shapes]
    dtypes = [v.dtype for v in _outputs(program)]
    memory: dict[int, Any] = {}
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
        memory[number] = device.upload(data)
    for step in (*planned.init, *planned.run):
        assert all(evaluate(use.offset_bytes, symbols) == 0 for use in step.buffers), "GPU kernels take whole buffers"
        used, params = [memory[use.buffer] for use in step.buffers], [evaluate(p, symbols) for p in step.params]
        tensors = [_tensor_at(tensor, symbols) for tensor in step.tensors]
        device.launch(planned.kernels[step.kernel], evaluate(step.units, symbols), used, params, tensors)
    after = {number: device.download(buffer) for number, buffer in memory.items()}
    results: dict[int, Array] = {}
    for number, buffer in enumerate(planned.buffers):
        if buffer.kind is BufferKind.OUTPUT:
            results[buffer.index] = after[number].view(dtypes[buffer.index].numpy).reshape(shapes[buffer.index])
    return [results[i] for i in sorted(results)]


def _outputs(program: Program) -> list[Value]:
    return sorted((v for v in program.values if v.kind is ValueKind.OUTPUT), key=lambda v: v.index)
