"""Batches in loops: which ops are in one, that each image sees its own, and that no result changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.support.machine import WIDEST
from tests.support.programs.builder import ProgramBuilder
from tests.support.run_program import check_program, plan_for
from xyntra_ep.tracea.core_ir.dims import Size, symbol
from xyntra_ep.tracea.core_ir.expr import Expr, acc, axis, call, const, load
from xyntra_ep.tracea.core_ir.ops import Conv, Operand, Pointwise, ReduceKind, RowOutput, RowReduce, Stage
from xyntra_ep.tracea.planning.constants import constant_ops, live_ops
from xyntra_ep.tracea.planning.order.batch_loop import OWN, BatchLoop, over_images
from xyntra_ep.tracea.planning.plan import BufferKind, PlannedProgram
from xyntra_ep.tracea.semantic_ir.capabilities import AVX512, Capabilities

# A memory so slow that only what is moved counts, and caches that hold one image of these tests and not two.
SLOW = replace(AVX512, dram_gbs=1e-4, l2_bytes=64 << 10, l3_bytes=64 << 10)
HERE = replace(WIDEST, dram_gbs=SLOW.dram_gbs, l2_bytes=SLOW.l2_bytes, l3_bytes=SLOW.l3_bytes)
Batch = int | str


class Net(ProgramBuilder):
    """Images [n, 16, 20, 3], channels last."""

    def __init__(self, batch: Batch = 3) -> None:
        super().__init__()
        self.x = self.input(batch, 16, 20, 3)
        self.n = self.x.shape[0]

    def conv(self, x: Operand, channels: int, out: Operand | None = None) -> Operand:
        """3x3, and a bias."""
        depth = x.shape[3]
        assert isinstance(depth, int)
        w, bias = self.constant(channels, depth, 3, 3), self.constant(channels)
        out = out if out is not None else self.temp(*x.shape[:3], channels)
        here = replace(bias, shape=(channels,))
        self.op(
            Conv(
                inputs=(planes(x), w, here),
                strides=(1, 1),
                dilations=(1, 1),
                pads=(1, 1),
                group=1,
                epilogue=call("relu", call("add", acc(0), load(2, axis(1), dtype=bias.dtype))),
                output=planes(out),
            )
        )
        return out

    def body(self, domain: tuple[Size, ...], body: Expr, *inputs: Operand) -> Operand:
        out = self.temp(*domain)
        self.op(Pointwise(domain=domain, inputs=inputs, bodies=(body,), outputs=(out,)))
        return out

    def mean(self, x: Operand, *, over_images: bool = False) -> Operand:
        """Of each image's channels; or of all images'."""
        kept, inner = (x.shape[1:], x.shape[:1]) if over_images else (x.shape[:1], x.shape[1:])
        here = [axis(i) for i in range(4)]
        index = [here[3], *here[:3]] if over_images else here
        out = self.temp(*kept)
        self.op(
            RowReduce(
                outer=kept,
                inner=inner,
                inputs=(x,),
                stages=(Stage(kind=ReduceKind.SUM, body=load(0, *index, dtype=x.dtype)),),
                outputs=(RowOutput(body=acc(0), operand=out, per_row=True),),
            )
        )
        return out


def planes(x: Operand) -> Operand:
    """[n, h, w, c] as [n, c, h, w]."""
    n, h, w, c = range(4)
    return replace(x, shape=tuple(x.shape[i] for i in (n, c, h, w)), strides=tuple(x.strides[i] for i in (n, c, h, w)))


def loops_of(p: ProgramBuilder, caps: Capabilities = SLOW) -> list[tuple[int, int]]:
    return [(loop.first, loop.last) for loop in looped(p, caps)]


def looped(p: ProgramBuilder, caps: Capabilities = SLOW) -> tuple[BatchLoop, ...]:
    live = live_ops(p.program)
    return over_images(p.program, live, constant_ops(p.program, live)[0], caps)[1]


def run(p: Net, batch: int, expected_loops: int = 1) -> PlannedProgram:
    """Against the interpreter, which knows no loops."""
    rng = np.random.default_rng(batch)
    constants = [
        rng.standard_normal(v.shape).astype(np.float32)  # type: ignore[arg-type]
        for v in p.program.values
        if v.kind == "const"
    ]
    x = rng.standard_normal((batch, 16, 20, 3)).astype(np.float32)
    planned = plan_for(p.program, HERE)
    assert len(planned.loops) == expected_loops
    check_program(p.program, [x], constants, HERE, max_err=2e-6)
    return planned


@pytest.mark.compiler("gcc")
@pytest.mark.parametrize("batch", [3, 7, "n"])
def test_a_net_image_by_image(batch: Batch) -> None:
    p = Net(batch)
    p.output(p.mean(p.conv(p.conv(p.x, 8), 10)))
    assert loops_of(p) == [(0, 2)]
    for count in (1, 2, 5, 0) if batch == "n" else (batch,):
        planned = run(p, int(count))
    sizes = [b.size_bytes for b in planned.buffers if b.kind is BufferKind.ARENA]
    assert sorted(sizes, key=str) == sorted([16 * 20 * 8 * 4, 16 * 20 * 10 * 4], key=str), "one image each"


@pytest.mark.compiler("gcc")
@pytest.mark.parametrize("batch", [3, "n"])
def test_what_is_used_outside_has_all_images(batch: Batch) -> None:
    p = Net(batch)
    inside = p.conv(p.conv(p.x, 8), 8)
    p.output(p.conv(inside, 8))
    p.output(p.mean(inside, over_images=True))
    assert loops_of(p) == [(0, 2)]
    planned = run(p, 3)
    [loop] = planned.loops
    strided = {planned.buffers[buffer].kind for buffer, _ in loop.strides_bytes}
    assert strided == {BufferKind.INPUT, BufferKind.OUTPUT, BufferKind.ARENA}
    for buffer, _ in loop.strides_bytes:
        if planned.buffers[buffer].kind is BufferKind.ARENA:
            assert planned.buffers[buffer].first <= loop.first and planned.buffers[buffer].last > loop.last


@pytest.mark.compiler("gcc")
@pytest.mark.parametrize("batch", [3, "n"])
def test_a_residual_and_parts_of_channels(batch: Batch) -> None:
    """A sum with what came before, and two results side by side in one value."""
    p = Net(batch)
    first = p.conv(p.x, 8)
    both = p.temp(p.n, 16, 20, 12)
    for begin, channels in ((0, 8), (8, 4)):
        p.conv(first, channels, out=replace(both, shape=(p.n, 16, 20, channels), offset=begin))
    p.output(p.add(p.conv(both, 8), first))
    assert loops_of(p) == [(0, 4)]
    run(p, 3)


@pytest.mark.compiler("gcc")
def test_the_rest_of_a_net_is_not_in_the_loop() -> None:
    """An op that mixes images ends one loop, and behind it another may begin."""
    p = Net("n")
    y = p.conv(p.conv(p.x, 8), 8)
    total = p.mean(y, over_images=True)
    wide = replace(total, shape=y.shape, strides=(0, *total.strides))
    z = p.add(y, wide)
    p.output(p.conv(p.conv(z, 8), 3))
    assert loops_of(p) == [(0, 1), (3, 5)]
    run(p, 3, expected_loops=2)


@pytest.mark.compiler("gcc")
def test_from_one_loop_to_the_next() -> None:
    """The second one sees images of half the size: what the first one hands on is neither's alone."""
    p = Net(3)
    y = p.conv(p.conv(p.x, 8), 8)
    halves = p.pointwise("relu", replace(y, shape=(6, 8, 20, 8), strides=(8 * 20 * 8, 20 * 8, 8, 1)))
    p.output(p.conv(halves, 8))
    assert loops_of(p, replace(SLOW, l2_bytes=48 << 10, l3_bytes=48 << 10)) == [(0, 1), (2, 3)]
    run(p, 3, expected_loops=2)


