"""Compiled kernels by content: the same text, flags and compiler give the same kernel, made once per machine.

A file is a shared object followed by a trailer, ``MAGIC sha256(shared object)``: one rename publishes code
and checksum together, and loaders ignore what follows the last section. Kernels that were compiled together
share their file: each has its own name for it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from xyntra_ep import knobs
from xyntra_ep.errors import CompileError
from xyntra_ep.tracea.runtime.cache_root import CacheRoot
from xyntra_ep.tracea.runtime.compilers import Compiler
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.runtime.process import Outcome, run_all
from xyntra_ep.tracea.runtime.translation_unit import merged, split

MAGIC = b"XYNTRA-SHA256:"
_TRAILER_BYTES = len(MAGIC) + hashlib.sha256().digest_size

Hash128 = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledKernel:
    """A kernel ready to load. ``hash128`` is over the whole file, as plans record it (b"" without a hash function)."""

    symbol: str
    key: str
    path: Path
    hash128: bytes
    cached: bool


class KernelCache:
    """See the module's docstring. Any number of processes and threads may share a root."""

    def __init__(
        self,
        root: CacheRoot,
        compiler: Compiler,
        target: tuple[str, ...],
        *,
        hash128: Hash128 | None = None,
        keep_sources: bool = False,
        dump_dir: Path | None = None,
    ) -> None:
        self.root = root
        self.compiler = compiler
        self.target = target
        self._hash128 = hash128
        self._keep_sources = keep_sources
        self._dump_dir = dump_dir
        # The whole command is in the key, so a changed flag can never meet an old file.
        self._salt = "\0".join((compiler.identity, *compiler.argv("", "", target))).encode() + b"\0"

    def key(self, text: str) -> str:
        """32 hexadecimal digits over text, flags and compiler."""
        return hashlib.sha256(self._salt + text.encode()).hexdigest()[:32]

    def compile_many(self, sources: Sequence[KernelSource]) -> list[CompiledKernel | CompileError]:
        """Each source as a file in the cache, or why not; what is missing is compiled, several at a time."""
        results: dict[str, CompiledKernel | CompileError] = {}
        missing: dict[str, KernelSource] = {}
        keys = [self.key(source.text) for source in sources]
        for key, source in zip(keys, sources, strict=True):
            if key in results or key in missing:
                continue
            if self._dump_dir is not None:
                self._dump(key, source)
            if (data := read_checked(self._path(key))) is not None:
                results[key] = self._compiled(key, source, data, cached=True)
            else:
                missing[key] = source
        if missing:
            results |= self._compile(missing)
        return [results[key] for key in keys]

    def _compile(self, missing: dict[str, KernelSource]) -> dict[str, CompiledKernel | CompileError]:
        try:
            folder = Path(tempfile.mkdtemp(prefix="cc-", dir=self.root.tmp))
        except OSError as error:
            return {key: _refused(source, f"no scratch directory ({error})") for key, source in missing.items()}
        try:
            return self._compile_in(folder, missing)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _compile_in(self, folder: Path, missing: dict[str, KernelSource]) -> dict[str, CompiledKernel | CompileError]:
        keys = list(missing)
        units = [[keys[i] for i in unit] for unit in split(list(missing.values()), knobs.current().jobs)]
        results = self._compile_units(folder, units, missing)
        # One kernel that does not compile takes its unit with it: each by itself tells which one it is.
        alone = [[key] for unit in units if len(unit) > 1 for key in unit if isinstance(results[key], CompileError)]
        return results | self._compile_units(folder, alone, missing)

    def _compile_units(
        self, folder: Path, units: Sequence[Sequence[str]], sources: Mapping[str, KernelSource]
    ) -> dict[str, CompiledKernel | CompileError]:
        """Compile each unit (the keys of its kernels) with one compiler process."""
        results: dict[str, CompiledKernel | CompileError] = {}
        written: list[Sequence[str]] = []
        for unit in units:
            try:
                (folder / f"{unit[0]}.c").write_text(merged([sources[key] for key in unit]), encoding="utf-8")
            except OSError as error:
                results |= {key: _refused(sources[key], f"cannot write the source ({error})") for key in unit}
            else:
                written.append(unit)
        commands = [self.compiler.argv(f"{unit[0]}.c", f"{unit[0]}.so", self.target) for unit in written]
        knob = knobs.current()
        outcomes = run_all(commands, folder=folder, parallel=knob.jobs, timeout_s=knob.compile_timeout_s)
        for unit, outcome in zip(written, outcomes, strict=True):
            results |= self._publish(folder, {key: sources[key] for key in unit}, outcome)
        return results

    def _publish(
        self, folder: Path, unit: Mapping[str, KernelSource], outcome: Outcome
    ) -> dict[str, CompiledKernel | CompileError]:
        name = " ".join(self.compiler.command)
        made = folder / f"{next(iter(unit))}.so"
        problem, data = "", b""
        if outcome.problem:
            problem = f"{name} {outcome.problem}"
        else:
            try:
                data = made.read_bytes()
                if data.startswith(b"\x7fELF"):
                    data = self._store(made, data, unit)
                else:
                    problem = f"{name} wrote something that is not a shared object"
            except FileNotFoundError:
                problem = f"{name} reported success and wrote nothing"
            except OSError as error:
                problem = f"cannot store the kernel ({error})"
        if problem:
            return {key: _refused(source, problem, outcome.log) for key, source in unit.items()}
        return {key: self._compiled(key, source, data, cached=False) for key, source in unit.items()}

    def _store(self, made: Path, data: bytes, unit: Mapping[str, KernelSource]) -> bytes:
        """Seal the file and give it the name of each of its kernels; the bytes as they are stored."""
        sealed = seal(data)
        with made.open("ab") as file:
            file.write(sealed[len(data) :])
        made.chmod(0o700)
        for key, source in unit.items():
            if self._keep_sources:
                written = made.with_name(f"{key}.kept.c")
                written.write_text(source.readable, encoding="utf-8")
                written.replace(self.root.kernels / f"{key}.c")
            named = made.with_name(f"{key}.named.so")
            _link_or_copy(made, named)
            named.replace(self._path(key))
        return sealed

    def _compiled(self, key: str, source: KernelSource, data: bytes, *, cached: bool) -> CompiledKernel:
        digest = self._hash128(data) if self._hash128 is not None else b""
        return CompiledKernel(symbol=source.symbol, key=key, path=self._path(key), hash128=digest, cached=cached)

    def _path(self, key: str) -> Path:
        return self.root.kernels / f"{key}.so"

    def _dump(self, key: str, source: KernelSource) -> None:
        """For a person to read: under the kernel's name. A dump that fails must not fail the session."""
        assert self._dump_dir is not None
        try:
            self._dump_dir.mkdir(parents=True, exist_ok=True)
            (self._dump_dir / f"{source.symbol}-{key[:8]}.c").write_text(source.readable, encoding="utf-8")
        except OSError:
            return


def _link_or_copy(made: Path, named: Path) -> None:
    """Some file systems have no links."""
    try:
        os.link(made, named)
    except OSError:
        shutil.copy2(made, named)


def seal(data: bytes) -> bytes:
    """``data`` with its trailer."""
    return data + MAGIC + hashlib.sha256(data).digest()


def intact(data: bytes) -> bool:
    """Whether ``data`` ends in the trailer of what precedes it."""
    body, trailer = data[:-_TRAILER_BYTES], data[-_TRAILER_BYTES:]
    return trailer == MAGIC + hashlib.sha256(body).digest()


def read_checked(path: Path) -> bytes | None:
    """A kernel file's bytes; None when it is absent, unreadable or damaged (it is then made anew)."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    return data if intact(data) else None


def _refused(source: KernelSource, what: str, log: str = "") -> CompileError:
    return CompileError(what, where=source.symbol, source=source.text, log=log)
