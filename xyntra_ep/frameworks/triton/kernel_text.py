"""The text of one Triton kernel in the making: its parameters, its lines, and how it is launched.

A kernel is known by its text alone, so layers that differ only in their tensors share one: pointers are parameters with names of
their role, a size that a run brings is a parameter, and block sizes are `tl.constexpr`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from xyntra_ep.frameworks.triton.scalar_functions import HELPERS, needed_helpers
from xyntra_ep.tracea.core_ir.dims import Atom, Dim, DimOp, Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Operand

TRITON_TYPES: Mapping[DType, str] = {
    DType.F32: "float32", DType.F16: "float16", DType.BF16: "bfloat16", DType.I64: "int64", DType.I32: "int32",
    DType.I16: "int16", DType.U16: "uint16", DType.I8: "int8", DType.U8: "uint8", DType.BOOL: "int1",
}  # fmt: skip
_PYTHON: Mapping[DimOp, str] = {
    DimOp.FLOORDIV: "({0} // {1} if {1} else 0)",
    DimOp.CEILDIV: "(-(-{0} // {1}) if {1} else 0)",
    DimOp.MOD: "({0} % {1} if {1} else 0)",
    DimOp.MIN: "min({0}, {1})",
    DimOp.MAX: "max({0}, {1})",
    DimOp.EQ: "int({0} == {1})",
    DimOp.NE: "int({0} != {1})",
    DimOp.LT: "int({0} < {1})",
    DimOp.LE: "int({0} <= {1})",
    DimOp.AND: "int(bool({0}) and bool({1}))",
    DimOp.OR: "int(bool({0}) or bool({1}))",
    DimOp.NOT: "int(not {0})",
    DimOp.SELECT: "({1} if {0} else {2})",
}


# What kinds call their variables; sizes of few letters are not called so either.
_RESERVED = frozenset(
    [
        "acc",
        "base",
        "batch",
        "best",
        "cols",
        "cols_mask",
        "end",
        "group",
        "head",
        "k_mask",
        "key",
        "left",
        "m_mask",
        "mask",
        "n_mask",
        "new_top",
        "offsets",
        "out",
        "pixels",
        "pixels_mask",
        "place",
        "row",
        "rows",
        "rows_mask",
        "shrink",
        "start",
        "taken",
        "top",
        "total",
    ]
)
_NUMBER = re.compile(r"[0-9.]+(e[-+]?[0-9]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A call of a kernel. ``values``: which value of the program each pointer is; ``sizes``, by parameter, and the ``grid`` are
    Python text over the symbols of the program."""

    kernel: str
    values: Mapping[str, int]
    sizes: Mapping[str, str]
    blocks: Mapping[str, int]
    grid: tuple[str, ...]


@dataclass(slots=True)
class _Place:
    """Where lines come that turn out to be needed later."""

    depth: int
    lines: list[str] = field(default_factory=list)


@dataclass(slots=True)
class KernelText:
    """``line`` adds to its body, ``block`` indents what is added within it."""

    lines: list[str | _Place] = field(default_factory=list)
    blocks: dict[str, int] = field(default_factory=dict)
    grid: tuple[str, ...] = ()
    _pointers: dict[str, int] = field(default_factory=dict)
    _sizes: dict[str, str] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)
    _depth: int = 1

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def place(self) -> list[str]:
        """Lines that are added to the result stand here."""
        found = _Place(self._depth)
        self.lines.append(found)
        return found.lines

    def name(self, stem: str) -> str:
        """A name that nothing has yet: the stem, or the stem with a number."""
        found, number = stem, 1
        while found in self._names:
            found = f"{stem}_{number}"
            number += 1
        self._names.add(found)
        return found

    def let(self, stem: str, text: str) -> str:
        """A variable of this value; a name stays a name."""
        if text.isidentifier():
            return text
        name = self.name(stem)
        self.line(f"{name} = {text}")
        return name

    def pointer(self, operand: Operand, stem: str) -> str:
        name = self.name(f"{stem}_ptr")
        self._pointers[name] = operand.value
        return name

    def constexpr(self, name: str, value: int) -> str:
        """A block size, and what the launcher gives for it."""
        self.blocks[name] = value
        return name

    def size(self, size: Size) -> str:
        """A size as text of the kernel: a number, or a polynomial over parameters."""
        return polynomial(size, self._atom)

    def _atom(self, atom: Atom) -> str:
        text = _python_atom(atom)
        found = next((name for name, known in self._sizes.items() if known == text), None)
        if found is None:
            own = text.isidentifier() and len(text) > 2 and text not in _RESERVED
            found = self.name(text if own else f"size_{text}" if text.isidentifier() else "size")
            self._sizes[found] = text
        return found

    def text(self, name: str) -> str:
        """The whole kernel."""
        parameters = [*self._pointers, *self._sizes, *(f"{block}: tl.constexpr" for block in self.blocks)]
        head = f"def {name}({', '.join(parameters)}):"
        if len(head) > 100:
            head = "\n".join([f"def {name}(", *(f"    {p}," for p in parameters), "):"])
        return "\n".join(["@triton.jit", head, *self._written()])

    def _written(self) -> list[str]:
        return [text for line in self.lines for text in ([line] if isinstance(line, str) else _indented(line))]

    def launch(self, kernel: str) -> Launch:
        return Launch(
            kernel=kernel,
            values=dict(self._pointers),
            sizes=dict(self._sizes),
            blocks=dict(self.blocks),
            grid=self.grid,
        )

    def helpers(self) -> list[str]:
        """Names of the functions that it calls, those that they call first."""
        return needed_helpers("\n".join(self._written()))