@pytest.mark.compiler("gcc")
def test_loops_come_in_the_order_of_their_steps() -> None:
    """The best part of a chain is found first, and here it is the last."""
    p = Net(3)
    y = p.conv(p.conv(p.x, 8), 8)
    heavy = p.conv(p.conv(y, 100), 100)
    y = p.conv(p.conv(heavy, 8), 8)
    p.output(p.conv(p.conv(y, 8), 8))
    assert loops_of(p) == [(0, 1), (5, 7)]
    run(p, 3, expected_loops=2)


def neighbour(y: Operand) -> Expr:
    before = call("max", call("sub", axis(0), const(1)), const(0))
    return load(0, before, axis(1), axis(2), axis(3), dtype=y.dtype)


def its_number(y: Operand) -> Expr:
    return call("add", load(0, *map(axis, range(4)), dtype=y.dtype), call("to_f", axis(0)))


def the_first_image(y: Operand) -> Expr:
    return load(0, const(0), axis(1), axis(2), axis(3), dtype=y.dtype)


@pytest.mark.compiler("gcc")
@pytest.mark.parametrize("body", [neighbour, its_number, the_first_image])
def test_ops_that_see_other_images_stay_outside(body: Callable[[Operand], Expr]) -> None:
    p = Net(3)
    y = p.conv(p.conv(p.x, 8), 8)
    p.output(p.body(y.shape, body(y), y))
    assert loops_of(p) == [(0, 1)]
    run(p, 3)


