"""What instructions a compiled kernel consists of, read from its disassembly: what a machine lacks must not be among them.

A processor says it with an illegal instruction, which ends the process, and only if it is a small one: under XYNTRA_ISA a larger
machine executes all of them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from xyntra_ep.tracea.doctor.profile import Machine
from xyntra_ep.tracea.runtime.compilers import find_compiler, target_flags
from xyntra_ep.tracea.semantic_ir.capabilities import Isa

_TILES = r"%tmm|\bldtilecfg"
_PAIRS = r"\bvdpbf16ps|\bvcvtne2?ps2bf16"
_BYTES = r"\bvpdp(?:busd|wssd)"
_PERMUTED_BYTES = r"\bvperm[it]2b"
_WIDE = r"%zmm|%k[0-7]\b|%[xy]mm(?:1[6-9]|2\d|3[01])\b"
_VECTORS = r"%ymm|\tv(?!er[rw]\b)\w+"  # whatever is encoded as AVX is named v...

_verdicts: dict[tuple[int, int, int, str], str] = {}


def instructions_beyond(path: Path, machine: Machine) -> str:
    """The first instruction in the shared object ``path`` that ``machine`` does not have; empty if there is none.

    Nothing is looked for where there is nothing to find: on other processors, and on those that have it all. Without objdump
    nothing is found.
    """
    pattern = _beyond(machine)
    if pattern is None or shutil.which("objdump") is None:
        return ""
    status = path.stat()
    key = (status.st_ino, status.st_size, status.st_mtime_ns, pattern)
    if key not in _verdicts:
        found = re.search(rf"^.*(?:{pattern}).*$", disassembly(path), re.MULTILINE)
        _verdicts[key] = found[0].strip() if found else ""
    return _verdicts[key]


def disassembly(path: Path) -> str:
    """In AT&T's notation; a tab stands before each instruction."""
    argv = ["objdump", "--disassemble", "--no-show-raw-insn", "--no-addresses", str(path)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def built_alone(text: str, isa: Isa, folder: Path) -> Path:
    """The shared object of a kernel's text, compiled as kernels are for users."""
    source, library = folder / "k.c", folder / "k.so"
    source.write_text(text)
    argv = find_compiler().argv(str(source), str(library), target_flags(isa))
    subprocess.run(argv, check=True, capture_output=True)
    return library


def innermost_loops(path: Path) -> list[list[str]]:
    """The instructions of every loop that has none in it: what lies between a jump back and where it leads."""
    argv = ["objdump", "--disassemble", "--no-show-raw-insn", str(path)]
    listing = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    found = [(int(at, 16), line) for at, line in re.findall(r"^ +([0-9a-f]+):\t(.*)$", listing, re.MULTILINE)]
    place = {at: i for i, (at, _) in enumerate(found)}
    jumps = [(i, re.match(r"j\w+ +([0-9a-f]+) ", line)) for i, (_, line) in enumerate(found)]
    loops = [(place[int(to[1], 16)], i) for i, to in jumps if to and place.get(int(to[1], 16), i) < i]
    inner = [(a, b) for a, b in loops if not any(a <= c and d < b for c, d in loops)]
    return [[line for _, line in found[a : b + 1]] for a, b in inner]


def _beyond(machine: Machine) -> str | None:
    if machine.architecture != "x86_64":
        return None
    if machine.isa is Isa.SCALAR:
        return "|".join((_TILES, _WIDE, _VECTORS))
    if machine.isa is Isa.AVX2:
        quads = (_BYTES,) if "avx_vnni" not in machine.features else ()
        return "|".join((_TILES, _PAIRS, *quads, _PERMUTED_BYTES, _WIDE))
    features = machine.features
    lacks = (
        *((_TILES,) if not machine.tiles_granted else ()),
        *((_PAIRS,) if "avx512_bf16" not in features else ()),
        *((_BYTES,) if "avx512_vnni" not in features else ()),
        *((_PERMUTED_BYTES,) if "avx512vbmi" not in features else ()),
    )
    return "|".join(lacks) or None
