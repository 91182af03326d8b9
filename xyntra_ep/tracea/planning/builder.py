"""From an op to its kernel launches, remembering ops that are the same but for where their data lies.

The twelve layers of a transformer are one layer here: deciding, building and printing happen once.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from xyntra_ep.errors import InvariantError, UnsupportedError
from xyntra_ep.guard import guarded
from xyntra_ep.tracea.core_ir.dims import Size, assuming, product, substitute, symbol
from xyntra_ep.tracea.core_ir.dtypes import LEVELS, DType
from xyntra_ep.tracea.core_ir.expr import walk
from xyntra_ep.tracea.core_ir.given_size import PREFIX, given_config, parameters
from xyntra_ep.tracea.core_ir.ops import CoreOp, Program
from xyntra_ep.tracea.core_ir.work import NO_WORK, SizedWork, sized_work
from xyntra_ep.tracea.doctor.decision import Decision, Tuned, decide
from xyntra_ep.tracea.doctor.variants import VariantTable
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, TempBuffer, TensorView, ValueBuffer
from xyntra_ep.tracea.planning.op_key import OpKey, op_key
from xyntra_ep.tracea.planning.opened_op import open_op
from xyntra_ep.tracea.runtime.kernel_source import Definition, Definitions, KernelSource, taking
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities
from xyntra_ep.tracea.semantic_ir.check import check_kernel
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.gpu.shared_memory import shared_layout
from xyntra_ep.tracea.semantic_ir.lifted_constants import lifted
from xyntra_ep.tracea.semantic_ir.nodes import Kernel

Emit = Callable[[Kernel, Capabilities], Definitions]
TunedFor = Callable[[CoreOp, BuildContext], Tuned | None]
Heard = Callable[[CoreOp, BuildContext], None]
_GIVEN = re.compile(rf"\b{PREFIX}\w+")
_INTEGERS = frozenset({*LEVELS, DType.I32})


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A KernelCall with its kernel printed; ``source`` is one object for all equal kernels of a builder. ``numbers``: what is in
    a last buffer of the kernel that the call does not name; nothing: it has none."""

    call: KernelCall
    source: KernelSource
    numbers: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    decision: Decision
    launches: tuple[Launch, ...]
    work: SizedWork = NO_WORK


