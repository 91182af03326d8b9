"""Several kernels as one translation unit: a compiler costs 30 to 90 ms to start, most kernels a few to compile.

Kernels are printed one by one and repeat their typedefs, helpers and the names of their static functions. A typedef that
is there already is left out; a static function gets a name of its own through a macro.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from xyntra_ep.tracea.runtime.kernel_source import KernelSource

_STATIC = re.compile(r"^static\b.*", re.MULTILINE)
_ATTRIBUTE = re.compile(r"__attribute__\(\(.*?\)\)")
_DECLARED = re.compile(r"(\w+)\s*[(\[=]")
_TYPEDEF = re.compile(r"^typedef\b.*;$")
# A unit smaller than this costs more to start a compiler for than to compile (bytes of text, about 0.2 s).
LEAST_BYTES = 32 << 10
# Units per compiler that may run at a time: small enough that all end together, large enough to start few.
_UNITS_PER_JOB = 3


def merged(sources: Sequence[KernelSource]) -> str:
    """One text that exports what all ``sources`` export. Their symbols must differ.

    >>> text = "typedef int i32;\\nstatic i32 two(void) {{ return 2; }}\\ni32 {}(void) {{ return two(); }}\\n"
    >>> both = merged([KernelSource(symbol=name, text=text.format(name)) for name in ("f", "g")])
    >>> both.count("typedef"), both.count("two_u1")
    (1, 1)
    """
    assert len({s.symbol for s in sources}) == len(sources), "two kernels of a unit export the same name"
    if len(sources) == 1:
        return sources[0].text
    known: set[str] = set()
    parts: list[str] = []
    for number, source in enumerate(sources):
        names = _static_names(source.text)
        parts += [f"#define {name} {name}_u{number}" for name in names]
        parts += _new_lines(source.text, known)
        parts += [f"#undef {name}" for name in names]
    return "\n".join(parts) + "\n"


def _static_names(text: str) -> list[str]:
    """What ``static`` lines declare: the first name with an argument list, a bound or a value behind it."""
    declared = (_DECLARED.search(_ATTRIBUTE.sub("", line)) for line in _STATIC.findall(text))
    return list(dict.fromkeys(found[1] for found in declared if found))


def _new_lines(text: str, known: set[str]) -> Iterable[str]:
    for line in text.splitlines():
        if _TYPEDEF.match(line):
            if line in known:
                continue
            known.add(line)
        yield line


def split(sources: Sequence[KernelSource], jobs: int) -> list[list[int]]:
    """Positions of ``sources`` in units that take about as long as each other, the longest unit first.

    Time is about proportional to the text; the longest kernels choose first, and each goes where least is waiting.
    """
    total = sum(len(s.text) for s in sources)
    count = min(len(sources), max(1, min(_UNITS_PER_JOB * jobs, total // LEAST_BYTES)))
    units: list[list[int]] = [[] for _ in range(count)]
    load = [0] * count
    symbols: list[set[str]] = [set() for _ in range(count)]
    for i in sorted(range(len(sources)), key=lambda i: -len(sources[i].text)):
        free = [u for u in range(len(units)) if sources[i].symbol not in symbols[u]]
        if not free:
            free = [len(units)]
            units.append([])
            load.append(0)
            symbols.append(set())
        unit = min(free, key=lambda u: load[u])
        units[unit].append(i)
        load[unit] += len(sources[i].text)
        symbols[unit].add(sources[i].symbol)
    order = sorted(range(len(units)), key=lambda u: -load[u])
    return [units[u] for u in order]
