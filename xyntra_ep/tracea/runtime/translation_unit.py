"""Several kernels as one translation unit: a compiler costs 30 to 90 ms to start, most kernels a few to compile.

Kernels are printed one by one and repeat their typedefs, helpers and the names of their static functions. A typedef or a static
function that is there already is left out: the matrix products of a transformer have their tiles in common, most of what they
take to compile. Other static functions of equal names get names of their own through macros.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from xyntra_ep.tracea.runtime.kernel_source import KernelSource

_ATTRIBUTE = re.compile(r"__attribute__\(\(.*?\)\)")
_DECLARED = re.compile(r"(\w+)\s*[(\[=]")
_CHUNK = re.compile(r"^(?=static\b|typedef\b|__attribute__|\w+ \w+\()", re.MULTILINE)
# A unit smaller than this costs more to start a compiler for than to compile (bytes of text, about 0.2 s).
LEAST_BYTES = 32 << 10
# Units per compiler that may run at a time: small enough that all end together, large enough to start few.
_UNITS_PER_JOB = 3


def merged(sources: Sequence[KernelSource]) -> str:
    """One text that exports what all ``sources`` export. Their symbols must differ.

    >>> text = "typedef int i32;\\nstatic i32 two(void) {{ return 2; }}\\ni32 {}(void) {{ return two(); }}\\n"
    >>> both = merged([KernelSource(symbol=name, text=text.format(name)) for name in ("f", "g")])
    >>> both.count("typedef"), both.count("static"), both.count("#define two two_u0")
    (1, 1, 2)
    """
    assert len({s.symbol for s in sources}) == len(sources), "two kernels of a unit export the same name"
    if len(sources) == 1:
        return sources[0].text
    known: dict[Definition, str] = {}  # under which name
    typedefs: set[str] = set()
    parts: list[str] = []
    for number, source in enumerate(sources):
        names: dict[str, str] = {}
        texts: list[str] = []
        for chunk in chunks(source.text):
            if chunk.startswith("typedef"):
                if chunk not in typedefs:
                    typedefs.add(chunk)
                    texts.append(chunk)
                continue
            if (name := _static_name(chunk)) is None:
                texts.append(chunk)
                continue
            definition = chunk, tuple(new for old, new in names.items() if old in chunk)
            if definition not in known:
                known[definition] = f"{name}_u{number}"
                texts.append(chunk)
            names[name] = known[definition]
        parts += [f"#define {old} {new}\n" for old, new in names.items()]
        parts += texts
        parts += [f"#undef {name}\n" for name in names]
    return "".join(parts)


# A static definition, and what it calls the ones before it that it may name.
Definition = tuple[str, tuple[str, ...]]


def chunks(text: str) -> list[str]:
    """A kernel's text in definitions, one after the other."""
    return [chunk if chunk.endswith("\n") else chunk + "\n" for chunk in _CHUNK.split(text) if chunk]


def _static_name(chunk: str) -> str | None:
    """What a ``static`` definition declares: the first name with an argument list, a bound or a value behind it."""
    if not chunk.startswith("static"):
        return None
    found = _DECLARED.search(_ATTRIBUTE.sub("", chunk.partition("\n")[0]))
    return found[1] if found else None


def is_known(source: KernelSource, known: Set[str]) -> bool:
    """Whether most of its text is among the ``known`` definitions: it should be compiled with the kernel that these are of."""
    return 2 * new_bytes(source, known) < len(source.text)


def new_bytes(source: KernelSource, known: Set[str]) -> int:
    """How much of its text is in none of the ``known`` definitions."""
    return sum(len(chunk) for chunk in chunks(source.text) if chunk not in known)


class _Unit:
    """Kernels that are compiled together; ``load``: bytes of text, definitions in common counted once."""

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.symbols: set[str] = set()
        self.definitions: set[str] = set()
        self.load = 0

    def add(self, position: int, source: KernelSource) -> None:
        self.positions.append(position)
        self.symbols.add(source.symbol)
        self.load += new_bytes(source, self.definitions)
        self.definitions.update(chunks(source.text))


def split(sources: Sequence[KernelSource], jobs: int) -> list[list[int]]:
    """Positions of ``sources`` in units that take about as long as each other, the longest unit first.

    Time is about proportional to the text; the longest kernels choose first, and each goes where most of its text is already,
    else where least is waiting.
    """
    all_of_them = _Unit()
    for i, source in enumerate(sources):
        all_of_them.add(i, source)
    count = min(len(sources), max(1, min(_UNITS_PER_JOB * jobs, all_of_them.load // LEAST_BYTES)))
    units = [_Unit() for _ in range(count)]
    for i in sorted(range(len(sources)), key=lambda i: -len(sources[i].text)):
        source = sources[i]
        free = [u for u in units if source.symbol not in u.symbols]
        if not free:
            free = [_Unit()]
            units += free
        like = [u for u in free if is_known(source, u.definitions)]
        min(like or free, key=lambda u: u.load).add(i, source)
    return [u.positions for u in sorted(units, key=lambda u: -u.load) if u.positions]
