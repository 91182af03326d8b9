"""Whether a program says something that can be carried out. Fusion checks what it lowers; planning trusts it after that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xyntra_ep.errors import InvariantError
from xyntra_ep.tracea.core_ir.dims import Dim, Size, product, symbols_of
from xyntra_ep.tracea.core_ir.expr import walk
from xyntra_ep.tracea.core_ir.ops import (
    Attention,
    Conv,
    CoreOp,
    Gemm,
    Operand,
    Pointwise,
    Program,
    Recurrence,
    RowReduce,
    Scan,
    TopK,
    ValueKind,
    outputs_of,
)
from xyntra_ep.tracea.planning.op_parts import bodies_of, known_results, reads_directly, sizes_of

_GIVEN = frozenset({ValueKind.INPUT, ValueKind.CONST, ValueKind.LITERAL})


def check_program(program: Program) -> None:
    """Raise InvariantError, naming op and rule, unless every value is written before it is read, types and
    shapes fit, and every symbol is bound. Bounds are checked where they are known as numbers."""
    for problem in _problems(program):
        raise InvariantError(problem, pass_name="legality", ir=_text(program))


def _problems(program: Program) -> Iterator[str]:
    if len(program.sources) != len(program.ops):
        yield f"{len(program.ops)} ops but {len(program.sources)} sources"
    yield from _value_problems(program)
    bound = {b.name for b in program.bindings} | {name for name, _ in program.definitions}
    written = {i for i, v in enumerate(program.values) if v.kind in _GIVEN}
    seen: set[Size] = set()
    for i, op in enumerate(program.ops):
        where = f"op {i} ({type(op).__name__} {op.label})".replace(" )", ")")
        for size in sizes_of(op):
            if isinstance(size, Dim) and size not in seen:
                seen.add(size)
                if unbound := symbols_of(size) - bound:
                    yield f"{where}: nothing binds {sorted(unbound)}"
        for role, operands in (("input", op.inputs), ("output", outputs_of(op))):
            for j, operand in enumerate(operands):
                for problem in _operand_problems(program, operand):
                    yield f"{where}, {role} {j}: {problem}"
        for j, operand in enumerate(op.inputs):
            if operand.value not in written:
                yield f"{where}, input {j}: value {operand.value} is read before it is written"
        for j, operand in enumerate(outputs_of(op)):
            if program.values[operand.value].kind in _GIVEN:
                yield f"{where}, output {j}: value {operand.value} is given and must not be written"
            written.add(operand.value)
        for problem in (*_expression_problems(op), *_shape_problems(op)):
            yield f"{where}: {problem}"
    for i, value in enumerate(program.values):
        if value.kind is ValueKind.OUTPUT and i not in written:
            yield f"output {value.index} (value {i}) is never written"
    for what, sizes in (("guard", program.guards), ("check", [size for size, _ in program.checks])):
        for size in sizes:
            if unbound := symbols_of(size) - bound:
                yield f"{what} {size}: nothing binds {sorted(unbound)}"


def _value_problems(program: Program) -> Iterator[str]:
    outputs = sorted(v.index for v in program.values if v.kind is ValueKind.OUTPUT)
    if outputs != list(range(len(outputs))):
        yield f"outputs are numbered {outputs}"
    for i, value in enumerate(program.values):
        if value.kind is ValueKind.CONST and not value.index < len(program.constants):
            yield f"value {i}: there is no constant {value.index}"
        if value.kind is ValueKind.LITERAL:
            wanted = product(value.shape) * value.dtype.bytes
            if len(value.literal) != wanted:
                yield f"value {i}: a literal of {len(value.literal)} bytes where {wanted} are declared"
    names = [b.name for b in program.bindings] + [name for name, _ in program.definitions]
    if len(set(names)) != len(names):
        yield "a symbol is bound twice"


def _operand_problems(program: Program, operand: Operand) -> Iterator[str]:
    if not 0 <= operand.value < len(program.values):
        yield f"there is no value {operand.value}"
        return
    value = program.values[operand.value]
    if len(operand.shape) != len(operand.strides):
        yield f"{len(operand.shape)} dimensions but {len(operand.strides)} strides"
        return
    if operand.dtype is not value.dtype:
        yield f"is {operand.dtype}, its value {value.dtype}"
    count = product(value.shape)
    numbers = (count, operand.offset, *operand.shape, *operand.strides)
    if all(isinstance(n, int) for n in numbers) and 0 not in operand.shape:
        lowest = highest = operand.offset
        for extent, stride in zip(operand.shape, operand.strides, strict=True):
            reach = (extent - 1) * stride
            lowest, highest = (lowest + reach, highest) if _negative(reach) else (lowest, highest + reach)
        assert isinstance(lowest, int) and isinstance(highest, int) and isinstance(count, int)
        if lowest < 0 or highest >= count:
            yield f"reaches elements {lowest}..{highest} of {count}"


def _negative(size: Size) -> bool:
    return isinstance(size, int) and size < 0


def _expression_problems(op: CoreOp) -> Iterator[str]:
    first = reads_directly(op)
    for k, ((body, rank), known) in enumerate(zip(bodies_of(op), known_results(op), strict=True)):
        for e in walk(body):
            if e.kind == "axis" and not 0 <= e.attr < rank:
                yield f"expression {k} uses axis {e.attr} of {rank}"
            elif e.kind == "acc" and not 0 <= e.attr < known:
                yield f"expression {k} uses result {e.attr} of {known}"
            elif e.kind == "load":
                if not first <= e.attr < len(op.inputs):
                    yield f"expression {k} reads input {e.attr} of {len(op.inputs)}"
                    continue
                operand = op.inputs[e.attr]
                what = f"expression {k} reads input {e.attr}"
                if len(e.args) != len(operand.shape):
                    yield f"{what} with {len(e.args)} of {len(operand.shape)} indices"
                if e.dtype is not operand.dtype.compute:
                    yield f"{what} ({operand.dtype}) as {e.dtype}"


def _shape_problems(op: CoreOp) -> Iterator[str]:
    match op:
        case Pointwise():
            if len(op.bodies) != len(op.outputs):
                yield f"{len(op.bodies)} bodies for {len(op.outputs)} outputs"
            for out in op.outputs:
                yield from _same("an output", out.shape, op.domain)
        case RowReduce():
            for row in op.outputs:
                yield from _same("an output", row.operand.shape, op.outer if row.per_row else op.outer + op.inner)
        case Gemm():
            a, b = op.inputs[0].shape, op.inputs[1].shape
            yield from _same("a", a[:-1], op.domain[:-1])
            yield from _same("b", (*b[:-2], b[-2], b[-1]), (*op.domain[:-2], a[-1], op.domain[-1]))
        case Conv():
            x, w = op.inputs[0].shape, op.inputs[1].shape
            spatial = len(w) - 2
            if not len(op.strides) == len(op.dilations) == len(op.pads) == spatial == len(x) - 2:
                yield "strides, dilations, pads, x and w disagree on the number of spatial axes"
            yield from _same("x's channels", (x[1],), (w[1] * op.group,))
            yield from _same("the output", op.domain[:2], (x[0], w[0]))
        case Attention():
            q, k, v = (o.shape for o in op.inputs[:3])
            yield from _same("k", k, (q[0], q[1], k[2], q[3]))
            yield from _same("v", v[:3], k[:3])
            yield from _same("the output", op.output.shape, (*q[:3], v[3]))
        case TopK():
            for out in (op.values, op.indices):
                yield from _same("an output", out.shape, (*op.inputs[0].shape[:-1], op.k))
        case Recurrence():
            yield from _recurrence_problems(op)
        case Scan():
            pass


def _recurrence_problems(op: Recurrence) -> Iterator[str]:
    directions, _, rows, width = op.domain
    yield from _same("r", op.inputs[0].shape, (directions, op.gates, width, width))
    if not isinstance(directions, int) or not isinstance(width, int):
        yield "the number of directions or the width of a state is not known"
    if len(op.reverse) != directions:
        yield f"{len(op.reverse)} orders of time for {directions} directions"
    if op.has_lengths:
        yield from _same("the lengths", op.inputs[1].shape, (rows,))
        if op.inputs[1].dtype.is_float:
            yield f"the lengths are {op.inputs[1].dtype}"
    if op.output is not None:
        yield from _same("the output", op.output.shape, op.domain)
    for final in op.finals:
        if final is not None:
            yield from _same("a final state", final.shape, (directions, rows, width))
    states = len(op.initial)
    if not len(op.stages[-1].bodies) == len(op.finals) == states:
        yield f"{len(op.stages[-1].bodies)} new and {len(op.finals)} final states for {states}"
    vectors = states
    for stage in op.stages:
        if stage.factor != 0 and not states <= stage.factor < vectors:
            yield f"a stage multiplies vector {stage.factor}, which is neither state 0 nor a result before it"
        vectors += len(stage.bodies)
    for e in walk(*op.initial):
        if e.kind == "axis" and e.attr == 1:
            yield "an initial state depends on the time"


def _same(what: str, got: Sequence[Size], wanted: Sequence[Size]) -> Iterator[str]:
    if tuple(got) != tuple(wanted):
        yield f"{what} has shape {tuple(got)}, not {tuple(wanted)}"


def _text(program: Program) -> str:
    lines = [f"v{i}: {v.kind} {v.dtype} {v.shape}" for i, v in enumerate(program.values)]
    return "\n".join(lines + [f"{i}: {op}" for i, op in enumerate(program.ops)])
