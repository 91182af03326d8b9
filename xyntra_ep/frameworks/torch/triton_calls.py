"""Launches of Triton kernels in a captured model, carried out on the processor.

    add_kernel[grid](x, y, out, n, BLOCK=64)  ->  triton_kernel_wrapper_functional(...)  ->  launched(...)

PyTorch captures a launch as one call, be it the model's own or of a `torch.library.triton_op`. The call gives what the kernel has
stored as new tensors. PyTorch's own way to carry it out needs a GPU.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table, triton_kernel_wrapper_functional
from torch._prims_common import clone_preserve_strides
from torch.fx import Node as FxNode

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.frameworks.triton.on_cpu import CpuKernel, on_cpu

IN_NO_ISLAND = "a Triton kernel, which is compiled by itself"


def is_launch(node: FxNode) -> bool:
    return node.target is triton_kernel_wrapper_functional


def launched(
    *,
    kernel_idx: int,
    constant_args_idx: int,
    grid: Sequence[Any],
    tma_descriptor_metadata: Mapping[str, Any],
    kwargs: Mapping[str, Any],
    tensors_to_clone: Sequence[str],
) -> dict[str, torch.Tensor]:
    """In the words of PyTorch's call. ``grid``: one for each configuration of an autotuner, the first of which is taken."""
    if tma_descriptor_metadata:
        raise UnsupportedError("tensor descriptors", where=f"argument {next(iter(tma_descriptor_metadata))}")
    results = {name: clone_preserve_strides(kwargs[name]) for name in tensors_to_clone}
    constants = kernel_side_table.get_constant_args(constant_args_idx)
    _compiled(kernel_side_table.get_kernel(kernel_idx))[grid[0]](**{**constants, **kwargs, **results})
    return results


@functools.cache
def _compiled(kernel: Any) -> CpuKernel:
    return on_cpu(kernel)


class _Described:
    """Stands in for a driver where none is: only what is compiled for is asked of it."""

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 80, 32)


@contextlib.contextmanager
def a_target() -> Iterator[None]:
    """While PyTorch looks in a kernel for what it stores to, by Triton's compiler, this has a target even without a GPU. Without
    one PyTorch takes every tensor of a launch, weights too, for changed."""
    driver = sys.modules["triton"].runtime.driver if "triton" in sys.modules else None
    if driver is None or _is_there(driver):
        yield
        return
    driver.set_active(_Described())
    try:
        yield
    finally:
        driver.set_active(None)  # the next who asks finds what there is


def _is_there(driver: Any) -> bool:
    try:
        return driver.active is not None
    except RuntimeError:
        return False
