"""Where plans made for Metal are carried out on machines without it (see run_planned in support/gpu/run.py)."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.metal.compile import compile_programs, precompiled
from xyntra_ep.tracea.runtime.kernel_source import KernelSource

Bytes = NDArray[np.uint8]
_MARGIN = 256
_UNTOUCHED = 0xFF


@cache
def _headers() -> tuple[Path, object]:
    folder = tempfile.TemporaryDirectory(prefix="xyntra-metal-")
    return precompiled(Path(folder.name)), folder  # which goes with the process


class MetalOnHost:
    """Metal's kernels behind shim.h, all compiled at once. Buffers end in a margin that must survive."""

    def __init__(self, sources: Sequence[KernelSource]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "kernels.so"
            self._exported = {source.text: f"kernel{i}" for i, source in enumerate(sources)}
            complaint = compile_programs({name: text for text, name in self._exported.items()}, made, _headers()[0])
            assert not complaint, complaint
            self._library = ctypes.CDLL(str(made))

    def upload(self, data: Bytes) -> Any:
        return np.concatenate([data, np.full(_MARGIN, _UNTOUCHED, dtype=np.uint8)])

    def download(self, buffer: Any) -> Bytes:
        data: Bytes = buffer
        assert (data[-_MARGIN:] == _UNTOUCHED).all(), "a buffer is written past its end"
        return data[:-_MARGIN]

    def launch(
        self, source: KernelSource, blocks: int, buffers: list[Any], params: list[int], tensors: Sequence[object] = ()
    ) -> None:
        assert not tensors, "Metal copies no tensors"
        sizes = np.array(params, dtype=np.int32)
        arguments = (ctypes.c_void_p * (len(buffers) + 1))(*(b.ctypes.data for b in (*buffers, sizes)))
        assert getattr(self._library, f"{self._exported[source.text]}__run")(arguments, blocks) == 0, f"{source.symbol} fails"
