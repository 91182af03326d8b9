"""Prebuilt kernels as sessions find them: by the digest of a kernel's text."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from xyntra_ep import knobs
from xyntra_ep.errors import CompileError
from xyntra_ep.tracea.doctor.profile import Machine, lacking
from xyntra_ep.tracea.doctor.targets import BASE_OF, BEST_FIRST, target_capabilities, vendor_of
from xyntra_ep.tracea.runtime.cache_root import CacheRoot, atomic_write
from xyntra_ep.tracea.runtime.kernel_files import CompiledKernel, Hash128
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities
from xyntra_ep.trusted_file import read_trusted

FOLDER = Path(__file__).parent
SUFFIX = ".so.xz"
NOT_THERE = "no prebuilt kernel does this, and there is no compiler"
_DIGEST_DIGITS = 32


def digest_of(source: KernelSource) -> str:
    """What a kernel is known by: its text, with its name in it."""
    return content_digest(source.text.encode())


def content_digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGEST_DIGITS]


@dataclass(frozen=True)
class PrebuiltLibrary:
    """Of one kind of processor, ``target`` as the option compile_for names it. ``base``: another library, which has what is the
    same for both."""

    target: str
    folder: Path

    @property
    def file(self) -> Path:
        """A shared object, compressed."""
        return self.folder / f"{self.target}{SUFFIX}"

    @property
    def base(self) -> PrebuiltLibrary | None:
        name = BASE_OF.get(self.target)
        return PrebuiltLibrary(name, self.folder) if name is not None else None

    @cached_property
    def caps(self) -> Capabilities:
        """What its kernels were decided for."""
        found = target_capabilities(self.target)
        assert found is not None
        return found

    @cached_property
    def index(self) -> LibraryIndex:
        """Raises OSError where it cannot be read, ValueError where it is none."""
        content: Any = json.loads(read_trusted(self.folder / f"{self.target}.json"))
        try:
            return LibraryIndex(str(content["library"]), frozenset(map(str, content["kernels"])))
        except (TypeError, KeyError) as error:
            raise ValueError(f"{self.target}.json is no index of kernels") from error


@dataclass(frozen=True, slots=True)
class LibraryIndex:
    """The digest of a library's shared object, and those of its own kernels."""

    library: str
    kernels: frozenset[str]

    def write(self, folder: Path, target: str) -> None:
        content = {"library": self.library, "kernels": sorted(self.kernels)}
        (folder / f"{target}.json").write_text(json.dumps(content), encoding="utf-8")


def prebuilt_for(machine: Machine, folder: Path | None = None) -> PrebuiltLibrary | None:
    """The best library that ``machine`` can run; None where there is none. ``folder``: else the package's, or the one that
    XYNTRA_PREBUILT_DIR names."""
    place = folder or knobs.current().prebuilt_dir or FOLDER
    target = best_target(machine, lambda name: (place / f"{name}{SUFFIX}").exists())
    return PrebuiltLibrary(target, place) if target is not None else None


def best_target(machine: Machine, is_there: Callable[[str], bool] = lambda name: True) -> str | None:
    """What ``machine`` runs best of what ``is_there``."""
    for name in BEST_FIRST if machine.architecture == "x86_64" else ():
        if vendor_of(name) in ("", machine.vendor) and is_there(name):
            caps = target_capabilities(name)
            assert caps is not None
            if not lacking(machine, caps):
                return name
    return None


class PrebuiltKernels:
    """A library in the place of a compiler and its cache, as `kernel_cache.KernelCache` is one. ``root``: where native code loads
    kernels from; the library is copied there once."""

    dump_problem = ""
    distrusted = ""

    def __init__(self, root: CacheRoot, library: PrebuiltLibrary, hash128: Hash128 | None) -> None:
        self.root = root
        self.library = library
        self._hash128 = hash128
        self._copies: dict[str, tuple[Path, bytes]] = {}

    @property
    def made_by(self) -> str:
        """What tuning results are kept under."""
        return f"prebuilt {self.library.target}"

    def has(self, source: KernelSource) -> bool:
        """Whether it, or its base, can be had as it is; without a word where that cannot be told."""
        try:
            return self._library_of(digest_of(source.distinct())) is not None
        except (OSError, ValueError):
            return False

    def compilation(self) -> PrebuiltKernels:
        return self

    def __enter__(self) -> PrebuiltKernels:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def add(self, source: KernelSource) -> None:
        """Nothing has to be begun early."""

    def finish(self, sources: Sequence[KernelSource]) -> list[CompiledKernel | CompileError]:
        """Each of ``sources`` as a function of the library, or that it is not there."""
        return [self._found(source) for source in sources]

    compile_many = finish

    def _found(self, source: KernelSource) -> CompiledKernel | CompileError:
        digest = digest_of(source)
        try:
            if (library := self._library_of(digest)) is not None:
                path, hash128 = self._copy(library)
                return CompiledKernel(symbol=source.symbol, key=digest, path=path, hash128=hash128, cached=True)
        except (OSError, ValueError) as error:
            return CompileError(f"prebuilt kernels cannot be read ({error})", where=source.symbol, source="", log="")
        return CompileError(NOT_THERE, where=source.symbol, source=source.text, log="")

    def _library_of(self, digest: str) -> PrebuiltLibrary | None:
        return next((library for library in self._libraries if digest in library.index.kernels), None)

    @cached_property
    def _libraries(self) -> list[PrebuiltLibrary]:
        base = self.library.base
        return [self.library] if base is None or not base.file.exists() else [self.library, base]

    def _copy(self, library: PrebuiltLibrary) -> tuple[Path, bytes]:
        """A library among the kernels of the cache, and its hash. Raises OSError, and ValueError for one that its index does not
        tell of."""
        if library.target not in self._copies:
            path = self.root.kernels / f"{library.index.library}.so"
            try:
                data = read_trusted(path)
            except OSError:
                data = b""
            if content_digest(data) != library.index.library:
                data = _expanded(read_trusted(library.file))
                if content_digest(data) != library.index.library:
                    raise ValueError(f"{library.file.name} is not the library of its index")
                atomic_write(path, data, self.root.tmp)
                path.chmod(0o700)
            self._copies[library.target] = path, self._hash128(data) if self._hash128 is not None else b""
        return self._copies[library.target]


def compressed(data: bytes) -> bytes:
    """A library as it is in its file: a sixth of its size, and expanded in a tenth of a second."""
    return lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)


def _expanded(data: bytes) -> bytes:
    try:
        return lzma.decompress(data)
    except lzma.LZMAError as error:
        raise ValueError(str(error)) from error
