"""What is computed in where a device has not what was asked for: the next precision, with the reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from xyntra_ep.options import Precision
from xyntra_ep.tracea.backends import DeviceTarget
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.emitters import cuda, opencl
from xyntra_ep.tracea.interface import Context
from xyntra_ep.tracea.interface.precision import agree
from xyntra_ep.tracea.runtime.nvrtc_compiler import NvrtcCompiler
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU, SM_80

COMPILER = NvrtcCompiler(version=(12, 9))
PLAIN = DeviceTarget(backend="opencl", identity="i", name="n", gpu=ANY_GPU, emit=opencl.emit, compiler=COMPILER)
HALVES = replace(PLAIN, gpu=replace(ANY_GPU, halves=frozenset({DType.F16})))
CUDA = DeviceTarget(backend="cuda", identity="i", name="n", gpu=SM_80, emit=cuda.emit, compiler=COMPILER)


@pytest.mark.parametrize(
    ("context", "asked", "found", "why"),
    [
        (Context(caps=AVX2), "fp32", "fp32", ""),
        (Context(caps=AVX2), "bf16", "fp32", "precision=bf16 needs AMX, or AVX512_BF16 on AMD: computed in fp32"),
        (Context(caps=AVX2), "int8w", "int8w", ""),
        (Context(caps=replace(AVX512, avx512_bf16=True)), "bf16", "bf16", ""),
        (Context(caps=replace(AVX512, amx_bf16=True)), "fp16", "fp32", "precision=fp16 is for GPUs: computed in fp32"),
        (Context(device=CUDA), "bf16", "bf16", ""),
        (Context(device=CUDA), "fp16", "fp16", ""),
        (Context(device=CUDA), "tf32", "tf32", ""),
        (Context(device=PLAIN), "tf32", "fp32", "precision=tf32 is not there with backend=opencl: computed in fp32"),
        (Context(caps=AVX2), "tf32", "fp32", "precision=tf32 is for NVIDIA GPUs: computed in fp32"),
        (Context(device=CUDA), "int8w", "fp32", "precision=int8w is not there with backend=cuda: computed in fp32"),
        (Context(device=HALVES), "bf16", "fp16", "precision=bf16 is not there with backend=opencl: computed in fp16"),
        (Context(device=HALVES), "fp16", "fp16", ""),
        (Context(device=PLAIN), "bf16", "fp32", "precision=bf16 is not there with backend=opencl: computed in fp32"),
        (Context(device=PLAIN), "fp16", "fp32", "precision=fp16 is not there with backend=opencl: computed in fp32"),
    ],
)
def test_the_next_precision_that_is_there(context: Context, asked: str, found: str, why: str) -> None:
    agreed = agree(Precision(asked), context)
    assert (agreed.precision, agreed.shortfall) == (Precision(found), why)
