"""Kernels of a module, compiled by Triton's own compiler. It needs the package `triton` (and PyTorch, which modules import), and
no GPU: `triton` brings ptxas.

    for kernel in compiled(module, capability=90): print(kernel.name, len(kernel.cubin))
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from xyntra_ep.errors import CompileError
from xyntra_ep.frameworks.triton.module import TritonModule
from xyntra_ep.tracea.core_ir.dtypes import DType

WARP = 32
_TYPES: Mapping[DType, str] = {
    DType.F32: "fp32", DType.F16: "fp16", DType.BF16: "bf16", DType.I64: "i64", DType.I32: "i32", DType.I16: "i16",
    DType.U16: "u16", DType.I8: "i8", DType.U8: "u8", DType.BOOL: "i1",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledKernel:
    name: str
    ttir: str
    ptx: str
    cubin: bytes


def imported(text: str, folder: Path, name: str = "xyntra_triton") -> ModuleType:
    """A module of this text, which Triton finds the sources of its kernels in: the file has to stay."""
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiled(module: TritonModule, *, capability: int) -> Iterator[CompiledKernel]:
    """Each kernel for NVIDIA GPUs of a compute ``capability``, 80 or 90. Raises CompileError with what the compiler says."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    with tempfile.TemporaryDirectory(prefix="xyntra-triton-") as folder:
        functions = imported(module.text, Path(folder))
        for kernel in module.kernels:
            signature = {name: f"*{_TYPES[dtype]}" for name, dtype in kernel.pointers.items()}
            signature |= dict.fromkeys(kernel.sizes, "i32") | dict.fromkeys(kernel.blocks, "constexpr")
            source = ASTSource(getattr(functions, kernel.name), signature=signature, constexprs=dict(kernel.blocks))
            try:
                asm: Mapping[str, Any] = triton.compile(source, target=GPUTarget("cuda", capability, WARP)).asm
            except Exception as error:  # of the compiler's many classes
                raise CompileError(f"Triton refuses {kernel.name} for sm_{capability}: {error}") from error
            yield CompiledKernel(name=kernel.name, ttir=asm["ttir"], ptx=asm["ptx"], cubin=asm["cubin"])