@pytest.mark.compiler("gcc")
def test_a_view_of_other_images_ends_the_loop() -> None:
    """Each index of the view is an image, but not the one that has this index."""
    p = Net(4)
    y = p.conv(p.conv(p.x, 8), 8)
    p.output(p.pointwise("relu", replace(y, shape=(3, 16, 20, 8), offset=16 * 20 * 8)))
    q = Net(4)
    y = q.conv(q.conv(q.x, 8), 8)
    q.output(q.pointwise("relu", replace(y, shape=(4, 8, 20, 8), strides=(8 * 20 * 8, 20 * 8, 8, 1))))
    for each in (p, q):
        assert loops_of(each) == [(0, 1)]
        run(each, 4)


def test_what_is_not_worth_it() -> None:
    small = Net(1)
    small.output(small.conv(small.conv(small.x, 8), 8))
    assert loops_of(small) == [], "one image"
    p = Net(8)
    p.output(p.conv(p.conv(p.x, 8), 8))
    assert loops_of(p) == [(0, 1)]
    fits = replace(SLOW, l2_bytes=1 << 20)
    assert loops_of(p, fits) == [], "all images are in the cache"
    too_large = replace(SLOW, l2_bytes=8 << 10, l3_bytes=8 << 10)
    assert loops_of(p, too_large) == [], "one image is not"
    assert loops_of(p, replace(SLOW, dram_gbs=1e3)) == [], "launching costs more than memory"
    heavy = Net(8)
    heavy.output(heavy.conv(heavy.conv(heavy.x, 100), 100))
    large = replace(SLOW, l2_bytes=600 << 10, l3_bytes=600 << 10)
    assert 8 * 16 * 20 * 200 * 4 > large.l2_bytes * OWN > 16 * 20 * 200 * 4
    assert loops_of(heavy, large) == [], "its weights are larger than its images"


def test_one_op_alone_is_no_loop() -> None:
    p = Net("n")
    p.output(p.conv(p.x, 8))
    assert loops_of(p) == []


def test_the_program_that_was_given_stays_as_it_is() -> None:
    p = Net("n")
    p.output(p.conv(p.conv(p.x, 8), 8))
    ops, values = list(p.program.ops), list(p.program.values)
    [loop] = looped(p)
    assert (p.program.ops, p.program.values) == (ops, values)
    assert loop.images == symbol("n")
    assert {value for value, _ in loop.views.values()} == {0, p.program.ops[-1].written[0].value}
