"""Prebuilt kernels where there is a compiler, too: it makes those that the library lacks."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from xyntra_ep.errors import CompileError
from xyntra_ep.tracea.prebuilt.library import PrebuiltKernels
from xyntra_ep.tracea.runtime.kernel_cache import Compilation, KernelCache
from xyntra_ep.tracea.runtime.kernel_files import CompiledKernel
from xyntra_ep.tracea.runtime.kernel_source import KernelSource


class PrebuiltFirst:
    """See the module's docstring. In the place of a `kernel_cache.KernelCache`."""

    def __init__(self, library: PrebuiltKernels, cache: KernelCache) -> None:
        self._library = library
        self._cache = cache

    @property
    def made_by(self) -> str:
        """What tuning results are kept under."""
        return self._library.made_by

    @property
    def dump_problem(self) -> str:
        return self._cache.dump_problem

    @property
    def distrusted(self) -> str:
        return self._cache.distrusted

    def compilation(self) -> Lacking:
        return Lacking(self._library, self._cache.compilation())

    def compile_many(self, sources: Sequence[KernelSource]) -> list[CompiledKernel | CompileError]:
        with self.compilation() as compilation:
            return compilation.finish(sources)


class Lacking:
    """A compilation of what is not prebuilt."""

    def __init__(self, library: PrebuiltKernels, compilation: Compilation) -> None:
        self._library = library
        self._compilation = compilation

    def __enter__(self) -> Lacking:
        self._compilation.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._compilation.__exit__(kind, error, trace)

    def add(self, source: KernelSource) -> None:
        if not self._is_there(source):
            self._compilation.add(source)

    def finish(self, sources: Sequence[KernelSource]) -> list[CompiledKernel | CompileError]:
        found = self._library.finish(sources)
        lacking = [source for source, kernel in zip(sources, found, strict=True) if not isinstance(kernel, CompiledKernel)]
        made = iter(self._compilation.finish(lacking))
        return [kernel if isinstance(kernel, CompiledKernel) else next(made) for kernel in found]

    def _is_there(self, source: KernelSource) -> bool:
        return isinstance(self._library.finish([source])[0], CompiledKernel)
