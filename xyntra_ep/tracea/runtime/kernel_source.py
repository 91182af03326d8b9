"""What is given to a compiler: the definitions that a kernel's text is made of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

_READ_PARAMETER = re.compile(r"^(  const i64 \w+ = )params\[(\d+)\];$", re.MULTILINE)  # as emitters/cpu.py prints it
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
    a launch has to give to a block, beside the shared memory that the text declares. ``literals``: what the parameters are where
    it is called, None for those that differ from run to run; empty where nobody asks. They are no part of the text."""

    symbol: str
    definitions: tuple[Definition, ...]
    note: str = ""
    threads: int = 0
    shared_bytes: int = 0
    literals: tuple[int | None, ...] = ()
    text: str = field(init=False, repr=False, compare=False)  # of all definitions

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", text_of(self.definitions, self.symbol))

    @classmethod
    def of_text(cls, symbol: str, text: str) -> KernelSource:
        """Of a text that is written as a whole and shares nothing."""
        return cls(symbol=symbol, definitions=(Definition(text=text),))

    def specialised(self) -> KernelSource:
        """The same kernel with its ``literals`` in the text, under a symbol of its own; it takes the same parameters.

        >>> exported = Definition(text="{\\n  const i64 m = params[0];\\n  const i64 n = params[1];\\n}\\n")
        >>> print(KernelSource(symbol="f", definitions=(exported,), literals=(None, 768)).specialised().text)
        {
          const i64 m = params[0];
          const i64 n = 768;
        }
        <BLANKLINE>
        """

        def known(read: re.Match[str]) -> str:
            value = self.literals[int(read[2])]
            return read[0] if value is None else f"{read[1]}{value};"

        definitions = tuple(
            replace(d, text=_READ_PARAMETER.sub(known, d.text)) if "params[" in d.text else d for d in self.definitions
        )
        return replace(self, definitions=definitions, literals=()).distinct()

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
