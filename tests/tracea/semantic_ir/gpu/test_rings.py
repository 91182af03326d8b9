"""Kernels whose warpgroups wait for each other wrongly: none is legal, and the simulation sees what goes wrong, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.support.gpu.simulated import SimulatedGpu, Tensor
from xyntra_ep.errors import InvariantError
from xyntra_ep.tracea.core_ir.dims import symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.check import check_kernel
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_builder import WarpgroupBuilder
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_nodes import Roles, SharedMatrix
from xyntra_ep.tracea.semantic_ir.nodes import Comment, Const, Kernel, Rvalue, f32, i32, index, lt

SLOTS, STEPS = 3, 9
BOX = 64 * 64 * 2  # bytes


class Ring:
    """y [64, 64] = the sum over steps of x [step, 64, 64] times itself turned round; one warpgroup copies, one multiplies. What
    a test overrides is what it does wrongly."""

    parity_to_fill: Callable[[Rvalue], Rvalue] = staticmethod(lambda step: 1 - step // SLOTS % 2)
    parity_to_read: Callable[[Rvalue], Rvalue] = staticmethod(lambda step: step // SLOTS % 2)
    slot_to_read: Callable[[Rvalue], Rvalue] = staticmethod(lambda step: step % SLOTS)
    slot_to_free: Callable[[Rvalue], Rvalue] = staticmethod(lambda step: (step - 1) % SLOTS)
    bytes = BOX
    arrivals = 4
    pending = 1
    last_pending = 0
    fences = True
    waits_to_fill = True
    touches = False
    names_sums = False  # of products that are still under way

    def kernel(self) -> Kernel:
        b = WarpgroupBuilder("ring", 2)
        b.buffer("x", DType.F16)
        y = b.buffer("y", DType.F32, writable=True)
        steps = b.param(symbol("steps"))
        x = b.tensor("x", DType.F16, (64, 64, 1))
        tile = b.shared("tile", DType.F16, 64 * 64, SLOTS, alignment=1024)
        full, empty = b.mbarriers("full", SLOTS, 1), b.mbarriers("empty", SLOTS, self.arrivals)
        with b.role("copies", 1), b.once(), b.loop("step", 0, steps) as step:
            slot = step % SLOTS
            if self.waits_to_fill:
                b.wait_at(b.slot(empty, slot), self.parity_to_fill(step))
            b.expect(b.slot(full, slot), self.bytes)
            b.copy_tensor(b.slot(tile, slot), x, (index(0), index(0), step), b.slot(full, slot))
        with b.role("multiplies", 1):
            sums = [b.variable("sum", Const(f32(1), 0.0)) for _ in range(32)]
            with b.loop("step", 0, steps) as step:
                b.wait_at(b.slot(full, step % SLOTS), self.parity_to_read(step))
                if self.fences:
                    b.fence_products()
                for k in range(0, 64, 16):
                    matrix = SharedMatrix(b.slot(tile, self.slot_to_read(step)), index(k), across=False)
                    b.warpgroup_dot(sums, matrix, matrix, DType.F16)
                b.commit_products()
                if self.touches:
                    b.assign(sums[0], sums[0] * 2.0)
                b.wait_products(self.pending, sums if self.names_sums else ())
                with b.when(lt(0, step)):
                    b.arrive(b.slot(empty, b.let("before", self.slot_to_free(step))))
            b.wait_products(self.last_pending)
            me = b.let("me", b.thread - 128)
            lane = me % 32
            for i, total in enumerate(sums):
                row, column = me // 32 * 16 + lane // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + lane % 4 * 2 + i % 2
                b.store(y, row * 64 + column, total)
        return b.finish()[0]


def run(kernel: Kernel) -> float:
    """The largest error in the simulation."""
    x = np.random.default_rng(0).standard_normal((STEPS, 64, 64)).astype(np.float16)
    y = np.zeros((64, 64), np.float32)
    tensor = Tensor(data=x.reshape(-1), offset=0, extents=(64, 64, STEPS), strides=(1, 64, 4096), box=(64, 64, 1))
    buffers = [array.reshape(-1).view(np.uint8) for array in (x, y)]
    SimulatedGpu().launch(kernel, 1, buffers, [STEPS], [tensor])
    wide = x.astype(np.float64)
    error = np.abs(y - np.einsum("sik,sjk->ij", wide, wide)).max()
    return float(error) if np.isfinite(error) else np.inf


def test_a_ring_that_is_right() -> None:
    kernel = Ring().kernel()
    check_kernel(kernel)
    assert run(kernel) < 1e-3


WRONG: list[tuple[str, dict[str, object]]] = [
    ("a tensor is copied to where|more arrive at full", {"waits_to_fill": False}),
    ("wait for each other for ever", {"parity_to_fill": lambda step: step // SLOTS % 2}),  # one phase off
    (
        "a tensor is copied to where|more arrive at full",
        {"parity_to_fill": lambda step: index(1)},
    ),  # which is that before the first, for ever
    ("before its copy is waited for", {"parity_to_read": lambda step: 1 - step // SLOTS % 2}),
    ("before its copy is waited for", {"slot_to_read": lambda step: (step + 1) % SLOTS}),
    ("wait for each other for ever", {"slot_to_free": lambda step: step % SLOTS}),
    ("wait for each other for ever", {"slot_to_free": lambda step: (step + 1) % SLOTS}),  # too early, if copies are slow
    ("wait for each other for ever", {"bytes": BOX + 128}),
    ("more bytes than full", {"bytes": BOX - 128}),
    ("wait for each other for ever", {"arrivals": 5}),
    ("more arrive at empty", {"arrivals": 3}),
    ("a tensor is copied to where products", {"pending": 2}),
    ("sums are used while products make them", {"last_pending": 1}),
    ("sums are used while products make them", {"touches": True}),
    ("sums are used while products make them", {"names_sums": True}),
    ("no fence between", {"fences": False}),
]
# By the simulation, which takes one order of two, and knows no registers that are late.
UNSEEN = ("slot_to_free", "fences", "names_sums")


@pytest.mark.parametrize(("rule", "mistake"), WRONG, ids=lambda x: "-".join(x) if isinstance(x, dict) else "")
def test_a_ring_that_is_wrong(rule: str, mistake: dict[str, object]) -> None:
    ring = Ring()
    for name, value in mistake.items():
        setattr(ring, name, value)
    kernel = ring.kernel()
    with pytest.raises(InvariantError, match=rule):
        check_kernel(kernel)
    if not mistake.keys().isdisjoint(UNSEEN):
        return
    try:
        error = run(kernel)
    except AssertionError:
        return
    assert error > 1e-3, "the simulation sees nothing"


class Tiles:
    """y [tiles, 64, 64] of two warpgroups = for each tile, the sum over its steps of x [tile * steps + step, 64, 64] times itself
    turned round. Two warpgroups multiply: all tiles both of them, or in ``turns`` each every other one. Blocks of a ``cluster``
    copy their share of each tile to all, and multiply the same. What a test overrides is what it does wrongly."""

    turns = 1
    cluster = 1
    frees_everywhere = True
    as_often = True
    bytes = BOX
    number_to_fill: Callable[[Rvalue, Rvalue, Rvalue], Rvalue] = staticmethod(lambda turn, steps, step: turn * steps + step)
    number_to_read: Callable[[Rvalue, Rvalue, Rvalue], Rvalue] = staticmethod(lambda turn, steps, step: turn * steps + step)
    first: Callable[[Rvalue, int], Rvalue] = staticmethod(lambda group, turns: group if turns > 1 else index(0))
    arrivals = 0  # other than right
    hands_on = True
    parity_of_turn: Callable[[Rvalue], Rvalue] = staticmethod(lambda turn: (turn // 2 + 1 - turn % 2) % 2)
    frees_last = True
    frees_early = False
    waits = True

    def kernel(self) -> Kernel:
        b = WarpgroupBuilder("tiles", 3, self.cluster)
        b.buffer("x", DType.F16)
        y = b.buffer("y", DType.F32, writable=True)
        number_of_cluster = b.let("cluster", b.block // self.cluster if self.as_often else b.block)
        tiles = b.rounds("tiles", b.param(symbol("tiles")) + number_of_cluster)
        steps, rank = b.rounds("steps", b.param(symbol("steps"))), b.let("rank", b.block % self.cluster)
        rows = 64 // self.cluster
        x = b.tensor("x", DType.F16, (64, rows, 1))
        tile = b.shared("tile", DType.F16, 64 * 64, SLOTS, alignment=1024)
        full, empty = b.mbarriers("full", SLOTS, 1), b.mbarriers("empty", SLOTS, self.arrivals or 8 // self.turns * self.cluster)
        mine, everywhere = b.mbarriers("mine", 2, 4), self.cluster > 1 and self.frees_everywhere
        with b.role("copies", 1), b.once(), b.loop("turn", 0, tiles) as turn, b.loop("step", 0, steps) as step:
            number = b.let("number", self.number_to_fill(turn, steps, step))
            b.wait_at(b.slot(empty, number % SLOTS), 1 - number // SLOTS % 2)
            b.expect(b.slot(full, number % SLOTS), self.bytes)
            share = b.pointer("share", b.slot(tile, number % SLOTS), rank * (rows * 64))
            at = (index(0), rank * rows, turn * steps + step)
            b.copy_tensor(share, x, at, b.slot(full, number % SLOTS), everywhere=self.cluster > 1)
        with b.role("multiplies", 2) as group, b.loop("turn", self.first(group, self.turns), tiles, self.turns) as turn:
            sums = [b.variable("sum", Const(f32(1), 0.0)) for _ in range(32)]
            if self.turns > 1 and self.hands_on:
                b.wait_at(b.slot(mine, turn % 2), self.parity_of_turn(turn))
            with b.loop("step", 0, steps) as step:
                number = b.let("number", self.number_to_read(turn, steps, step))
                b.wait_at(b.slot(full, number % SLOTS), number // SLOTS % 2)
                b.fence_products()
                for k in range(0, 64, 16):
                    matrix = SharedMatrix(b.slot(tile, number % SLOTS), index(k), across=False)
                    b.warpgroup_dot(sums, matrix, matrix, DType.F16)
                b.commit_products()
                b.wait_products(1)
                with b.when(lt(0, step)):
                    b.arrive(b.slot(empty, (number - 1) % SLOTS), everywhere)
            if self.turns > 1 and self.hands_on:
                b.arrive(b.slot(mine, (turn + 1) % 2))
            last = b.let("last", self.number_to_read(turn, steps, steps - 1))
            if not self.frees_early and self.waits:
                b.wait_products(0, sums)
            if self.frees_last:
                with b.when(lt(0, steps)):
                    b.arrive(b.slot(empty, last % SLOTS), everywhere)
            if self.frees_early:
                b.wait_products(0, sums)
            me, lane = b.let("me", b.thread % 128), b.let("lane", b.thread % 32)
            to = b.let("to", ((rank * tiles + turn) * 2 + group) * 4096)
            for i, total in enumerate(sums):
                row, column = me // 32 * 16 + lane // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + lane % 4 * 2 + i % 2
                b.store(y, to + row * 64 + column, total)
        return b.finish()[0]


def run_tiles(made: Tiles, kernel: Kernel, tiles: int, steps: int) -> float:
    """The largest error in the simulation, of all warpgroups."""
    turns, cluster = made.turns, made.cluster
    x = np.random.default_rng(0).standard_normal((tiles, steps, 64, 64)).astype(np.float16)
    y = np.zeros((cluster, tiles, 2, 64, 64), np.float32)
    box = (64, 64 // cluster, 1)
    tensor = Tensor(data=x.reshape(-1), offset=0, extents=(64, 64, tiles * steps), strides=(1, 64, 4096), box=box)
    buffers = [array.reshape(-1).view(np.uint8) for array in (x, y)]
    SimulatedGpu().launch(kernel, cluster, buffers, [tiles, steps], [tensor])
    wide = x.astype(np.float64)
    wanted = np.einsum("tsik,tsjk->tij", wide, wide)
    own = np.arange(tiles)
    found = [y[:, own, own % 2]] if turns > 1 else [y[:, :, 0], y[:, :, 1]]
    return float(max(np.abs(of_one - wanted).max() for of_one in found))


@pytest.mark.parametrize("turns", [1, 2])
@pytest.mark.parametrize("cluster", [1, 2])
def test_a_ring_goes_on_over_tiles(turns: int, cluster: int) -> None:
    made = Tiles()
    made.turns, made.cluster = turns, cluster
    kernel = made.kernel()
    check_kernel(kernel)
    for tiles, steps in ((5, 2), (2, 7), (1, 1)):
        assert run_tiles(made, kernel, tiles, steps) < 1e-3


WRONG_TILES: list[tuple[str, int, dict[str, object]]] = [
    # Phases that begin anew with every tile.
    ("wait for each other for ever|copied to where|more arrive", 1, {"number_to_fill": lambda turn, steps, step: step}),
    ("a copy is not waited for", 1, {"number_to_read": lambda turn, steps, step: step}),
    # Those of a warpgroup's own tiles alone.
    ("a copy is not waited for", 2, {"number_to_read": lambda turn, steps, step: turn // 2 * steps + step}),
    ("wait for each other for ever", 1, {"frees_last": False}),
    ("wait for each other for ever", 2, {"frees_last": False}),
    ("a tensor is copied to where products", 1, {"frees_early": True}),
    ("a tensor is copied to where products", 2, {"frees_early": True}),
    ("sums are used while products make them", 2, {"waits": False}),
    ("wait for each other for ever", 2, {"arrivals": 8}),
    ("wait for each other for ever|a tensor is copied to where products", 1, {"arrivals": 4}),
    # Who has not seen a slot's last filling takes a phase for the one two later.
    ("before its copy is waited for", 2, {"hands_on": False}),
    ("wait for each other for ever", 2, {"parity_of_turn": lambda turn: (turn // 2 + turn % 2) % 2}),
    # Of blocks that copy to each other's memory.
    ("a tensor is copied to where products|wait for each other", 1, {"cluster": 2, "frees_everywhere": False, "arrivals": 8}),
    ("wait for each other for ever", 1, {"cluster": 2, "frees_everywhere": False}),
    ("more arrive at empty|a tensor is copied to where", 1, {"cluster": 2, "arrivals": 8}),
    ("before its copy is waited for", 2, {"cluster": 2, "bytes": BOX // 2}),
    ("blocks of a cluster may go round a loop differently often", 1, {"cluster": 2, "as_often": False}),
    # Both have the same tiles.
    ("wait for each other for ever|more arrive", 2, {"first": lambda group, turns: index(0)}),
]


@pytest.mark.parametrize(("rule", "turns", "mistake"), WRONG_TILES, ids=lambda x: "-".join(x) if isinstance(x, dict) else "")
def test_a_ring_that_is_wrong_over_tiles(rule: str, turns: int, mistake: dict[str, object]) -> None:
    made = Tiles()
    for name, value in {"turns": turns, **mistake}.items():
        setattr(made, name, value)
    with pytest.raises(InvariantError, match=rule):
        check_kernel(made.kernel())


def test_warpgroups_of_a_role_exchange_values_where_all_of_one_come_by() -> None:
    def kernel(condition: Callable[[WarpgroupBuilder, Rvalue], Rvalue]) -> Kernel:
        b = WarpgroupBuilder("exchange", 3)
        y = b.buffer("y", DType.F32, writable=True)
        b.shared("unused", DType.F32, 4)
        with b.role("waits", 1):
            pass
        with b.role("exchanges", 2) as group, b.when(condition(b, group)):
            value = b.variable("value", Const(f32(1), 1.0))
            b.store(y, b.thread, b.subgroup_xor(value, 1))
        return b.finish()[0]

    check_kernel(kernel(lambda b, group: lt(group, 1)))
    with pytest.raises(InvariantError, match="not all threads exchange values"):
        check_kernel(kernel(lambda b, group: lt(b.thread, 130)))


def test_roles_are_the_end_of_a_kernel_and_have_all_its_threads() -> None:
    kernel = Ring().kernel()
    *before, roles = kernel.body
    assert isinstance(roles, Roles)
    copies, multiplies = roles.parts
    for body, rule in (
        ((*before, roles, Comment("more")), "roles are not the end of the kernel"),
        ((*before, replace(roles, parts=(copies,))), "roles of 128 threads in a block of 256"),
        ((*before, replace(roles, parts=(replace(copies, registers=36), multiplies))), "36 registers of a thread"),
        ((*before, replace(roles, mbarriers=roles.mbarriers[:1])), "empty_ is no mbarrier"),
        ((*before, replace(roles, parts=(multiplies, replace(copies, body=copies.body[0].body)))), "done by the wrong threads"),  # type: ignore[attr-defined]  # Once
    ):
        with pytest.raises(InvariantError, match=rule):
            check_kernel(replace(kernel, body=body))


def with_registers(*, early: bool, fresh: bool = True) -> Kernel:
    """y [64, 64] = what 64 x 16 ones in registers make of x [16, 64]; ``early``: they are changed while the product is under
    way."""
    b = WarpgroupBuilder("registers", 2)
    b.buffer("x", DType.F16)
    y = b.buffer("y", DType.F32, writable=True)
    x = b.tensor("x", DType.F16, (64, 16))
    tile, full = b.shared("tile", DType.F16, 64 * 16, alignment=1024), b.mbarriers("full", 1, 1)
    with b.role("copies", 1), b.once():
        b.expect(b.slot(full, 0), 64 * 16 * 2)
        b.copy_tensor(b.slot(tile, 0), x, (index(0), index(0)), b.slot(full, 0))
    with b.role("multiplies", 1):
        sums = [b.variable("sum", Const(f32(1), 7.0)) for _ in range(32)]
        ones = [b.variable("pair", Const(i32(1), 0x3C003C00)) for _ in range(4)]
        b.wait_at(b.slot(full, 0), index(0))
        b.fence_products()
        b.warpgroup_dot(sums, ones, SharedMatrix(b.slot(tile, 0), index(0), across=True), DType.F16, fresh=fresh)
        b.commit_products()
        if early:
            b.assign(ones[0], Const(i32(1), 0))
        b.wait_products(0, sums)
        me = b.let("me", b.thread - 128)
        lane = me % 32
        for i, total in enumerate(sums):
            row, column = me // 32 * 16 + lane // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + lane % 4 * 2 + i % 2
            b.store(y, row * 64 + column, total)
    return b.finish()[0]


@pytest.mark.parametrize("fresh", [True, False])
def test_a_matrix_in_registers(fresh: bool) -> None:
    """Added to what was there, or in its place."""
    x, y = np.random.default_rng(0).standard_normal((16, 64)).astype(np.float16), np.zeros((64, 64), np.float32)
    tensor = Tensor(data=x.reshape(-1), offset=0, extents=(64, 16), strides=(1, 64), box=(64, 16))
    kernel = with_registers(early=False, fresh=fresh)
    check_kernel(kernel)
    SimulatedGpu().launch(kernel, 1, [array.reshape(-1).view(np.uint8) for array in (x, y)], [], [tensor])
    assert np.abs(y - x.astype(np.float64).sum(0) - (0 if fresh else 7)).max() < 1e-3


def test_registers_of_a_product_are_not_changed_early() -> None:
    with pytest.raises(InvariantError, match="sums are used while products make them"):
        check_kernel(with_registers(early=True))