class OpBuilder:
    """Decides and builds ops for one machine, or for ``gpu`` in it. Keep it as long as programs may share ops: a session, or
    longer."""

    def __init__(
        self,
        caps: Capabilities,
        variants: VariantTable,
        emit: Emit,
        tuned_for: TunedFor | None = None,
        *,
        gpu: Gpu | None = None,
        strict: bool = False,
        slack: float = 1.0,
        general: bool = False,
        heard: Heard | None = None,
        is_checked: Callable[[KernelSource], bool] = lambda source: False,
    ) -> None:
        """``slack``: as `decide` takes it. ``general``: kernels are built that serve many shapes (`opened_op.py`). ``heard`` is
        told of each op that is built. ``is_checked``: whether a kernel with this text was found right before."""
        self.caps = caps
        self._general = general
        self._heard = heard
        self._is_checked = is_checked
        self._gpu = gpu
        self._strict = strict
        self._slack = slack
        self._variants = variants
        self._emit = emit
        self._tuned_for = tuned_for
        self._built: dict[Any, tuple[OpKey, Built | UnsupportedError]] = {}
        self._sources: dict[str, KernelSource] = {}

    @property
    def for_device(self) -> bool:
        """Whether it builds for a GPU, not for the machine's processor."""
        return self._gpu is not None

    @property
    def aliases(self) -> bool:
        """Whether a launch may have two buffers that are the same memory."""
        return self._gpu is None or self._gpu.aliases

    def decide(self, op: CoreOp, context: BuildContext) -> Decision:
        tuned = self._tuned_for(op, context) if self._tuned_for is not None else None
        with assuming(context.program.assumed):
            return decide(op, context, self._variants.get(type(op), ()), tuned, self._slack)

    def build(self, op: CoreOp, program: Program, constants: frozenset[int]) -> Built:
        """The launches of ``op``. Raises UnsupportedError when no variant admits it."""
        key = op_key(op, program, constants)
        assumed = program.assumed
        alike = (key.key, tuple(point.get(name) for point in assumed for name in key.symbols))
        found = self._built.get(alike)
        if found is None:
            context = BuildContext(caps=self.caps, program=program, gpu=self._gpu, constants=constants, strict=self._strict)
            result: Built | UnsupportedError
            try:
                with guarded("building kernels"), assuming(assumed):
                    result = self._build(op, context)
            except UnsupportedError as error:
                result = error
            found = self._built[alike] = (key, result)
        first, result = found
        if isinstance(result, UnsupportedError):
            raise result
        if first.values == key.values and first.symbols == key.symbols:
            return result
        values = dict(zip(first.values, key.values, strict=True))
        symbols = {old: symbol(new) for old, new in zip(first.symbols, key.symbols, strict=True) if old != new}
        launches = tuple(_move(launch, values, symbols) for launch in result.launches)
        return Built(decision=result.decision, launches=launches, work=_renamed(result.work, symbols))

    def _build(self, op: CoreOp, context: BuildContext) -> Built:
        if self._heard is not None:
            self._heard(op, context)
        opened = open_op(op) if self._general else None
        if opened is None:
            decision = self.decide(op, context)
            calls = decision.chosen.build(op, decision.config, context)
        else:
            assumed = context.program.assumed
            with assuming(tuple({**point, **opened.sizes} for point in assumed)), parameters():
                decision = decide(opened.op, context, self._variants.get(type(op), ()), slack=self._slack)
                config = given_config(decision.config, decision.chosen.given)
                calls = decision.chosen.build(opened.op, config, context)
        printed: dict[int, tuple[Kernel, KernelSource, bytes]] = {}
        is_moved = not self.for_device and (self._general or moves_numbers(op))
        launches = []
        for call in calls:
            given = (len(call.buffers), len(call.params), len(call.tensors))
            if given != (taken := (len(call.kernel.buffers), len(call.kernel.params), len(call.kernel.maps))):
                raise InvariantError(
                    f"{call.kernel.name} takes {taken} buffers, sizes and tensors, and is given {given}",
                    pass_name=decision.chosen.name,
                )
            if self._gpu is not None and (why := _too_much(call, self._gpu, context)):
                raise UnsupportedError(why)
            if id(call.kernel) not in printed:
                printed[id(call.kernel)] = self._checked(call.kernel, is_moved)
            kernel, source, numbers = printed[id(call.kernel)]
            launch = Launch(call=dataclasses.replace(call, kernel=kernel), source=source, numbers=numbers)
            launches.append(launch if opened is None else _move(launch, None, opened.sizes))
        return Built(decision=decision, launches=tuple(launches), work=sized_work(op, context.constants))

    def _checked(self, kernel: Kernel, is_moved: bool) -> tuple[Kernel, KernelSource, bytes]:
        """The kernel as it is called, its text, and its numbers where these ``is_moved``. Kernels that differ in such numbers
        alone have one text, which is checked once."""
        try:
            moved, numbers = lifted(kernel, self.caps) if is_moved else (kernel, b"")
            source = self._print(moved)
        except Exception:
            check_kernel(kernel)  # which tells more, where the kernel is at fault
            raise
        if source.text not in self._sources:
            if not self._is_checked(source):
                for each in (kernel,) if moved is kernel else (kernel, moved):
                    check_kernel(each)
            self._sources[source.text] = source
        return moved, self._sources[source.text], numbers

    def _print(self, kernel: Kernel) -> KernelSource:
        """Notes name the sizes of one op. They are no part of the text, so that kernels of many ops are one."""
        definitions = self._emit(dataclasses.replace(kernel, notes=()), self.caps)
        if self._general:
            definitions = tuple(map(_with_numbered_sizes, definitions))
        if kernel.threads == 0:
            definitions = (*definitions, taking(len(kernel.buffers), len(kernel.params)))
        note = "".join(f"// {note}\n" for note in kernel.notes)
        given = shared_layout(kernel).given_bytes
        return KernelSource(symbol=kernel.name, definitions=definitions, note=note, threads=kernel.threads, shared_bytes=given)


