"""The source text of a kernel, as it is given to a compiler."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace

_TAKES = "_takes"


def taking(symbol: str, buffers: int, params: int) -> str:
    """What a kernel for the CPU tells of itself besides its code: native code gives it no fewer, whatever a plan says
    (native/kernel_loader.h).

    >>> taking("f", 3, 1)
    '__attribute__((visibility("default"))) const unsigned f_takes[2] = {3, 1};\\n'
    """
    return f'__attribute__((visibility("default"))) const unsigned {symbol}{_TAKES}[2] = {{{buffers}, {params}}};\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSource:
    """A C translation unit that exports one function, ``symbol``, and perhaps what it takes. ``note``: comment lines for who
    reads it, which are no part of what is compiled. ``threads``: of a block, on a device; 0 on the CPU. ``shared_bytes``: what
    a launch has to give to a block, beside the shared memory that the text declares."""

    symbol: str
    text: str
    note: str = ""
    threads: int = 0
    shared_bytes: int = 0

    @property
    def readable(self) -> str:
        return self.note + self.text

    def distinct(self) -> KernelSource:
        """The same kernel under a symbol of its own, so that it can be compiled together with others.

        >>> KernelSource(symbol="f", text="void f(void) {}").distinct().symbol
        'f_6e9f6702'
        """
        symbol = f"{self.symbol}_{hashlib.sha256(self.text.encode()).hexdigest()[:8]}"
        text, renamed = re.subn(rf"\b{re.escape(self.symbol)}(?=({_TAKES})?\b)", symbol, self.text)
        assert renamed == 1 + (f"{self.symbol}{_TAKES}[" in self.text), f"{self.symbol} is named {renamed} times in its text"
        return replace(self, symbol=symbol, text=text)
