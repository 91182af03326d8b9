"""Ours against ORT's: a table of steps in, a verdict out. Nothing here is measured or depends on this machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.support.models.graph_from_model import graph_from_model
from tests.support.models.model_text import normal, parse
from xyntra_ep.fusion.estimates.cost import HEAVY_DOUBT, ISLAND_NS, STEP_NS, Comparison, Estimate, cpu_cannot, time_text
from xyntra_ep.fusion.estimates.ort_cost import Ceilings
from xyntra_ep.fusion.estimates.plausible import BATCH
from xyntra_ep.fusion.graph import Graph, NodeId
from xyntra_ep.fusion.schedule import build_program
from xyntra_ep.fusion.trace import trace
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.ops import CoreOp, Gemm
from xyntra_ep.tracea.interface.device_costs import ASSUMED
from xyntra_ep.tracea.interface.islands import StepCost

MACHINE = Ceilings(gflops=100.0, dram_gbs=10.0, near_bytes=1 << 20, unit_bits=512)
MLP = "(float[N,256] x) => (float[N,256] y) { g = MatMul(x, w) r = Relu(g) y = MatMul(r, v) }"
CHAIN = "(float[N,256] x) => (float[N,256] y) { a = Exp(x) b = Neg(a) c = Tanh(b) y = Sqrt(c) }"
WEIGHTS = {"w": normal(256, 256), "v": normal(256, 256)}


def comparison(
    text: str,
    cost: Callable[[CoreOp], Size],
    weights: Mapping[str, Any] | None = None,
    *,
    cores: int = 2,
    units: Size = 64,
    hints: Mapping[str, int] | None = None,
) -> Comparison:
    """One step for each op of the whole model as one island; ``cost(op)`` is what the plan would say. ``hints``: 128 rows."""
    hints = {"N": 128} if hints is None else hints
    graph = replace(graph_from_model(parse(text, 18, **weights or {})), dim_hints=hints)
    members = [n.id for n in graph.nodes]
    inputs, outputs = graph.boundary(members)
    traced = trace(graph, members, inputs, trust=True)
    program = build_program(traced, inputs, outputs)
    steps = [StepCost(op=i, cost_ns=cost(op), units=units) for i, op in enumerate(program.ops)]
    return Comparison(graph, members, traced, program, steps, MACHINE, cores)


def peak(op: CoreOp) -> Size:
    """A product at the machine's peak, anything else for nothing."""
    assert isinstance(op, Gemm) or op.label == "pointwise"
    return 2 * op.domain[0] * 256 * 256 // 100 if isinstance(op, Gemm) else 0


def test_a_product_near_the_peak_is_kept() -> None:
    found = comparison(MLP, peak, WEIGHTS)
    assert not found.total().loses and not found.slow()


def test_launches_that_these_sizes_leave_out_take_nothing() -> None:
    """An attention may have one launch for short rows and one for long ones."""
    assert comparison(MLP, lambda op: 10**9, WEIGHTS, units=0).total().ours_ns == ISLAND_NS


def test_a_product_far_from_the_peak_is_given_back_by_name() -> None:
    found = comparison(MLP, lambda op: 100 * peak(op), WEIGHTS)
    slow = found.slow()
    assert set(slow) == {NodeId(0), NodeId(1), NodeId(2)}
    assert all(e.ours_ns > 2 * e.ort_ns for e in slow.values())


def test_a_slow_product_among_much_else_parts_no_island() -> None:
    text = "(float[N,256] x) => (float[N,256] y) { g = MatMul(x, w) r = MatMul(g, t) y = MatMul(r, u) }"
    weights = {"w": normal(256, 256), "t": normal(256, 1), "u": normal(1, 256)}

    def cost(op: CoreOp) -> Size:
        assert isinstance(op, Gemm)
        needed = 2 * op.domain[0] * op.domain[1] * op.inputs[0].shape[1] // 100
        return 10 * needed if op.domain[1] == 1 else needed

    assert not comparison(text, cost, weights).slow()


def test_a_product_is_given_the_benefit_of_some_doubt() -> None:
    assert not Estimate(ours_ns=1.1, ort_ns=1.0, heavy=True).loses and HEAVY_DOUBT < 1.2
    assert Estimate(ours_ns=1.1, ort_ns=1.0).loses
    assert Estimate(ours_ns=1.3, ort_ns=1.0, heavy=True).loses


def test_elementwise_nodes_pay_by_being_one() -> None:
    assert not comparison(CHAIN, lambda op: 500).total().loses
    assert comparison(CHAIN, lambda op: 500_000).total().loses
    single = comparison("(float[N] x) => (float[N] y) { y = Relu(x) }", lambda op: 0)
    assert single.total().loses, "entering an island costs as much as a node of ORT's"


def test_far_operands_cost_the_memory_whatever_the_plan_says() -> None:
    text = "(float[4096,1024] x) => (float[4096,1024] y) { y = Relu(x) }"
    total = comparison(text, lambda op: 1, cores=1).total()
    assert total.ours_ns >= 2 * 4 * 4096 * 1024 / MACHINE.dram_gbs


