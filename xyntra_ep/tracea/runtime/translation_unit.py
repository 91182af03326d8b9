"""Several kernels as one translation unit: a compiler costs 30 to 90 ms to start, most kernels a few to compile.

Kernels are printed one by one and repeat their typedefs, helpers and the names of their static functions. A typedef or a static
function that is there already is left out: the matrix products of a transformer have their tiles in common, most of what they
take to compile. Other static functions of equal names get names of their own through macros.

Units that are linked together also have their out-of-line functions in common: the first one defines them, the others declare
them, under a name made from their text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence, Set

from xyntra_ep.tracea.runtime.kernel_source import KernelSource

_ATTRIBUTE = re.compile(r"__attribute__\(\(.*?\)\)")
_DECLARED = re.compile(r"(\w+)\s*[(\[=]")
_OUT_OF_LINE = "static __attribute__((noinline))"
_CHUNK = re.compile(r"^(?=static\b|typedef\b|struct\b|extern\b|__attribute__|\w+ \w+\()", re.MULTILINE)
# A unit smaller than this costs more to start a compiler for than to compile (bytes of text, about 0.2 s).
LEAST_BYTES = 32 << 10
# Units per compiler that may run at a time: enough for all to end together, few enough for their starts to cost little.
_UNITS_PER_JOB = 3


def merged(sources: Sequence[KernelSource], defined: set[str] | None = None) -> str:
    """One text that exports what all ``sources`` export. Their symbols must differ.

    ``defined``: the functions that units to be linked with this one define, and then this one too; None: it stands alone.

    >>> text = "typedef int i32;\\nstatic i32 two(void) {{ return 2; }}\\ni32 {}(void) {{ return two(); }}\\n"
    >>> both = merged([KernelSource(symbol=name, text=text.format(name)) for name in ("f", "g")])
    >>> both.count("typedef"), both.count("static"), both.count("#define two two_u0")
    (1, 1, 2)
    """
    assert len({s.symbol for s in sources}) == len(sources), "two kernels of a unit export the same name"
    if len(sources) == 1 and defined is None:
        return sources[0].text
    known: dict[str, str] = {}  # digest of a definition -> its name here
    typedefs: set[str] = set()
    parts: list[str] = []
    for number, source in enumerate(sources):
        digests: dict[str, str] = {}  # name in the source -> of its definition
        texts: list[str] = []
        for chunk in chunks(source.text):
            if chunk.startswith(("typedef", "struct")):
                if chunk not in typedefs:
                    typedefs.add(chunk)
                    texts.append(chunk)
                continue
            if (name := _static_name(chunk)) is None:
                texts.append(chunk)
                continue
            digests[name] = digest = _digest(chunk, [of for other, of in digests.items() if other in chunk])
            if digest in known:
                continue
            if defined is None or not chunk.startswith(_OUT_OF_LINE):
                known[digest] = f"{name}_u{number}"
                texts.append(chunk)
                continue
            known[digest] = common = f"{name}_{digest}"
            texts.append(_declaration(chunk) if common in defined else _definition(chunk))
            defined.add(common)
        parts += [f"#define {name} {known[digest]}\n" for name, digest in digests.items()]
        parts += texts
        parts += [f"#undef {name}\n" for name in digests]
    return "".join(parts)


def _digest(chunk: str, used: Sequence[str]) -> str:
    """Of a static definition that may name those with the digests ``used``."""
    return hashlib.sha256("\0".join((chunk, *used)).encode()).hexdigest()[:16]


def _declaration(chunk: str) -> str:
    return f'__attribute__((visibility("hidden"))){chunk.removeprefix(_OUT_OF_LINE).partition(" {")[0]};\n'


def _definition(chunk: str) -> str:
    return f'__attribute__((noinline, visibility("hidden"))){chunk.removeprefix(_OUT_OF_LINE)}'


def chunks(text: str) -> list[str]:
    """A kernel's text in definitions, one after the other."""
    return [chunk if chunk.endswith("\n") else chunk + "\n" for chunk in _CHUNK.split(text) if chunk]


def _static_name(chunk: str) -> str | None:
    """What a ``static`` definition declares: the first name with an argument list, a bound or a value behind it."""
    if not chunk.startswith("static"):
        return None
    found = _DECLARED.search(_ATTRIBUTE.sub("", chunk.partition("\n")[0]))
    return found[1] if found else None


def new_bytes(source: KernelSource, known: Set[str]) -> int:
    """How much of its text is in none of the ``known`` definitions."""
    return sum(len(chunk) for chunk in chunks(source.text) if chunk not in known)


def split(sources: Sequence[KernelSource], jobs: int, known: Set[str] = frozenset()) -> list[list[int]]:
    """Positions of ``sources`` in units that take about as long as each other, the longest unit first.

    Time is about proportional to the text that is not yet ``known`` and in no kernel before; the longest kernels choose first,
    and each goes where least is waiting.
    """
    seen = set(known)
    weights = dict.fromkeys(sorted(range(len(sources)), key=lambda i: -len(sources[i].text)), 0)
    for i in weights:
        weights[i] = new_bytes(sources[i], seen)
        seen.update(chunks(sources[i].text))
    count = min(len(sources), max(1, min(_UNITS_PER_JOB * jobs, sum(weights.values()) // LEAST_BYTES)))
    units: list[list[int]] = [[] for _ in range(count)]
    load = [0] * count
    symbols: list[set[str]] = [set() for _ in range(count)]
    for i, weight in sorted(weights.items(), key=lambda item: -item[1]):
        free = [u for u in range(len(units)) if sources[i].symbol not in symbols[u]]
        if not free:
            free = [len(units)]
            units.append([])
            load.append(0)
            symbols.append(set())
        unit = min(free, key=lambda u: load[u])
        units[unit].append(i)
        load[unit] += weight
        symbols[unit].add(sources[i].symbol)
    order = sorted(range(len(units)), key=lambda u: -load[u])
    return [units[u] for u in order]
