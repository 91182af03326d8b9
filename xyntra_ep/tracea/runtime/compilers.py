"""C compilers on this machine: which one is used, what it is (for cache keys), and the flags kernels are built with."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from xyntra_ep import knobs
from xyntra_ep.errors import UnsupportedError
from xyntra_ep.system import made_for
from xyntra_ep.tracea.runtime.cache_root import CacheRoot, atomic_write
from xyntra_ep.tracea.runtime.process import run_all
from xyntra_ep.trusted_file import read_trusted

REMEDY = "install gcc >= 12 or clang >= 16, or `pip install xyntra-ep[cc]`, or set XYNTRA_CC"
NO_COMPILER = "none"  # in place of a command: none is looked for
_IDENTIFY_TIMEOUT_S = 20.0


class Family(StrEnum):
    GCC = "gcc"
    CLANG = "clang"
    ZIG = "zig"
    OTHER = "other"


_LEAST_MAJOR = {Family.GCC: 12, Family.CLANG: 16}

# -O2: -O3 is no faster on explicit vectors and -Ofast is slower. FMA contraction is wanted, reassociation is
# not: results must not depend on a compiler's mood. Kernels are header-free and need no start-up code; what they
# call is libm for what we do not approximate, memset from the C library, half-float helpers (xyntra_ep/system.py
# has how they are linked).
_COMMON = (
    "-x", "c", "-std=gnu11", "-O2", "-pipe", "-fPIC", "-fvisibility=hidden", "-fno-math-errno",
    "-ffp-contract=fast", "-fno-stack-protector",
)  # fmt: skip
_FAMILY_FLAGS = {
    # Tiles are long runs of loads and stores: how far back GCC looks for the store behind a load was a third of its time.
    Family.GCC: ("--param", "sccvn-max-alias-queries-per-access=20"),
    Family.ZIG: ("-fno-sanitize=undefined", "-g0"),  # both are on unless switched off
}
# The first report ends the process, and says where in the kernel's text it is. Shifts of negative numbers are defined in both
# compilers.
_CHECKED = ("-fno-sanitize=shift-base", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g1")
# Features, never names of CPUs: a name would also bring scheduling and features that were not asked for.
_ISA = {
    "avx512": ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx2", "-mfma", "-mf16c"),
    "avx2": ("-mavx2", "-mfma", "-mf16c"),
    "neon": (),  # part of every aarch64
    "scalar": (),
}
# Latencies and widths, no features: those that Clang takes when nothing is named make it load the panels of AVX2's fullest tiles
# so early that they are spilled. Haswell is the first processor with this set. Zig ignores -mtune.
_AVX2_TUNING = ("-Xclang", "-tune-cpu", "-Xclang", "haswell")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """A compiler as it is called. ``stamp`` changes when the file does."""

    command: tuple[str, ...]
    family: Family
    version: str  # first line of --version
    stamp: str
    sanitizers: str = ""  # as -fsanitize wants them; their runtime must be in the process before a kernel is loaded

    suffix = ".so"

    @property
    def name(self) -> str:
        """As errors call it."""
        return " ".join(self.command)

    @property
    def linker(self) -> Compiler:
        """Several units may become one shared object."""
        return self

    @property
    def identity(self) -> str:
        """What makes two compilers' output differ."""
        return "|".join((*self.command, self.version, self.stamp))

    def salt(self, target: tuple[str, ...]) -> str:
        """Part of every kernel's key: with the whole command, so that a changed flag can never meet an old file."""
        return "\0".join((self.identity, *self.argv("", "", target)))

    def refusal(self, data: bytes) -> str:
        """What a file that was made is instead of a kernel; empty for a kernel."""
        return "" if data.startswith(made_for(self.command).magics) else "something that is not a shared object"

    @property
    def major(self) -> int:
        return _major(self.version)

    def argv(self, source: str, output: str, target: tuple[str, ...]) -> list[str]:
        """The command that makes the shared object ``output`` of the C file ``source``."""
        return [*self._compile(target), "-o", output, source, *made_for(self.command).link]

    def object_argv(self, source: str, output: str, target: tuple[str, ...]) -> list[str]:
        """The command that makes an object file to be linked with others."""
        return [*self._compile(target), "-c", "-o", output, source]

    def link_argv(self, objects: Sequence[str], output: str) -> list[str]:
        """The command that makes the shared object ``output`` of object files."""
        return [*self.command, *self._checks, "-o", output, *objects, *made_for(self.command).link]

    def _compile(self, target: tuple[str, ...]) -> list[str]:
        is_avx2 = "-mavx2" in target and "-mavx512f" not in target
        tuning = _AVX2_TUNING if is_avx2 and self.family in (Family.CLANG, Family.ZIG) else ()
        return [*self.command, *_COMMON, *_FAMILY_FLAGS.get(self.family, ()), *tuning, *self._checks, *target]

    @property
    def _checks(self) -> tuple[str, ...]:
        if not self.sanitizers:
            return ()
        # The runtime of the process, not one of the kernel's own, as Clang would link it.
        shared = ("-shared-libsan",) if self.family is Family.CLANG else ()
        return (f"-fsanitize={self.sanitizers}", *_CHECKED, *shared)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What a search met. ``why_not`` is empty for a compiler that can be used."""

    command: tuple[str, ...]
    compiler: Compiler | None
    why_not: str = ""


def target_flags(isa: str, *, bf16: bool = False, vnni: bool = False) -> tuple[str, ...]:
    """Flags that switch on an instruction set (a value of ``Isa``).

    >>> target_flags("avx2")
    ('-mavx2', '-mfma', '-mf16c')
    """
    if isa == "avx2":
        return _ISA[isa] + (("-mavxvnni",) if vnni else ())
    extra = (("-mavx512bf16",) if bf16 else ()) + (("-mavx512vnni",) if vnni else ())
    return _ISA[isa] + (extra if isa == "avx512" else ())


def find_compiler(root: CacheRoot | None = None) -> Compiler:
    """The compiler to use: $XYNTRA_CC, clang >= 16, gcc >= 12, cc, zig, in this order.

    Raises UnsupportedError, naming what was met and why it was refused. ``root`` remembers identities, so
    that a warm process starts no compiler to ask for its version.
    """
    refused = []
    for candidate in survey(root):
        if candidate.compiler is not None:
            return candidate.compiler
        refused.append(f"{' '.join(candidate.command)}: {candidate.why_not}")
    met = "; ".join(refused) if knobs.current().cc != NO_COMPILER else f"XYNTRA_CC={NO_COMPILER}"
    raise UnsupportedError(f"no C compiler that can be used{f' ({met})' if met else ''}", hint=REMEDY)


def survey(root: CacheRoot | None = None) -> Iterator[Candidate]:
    """Every compiler in the order of preference; lazily, so the first good one costs no look at the rest."""
    memory = _Memory(root)
    asked = knobs.current().cc
    if asked == NO_COMPILER:
        return
    if asked is not None:
        try:
            command = tuple(shlex.split(asked))
        except ValueError as error:  # a quotation mark without its other half
            yield Candidate(command=(asked,), compiler=None, why_not=f"XYNTRA_CC is no command ({error})")
        else:
            yield _identify(command, memory, asked=True)
        return  # asked for: no other is used behind the user's back
    seen: set[Path] = set()
    for name in (
        "clang",
        *(f"clang-{v}" for v in range(24, 15, -1)),
        "gcc",
        *(f"gcc-{v}" for v in range(17, 11, -1)),
        "cc",
    ):
        path = shutil.which(name)
        if path is None or (real := Path(path).resolve()) in seen:
            continue
        seen.add(real)
        yield _identify((path,), memory)
    spec = importlib.util.find_spec("ziglang")
    if spec is not None and spec.origin is not None:
        yield _identify((str(Path(spec.origin).parent / "zig"), "cc"), memory)


def _identify(command: tuple[str, ...], memory: _Memory, asked: bool = False) -> Candidate:
    path = shutil.which(command[0]) if command else None
    if path is None:
        return Candidate(command=command, compiler=None, why_not="not found")
    command = (path, *command[1:])
    stamp = _stamp(Path(path))
    version = memory.get(command, stamp)
    if version is None:
        with tempfile.TemporaryDirectory(prefix="xyntra-cc-") as folder:
            outcome = run_all([[*command, "--version"]], folder=Path(folder), parallel=1, timeout_s=_IDENTIFY_TIMEOUT_S)[0]
        if outcome.problem:
            return Candidate(command=command, compiler=None, why_not=f"--version {outcome.problem}")
        version = _describe(outcome.log)
        memory.put(command, stamp, version)
    family = _family(command, version)
    least = _LEAST_MAJOR.get(family, 0)
    if _major(version) < least and not asked:
        return Candidate(command=command, compiler=None, why_not=f"{version}: older than {least}")
    sanitizers = knobs.current().sanitize
    compiler = Compiler(command=command, family=family, version=version, stamp=stamp, sanitizers=sanitizers)
    return Candidate(command=command, compiler=compiler)


def _describe(text: str) -> str:
    """The first line; with the maker's name, which gcc called as `cc` gives only below."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "unknown")
    is_gcc = "Free Software Foundation" in text and "gcc" not in first.lower()
    return f"gcc as {first}" if is_gcc else first