def _too_much(call: KernelCall, gpu: Gpu, context: BuildContext) -> str:
    """Why the device does not take what a kernel is given; empty if it does, as far as that is known before a run."""
    if gpu.max_buffers is not None and len(call.buffers) > gpu.max_buffers:
        return f"a kernel takes {len(call.buffers)} tensors, and the device binds {gpu.max_buffers} at most"
    if gpu.buffer_bytes is None:
        return ""
    for buffer in call.buffers:
        if isinstance(buffer, ValueBuffer):
            value = context.program.values[buffer.value]
            size = product(value.shape) * value.dtype.bytes
            if isinstance(size, int) and size > gpu.buffer_bytes:
                return f"a tensor has {size} bytes, and the device binds {gpu.buffer_bytes} at most"
    return ""


def _with_numbered_sizes(definition: Definition) -> Definition:
    """With given sizes named by their order: they are its arguments or its locals, and where they come from may tell what other
    sizes decided."""
    numbers: dict[str, str] = {}

    def numbered(name: re.Match[str]) -> str:
        return numbers.setdefault(name[0], f"{PREFIX}{len(numbers)}")

    text, signature, body = (_GIVEN.sub(numbered, part) for part in (definition.text, definition.signature, definition.body))
    return dataclasses.replace(definition, text=text, signature=signature, body=body)


def moves_numbers(op: CoreOp) -> bool:
    """Whether numbers of a CPU's kernels for ``op`` become data (`lifted`): where integers that stand for floats are computed
    with, since layers are then alike but for what these stand for; and where there is a single element."""
    if op.points() == 1 or any(operand.dtype in _INTEGERS for operand in op.operands):
        return True
    return any(e.kind == "call" and e.attr == "quantise" for e in walk(*(body.expr for body in op.expressions())))


def _renamed(work: SizedWork, symbols: Mapping[str, Size]) -> SizedWork:
    return SizedWork(flops=substitute(work.flops, symbols), bytes=substitute(work.bytes, symbols)) if symbols else work


def _move(launch: Launch, values: Mapping[int, int] | None, symbols: Mapping[str, Size]) -> Launch:
    """``launch`` for an op with the same key, whose values (None: the same) and symbols have other names."""

    def size(size: Size) -> Size:
        return substitute(size, symbols) if symbols else size

    call = launch.call
    buffers: list[ValueBuffer | TempBuffer] = []
    for buffer in call.buffers:
        if isinstance(buffer, ValueBuffer):
            value = buffer.value if values is None else values[buffer.value]
            buffers.append(ValueBuffer(value=value, offset_bytes=size(buffer.offset_bytes)))
        else:
            buffers.append(TempBuffer(name=buffer.name, size_bytes=size(buffer.size_bytes)))
    return Launch(
        call=KernelCall(
            kernel=call.kernel,
            buffers=tuple(buffers),
            params=tuple(size(p) for p in call.params),
            units=size(call.units),
            cost_ns=size(call.cost_ns),
            phase=call.phase,
            tensors=tuple(
                TensorView(
                    buffer=view.buffer,
                    offset_bytes=size(view.offset_bytes),
                    extents=tuple(size(s) for s in view.extents),
                    strides_bytes=tuple(size(s) for s in view.strides_bytes),
                )
                for view in call.tensors
            ),
        ),
        source=launch.source,
        numbers=launch.numbers,
    )
