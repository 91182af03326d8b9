"""The matrices of a recurrence as its kernel reads them: panels of all gates of a few units, so that one walk over a vector gives
all that these units need.

    [direction][panel][pass][k][vector of the pass][lane]        vector = (vector of units, gate), gates counted first

Of the vectors of a panel a pass takes so many that the register file holds their sums with the rows of a batch that share them.
"""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Recurrence
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Words
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, Phase, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities
from xyntra_ep.tracea.semantic_ir.nodes import Const, f32, lt, vmin

_MOST_ROWS, _FEW_ROWS = 12, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Panels:
    """Of one stage. ``units``: vectors of units in a panel; ``together``: vectors of a pass; ``rows``: of a batch at a time;
    ``width``: units there are, and elements of the vector that is multiplied."""

    stage: int
    gates: int
    first_gate: int
    units: int
    together: int
    rows: int
    width: int
    lanes: int
    words: Words | None = None  # of bytes, see `_words.py`

    @property
    def vectors(self) -> int:
        return self.gates * self.units

    @property
    def passes(self) -> int:
        return self.vectors // self.together

    @property
    def columns(self) -> int:
        """Units of a panel."""
        return self.units * self.lanes

    @property
    def number(self) -> int:
        return -(-self.width // self.columns)

    @property
    def depth(self) -> int:
        """Elements of a vector that a step multiplies."""
        return 1 if self.words is None else self.words.depth

    @property
    def steps(self) -> int:
        return -(-self.width // self.depth)

    @property
    def dtype(self) -> DType:
        return DType.F32 if self.words is None else self.words.right

    @property
    def pass_rows(self) -> int:
        """Steps of a pass, and the sums of bytes."""
        return self.steps + (self.words is not None)

    @property
    def pass_size(self) -> int:
        """Elements of a pass."""
        return self.pass_rows * self.depth * self.together * self.lanes

    @property
    def size(self) -> int:
        """Elements of a panel."""
        return self.passes * self.pass_size

    def buffer(self, directions: int) -> TempBuffer:
        return TempBuffer(name=f"panels{self.stage}", size_bytes=directions * self.number * self.size * self.dtype.bytes)


def panels_of(op: Recurrence, caps: Capabilities, words: Words | None = None) -> tuple[Panels, ...]:
    """Of each stage. Many rows with few vectors read a panel, which lies in L2, less often than few rows with many; where there
    are only few rows, all vectors go together."""
    rows, width = op.domain[2:]
    assert isinstance(width, int)
    is_large = caps.vector_registers >= 32
    sums = 24 if is_large else 12
    most = 2 + is_large
    if typical(rows) <= _FEW_ROWS:
        most = 4
    beside = 1 + (words is not None and not caps.vnni)  # an element of the vector, and a product
    found: list[Panels] = []
    for s, stage in enumerate(op.stages):
        units = 2 if stage.gates == 1 or (not is_large and stage.gates % 2) else 1
        units = min(units, -(-width // caps.lanes))
        vectors = stage.gates * units
        together = max(n for n in range(1, most + 1) if vectors % n == 0)
        found.append(
            Panels(
                stage=s,
                gates=stage.gates,
                first_gate=sum(before.gates for before in op.stages[:s]),
                units=units,
                together=together,
                rows=min(_MOST_ROWS, sums // together, max(1, (caps.vector_registers - together - beside) // together)),
                width=width,
                lanes=caps.lanes,
                words=words,
            )
        )
    return tuple(found)


def pack(op: Recurrence, panels: Panels, context: BuildContext) -> KernelCall:
    """A unit is a panel of one direction; columns that do not exist are 0."""
    r, lanes, width = op.inputs[0], panels.lanes, panels.width
    directions = op.domain[0]
    assert isinstance(directions, int)
    b = KernelBuilder(f"xy_recurrence_panels_{r.dtype}_{panels.gates}x{panels.units}_{context.caps.isa}")
    source, target = b.buffer("r", r.dtype), b.buffer("panels", DType.F32, writable=True)
    of_direction, of_gate, of_k, of_unit = (b.param(stride) for stride in r.strides)
    with b.units() as unit:
        panel, direction = unit % panels.number, unit // panels.number
        start = b.let("start", b.param(r.offset) + direction * of_direction + of_gate * panels.first_gate)
        for v in range(panels.vectors):
            u, gate = divmod(v, panels.gates)
            number, place = divmod(v, panels.together)
            first = b.let("first", panel * panels.columns + u * lanes)
            exist = b.let("exist", vmin(width - first, lanes))
            to = b.let("to", unit * panels.size + (number * width * panels.together + place) * lanes)
            with b.loop("lane", 0, lanes) as lane:
                with b.when(lt(lane, exist)), b.loop("k", 0, width) as k:
                    value = b.load(source, start + of_gate * gate + k * of_k + (first + lane) * of_unit)
                    b.store(target, to + k * (panels.together * lanes) + lane, value)
                with b.otherwise(), b.loop("k", 0, width) as k:
                    b.store(target, to + k * (panels.together * lanes) + lane, Const(f32(1), 0.0))
    kernel, params = b.finish()
    return KernelCall(
        kernel=kernel,
        buffers=(ValueBuffer(value=r.value), panels.buffer(directions)),
        params=params,
        units=directions * panels.number,
        cost_ns=directions * panels.number * panels.size,
        phase=Phase.PREPARE if context.is_constant(r.value) else Phase.RUN,
    )
