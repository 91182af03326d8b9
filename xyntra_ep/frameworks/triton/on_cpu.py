"""A Triton kernel on the processor: read at its launch, compiled by Tracea, run on the tensors' memory.

    run = on_cpu(add_kernel)
    run[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)     # as the kernel itself is launched; NumPy's arrays, too

Sizes, strides and other numbers of a launch are numbers of the program that is compiled, so a launch with new ones compiles anew.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from xyntra_ep.errors import ConfigError, UnsupportedError
from xyntra_ep.frameworks.ops.arrays import Library, View, library_of
from xyntra_ep.frameworks.triton.reading.calls import unwrapped
from xyntra_ep.frameworks.triton.reading.programs import ReadProgram, program_of
from xyntra_ep.frameworks.triton.reading.reader import TensorArgument, read
from xyntra_ep.frameworks.triton.reading.source import function_of, source_of
from xyntra_ep.provider.opened_island import OpenedIsland
from xyntra_ep.provider.opened_program import open_program
from xyntra_ep.tracea.doctor.profile import usable_cores

_WHERE = "on_cpu"
# What tells Triton's compiler how to compile for a GPU.
_FOR_COMPILERS = frozenset(("num_warps", "num_stages", "num_ctas", "maxnreg", "warmup"))
Grid = tuple[int, ...]


def on_cpu(kernel: Any) -> CpuKernel:
    """``kernel``: what `triton.jit` has made, or the function that it was given."""
    return CpuKernel(kernel)


@dataclass(frozen=True, slots=True)
class _Compiled:
    read: ReadProgram
    island: OpenedIsland


class CpuKernel:
    """A kernel that is launched on tensors in the processor's memory. Raises UnsupportedError, with file and line, at the launch
    of what is not read."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._name = function_of(kernel).__name__
        self._source = source_of(kernel)
        # Of an autotuner: which one is fastest on a GPU says nothing here.
        configs = getattr(kernel, "configs", None) or ()
        self._first_config: dict[str, Any] = dict(configs[0].kwargs) if configs else {}
        self._compiled: dict[tuple[Any, ...], _Compiled] = {}
        self._lock = threading.Lock()
        self._threads = usable_cores()

    def __getitem__(self, grid: Grid | int | Callable[[Mapping[str, Any]], Grid]) -> Callable[..., None]:
        def launch(*args: Any, **kwargs: Any) -> None:
            self.launch(grid, *args, **kwargs)

        return launch

    def launch(self, grid: Grid | int | Callable[[Mapping[str, Any]], Grid], *args: Any, **kwargs: Any) -> None:
        arguments = self._bound(args, kwargs)
        found = grid(arguments) if callable(grid) else grid
        sizes = (found,) if isinstance(found, int) else tuple(int(n) for n in found)
        tensors = {name: value for name, value in arguments.items() if hasattr(value, "shape") and hasattr(value, "dtype")}
        if not tensors or 0 in sizes:
            return
        library = library_of(list(tensors.values()))
        views = [_memory(library, name, array) for name, array in tensors.items()]
        key = (sizes, *((name, _key(value)) for name, value in arguments.items() if name not in tensors))
        key += tuple((view.dtype, view.shape) for view in views)
        with self._lock:
            if key not in self._compiled:
                given = {name: unwrapped(value) for name, value in arguments.items()}
                given |= {name: TensorArgument(view.dtype) for name, view in zip(tensors, views, strict=True)}
                made = program_of(read(self._kernel, sizes, given), [view.shape[0] for view in views])
                self._compiled[key] = _Compiled(made, open_program(made.program, self._name))
        self._run(self._compiled[key], views)

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        names = self._source.parameters
        if len(args) > len(names):
            raise ConfigError(f"{len(args)} arguments for {len(names)} parameters", where=self._name)
        given = dict(self._source.defaults) | self._first_config | dict(zip(names, args, strict=False))
        given |= {name: value for name, value in kwargs.items() if name not in _FOR_COMPILERS}
        if wrong := [name for name in given if name not in names]:
            raise ConfigError(f"no parameter {wrong[0]!r}", where=self._name)
        if missing := [name for name in names if name not in given]:
            raise ConfigError(f"nothing is given for {missing[0]!r}", where=self._name)
        return {name: given[name] for name in names}

    def _run(self, compiled: _Compiled, views: list[View]) -> None:
        read, stored = [views[i] for i in compiled.read.inputs], [views[i] for i in compiled.read.outputs]
        # What is stored to is read as it was before the launch. The copies have to live until the run ends.
        copies = [_copied(view) if any(_overlap(view, out) for out in stored) else None for view in read]
        addresses = [view.address if copy is None else int(copy.ctypes.data) for view, copy in zip(read, copies, strict=True)]
        shapes = tuple(view.shape for view in read)
        compiled.island.run(addresses, shapes, [view.address for view in stored], self._threads)


def _key(value: Any) -> Any:
    value = unwrapped(value)
    return (type(value).__name__, repr(value))


def _memory(library: Library, name: str, array: Any) -> View:
    """All elements that strides may lead to, from the tensor's first on."""
    strides = array.stride() if callable(getattr(array, "stride", None)) else [s // array.itemsize for s in array.strides]
    if any(s < 0 for s in strides):
        raise UnsupportedError("strides below 0", where=f"{_WHERE}: {name}")
    span = 1 + sum((n - 1) * s for n, s in zip(array.shape, strides, strict=True)) if 0 not in array.shape else 0
    whole = (
        array.as_strided((span,), (1,))
        if hasattr(array, "as_strided")
        else np.lib.stride_tricks.as_strided(array, (span,), (array.itemsize,))
    )
    view = library.view(whole)
    if span and view.owner is None:
        raise UnsupportedError("memory that cannot be reached", where=f"{_WHERE}: {name}")
    return view


def _overlap(a: View, b: View) -> bool:
    return a.address < _end(b) and b.address < _end(a)


def _end(view: View) -> int:
    return view.address + view.shape[0] * view.dtype.bytes


def _copied(view: View) -> Any:
    """The bytes as they are before the launch."""
    return np.frombuffer(ctypes.string_at(view.address, view.shape[0] * view.dtype.bytes), np.uint8)