def test_a_gather_from_a_large_table_reads_little_of_it() -> None:
    text = "(int64[8] i) => (float[8,16] y) { g = Gather(t, i) y = Neg(g) }"
    assert comparison(text, lambda op: 100, {"t": normal(100_000, 16)}).total().ours_ns < 2000


def test_the_worse_of_one_and_all_threads_decides() -> None:
    def total(cores: int, units: int) -> Estimate:
        return comparison(MLP, peak, WEIGHTS, cores=cores, units=units).total()

    assert not total(1, 1).loses
    assert total(4, 1).loses, "a kernel of one unit keeps one thread busy while ORT has four"
    assert not total(4, 64).loses


def test_equal_questions_get_equal_answers() -> None:
    first, second = (comparison(MLP, peak, WEIGHTS) for _ in range(2))
    assert first.total() == second.total() and first.slow() == second.slow()


def test_a_device_costs_its_runs_its_copies_and_its_kernels() -> None:
    text, sizes = MLP.replace("float[N,256] y", "float[N,64] y"), sum(BATCH)
    found = comparison(text, peak, {"w": normal(256, 256), "v": normal(256, 64)}, hints={})

    def ours_ns(**other: Any) -> float:
        return found.on_device(["x"], ["y"], replace(ASSUMED, **other)).ours_ns

    usual, there_bytes, back_bytes = ours_ns(), 4 * 256 * sizes, 4 * 64 * sizes
    products_ns = 2 * (2 * 256 * 256 * sizes / 100)
    assert usual == pytest.approx(len(BATCH) * ASSUMED.run_ns + (there_bytes + back_bytes) / 12 + products_ns, rel=1e-3)
    assert ours_ns(run_ns=1e6) - usual == pytest.approx(len(BATCH) * (1e6 - ASSUMED.run_ns))
    assert ours_ns(kernels=3.0) - usual == pytest.approx(2 * products_ns, rel=1e-2)
    assert ours_ns(back_ns=((1 << 20, float(1 << 20)),)) - usual == pytest.approx(back_bytes - back_bytes / 12)


def test_our_own_kernels_on_the_processor_take_a_share_of_orts_time() -> None:
    found = comparison(MLP, peak, WEIGHTS)
    shares = [found.share_on_cpu(lambda op, ns=ns: ns) for ns in (0.0, 1e4, 1e5, 1e9, math.inf)]  # type: ignore[misc]
    assert 0 < shares[0] < shares[1] < shares[2] < 1 and shares[3:] == [1.0, 1.0], "what loses is ORT's"


def test_what_the_cpu_provider_cannot_run_is_known() -> None:
    def graph(kind: str) -> Graph:
        return graph_from_model(parse(f"({kind}[4] x) => ({kind}[4] y) {{ y = Add(x, x) }}"))

    assert cpu_cannot(graph("bfloat16"), [NodeId(0)])
    assert not cpu_cannot(graph("float"), [NodeId(0)])


@pytest.mark.parametrize(("ns", "text"), [(80.4, "0.0804 us"), (8130, "8.13 us"), (120_400, "120 us"), (2.34e6, "2.34 ms")])
def test_times_are_read_by_people(ns: float, text: str) -> None:
    assert time_text(ns) == text


def test_an_estimate_says_both_times() -> None:
    assert str(Estimate(ours_ns=120_000, ort_ns=80_000)) == "est. 120 us, ORT 80 us"
    placed = Estimate(ours_ns=120_000, ort_ns=80_000, at="batch=1, seq=128", threads=2)
    assert str(placed) == "est. 120 us, ORT 80 us at batch=1, seq=128 on 2 cores" and placed.loses
    gains = replace(placed, gain=1.25)
    assert str(gains) == f"{placed}, 1.2x over the sizes that are usual" and not gains.loses


def test_the_gain_is_that_over_all_sizes() -> None:
    """Faster with one row and slower with eight, the mean decides; a hint leaves one size."""

    def cost(op: CoreOp) -> Size:
        return op.domain[0] * op.domain[0] * slope if isinstance(op, Gemm) else 0

    def gain(**hints: int) -> float:
        found = comparison(MLP, cost, WEIGHTS, hints=hints).total()
        assert found.gain is not None and found.threads in (1, 2)
        return found.gain

    slope = 1_000
    few, usual, many = gain(N=1), gain(), gain(N=8)
    assert few > 1 > many and usual == pytest.approx((few * few * many) ** (1 / 3), rel=0.1)
    slope = 1_000_000
    assert gain() < 1 and comparison(MLP, cost, WEIGHTS, hints={}).total().loses


def test_what_people_see_is_of_one_point() -> None:
    """One core, and the size that kernels are chosen for; the parts are the whole."""
    found = comparison(MLP, peak, WEIGHTS, hints={}).typical()
    assert (found.at, found.threads) == ("N=1", 1) and len(found.ops_ns) == 2
    assert found.ours_ns == pytest.approx(ISLAND_NS + sum(found.ops_ns.values()))
    assert found.ours_ns == pytest.approx(ISLAND_NS + 2 * (STEP_NS + 2 * 256 * 256 // 100))
    known = comparison(MLP.replace("N", "8"), peak, WEIGHTS).typical()
    assert known.at == "" and known.ours_ns > found.ours_ns
