"""Whether a program says something that can be carried out. Fusion checks what it lowers; planning trusts it after that."""

from __future__ import annotations

from collections.abc import Iterator

from xyntra_ep.errors import InvariantError
from xyntra_ep.tracea.core_ir.dims import Dim, Size, product, symbols_of
from xyntra_ep.tracea.core_ir.expr import walk
from xyntra_ep.tracea.core_ir.ops import CoreOp, Operand, Program, ValueKind

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
        for size in op.sizes():
            if isinstance(size, Dim) and size not in seen:
                seen.add(size)
                if unbound := symbols_of(size) - bound:
                    yield f"{where}: nothing binds {sorted(unbound)}"
        for role, operands in (("input", op.inputs), ("output", op.written)):
            for j, operand in enumerate(operands):
                for problem in _operand_problems(program, operand):
                    yield f"{where}, {role} {j}: {problem}"
        for j, operand in enumerate(op.inputs):
            if operand.value not in written:
                yield f"{where}, input {j}: value {operand.value} is read before it is written"
        for j, operand in enumerate(op.written):
            if program.values[operand.value].kind in _GIVEN:
                yield f"{where}, output {j}: value {operand.value} is given and must not be written"
            written.add(operand.value)
        for problem in (*_expression_problems(op), *op.problems()):
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
    first = op.reads_directly
    for k, (body, rank, known) in enumerate(op.expressions()):
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


def _text(program: Program) -> str:
    lines = [f"v{i}: {v.kind} {v.dtype} {v.shape}" for i, v in enumerate(program.values)]
    return "\n".join(lines + [f"{i}: {op}" for i, op in enumerate(program.ops)])
