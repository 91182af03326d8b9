"""One result from the running values of all threads of a block, the same in all of them and in the same order every time.

Where threads exchange registers, each subgroup finds its own result by exchange and they meet in shared memory; elsewhere a tree
of halves goes through shared memory, from one slot to the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.shared.loops.reduce import Accumulator
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Convert, Elem, Pointer, Rvalue, Var, binary, i32, lt

_STORED = {Elem.F32: DType.F32, Elem.I32: DType.I32, Elem.I64: DType.I64}


def block_reduced(b: GpuBuilder, own: Accumulator, fresh: Accumulator, subgroup: int, *, agreed: bool = False) -> Accumulator:
    """What ``own`` of all threads come to; ``fresh`` is an empty one like it. ``agreed``: by way of shared memory in any case, so
    that all threads are known to have the same (`proofs/uniform.py`)."""
    if subgroup > 1:
        return _by_exchange(b, own, fresh, subgroup, agreed)
    return _by_halves(b, own, fresh)


def _by_exchange(b: GpuBuilder, own: Accumulator, fresh: Accumulator, subgroup: int, agreed: bool) -> Accumulator:
    mask = min(subgroup, b.threads) // 2
    while mask:
        own.take([b.let("other", b.subgroup_xor(part, mask)) for part in own.state])
        mask //= 2
    groups = max(1, b.threads // subgroup)
    if groups == 1 and not agreed:
        return own
    arrays = [b.shared("part", _STORED[part.type.elem], groups) for part in own.state]
    with b.when(binary("eq", b.thread % subgroup, 0)):
        _put(b, arrays, b.thread // subgroup, own.state)
    b.barrier()
    for group in range(groups):
        fresh.take(_get(b, arrays, group, own.state))
    return fresh


def _by_halves(b: GpuBuilder, own: Accumulator, fresh: Accumulator) -> Accumulator:
    arrays = [b.shared("part", _STORED[part.type.elem], b.threads, slots=2) for part in own.state]
    slot, half = 0, b.threads // 2
    _put(b, [b.slot(a, slot) for a in arrays], b.thread, own.state)
    b.barrier()
    while half:
        with b.when(lt(b.thread, half)):
            own.take(_get(b, [b.slot(a, slot) for a in arrays], b.thread + half, own.state))
            _put(b, [b.slot(a, 1 - slot) for a in arrays], b.thread, own.state)
        b.barrier()
        slot, half = 1 - slot, half // 2
    fresh.take(_get(b, [b.slot(a, slot) for a in arrays], 0, own.state))
    return fresh


def _put(b: GpuBuilder, arrays: Sequence[Pointer], at: Rvalue, state: Sequence[Var]) -> None:
    for array, part in zip(arrays, state, strict=True):
        b.store(array, at, part)


def _get(b: GpuBuilder, arrays: Sequence[Pointer], at: Rvalue | int, like: Sequence[Var]) -> list[Rvalue]:
    found: list[Rvalue] = []
    for array, part in zip(arrays, like, strict=True):
        value = b.load(array, at)
        found.append(b.let("other", Convert(i32(1), value) if part.type == i32(1) else value))
    return found
