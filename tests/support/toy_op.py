"""A kind of op that the package does not know of, with its one kernel: differences of a row's elements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tests.support.programs.builder import ProgramBuilder
from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import CoreOp, Operand
from xyntra_ep.tracea.core_ir.ops.core_op import unlike
from xyntra_ep.tracea.core_ir.ops.memory import Memory
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(CoreOp):
    """out[r, i] = x[r, i] - x[r, i - lag], for i < lag x[r, i]. ``inputs[0]`` is x."""

    lag: Size
    output: Operand

    is_one_node: ClassVar[bool] = True

    @property
    def written(self) -> tuple[Operand, ...]:
        return (self.output,)

    def with_operands(self, inputs: tuple[Operand, ...], written: Sequence[Operand]) -> Self:
        return replace(self, inputs=inputs, output=written[0])

    @property
    def reads_directly(self) -> int:
        return 1

    def further_sizes(self) -> tuple[Size, ...]:
        return (self.lag,)

    def problems(self) -> Iterator[str]:
        yield from unlike("the output", self.output.shape, self.inputs[0].shape)

    def interpret(self, memory: Memory) -> None:
        x, lag = memory.read(self.inputs[0]), memory.size(self.lag)
        result = x.copy()
        result[:, lag:] -= x[:, :-lag]
        memory.write(self.output, result)

    def flops(self) -> Size:
        return product(self.output.shape)

    def images(self) -> Size | None:
        return self.output.shape[0]

    def tuned_by(self) -> tuple[Any, ...]:
        return (self.lag,)


def difference(p: ProgramBuilder, x: Operand, lag: Size) -> Operand:
    """The result of a new op of ``p``."""
    out = p.temp(*x.shape)
    p.op(Difference(inputs=(x,), lag=lag, output=out, label="difference"))
    return out


def _build(op: Difference, config: Config, context: BuildContext) -> list[KernelCall]:
    [x], y = op.inputs, op.output
    b = KernelBuilder("toy_difference")
    source, target = b.buffer("x", DType.F32), b.buffer("y", DType.F32, writable=True)
    with b.units() as row:
        start, to = row * b.param(x.strides[0]), row * b.param(y.strides[0])
        with b.loop("i", 0, b.param(op.lag)) as i:
            b.store(target, to + i, b.load(source, start + i))
        with b.loop("i", b.param(op.lag), b.param(x.shape[1])) as i:
            b.store(target, to + i, b.load(source, start + i) - b.load(source, start + i - b.param(op.lag)))
    kernel, params = b.finish()
    buffers = (ValueBuffer(value=x.value), ValueBuffer(value=y.value))
    cost_ns = product(x.shape) * 2
    return [KernelCall(kernel=kernel, buffers=buffers, params=params, units=x.shape[0], cost_ns=cost_ns)]


DIFFERENCE: Variant[Difference] = Variant(
    name="toy.difference",
    op=Difference,
    admits=lambda op, context: None if op.inputs[0].dtype is DType.F32 else "is not f32",
    cost_ns=lambda op, config, context: 100.0,
    build=_build,
)
TABLE: Mapping[type[CoreOp], tuple[Variant[Any], ...]] = {Difference: (DIFFERENCE,)}
