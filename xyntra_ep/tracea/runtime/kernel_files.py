"""Compiled kernels by content: the same text, flags and compiler give the same kernel, made once per machine.

A file is the compiler's output followed by its checksum: one rename publishes both, and loaders of shared objects ignore what
follows the last section. Kernels that were compiled together share a file, which has a name (a link) for each.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from xyntra_ep.errors import CompileError
from xyntra_ep.tracea.runtime.cache_root import CacheRoot
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.runtime.process import Outcome
from xyntra_ep.trusted_file import Distrusted, intact, read_trusted, seal

_LONGEST_COMPLAINT = 160  # characters of a compiler's, in a reason that is one line

Hash128 = Callable[[bytes], bytes]


class Linker(Protocol):
    """See `compilers.Compiler`."""

    def object_argv(self, source: str, output: str, target: tuple[str, ...]) -> list[str]: ...
    def link_argv(self, objects: Sequence[str], output: str) -> list[str]: ...


class KernelCompiler(Protocol):
    """What makes kernels of a text: `compilers.Compiler` has what the members mean."""

    @property
    def name(self) -> str: ...
    @property
    def suffix(self) -> str: ...
    @property
    def linker(self) -> Linker | None: ...
    def salt(self, target: tuple[str, ...]) -> str: ...
    def argv(self, source: str, output: str, target: tuple[str, ...]) -> list[str]: ...
    def refusal(self, data: bytes) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledKernel:
    """A kernel ready to load. ``hash128`` is over the whole file, as plans record it (b"" without a hash function)."""

    symbol: str
    key: str
    path: Path
    hash128: bytes
    cached: bool


class KernelFiles:
    """Those of one compiler and target. Any number of processes and threads may share a root."""

    def __init__(
        self,
        root: CacheRoot,
        compiler: KernelCompiler,
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
        self.dump_problem = ""  # why sources are not in dump_dir
        self.distrusted = ""  # why a kernel that was there is made anew
        self._checked: dict[tuple[int, ...], bytes] = {}  # digests of intact files: many kernels may be in one
        self._salt = compiler.salt(target).encode() + b"\0"

    def key(self, text: str) -> str:
        """32 hexadecimal digits over text, flags and compiler."""
        return hashlib.sha256(self._salt + text.encode()).hexdigest()[:32]

    def find(self, key: str, source: KernelSource) -> CompiledKernel | None:
        """The kernel ``source``, whose key is ``key``, if the cache has it; dumped if that is asked for."""
        if self._dump_dir is not None:
            self._dump(key, source)
        digest = self._stored(key)
        return None if digest is None else self._compiled(key, source, digest, cached=True)

    def _stored(self, key: str) -> bytes | None:
        """The digest of the file that has this name, if that is intact."""
        try:
            status = self._path(key).stat()
        except OSError:
            return None
        file = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if file not in self._checked:
            try:
                data = read_trusted(self._path(key))
            except OSError as error:  # it is made anew, as what is damaged
                self.distrusted = self.distrusted or (str(error) if isinstance(error, Distrusted) else "")
                return None
            if not intact(data):
                return None
            self._checked[file] = self._digest(data)
        return self._checked[file]

    def command(self, unit: str) -> list[str]:
        """What compiles the unit of this name in the folder where its source lies."""
        return self.compiler.argv(f"{unit}.c", unit + self.compiler.suffix, self.target)

    def publish(
        self, folder: Path, unit: Mapping[str, KernelSource], outcome: Outcome
    ) -> dict[str, CompiledKernel | CompileError]:
        """The kernels (by key) of one file, which ``outcome`` says to lie in ``folder`` under the name of the first."""
        name = self.compiler.name
        digests: dict[str, bytes] = {}
        made = folder / (next(iter(unit)) + self.compiler.suffix)
        problem = ""
        if outcome.problem:
            problem = f"{name} {outcome.problem}{_first_error(outcome.log)}"
        else:
            try:
                data = made.read_bytes()
                if refusal := self.compiler.refusal(data):
                    problem = f"{name} wrote {refusal}"
                else:
                    digests = self._store(made, data, unit)
            except FileNotFoundError:
                problem = f"{name} reported success and wrote nothing"
            except OSError as error:
                problem = f"cannot store the kernel ({error})"
        if problem:
            return {key: refused(source, problem, outcome.log) for key, source in unit.items()}
        return {key: self._compiled(key, source, digests[key], cached=False) for key, source in unit.items()}

    def _store(self, made: Path, data: bytes, unit: Mapping[str, KernelSource]) -> dict[str, bytes]:
        """Seal the file and give it the name of each of its kernels; what has that name then, by its digest."""
        sealed = seal(data)
        with made.open("ab") as file:
            file.write(sealed[len(data) :])
        made.chmod(0o700)
        for key, source in unit.items():
            if self._keep_sources:
                written = made.with_name(f"{key}.kept.c")
                written.write_text(source.readable, encoding="utf-8")
                written.replace(self.root.kernels / f"{key}.c")
        digest = self._digest(sealed)
        return {key: self._named(made, key, digest) for key in unit}

    def _named(self, made: Path, key: str, digest: bytes) -> bytes:
        """Give the file the name of a kernel, unless another process has published that kernel since: the files of two compilers
        differ, since other kernels are in them, and the plans of both must find what they recorded."""
        try:
            os.link(made, self._path(key))
        except OSError:  # it is there, or this file system has no links
            if (first := self._stored(key)) is not None:
                return first
            named = made.with_name(f"{key}.named")
            _link_or_copy(made, named)
            named.replace(self._path(key))
        return digest

    def _digest(self, data: bytes) -> bytes:
        return self._hash128(data) if self._hash128 is not None else b""

    def _compiled(self, key: str, source: KernelSource, digest: bytes, *, cached: bool) -> CompiledKernel:
        return CompiledKernel(symbol=source.symbol, key=key, path=self._path(key), hash128=digest, cached=cached)

    def _path(self, key: str) -> Path:
        return self.root.kernels / (key + self.compiler.suffix)

    def _dump(self, key: str, source: KernelSource) -> None:
        """For a person to read: under the kernel's name. A dump that fails must not fail the session."""
        assert self._dump_dir is not None
        try:
            self._dump_dir.mkdir(parents=True, exist_ok=True)
            (self._dump_dir / f"{source.symbol}-{key[:8]}.c").write_text(source.readable, encoding="utf-8")
        except OSError as error:
            self.dump_problem = f"dump_dir cannot be written ({error})"


def _link_or_copy(made: Path, named: Path) -> None:
    """Some file systems have no links."""
    try:
        os.link(made, named)
    except OSError:
        shutil.copy2(made, named)


def _first_error(log: str) -> str:
    """The first complaint of a compiler, to be read behind what failed; warnings are none, nor is how many there were."""
    found = next((line for sign in ("error:", "error") for line in log.splitlines() if sign in line.lower()), "")
    return f": {found.strip()[:_LONGEST_COMPLAINT]}" if found else ""


def refused(source: KernelSource, what: str, log: str = "") -> CompileError:
    return CompileError(what, where=source.symbol, source=source.text, log=log)
