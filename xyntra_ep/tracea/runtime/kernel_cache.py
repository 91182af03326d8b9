"""Kernels from the cache; those that it does not have are compiled, several at a time."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from xyntra_ep import ending, knobs
from xyntra_ep.errors import CompileError
from xyntra_ep.tracea.runtime import progress
from xyntra_ep.tracea.runtime.kernel_files import CompiledKernel, KernelFiles, Linker, refused
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.runtime.process import Outcome, ProcessPool
from xyntra_ep.tracea.runtime.translation_unit import LEAST_BYTES, in_common, merged, new_bytes, split


class KernelCache(KernelFiles):
    """See the module's docstring."""

    def compile_many(self, sources: Sequence[KernelSource]) -> list[CompiledKernel | CompileError]:
        """Each source as a file in the cache, or why not; what is missing is compiled, several at a time."""
        with self.compilation() as compilation:
            return compilation.finish(sources)

    def compilation(self) -> Compilation:
        """For kernels that become known one after the other."""
        return Compilation(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """Kernels (by key) that a compiler has. ``linker``: what links them with those of other units."""

    keys: list[str]
    linker: Linker | None

    @property
    def stem(self) -> str:
        return self.keys[0]


class Compilation:
    """Kernels that are compiled while others are still being planned, and linked when all are.

    ``add`` starts a compiler as soon as there is enough for one to do, and leaves one processor to its caller; ``finish`` shares
    out the rest. Compilers never outlive the ``with`` block.
    """

    def __init__(self, cache: KernelFiles) -> None:
        self._cache = cache
        self._knobs = knobs.current()
        self._results: dict[str, CompiledKernel | CompileError] = {}
        self._sources: dict[str, KernelSource] = {}  # that are not in the cache
        self._pending: list[str] = []  # keys of those that no compiler has yet
        self._running: list[_Unit] = []  # of each of the pool's commands
        self._begun: set[str] = set()  # definitions that a compiler has
        self._defined: set[str] = set()  # functions of units that are linked together
        self._symbols: set[str] = set()  # and what these export
        self._folder: Path | None = None
        self._pool: ProcessPool | None = None
        self._open = ExitStack()

    def __enter__(self) -> Compilation:
        self._open.enter_context(ending.Interruptible())
        self._open.callback(self._clear)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._open.__exit__(kind, error, trace)

    def _clear(self) -> None:
        if self._pool is not None:
            self._pool.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, source: KernelSource) -> None:
        """A kernel that will be wanted; returns at once."""
        self._note(source)
        beside = max(1, self._knobs.jobs - 1)
        if self._pool is not None:
            self._pool.advance(beside)
            if self._pool.active >= beside:
                return
        enough = 0
        for number, key in enumerate(self._pending, start=1):
            enough += new_bytes(self._sources[key], self._begun)
            if enough >= LEAST_BYTES:
                keys, self._pending = self._pending[:number], self._pending[number:]
                self._start(keys)
                if self._pool is not None:
                    self._pool.advance(beside)
                return

    def finish(self, sources: Sequence[KernelSource]) -> list[CompiledKernel | CompileError]:
        """Each of ``sources`` as a file in the cache, or why not."""
        keys = [self._note(source) for source in sources]
        pending, self._pending = self._pending, []
        units = split([self._sources[key] for key in pending], self._knobs.jobs, self._begun)
        alone = len(units) == 1 and not self._running
        for positions in units:
            self._start([pending[i] for i in positions], alone=alone)
        # One kernel that does not compile takes others with it: each by itself tells which one it is.
        for key in self._collect():
            self._start([key], alone=True)
        self._collect()
        return [self._results[key] for key in keys]

    def _note(self, source: KernelSource) -> str:
        key = self._cache.key(source.text)
        if key not in self._results and key not in self._sources:
            if (found := self._cache.find(key, source)) is not None:
                self._results[key] = found
            else:
                self._sources[key] = source
                self._pending.append(key)
        return key

    def _start(self, keys: list[str], alone: bool = False) -> None:
        """Give the kernels of a unit to a compiler; ``alone``: it is to be linked with no other."""
        sources = [self._sources[key] for key in keys]
        symbols = {source.symbol for source in sources}
        linker = None if alone or symbols & self._symbols else self._cache.compiler.linker
        unit = _Unit(keys=keys, linker=linker)
        try:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="cc-", dir=self._cache.root.tmp))
                self._pool = ProcessPool(folder=self._folder, timeout_s=self._knobs.compile_timeout_s)
            text = merged(sources, None if linker is None else self._defined)
            (self._folder / f"{unit.stem}.c").write_text(text, encoding="utf-8")
        except OSError as error:
            self._results |= {key: refused(self._sources[key], f"cannot write the source ({error})") for key in keys}
            return
        assert self._pool is not None
        if linker is None:
            self._pool.add(self._cache.command(unit.stem))
        else:
            self._symbols |= symbols
            for source in sources:
                self._begun.update(in_common(source))
            self._pool.add(linker.object_argv(f"{unit.stem}.c", f"{unit.stem}.o", self._cache.target))
        self._running.append(unit)

    def _collect(self) -> list[str]:
        """Wait for the compilers, link and publish what they made; the kernels that are to be tried by themselves."""
        if self._pool is None:
            return []
        units, self._running = self._running, []

        def meanwhile(ended: Collection[int]) -> None:
            waiting = sum(len(unit.keys) for i, unit in enumerate(units) if i not in ended)
            progress.tell(len(self._sources) - waiting, len(self._sources))

        again: list[str] = []
        objects: list[_Unit] = []
        for unit, outcome in zip(units, self._pool.finish(self._knobs.jobs, meanwhile), strict=True):
            if unit.linker is None:
                again += self._publish(unit.keys, outcome)
            elif outcome.problem:
                again += unit.keys
            else:
                objects.append(unit)
        if objects and (linker := objects[0].linker) is not None:
            linked = [key for unit in objects for key in unit.keys]
            self._pool.add(linker.link_argv([f"{unit.stem}.o" for unit in objects], linked[0] + self._cache.compiler.suffix))
            [outcome] = self._pool.finish(1)
            again += self._publish(linked, outcome)
        return again

    def _publish(self, keys: list[str], outcome: Outcome) -> list[str]:
        """Note the kernels of one file; if it was not made, those that are to be tried by themselves."""
        assert self._folder is not None
        self._results |= self._cache.publish(self._folder, {key: self._sources[key] for key in keys}, outcome)
        return keys if len(keys) > 1 and isinstance(self._results[keys[0]], CompileError) else []
