"""What is given to a compiler: the definitions that a kernel's text is made of."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

SYMBOL = "\0"  # stands for the kernel's own name in what exports it


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A part of a kernel's text that begins and ends with a line.

    ``name``: what it defines, if kernels of one translation unit may have it in common; empty for what each exports. ``is_type``:
    a type, or something else of which equal texts mean one thing wherever they stand. ``signature``: of a function that is
    compiled out of line, which units that are linked may have in common, too; its ``body`` follows.

    >>> Definition.function("static inline", "int two(void)", " { return 2; }\\n", name="two").text
    'static inline int two(void) { return 2; }\\n'
    """

    text: str
    name: str = ""
    is_type: bool = False
    signature: str = ""
    body: str = ""

    @classmethod
    def function(cls, qualifiers: str, signature: str, body: str, *, name: str, out_of_line: bool = False) -> Definition:
        text = f"{qualifiers} {signature}{body}"
        return cls(text=text, name=name, signature=signature, body=body) if out_of_line else cls(text=text, name=name)


Definitions = tuple[Definition, ...]


def text_of(definitions: Iterable[Definition], symbol: str) -> str:
    """All of them, with the name of the kernel that they export."""
    return "".join(definition.text for definition in definitions).replace(SYMBOL, symbol)


def taking(buffers: int, params: int) -> Definition:
    """What a kernel for the CPU tells of itself besides its code: native code gives it no fewer, whatever a plan says
    (native/kernel_loader.h).

    >>> text_of([taking(3, 1)], "f")
    '__attribute__((visibility("default"))) const unsigned f_takes[2] = {3, 1};\\n'
    """
    return Definition(
        text=f'__attribute__((visibility("default"))) const unsigned {SYMBOL}_takes[2] = {{{buffers}, {params}}};\n'
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSource:
    """A C translation unit that exports one function, ``symbol``, and perhaps what it takes. ``note``: comment lines for who
    reads it, which are no part of what is compiled. ``threads``: of a block, on a device; 0 on the CPU. ``shared_bytes``: what
    a launch has to give to a block, beside the shared memory that the text declares."""

    symbol: str
    definitions: tuple[Definition, ...]
    note: str = ""
    threads: int = 0
    shared_bytes: int = 0
    text: str = field(init=False, repr=False, compare=False)  # of all definitions

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", text_of(self.definitions, self.symbol))

    @classmethod
    def of_text(cls, symbol: str, text: str) -> KernelSource:
        """Of a text that is written as a whole and shares nothing."""
        return cls(symbol=symbol, definitions=(Definition(text=text),))

    @property
    def readable(self) -> str:
        return self.note + self.text

    def distinct(self) -> KernelSource:
        """The same kernel under a symbol of its own, so that it can be compiled together with others.

        >>> exported = Definition(text=f"void {SYMBOL}(void) {{}}")
        >>> KernelSource(symbol="f", definitions=(exported,)).distinct().text
        'void f_6e9f6702(void) {}'
        """
        return replace(self, symbol=f"{self.symbol}_{hashlib.sha256(self.text.encode()).hexdigest()[:8]}")
