"""Views as strides, against the same views of a numpy array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from xyntra_ep.fusion.scheduling.strides import apply_view, is_contiguous, reshaped_strides
from xyntra_ep.fusion.tensor import Expand, Permute, Reshape, Slice
from xyntra_ep.tracea.core_ir.dims import Size, evaluate, symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Operand, contiguous_strides

Array = NDArray[Any]
B, S = symbol("b"), symbol("s")


def plain(shape: tuple[Size, ...]) -> Operand:
    return Operand(value=0, dtype=DType.F32, shape=shape, strides=contiguous_strides(shape))


def elements(operand: Operand, memory: Array, symbols: dict[str, int]) -> Array:
    """What ``operand`` shows of ``memory``."""
    at: Array = np.asarray(evaluate(operand.offset, symbols))
    shape = [evaluate(n, symbols) for n in operand.shape]
    for i, (n, stride) in enumerate(zip(shape, operand.strides, strict=True)):
        at = at + (np.arange(n) * evaluate(stride, symbols)).reshape((-1,) + (1,) * (len(shape) - 1 - i))
    return np.asarray(memory[np.broadcast_to(at, shape)])


def _step(rng: np.random.Generator, shape: tuple[int, ...]) -> Permute | Reshape | Slice | Expand:
    kind = rng.choice(["permute", "reshape", "slice", "expand"])
    if kind == "permute":
        return Permute(perm=tuple(int(p) for p in rng.permutation(len(shape))))
    if kind == "slice":
        starts, steps, lengths = [], [], []
        for n in shape:
            step = int(rng.choice([1, 1, 2, -1]))
            start = n - 1 if step < 0 else int(rng.integers(0, 2)) if n > 1 else 0
            starts.append(start)
            steps.append(step)
            lengths.append(n if step < 0 else -(-(n - start) // step))
        return Slice(starts=tuple(starts), steps=tuple(steps), shape=tuple(lengths))
    if kind == "expand":
        grown = tuple(int(rng.choice([1, 3])) if n == 1 else n for n in shape)
        return Expand(shape=grown, factors=tuple(1 if n == m else 0 for n, m in zip(shape, grown, strict=True)))
    factors: list[int] = []
    for n in shape:
        while n > 1:
            prime = next(p for p in (2, 3, 5, 7, 11) if n % p == 0)
            factors.append(prime)
            n //= prime
    result = [1]
    for f in factors:
        if rng.random() < 0.5:
            result[-1] *= f
        else:
            result.append(f)
    return Reshape(shape=tuple(result))


def _ints(sizes: Sequence[Size]) -> list[int]:
    return [evaluate(n, {}) for n in sizes]


def _numpy(array: Array, step: Permute | Reshape | Slice | Expand) -> Array:
    match step:
        case Permute():
            return array.transpose(step.perm)
        case Reshape():
            return array.reshape(_ints(step.shape))
        case Expand():
            return np.broadcast_to(array, _ints(step.shape))
        case Slice():
            parts = zip(_ints(step.starts), _ints(step.steps), _ints(step.shape), strict=True)
            for axis, (start, stride, n) in enumerate(parts):
                picked = [start + i * stride for i in range(n)]
                array = np.take(array, picked, axis=axis)
            return array


@pytest.mark.parametrize("seed", range(150))
def test_a_chain_of_views_shows_the_same_elements(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.choice([1, 2, 3, 4, 6], 3))
    memory = np.arange(int(np.prod(shape)))
    operand, want = plain(shape), memory.reshape(shape)
    for _ in range(5):
        step = _step(rng, want.shape)
        found = apply_view(operand, step)
        want = _numpy(want, step)
        if found is None:  # a copy: memory starts anew
            assert isinstance(step, Reshape)
            memory = np.ascontiguousarray(want).reshape(-1)
            found = plain(want.shape)
        operand = found
        np.testing.assert_array_equal(elements(operand, memory, {}), want)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ((B, S, 768), (B, S, 12, 64)),
        ((B, S, 12, 64), (B * S, 768)),
        ((B * S, 768), (B, S, 768)),
        ((B, 1, S), (B * S,)),
        ((B, S * 4), (B, S, 4)),
        ((B * 6, S), (B * 2, 3, S)),
    ],
)
def test_symbolic_reshapes_need_no_copy(old: tuple[Size, ...], new: tuple[Size, ...]) -> None:
    found = apply_view(plain(old), Reshape(shape=new))
    assert found is not None
    symbols = {"b": 2, "s": 5}
    memory = np.arange(20 * 768)[: int(np.prod([evaluate(n, symbols) for n in old]))]
    want = memory.reshape([evaluate(n, symbols) for n in new])
    np.testing.assert_array_equal(elements(found, memory, symbols), want)


def test_reshape_across_a_transposition_is_a_copy() -> None:
    turned = apply_view(plain((2, 3)), Permute(perm=(1, 0)))
    assert turned is not None
    assert apply_view(turned, Reshape(shape=(6,))) is None


def test_heads_of_a_transposed_product_split_in_place() -> None:
    """[b, s, 12*64] seen as [b, 12, s, 64], joined again: a copy; only its heads joined with the batch: none."""
    split = apply_view(plain((B, S, 768)), Reshape(shape=(B, S, 12, 64)))
    assert split is not None
    heads = apply_view(split, Permute(perm=(0, 2, 1, 3)))
    assert heads is not None
    assert reshaped_strides(heads.shape, heads.strides, (B, 12, S, 8, 8)) is not None
    assert reshaped_strides(heads.shape, heads.strides, (B, 12, S * 64)) is None


def test_repeated_axes_merge_among_themselves() -> None:
    row = apply_view(plain((1, 1, 4)), Expand(shape=(2, 3, 4), factors=(0, 0, 1)))
    assert row is not None
    assert reshaped_strides(row.shape, row.strides, (6, 4)) == [0, 1]
    assert reshaped_strides(row.shape, row.strides, (2, 12)) is None


def test_contiguity_ignores_axes_of_one_element() -> None:
    assert is_contiguous(Operand(value=0, dtype=DType.F32, shape=(1, 4), strides=(99, 1)))
    assert not is_contiguous(Operand(value=0, dtype=DType.F32, shape=(2, 4), strides=(99, 1)))