def _family(command: tuple[str, ...], version: str) -> Family:
    if Path(command[0]).name == "zig":
        return Family.ZIG
    folded = version.lower()
    if "clang" in folded:
        return Family.CLANG
    return Family.GCC if "gcc" in folded or "g++" in folded else Family.OTHER


def _major(version: str) -> int:
    """The last x.y on the line: distributions put their own numbers before it."""
    if found := re.search(r"clang version (\d+)", version):
        return int(found[1])
    numbers = re.findall(r"(\d+)\.\d+", version)
    return int(numbers[-1]) if numbers else 0


def _stamp(path: Path) -> str:
    status = path.resolve().stat()
    return f"{path.resolve()}:{status.st_mtime_ns}:{status.st_size}"


class _Memory:
    """Version lines by command and stamp, in <root>/compilers.json. Losing it costs a --version call, nothing else."""

    def __init__(self, root: CacheRoot | None) -> None:
        self._root = root
        self._file = root.path / "compilers.json" if root is not None else None
        self._known: dict[str, str] = {}
        if self._file is not None:
            try:
                read = json.loads(read_trusted(self._file))
                self._known = {k: v for k, v in read.items() if isinstance(v, str)}
            except (OSError, ValueError, AttributeError):
                self._known = {}

    def get(self, command: tuple[str, ...], stamp: str) -> str | None:
        return self._known.get(f"{' '.join(command)}|{stamp}")

    def put(self, command: tuple[str, ...], stamp: str, version: str) -> None:
        self._known[f"{' '.join(command)}|{stamp}"] = version
        if self._root is None or self._file is None:
            return
        try:
            atomic_write(self._file, json.dumps(self._known, indent=1).encode(), self._root.tmp)
        except OSError:
            return  # full or gone: the next process asks again
