"""OpenCL programs of the kernels that the hand-made plans use, with the numbers of `kernels.NUMBER`: 16 elements a unit.

A kernel's arguments are its buffers, then the parameters, then whether to do anything.
"""

from __future__ import annotations

from pathlib import Path

from tests.native.plans.kernels import BODIES
from tests.native.plans.manifest_builder import Kernel, hash128
from xyntra_ep.tracea.runtime.cache_root import CacheRoot
from xyntra_ep.tracea.runtime.driver_compiler import DriverCompiler
from xyntra_ep.tracea.runtime.kernel_cache import KernelCache
from xyntra_ep.tracea.runtime.kernel_files import CompiledKernel
from xyntra_ep.tracea.runtime.kernel_source import KernelSource

THREADS = 16
# Buffers (b0, b1 ...), parameters (p0, p1 ...) and the body for element i.
_PROGRAMS = {
    "relu": (2, 1, "if (i < p0) b1[i] = fmax(b0[i], 0.0f);"),
    "add": (3, 2, "if (i < p0) b2[i] = b0[i] + b1[i % p1];"),
    "pack": (2, 1, "for (int j = i; j < p0; j += (int)get_global_size(0)) b1[j] = 2 * b0[j];"),
    "fill": (1, 2, "if (i < p0) b0[i] = (float)p1;"),
}


def source(name: str) -> KernelSource:
    buffers, params, body = _PROGRAMS[name]
    taken = [f"__global float *b{i}" for i in range(buffers)] + [f"int p{i}" for i in range(params)] + ["int go"]
    head = f"__kernel __attribute__((reqd_work_group_size({THREADS}, 1, 1))) void xy_{name}({', '.join(taken)}) {{\n"
    return KernelSource.of_text(f"xy_{name}", f"{head}  if (!go) return;\n  int i = (int)get_global_id(0);\n  {body}\n}}\n")


def compile_all(root: CacheRoot, library: Path, device: str) -> list[Kernel]:
    """In the order of `kernels.NUMBER`; what has no program stands for nothing."""
    compiler = DriverCompiler(library=library, device=device, suffix=".clbin", name="the OpenCL driver")
    cache = KernelCache(root, compiler, (), hash128=hash128)
    made = dict(zip(_PROGRAMS, cache.compile_many([source(name) for name in _PROGRAMS]), strict=True))
    kernels = []
    for name in BODIES:
        kernel = made.get(name, made["fill"])
        assert isinstance(kernel, CompiledKernel), kernel
        kernels.append(Kernel(str(kernel.path), kernel.symbol, kernel.hash128, THREADS))
    return kernels
