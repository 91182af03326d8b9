"""Ops as lines of JSON, with all that building their kernels depends on; a file of them is compressed (`xz -dc`).

line     = {"op": part, "values": {number: part}, "constants": [number ...], "assumed": [{symbol: size} ...]}
part     = number | string | true | null | [part ...] | "@class.value" of an enum | {"expr": [node ...]}
         | {"dim": terms} | {"float": hexadecimal} | {"bytes": hexadecimal}
         | {"is": class, field: part ...}  (fields that are as by default are left out)
node     = [kind, [number of an earlier node ...], part, dtype]
terms    = [[[atom ...], coefficient] ...];  atom = name | [operation, size ...]
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from xyntra_ep.tracea.core_ir import ops
from xyntra_ep.tracea.core_ir.dims import Atom, Dim, DimOp, Size, symbols_of
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, node, walk
from xyntra_ep.tracea.core_ir.ops import Binding, CoreOp, Program, Range, SymbolKind, Value

OPS = Path(__file__).with_name("ops.jsonl.xz")
_ENUM = "@"
_CLASSES: dict[str, Any] = {kind.__name__: kind for kind in vars(ops).values() if isinstance(kind, type)}
_ENUMS = {"DType": DType, **{name: kind for name, kind in _CLASSES.items() if issubclass(kind, Enum)}}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedOp:
    """An op, the values that it names, which of them are known beforehand, and what is assumed of its symbols."""

    op: CoreOp
    values: Mapping[int, Value]
    constants: frozenset[int]
    assumed: tuple[Mapping[str, int], ...]

    @property
    def program(self) -> Program:
        """One that has the op's values where it looks for them."""
        nothing = next(iter(self.values.values()))
        values = [self.values.get(i, nothing) for i in range(max(self.values) + 1)]
        bindings = [
            Binding(name=name, kind=SymbolKind.DIM, input=0, index=0, plausible=Range(*(p[name] for p in self.assumed)))
            for name in self.assumed[0]
        ]
        return Program(values=values, bindings=bindings)


def recorded(op: CoreOp, program: Program, constants: frozenset[int]) -> RecordedOp:
    """``op`` with its values numbered from 0, and without names that people gave."""
    numbers: dict[int, int] = {}
    for operand in op.operands:
        numbers.setdefault(operand.value, len(numbers))
    moved = tuple(replace(o, value=numbers[o.value]) for o in op.inputs)
    written = [replace(o, value=numbers[o.value]) for o in op.written]
    renamed = replace(op.with_operands(moved, written), label="")
    symbols = {name for n in op.sizes() for name in symbols_of(n)}
    return RecordedOp(
        op=renamed,
        values={new: replace(program.values[old], name="") for old, new in numbers.items()},
        constants=frozenset(numbers[old] for old in numbers if old in constants),
        assumed=tuple({name: point[name] for name in sorted(symbols) if name in point} for point in program.assumed),
    )


def write_line(op: RecordedOp) -> str:
    content = {
        "op": _encoded(op.op),
        "values": {str(n): _encoded(value) for n, value in op.values.items()},
        "constants": sorted(op.constants),
        "assumed": [dict(point) for point in op.assumed],
    }
    return json.dumps(content, separators=(",", ":"))


def read_line(line: str) -> RecordedOp:
    content = json.loads(line)
    return RecordedOp(
        op=_decoded(content["op"]),
        values={int(n): _decoded(value) for n, value in content["values"].items()},
        constants=frozenset(content["constants"]),
        assumed=tuple(content["assumed"]),
    )


def read_ops(path: Path = OPS) -> list[RecordedOp]:
    return [read_line(line) for line in lzma.decompress(path.read_bytes()).decode().splitlines()]


def write_ops(recorded_ops: Iterable[RecordedOp], path: Path = OPS) -> None:
    """Sorted: the same ops give the same bytes."""
    lines = "".join(f"{line}\n" for line in sorted(map(write_line, recorded_ops)))
    path.write_bytes(lzma.compress(lines.encode(), preset=9))


def _encoded(part: Any) -> Any:
    if isinstance(part, Enum):
        return f"{_ENUM}{type(part).__name__}.{part.value}"
    if part is None or isinstance(part, (bool, int, str)):
        return int(part) if isinstance(part, int) and not isinstance(part, bool) else part
    if isinstance(part, float):
        return {"float": part.hex()}
    if isinstance(part, bytes):
        return {"bytes": part.hex()}
    if isinstance(part, (tuple, list)):
        return [_encoded(p) for p in part]
    if isinstance(part, Dim):
        return {"dim": [[[_atom(a) for a in monomial], coefficient] for monomial, coefficient in part.terms]}
    if isinstance(part, Expr):
        order = walk(part)
        number = {id(e): i for i, e in enumerate(order)}
        return {"expr": [[e.kind, [number[id(a)] for a in e.args], _encoded(e.attr), e.dtype.value] for e in order]}
    assert is_dataclass(part), f"{type(part)} is no part of an op"
    told = [f for f in fields(part) if f.default is MISSING or getattr(part, f.name) != f.default]
    return {"is": type(part).__name__, **{f.name: _encoded(getattr(part, f.name)) for f in told}}


def _atom(atom: Atom) -> Any:
    return atom.key if atom.op is DimOp.SYMBOL else [atom.op.name, *(_encoded(arg) for arg in atom.args)]


def _decoded(part: Any) -> Any:
    if isinstance(part, list):
        return tuple(_decoded(p) for p in part)
    if isinstance(part, str) and part.startswith(_ENUM):
        kind, value = part[len(_ENUM) :].split(".", 1)
        return _ENUMS[kind](value)
    if not isinstance(part, dict):
        return part
    if "float" in part:
        return float.fromhex(part["float"])
    if "bytes" in part:
        return bytes.fromhex(part["bytes"])
    if "dim" in part:
        return _dim(part["dim"])
    if "expr" in part:
        return _expr(part["expr"])
    return _CLASSES[part["is"]](**{name: _decoded(value) for name, value in part.items() if name != "is"})


def _dim(terms: list[Any]) -> Size:
    made = tuple((tuple(_read_atom(a) for a in monomial), coefficient) for monomial, coefficient in terms)
    return Dim(made)


def _read_atom(atom: Any) -> Atom:
    if isinstance(atom, str):
        return Atom(DimOp.SYMBOL, (atom,))
    name, *args = atom
    return Atom(DimOp[name], tuple(_decoded(arg) for arg in args))


def _expr(nodes: list[Any]) -> Expr:
    made: list[Expr] = []
    for kind, args, attr, dtype in nodes:
        made.append(node(kind, tuple(made[i] for i in args), _decoded(attr), DType(dtype)))
    return made[-1]
