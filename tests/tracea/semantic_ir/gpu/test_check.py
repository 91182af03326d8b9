"""GPU kernels: what the check demands of waiting, of who comes by, and of memory, each broken once."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.support.gpu import kernels as gpu_kernels
from xyntra_ep.errors import InvariantError
from xyntra_ep.tracea.core_ir.dims import symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder
from xyntra_ep.tracea.semantic_ir.check import check_kernel
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.nodes import Barrier, SharedArray
from xyntra_ep.tracea.semantic_ir.nodes import Const, Iota, Let, Prefetch, Reduce, Rvalue, Var, binary, f32, i32, i64, lt


class Tile:
    """A kernel under construction: ``x`` is read, ``y`` written, ``tile`` shared."""

    def __init__(self, slots: int = 1) -> None:
        self.b = GpuBuilder("k", threads=64)
        self.x, self.y = self.b.buffer("x", DType.F32), self.b.buffer("y", DType.F32, writable=True)
        self.n = self.b.param(symbol("n"))
        self.tile = self.b.shared("tile", DType.F32, 64, slots)

    def put(self) -> None:
        self.b.store(self.tile, self.b.thread, self.b.load(self.x, self.b.thread))

    def get(self) -> None:
        self.b.store(self.y, self.b.thread, self.b.load(self.tile, 63 - self.b.thread))

    def check(self) -> None:
        check_kernel(self.b.finish()[0])


Broken = Callable[[Tile], None]


def _read_too_early(t: Tile) -> None:
    t.put()
    t.get()


def _write_too_early(t: Tile) -> None:
    with t.b.loop("i", 0, t.n):
        t.put()
        t.b.barrier()
        t.get()


def _never_filled(t: Tile) -> None:
    t.b.barrier()
    t.get()


def _barrier_for_some(t: Tile) -> None:
    with t.b.when(lt(t.b.thread, 32)):
        t.put()
        t.b.barrier()


def _barrier_in_a_loop_of_some(t: Tile) -> None:
    with t.b.loop("i", 0, t.b.thread):
        t.b.barrier()


def _barrier_by_a_value_that_differs(t: Tile) -> None:
    count = t.b.variable("count", t.b.let("zero", t.n * 0))
    with t.b.loop("i", 0, 2):
        with t.b.when(lt(0, count)):
            t.b.barrier()
        t.b.assign(count, t.b.thread)


def _exchange_of_some(t: Tile) -> None:
    with t.b.when(lt(t.b.thread, 32)):
        t.b.store(t.y, t.b.thread, t.b.subgroup_xor(t.b.load(t.x, t.b.thread), 1))


def _copy_without_wait(t: Tile) -> None:
    t.b.copy_async(t.tile, t.b.thread, t.x, t.b.thread, 1)
    t.b.commit()
    t.b.barrier()
    t.get()


def _copy_never_waited_for(t: Tile) -> None:
    t.b.copy_async(t.tile, t.b.thread, t.x, t.b.thread, 1)
    t.b.commit()


def _copy_without_barrier(t: Tile) -> None:
    t.b.copy_async(t.tile, t.b.thread, t.x, t.b.thread, 1)
    t.b.commit()
    t.b.wait(0)
    t.get()


def _copy_over_what_is_read(t: Tile) -> None:
    t.put()
    t.b.barrier()
    t.get()
    t.b.copy_async(t.tile, t.b.thread, t.x, t.b.thread, 1)
    t.b.commit()
    t.b.wait(0)


def _copy_onto_a_copy(t: Tile) -> None:
    for _ in range(2):
        t.b.copy_async(t.tile, t.b.thread, t.x, t.b.thread, 1)
        t.b.commit()
    t.b.wait(0)


def _write_into_a_copy(t: Tile) -> None:
    t.b.copy_async(t.tile, t.b.thread, t.x, t.b.thread, 1)
    t.put()
    t.b.commit()
    t.b.wait(0)


def _copy_to_global(t: Tile) -> None:
    t.b.copy_async(t.y, t.b.thread, t.x, t.b.thread, 1)


def _copy_of_three(t: Tile) -> None:
    t.b.copy_async(t.tile, t.b.thread, t.x, t.b.thread, 3)


def _large_packet(t: Tile) -> None:
    t.b.load_packet("v", t.x, 0, 8)


def _packet_to_what_is_read_only(t: Tile) -> None:
    t.b.store_packet(t.x, 0, t.b.load_packet("v", t.x, 0, 4))


def _vector(t: Tile) -> None:
    t.b.let("v", Reduce("add", t.b.load(t.x, 0, 4)))


def _lanes(t: Tile) -> None:
    t.b.let("v", Iota(i64(4)))


def _shared_inside(t: Tile) -> None:
    with t.b.when(lt(0, t.n)):
        t.b.emit(SharedArray(Var(t.tile.vtype, "late"), DType.F32, 4))


def _function_that_waits(t: Tile) -> None:
    f = FunctionBuilder("f", f32(1))
    f.emit(Barrier())
    f.result(f.argument("v", f32(1)))
    t.b.function(f.finish())


def _prefetch(t: Tile) -> None:
    t.b.emit(Prefetch(t.x, t.b.thread))


def _fragments_of_integers(t: Tile) -> None:
    t.b.load_fragments("f", t.b.shared("numbers", DType.I32, 64), t.b.thread)


def _f32_turned_round(t: Tile) -> None:
    t.b.load_fragments("f", t.tile, t.b.thread, transposed=True)


def _fragments_of_some(t: Tile) -> None:
    halves = t.b.shared("halves", DType.F16, 64)
    with t.b.when(lt(t.b.thread, 32)):
        t.b.load_fragments("f", halves, t.b.thread)


def _fragments_too_early(t: Tile) -> None:
    halves = t.b.shared("halves", DType.F16, 64)
    t.b.store(halves, t.b.thread, t.b.load(t.x, t.b.thread))
    t.b.load_fragments("f", halves, t.b.thread)


def _sums_that_do_not_change(t: Tile) -> None:
    pair, total = Const(i32(1), 0), Var(f32(1), "total")
    t.b.emit(Let(total, Const(f32(1), 0.0)))
    t.b.fragment_dot([total] * 4, [pair] * 4, [pair] * 2, DType.F16)


BREAKS: dict[str, Broken] = {
    "read before a barrier follows": _read_too_early,
    "written before a barrier follows its reading": _write_too_early,
    "nothing has filled": _never_filled,
    "not all threads of the block": _barrier_for_some,
    "not all threads of the block ": _barrier_in_a_loop_of_some,
    "not all threads of the block  ": _barrier_by_a_value_that_differs,
    "not all threads exchange": _exchange_of_some,
    "read before a copy into it is waited for": _copy_without_wait,
    "is not waited for": _copy_never_waited_for,
    "read before a barrier follows what fills it": _copy_without_barrier,
    "copied to before a barrier follows its reading": _copy_over_what_is_read,
    "another group's is under way": _copy_onto_a_copy,
    "written while a copy fills it": _write_into_a_copy,
    "a copy from global to global": _copy_to_global,
    "a copy of 3": _copy_of_three,
    "a packet of 8": _large_packet,
    "a store needs a writable pointer": _packet_to_what_is_read_only,
    "has one element, not 4": _vector,
    "has one element, not 4 ": _lanes,
    "declared at the top": _shared_inside,
    "a function waits": _function_that_waits,
    "a prefetch is for CPUs": _prefetch,
    "fragments of shared i32": _fragments_of_integers,
    "fragments of f32 are turned round": _f32_turned_round,
    "not all threads of the warp": _fragments_of_some,
    "read before a barrier follows ": _fragments_too_early,
    "their sums mutable": _sums_that_do_not_change,
}


@pytest.mark.parametrize("rule", list(BREAKS))
def test_broken(rule: str) -> None:
    t = Tile()
    BREAKS[rule](t)
    with pytest.raises(InvariantError, match=re.escape(rule.strip())):
        t.check()


def test_waiting_is_legal() -> None:
    t = Tile()
    with t.b.loop("i", 0, t.n):
        t.put()
        t.b.barrier()
        t.get()
        t.b.barrier()
    t.check()


@pytest.mark.parametrize("slots", [2, 3, 4, 5])
def test_a_pipeline_is_legal_with_its_own_distance_only(slots: int) -> None:
    check_kernel(gpu_kernels.pipeline(slots))
    with pytest.raises(InvariantError, match="before a copy into it is waited for"):
        check_kernel(gpu_kernels.pipeline(slots, wait=slots - 1))
    with pytest.raises(InvariantError, match="before a barrier"):
        check_kernel(gpu_kernels.pipeline(slots, barrier=False))


def test_threads_may_share_out_a_loop() -> None:
    """A loop over a thread's part of an array runs for some thread at least."""

    def kernel(barriers: int) -> Tile:
        t = Tile()
        with t.b.loop("i", t.b.thread, 64, 64) as i:
            t.b.store(t.tile, i, t.b.load(t.x, i))
        t.b.barrier()
        t.get()
        for _ in range(barriers):
            t.b.barrier()
        with t.b.loop("i", t.b.thread, 64, 64) as i:
            t.b.store(t.tile, i, t.b.load(t.x, i))
        return t

    kernel(1).check()
    with pytest.raises(InvariantError, match="written before a barrier follows its reading"):
        kernel(0).check()


