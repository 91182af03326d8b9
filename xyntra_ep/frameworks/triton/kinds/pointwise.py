"""Pointwise: a block of neighbouring results for each program."""

from __future__ import annotations

from xyntra_ep.frameworks.triton.expressions import Bodies, Running, Space
from xyntra_ep.frameworks.triton.kernel_text import KernelText, operand, python_size
from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.ops import Pointwise
from xyntra_ep.tracea.kernels.shared.index import Group

BLOCK = 1024


def flat(kernel: KernelText, domain: tuple[Size, ...]) -> Space:
    """Every point of ``domain``, a block for each program."""
    total = product(domain)
    block = min(BLOCK, 1 << (total - 1).bit_length()) if isinstance(total, int) and total else BLOCK
    kernel.constexpr("BLOCK", block)
    kernel.grid = (f"triton.cdiv({python_size(total)}, {block})",)
    kernel.line("offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)")
    mask = ""
    if not isinstance(total, int) or total % block:
        mask = "mask"
        kernel.line(f"mask = offsets < {operand(kernel.size(total))}")
    group = Group(axes=tuple(range(len(domain))), extents=domain)
    return Space(kernel, domain, [Running(group=group, name="offsets", mask=mask)])


def pointwise(op: Pointwise) -> KernelText:
    kernel = KernelText()
    space = flat(kernel, op.domain)
    bodies = Bodies(space, op.inputs, op.bodies, {})
    for k, (body, out) in enumerate(zip(op.bodies, op.outputs, strict=True)):
        value = bodies.write(body)
        pointer = kernel.pointer(out, "out" if len(op.outputs) == 1 else f"out{k}")
        bodies.store(out, pointer, value)
    return kernel
