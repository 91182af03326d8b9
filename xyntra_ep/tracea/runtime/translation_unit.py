"""Several kernels as one translation unit: a compiler costs 30 to 90 ms to start, most kernels a few to compile.

Kernels are printed one by one and repeat their typedefs, helpers and the names of their static functions. A typedef or a static
function that is there already is left out: the matrix products of a transformer have their tiles in common, most of what they
take to compile. Other static functions of equal names get names of their own through macros.

Units that are linked together also have their out-of-line functions in common: the first one defines them, the others declare
them, under a name made from their text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence, Set

from xyntra_ep.tracea.runtime.kernel_source import Definition, KernelSource, text_of

# A unit smaller than this costs more to start a compiler for than to compile (bytes of text, about 0.2 s).
LEAST_BYTES = 32 << 10
# Units per compiler that may run at a time: enough for all to end together, few enough for their starts to cost little.
_UNITS_PER_JOB = 3


def merged(sources: Sequence[KernelSource], defined: set[str] | None = None) -> str:
    """One text that exports what all ``sources`` export. Their symbols must differ.

    ``defined``: the functions that units to be linked with this one define, and then this one too; None: it stands alone.

    >>> i32 = Definition(text="typedef int i32;\\n", name="i32", is_type=True)
    >>> two = Definition.function("static", "i32 two(void)", " { return 2; }\\n", name="two")
    >>> main = Definition(text="i32 \\0(void) { return two(); }\\n")
    >>> text = merged([KernelSource(symbol=symbol, definitions=(i32, two, main)) for symbol in ("f", "g")])
    >>> text.count("typedef"), text.count("static"), text.count("#define two two_u0")
    (1, 1, 2)
    """
    assert len({s.symbol for s in sources}) == len(sources), "two kernels of a unit export the same name"
    if len(sources) == 1 and defined is None:
        return sources[0].text
    known: dict[str, str] = {}  # digest of a definition -> its name here
    types: set[str] = set()
    parts: list[str] = []
    for number, source in enumerate(sources):
        digests: dict[str, str] = {}  # name in the source -> of its definition
        texts: list[str] = []
        for one in source.definitions:
            if one.is_type:
                if one.text not in types:
                    types.add(one.text)
                    texts.append(one.text)
                continue
            if not one.name:
                texts.append(text_of([one], source.symbol))
                continue
            digests[one.name] = digest = _digest(one.text, [of for other, of in digests.items() if other in one.text])
            if digest in known:
                continue
            if defined is None or not one.signature:
                known[digest] = f"{one.name}_u{number}"
                texts.append(one.text)
                continue
            known[digest] = common = f"{one.name}_{digest}"
            texts.append(_declared(one) if common in defined else _shared(one))
            defined.add(common)
        parts += [f"#define {name} {known[digest]}\n" for name, digest in digests.items()]
        parts += texts
        parts += [f"#undef {name}\n" for name in digests]
    return "".join(parts)


def _digest(text: str, used: Sequence[str]) -> str:
    """Of a definition that may name those with the digests ``used``."""
    return hashlib.sha256("\0".join((text, *used)).encode()).hexdigest()[:16]


def _declared(function: Definition) -> str:
    return f'__attribute__((visibility("hidden"))) {function.signature};\n'


def _shared(function: Definition) -> str:
    return f'__attribute__((noinline, visibility("hidden"))) {function.signature}{function.body}'


def in_common(source: KernelSource) -> list[str]:
    """The texts of the definitions that others may have, too."""
    return [one.text for one in source.definitions if one.name]


def new_bytes(source: KernelSource, known: Set[str]) -> int:
    """How much of its text is in none of the ``known`` definitions."""
    return len(source.text) - sum(len(text) for text in in_common(source) if text in known)


def split(sources: Sequence[KernelSource], jobs: int, known: Set[str] = frozenset()) -> list[list[int]]:
    """Positions of ``sources`` in units that take about as long as each other, the longest unit first.

    Time is about proportional to the text that is not yet ``known`` and in no kernel before; the longest kernels choose first,
    and each goes where least is waiting.
    """
    seen = set(known)
    weights = dict.fromkeys(sorted(range(len(sources)), key=lambda i: -len(sources[i].text)), 0)
    for i in weights:
        weights[i] = new_bytes(sources[i], seen)
        seen.update(in_common(sources[i]))
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