def test_what_slot_is_used_must_be_known() -> None:
    for slot, rule in ((lambda t: t.b.thread % 2, "does not follow from loop counters"), (lambda t: 2, "has no slot 2")):
        t = Tile(slots=2)
        where = t.b.slot(t.tile, slot(t))
        t.b.store(where, t.b.thread, t.b.load(t.x, t.b.thread))
        with pytest.raises(InvariantError, match=rule):
            t.check()
    t = Tile(slots=2)
    t.put()
    with pytest.raises(InvariantError, match="without saying which"):
        t.check()


def test_sizes_have_one_value_all_along() -> None:
    """What is filled only when n > 1 may be read where n > 1."""

    def kernel(read_when: Callable[[Rvalue], Rvalue]) -> Tile:
        t = Tile()
        with t.b.when(lt(1, t.n)):
            t.put()
            t.b.barrier()
        with t.b.when(read_when(t.n)):
            t.b.barrier()
            t.get()
        return t

    kernel(lambda n: lt(1, n)).check()
    kernel(lambda n: lt(3, n)).check()
    with pytest.raises(InvariantError, match="nothing has filled"):
        kernel(lambda n: lt(0, n)).check()
    with pytest.raises(InvariantError, match="nothing has filled"):
        kernel(lambda n: binary("eq", n, 0)).check()
