"""An island of a plan without a session: opened once, run on memory that the caller has (native/opened_island.h)."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.errors import ConfigError
from xyntra_ep.provider import registration
from xyntra_ep.tracea.core_ir.ops import SymbolKind
from xyntra_ep.tracea.planning.manifest import IslandEntry

Shape = tuple[int, ...]
_WHY_BYTES = 4096
_SHAPES_AT_MOST = 256  # that an island remembers: who feeds more sizes asks native code each time


class OpenedIsland:
    """``constants``: in the order of ``entry``; they are read while the island is opened and not afterwards. Tensors are
    contiguous, and given by their addresses. Any number of threads may run it."""

    def __init__(self, plan: bytes, number: int, entry: IslandEntry, constants: Sequence[NDArray[Any]]) -> None:
        self._library = registration.library()
        arrays = [np.ascontiguousarray(array) for array in constants]
        why = ctypes.create_string_buffer(_WHY_BYTES)
        handle = self._library.xyntra_open_island(
            plan,
            len(plan),
            number,
            _addresses([array.ctypes.data for array in arrays]),
            (ctypes.c_uint64 * len(arrays))(*(array.nbytes for array in arrays)),
            len(arrays),
            why,
            len(why),
        )
        if not handle:
            raise ConfigError(why.value.decode("utf-8", "replace"), where=entry.name)
        self._handle = ctypes.c_void_p(handle)
        self._close = weakref.finalize(self, self._library.xyntra_close_island, self._handle)
        self.name = entry.name
        self._output_ranks = [output.rank for output in entry.outputs]
        programs = [alternative.planned.program for alternative in entry.alternatives]
        self._by_shape = all(b.kind is SymbolKind.DIM for program in programs for b in program.bindings)
        self._known: dict[tuple[Shape, ...], tuple[Any, Any, list[Shape] | None]] = {}

    def output_shapes(self, inputs: Sequence[int], shapes: tuple[Shape, ...]) -> list[Shape]:
        """Of a run with these inputs. Raises ConfigError where they do not fit each other."""
        ranks, dims, known = self._sizes(shapes)
        if known is not None:
            return known
        count = sum(self._output_ranks)
        found = (ctypes.c_int64 * count)()
        why = ctypes.create_string_buffer(_WHY_BYTES)
        done = self._library.xyntra_output_dims(
            self._handle, _addresses(inputs), ranks, dims, len(inputs), found, count, why, len(why)
        )
        self._check(done, why)
        flat = iter(found)
        result = [tuple(next(flat) for _ in range(rank)) for rank in self._output_ranks]
        if self._by_shape and shapes in self._known:
            self._known[shapes] = (ranks, dims, result)
        return result

    def run(self, inputs: Sequence[int], shapes: tuple[Shape, ...], outputs: Sequence[int], threads: int) -> None:
        """Write the outputs, which have the shapes that `output_shapes` tells. Raises ConfigError where data cannot be taken."""
        ranks, dims, _ = self._sizes(shapes)
        why = ctypes.create_string_buffer(_WHY_BYTES)
        done = self._library.xyntra_run_opened(
            self._handle, _addresses(inputs), ranks, dims, len(inputs), _addresses(outputs), len(outputs), threads, why, len(why)
        )
        self._check(done, why)

    def _sizes(self, shapes: tuple[Shape, ...]) -> tuple[Any, Any, list[Shape] | None]:
        found = self._known.get(shapes)
        if found is None:
            dims = [extent for shape in shapes for extent in shape]
            found = (ctypes.c_uint32 * len(shapes))(*map(len, shapes)), (ctypes.c_int64 * len(dims))(*dims), None
            if len(self._known) < _SHAPES_AT_MOST:
                self._known[shapes] = found
        return found

    def _check(self, done: int, why: Any) -> None:
        if not done:
            raise ConfigError(why.value.decode("utf-8", "replace"), where=self.name)


def _addresses(addresses: Sequence[int]) -> Any:
    return (ctypes.c_void_p * len(addresses))(*addresses)
