"""Compiled kernels by content: the same text, flags and compiler give the same file, made once per machine.

A file is a shared object followed by a trailer, ``MAGIC sha256(shared object)``: one rename publishes code
and checksum together, and loaders ignore what follows the last section.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from xyntra_ep import knobs
from xyntra_ep.errors import CompileError
from xyntra_ep.tracea.runtime.cache_root import CacheRoot
from xyntra_ep.tracea.runtime.compilers import Compiler
from xyntra_ep.tracea.runtime.process import Outcome, run_all

MAGIC = b"XYNTRA-SHA256:"
_TRAILER_BYTES = len(MAGIC) + hashlib.sha256().digest_size

Hash128 = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSource:
    """A C translation unit that exports one function, ``symbol``."""

    symbol: str
    text: str


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
        results: dict[str, CompiledKernel | CompileError] = {}
        commands: dict[str, list[str]] = {}
        # The longest first: the last compiler to end is then one that started late with little to do.
        for key, source in sorted(missing.items(), key=lambda item: -len(item[1].text)):
            try:
                (folder / f"{key}.c").write_text(source.text, encoding="utf-8")
            except OSError as error:
                results[key] = _refused(source, f"cannot write the source ({error})")
                continue
            commands[key] = self.compiler.argv(f"{key}.c", f"{key}.so", self.target)
        knob = knobs.current()
        outcomes = run_all(list(commands.values()), folder=folder, parallel=knob.jobs, timeout_s=knob.compile_timeout_s)
        for key, outcome in zip(commands, outcomes, strict=True):
            results[key] = self._publish(folder, key, missing[key], outcome)
        return results

    def _publish(self, folder: Path, key: str, source: KernelSource, outcome: Outcome) -> CompiledKernel | CompileError:
        name = " ".join(self.compiler.command)
        if outcome.problem:
            return _refused(source, f"{name} {outcome.problem}", outcome.log)
        made = folder / f"{key}.so"
        try:
            data = made.read_bytes()
            if not data.startswith(b"\x7fELF"):
                return _refused(source, f"{name} wrote something that is not a shared object", outcome.log)
            sealed = seal(data)
            with made.open("ab") as file:
                file.write(sealed[len(data) :])
            made.chmod(0o700)
            if self._keep_sources:
                (folder / f"{key}.c").replace(self.root.kernels / f"{key}.c")
            made.replace(self._path(key))
        except FileNotFoundError:
            return _refused(source, f"{name} reported success and wrote nothing", outcome.log)
        except OSError as error:
            return _refused(source, f"cannot store the kernel ({error})", outcome.log)
        return self._compiled(key, source, sealed, cached=False)

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
            (self._dump_dir / f"{source.symbol}-{key[:8]}.c").write_text(source.text, encoding="utf-8")
        except OSError:
            return


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
