"""Kernels for processors in WebAssembly: each variant compiles and links, with nothing missing but what JavaScript has."""

from __future__ import annotations

import pytest

from tests.tracea.emitters.test_cross_compile import admitted
from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.emitters.cpu import emit
from xyntra_ep.tracea.planning.builder import moves_numbers
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.semantic_ir.capabilities import WASM
from xyntra_ep.tracea.semantic_ir.lifted_constants import lifted
from xyntra_ep.web.wasm import find_wasm_compiler

MAGIC = b"\0asm\1\0\0\0"


@pytest.mark.slow
def test_every_kernel_compiles() -> None:
    try:
        compiler = find_wasm_compiler()
    except UnsupportedError as error:
        pytest.skip(str(error))
    sources: dict[str, KernelSource] = {}
    for variant, program, context in admitted(WASM):
        [op] = program.ops
        for call in variant.build(op, variant.default(op, context), context):
            kernel = lifted(call.kernel, WASM)[0] if moves_numbers(op) else call.kernel
            source = KernelSource(symbol=kernel.name, definitions=emit(kernel, WASM)).distinct()
            sources[source.symbol] = source
    assert len(sources) > 50
    assert compiler.module(list(sources.values())).startswith(MAGIC)