def _indented(place: _Place) -> list[str]:
    return ["    " * place.depth + line for line in place.lines]


def helper_texts(names: Sequence[str]) -> list[str]:
    return [HELPERS[name] for name in HELPERS if name in names]


def polynomial(size: Size, name: Callable[[Atom], str]) -> str:
    """``size`` as text of Python; ``name`` says what an atom is called."""
    if not isinstance(size, Dim):
        return str(int(size))
    terms = []
    for monomial, coefficient in size.terms:
        factors = [name(atom) for atom in monomial]
        if abs(coefficient) != 1 or not factors:
            factors.append(str(abs(coefficient)))
        terms.append((" * ".join(factors), coefficient < 0))
    first, negative = terms[0]
    text = f"-{first}" if negative else first
    for term, negative in terms[1:]:
        text += f" {'-' if negative else '+'} {term}"
    return text


def python_size(size: Size) -> str:
    """``size`` as text of the launcher, over the symbols."""
    return polynomial(size, _python_atom)


def _python_atom(atom: Atom) -> str:
    if atom.op is DimOp.SYMBOL:
        return identifier(atom.key)
    operands = [operand(python_size(arg)) for arg in atom.args if not isinstance(arg, str)]
    return _PYTHON[atom.op].format(*operands)


def operand(text: str) -> str:
    """``text`` as an operand of anything: in brackets where it is more than a name, a number or a call."""
    plain = text.replace("_", "").replace(".", "").isalnum() or _NUMBER.fullmatch(text)
    return text if plain or is_call(text) else f"({text})"


def is_call(text: str) -> bool:
    """Whether it is one call, or something in brackets: no operator stands outside of brackets."""
    depth = 0
    for at, c in enumerate(text):
        if c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
            if depth == 0 and at + 1 < len(text) and text[at + 1] not in ".[(":
                return False
        elif depth == 0 and c in " -+*/%&|<>=~^":
            return False
    return text.endswith((")", "]"))


_SUM, _PRODUCT, _ATOM = 1, 2, 3  # how tightly a text holds together
_OPERATORS = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "//": _PRODUCT, "%": _PRODUCT}


def _tightness(text: str) -> int:
    """By the loosest operator outside of brackets; 0 where that is a comparison or of bits."""
    depth, found = 0, _ATOM
    words = re.split(r"([()\[\]]|\s[^\s\w]+\s)", text)
    for word in words:
        if word in ("(", "["):
            depth += 1
        elif word in (")", "]"):
            depth -= 1
        elif depth == 0 and word and word[0].isspace():
            found = min(
                found, {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "//": _PRODUCT, "%": _PRODUCT}.get(word.strip(), 0)
            )
    return min(found, _PRODUCT) if text.startswith(("-", "~")) else found


def filled(form: str, args: Sequence[str]) -> str:
    """``form`` with its operands, in brackets where these are needed."""
    if re.fullmatch(r"-?[a-z_.]+\(.*\)", form) and is_call(form.lstrip("-")):
        return form.format(*args)
    if form in ("{0} + {1}", "{0} - {1}"):
        needed = (_SUM, _PRODUCT)
    elif form in ("{0} * {1}", "{0} / {1}"):
        needed = (_PRODUCT, _ATOM)
    else:
        return form.format(*(operand(a) for a in args))
    return form.format(*(a if _tightness(a) >= least else f"({a})" for a, least in zip(args, needed, strict=True)))


def identifier(name: str) -> str:
    """``name`` as Python can have it."""
    found = "".join(c if c.isalnum() and c.isascii() else "_" for c in name)
    return f"_{found}" if not found or found[0].isdigit() else found
