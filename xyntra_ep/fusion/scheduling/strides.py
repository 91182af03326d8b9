"""Views as strides: what a permute, slice, expand or reshape does to an operand."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.fusion.tensor import Expand, Permute, Reshape, Slice
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.ops import Operand, contiguous_strides


def is_contiguous(operand: Operand) -> bool:
    """Row-major without gaps (axes of extent 1 do not matter)."""
    want = contiguous_strides(operand.shape)
    return all(n == 1 or s == w for n, s, w in zip(operand.shape, operand.strides, want, strict=True))


def apply_view(operand: Operand, step: Permute | Reshape | Slice | Expand) -> Operand | None:
    """The operand seen through ``step``; None when strides cannot say it (a reshape across gaps)."""
    match step:
        case Permute():
            return _with(operand, [operand.shape[p] for p in step.perm], [operand.strides[p] for p in step.perm])
        case Slice():
            offset = operand.offset
            for start, stride in zip(step.starts, operand.strides, strict=True):
                offset = offset + start * stride
            strides = [s * k for s, k in zip(operand.strides, step.steps, strict=True)]
            return _with(operand, step.shape, strides, offset)
        case Expand():
            return _with(operand, step.shape, [s * f for s, f in zip(operand.strides, step.factors, strict=True)])
        case Reshape():
            reshaped = reshaped_strides(operand.shape, operand.strides, step.shape)
            return None if reshaped is None else _with(operand, step.shape, reshaped)


def part_of(operand: Operand, axis: int, start: Size, length: Size) -> Operand:
    """``length`` elements of ``axis`` from ``start`` on."""
    shape = (*operand.shape[:axis], length, *operand.shape[axis + 1 :])
    return _with(operand, shape, operand.strides, operand.offset + start * operand.strides[axis])


def _with(operand: Operand, shape: Sequence[Size], strides: Sequence[Size], offset: Size | None = None) -> Operand:
    return Operand(
        value=operand.value,
        dtype=operand.dtype,
        shape=tuple(shape),
        strides=tuple(strides),
        offset=operand.offset if offset is None else offset,
    )


def reshaped_strides(old: Sequence[Size], strides: Sequence[Size], new: Sequence[Size]) -> list[Size] | None:
    """Strides of the same elements in shape ``new``, None when they need a copy.

    Walks both shapes from the right in groups of equal products; a group of old axes must be mergeable (each stride the next
    one's times its extent), then the new axes of the group get strides from the innermost one. Extents of 1 are free.
    """
    have = [(n, s) for n, s in zip(old, strides, strict=True) if n != 1]
    if all(s == w for (_, s), w in zip(have, contiguous_strides([n for n, _ in have]), strict=True)):
        return list(contiguous_strides(new))
    result: list[Size] = [0] * len(new)
    i, j = len(have) - 1, len(new) - 1
    while j >= 0:
        if new[j] == 1:
            j -= 1
            continue
        if i < 0:
            return None
        group_old, group_new = have[i][0], new[j]
        inner = have[i][1]
        first, i = i, i - 1
        members = [j]
        j -= 1
        while group_old != group_new:
            # grow the smaller side; with symbolic sizes: the one whose product divides the other's
            if j >= 0 and _divides(group_new, group_old):
                group_new = group_new * new[j]
                members.append(j)
                j -= 1
            elif i >= 0 and _divides(group_old, group_new):
                if have[i][1] != have[i + 1][1] * have[i + 1][0]:
                    return None
                group_old = group_old * have[i][0]
                i -= 1
            else:
                return None
        assert first >= 0
        stride = inner
        for m in members:
            result[m] = stride
            stride = stride * new[m]
    return result if i < 0 else None


def _divides(a: Size, b: Size) -> bool:
    """Whether a is a proper factor of b as polynomials."""
    if a == b or a == 0:
        return False
    return (b // a) * a == b and _exact(b // a)


def _exact(q: Size) -> bool:
    """A quotient without opaque division in it."""
    return "div(" not in repr(q)
