"""Low-rank factors become part of the product that they are added to, however that was written; nothing else does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest

from tests.support.models.alternatives import OneIsland, one_island
from tests.support.models.graph_from_model import graph_from_model
from tests.support.models.model_text import Array, check, close, cpu, normal, parse
from xyntra_ep.fusion.passes import Target
from xyntra_ep.fusion.passes.merge_low_rank import CONTINUED, FOLDED
from xyntra_ep.fusion.schedule import build_program
from xyntra_ep.fusion.trace import trace
from xyntra_ep.tracea.core_ir.ops import Gemm, LowRankGemm, Product
from xyntra_ep.tracea.planning.constants import constant_ops, live_ops
from xyntra_ep.tracea.planning.legality import check_program

K, R, N = 12, 3, 7
STRICT = Target(product=Product.F32, halves=frozenset(), strict=True, continues_sums=True)
FEEDS = {"x": normal(2, 5, K)}
MATRICES = {
    "W": normal(K, N, seed=1),
    "A": normal(K, R, seed=2),
    "B": normal(R, N, seed=3),
    "A2": normal(K, R + 2, seed=4),
    "B2": normal(R + 2, N, seed=5),
    "b": normal(N, seed=6),
    "s": np.float32(0.25),
    "Wt": normal(N, K, seed=7),
    "At": normal(R, K, seed=8),
    "Bt": normal(N, R, seed=9),
    "rows": np.array([-1, K]),
    "back": np.array([2, 5, N]),
}
TAIL = "t = MatMul(x, A) u = MatMul(t, B)"
FORMS = {
    "plain": f"p = MatMul(x, W) {TAIL} y = Add(p, u)",
    "peft": f"p = MatMul(x, W) q = Add(p, b) {TAIL} v = Mul(u, s) y = Add(q, v)",
    "first": f"p = MatMul(x, W) {TAIL} v = Mul(s, u) q = Add(v, p) y = Add(b, q)",
    "scaled x": "p = MatMul(x, W) z = Mul(x, s) t = MatMul(z, A) u = MatMul(t, B) y = Add(p, u)",
    "both scaled": "z = Mul(x, s) p = MatMul(z, W) t = MatMul(z, A) u = MatMul(t, B) v = Mul(u, s) y = Add(p, v)",
    "scaled between": "p = MatMul(x, W) t = MatMul(x, A) z = Div(t, s) u = MatMul(z, B) y = Sub(p, u)",
    "scaled base": f"p = MatMul(x, W) q = Mul(p, s) {TAIL} y = Sub(u, q)",
    "residual": f"p = MatMul(x, W) {TAIL} q = Add(p, u) h = Tanh(p0) y = Add(h, q)",
    "transposed": "w = Transpose(Wt) a = Transpose(At) c = Transpose(Bt) p = MatMul(x, w) t = MatMul(x, a) u = MatMul(t, c) "
    "v = Mul(u, s) y = Add(p, v)",
    "gemm": "f = Reshape(x, rows) p = Gemm<transB=1>(f, Wt, b) t = Gemm<transB=1>(f, At) u = Gemm<transB=1, alpha=0.5>(t, Bt) "
    "q = Add(p, u) y = Reshape(q, back)",
    "rows and stacks": "f = Reshape(x, rows) p = Gemm(f, W, b) q = Reshape(p, back) t = MatMul(x, A) u = MatMul(t, B) "
    "v = Mul(u, s) y = Add(q, v)",
    "added by Gemm": "f = Reshape(x, rows) p = MatMul(f, W) t = MatMul(f, A) q = Gemm<alpha=2.0, beta=0.5>(t, B, p) "
    "y = Reshape(q, back)",
    "activation": f"p = MatMul(x, W) q = Add(p, b) {TAIL} v = Mul(u, s) z = Add(q, v) y = Sigmoid(z)",
}  # fmt: skip


def model(nodes: str, inputs: str = "") -> onnx.ModelProto:
    words = set(nodes.replace("(", " ").replace(")", " ").replace(",", " ").split())
    given = {name: array for name, array in MATRICES.items() if name in words and f" {name}" not in inputs}
    more = f", float[2, 5, {N}] p0" if "p0" in words else ""
    return parse(f"(float[2, 5, {K}] x{more}{inputs}) => (float[2, 5, {N}] y) {{ {nodes} }}", **given)


def feeds_of(nodes: str) -> dict[str, Array]:
    return FEEDS | ({"p0": normal(2, 5, N, seed=10)} if "p0" in nodes else {})


def run_products(island: OneIsland) -> list[Gemm]:
    """Those that are carried out when the island runs."""
    program = island.program
    once, _ = constant_ops(program, live_ops(program))
    return [op for i, op in enumerate(program.ops) if isinstance(op, Gemm) and i not in once]


def island_for(made: onnx.ModelProto, target: Target) -> OneIsland:
    graph = graph_from_model(made)
    everything = [n.id for n in graph.nodes]
    inputs, _ = graph.boundary(everything)
    program = build_program(trace(graph, everything, inputs, True), inputs, [o.name for o in made.graph.output], target=target)
    check_program(program)
    return OneIsland(graph, program, tuple(inputs))


@pytest.mark.parametrize("form", FORMS)
def test_constant_factors_are_folded(form: str) -> None:
    island = check(model(FORMS[form]), feeds_of(FORMS[form]), 2e-6)
    [product] = run_products(island)
    assert type(product) is Gemm and FOLDED in {text for text, _ in island.program.remarks}


@pytest.mark.parametrize("form", FORMS)
def test_strict_ones_go_on_with_the_sums(form: str) -> None:
    made, feeds = model(FORMS[form]), feeds_of(FORMS[form])
    island = island_for(made, STRICT)
    close(island.run(feeds), cpu(made, feeds), 2e-6)
    inner, product = run_products(island)
    assert type(inner) is Gemm and isinstance(product, LowRankGemm) and product.rank == R
    assert CONTINUED in {text for text, _ in island.program.remarks}


def test_factors_that_a_run_brings_go_on_with_the_sums() -> None:
    made = model(FORMS["peft"], f", float[{K}, {R}] A, float[{R}, {N}] B")
    feeds = FEEDS | {"A": normal(K, R, seed=2), "B": normal(R, N, seed=3)}
    island = island_for(made, replace(STRICT, strict=False))
    close(island.run(feeds), cpu(made, feeds), 2e-6)
    assert [type(op) for op in run_products(island)] == [Gemm, LowRankGemm]
    assert [type(op) for op in run_products(one_island(made))] == [Gemm, Gemm, Gemm], "a target that cannot goes without"


@pytest.mark.parametrize("sums", ["q = Add(p, u) y = Add(q, v2)", "q = Add(u, v2) y = Add(p, q)"])
def test_several_adapters_of_one_product(sums: str) -> None:
    nodes = f"p = MatMul(x, W) {TAIL} t2 = MatMul(x, A2) u2 = MatMul(t2, B2) v2 = Mul(u2, s) {sums}"
    assert len(run_products(check(model(nodes), FEEDS, 2e-6))) == 1


def test_projections_with_adapters_are_joined() -> None:
    nodes = (
        f"p = MatMul(x, W) p1 = Add(p, b) {TAIL} q = Add(p1, u) k = MatMul(x, W) k1 = Add(k, b) "
        "t2 = MatMul(x, A2) u2 = MatMul(t2, B2) k2 = Add(k1, u2) q1 = Reshape(q, back) k3 = Reshape(k2, back) y = Mul(q1, k3)"
    )
    island = check(model(nodes), FEEDS, 4e-6)
    assert len(run_products(island)) <= 2 and {type(op) for op in run_products(island)} == {Gemm}


def test_two_products_are_one_where_that_is_less_work() -> None:
    many = {"A": normal(K, 20, seed=2), "B": normal(20, N, seed=3)}
    island = check(parse(f"(float[2, 5, {K}] x) => (float[2, 5, {N}] y) {{ {TAIL} }}".replace("u =", "y ="), **many), FEEDS, 4e-6)
    assert len(run_products(island)) == 1
    few = {"A": normal(K, 2, seed=2), "B": normal(2, N, seed=3)}
    island = check(parse(f"(float[2, 5, {K}] x) => (float[2, 5, {N}] y) {{ {TAIL} }}".replace("u =", "y ="), **few), FEEDS)
    assert len(run_products(island)) == 2


LEFT_APART = {
    "the base has another reader": f"p = MatMul(x, W) h = Tanh(p) {TAIL} q = Add(p, u) y = Add(q, h)",
    "an activation between": "p = MatMul(x, W) t = MatMul(x, A) r = Relu(t) u = MatMul(r, B) y = Add(p, u)",
    "another input": "z = Tanh(x) p = MatMul(z, W) t = MatMul(x, A) u = MatMul(t, B) y = Add(p, u)",
    "multiplied": f"p = MatMul(x, W) {TAIL} y = Mul(p, u)",
    "an activation before the sum": f"p = MatMul(x, W) h = Tanh(p) {TAIL} y = Add(h, u)",
}


@pytest.mark.parametrize("why", LEFT_APART)
def test_what_only_looks_like_it_stays_apart(why: str) -> None:
    made = model(LEFT_APART[why])
    assert len(run_products(check(made, FEEDS, 2e-6))) == 3
    assert not island_for(made, STRICT).ops(LowRankGemm)


def test_one_row_is_not_repeated_into_the_other() -> None:
    """x of one row beside a sum over several: the base is as wide as the sum, the adapter is not."""
    nodes = "p = MatMul(x, W) f = ReduceSum(x, axis) t = MatMul(f, A) u = MatMul(t, B) y = Add(p, u)"
    given = {name: MATRICES[name] for name in ("W", "A", "B")} | {"axis": np.array([1])}
    made = parse(f"(float[2, 5, {K}] x) => (float[2, 5, {N}] y) {{ {nodes} }}", **given)
    assert len(run_products(check(made, FEEDS, 2e-6))) == 3


def test_what_is_an_output_too_is_still_computed() -> None:
    nodes = f"p = MatMul(x, W) {TAIL} y = Add(p, u)"
    given = {name: MATRICES[name] for name in ("W", "A", "B")}
    inner = parse(f"(float[2, 5, {K}] x) => (float[2, 5, {N}] y, float[2, 5, {R}] t) {{ {nodes} }}", **given)
    assert len(run_products(check(inner, FEEDS, 2e-6))) == 2
    outer = parse(f"(float[2, 5, {K}] x) => (float[2, 5, {N}] y, float[2, 5, {N}] u) {{ {nodes} }}", **given)
    assert len(run_products(check(outer, FEEDS, 2e-6))) == 3


@pytest.mark.parametrize("scale", [1.0, 1e3, -1.0])
def test_both_ways_keep_to_one_bound(scale: float) -> None:
    """Against float64: of W beside A B, of a much larger A B, and where they cancel. docs/low-rank.md has the bound."""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((64, 256)).astype(np.float32), rng.standard_normal((256, 48)).astype(np.float32)
    a, b = rng.standard_normal((256, 8)).astype(np.float32), rng.standard_normal((8, 48)).astype(np.float32)
    w = (a @ b).astype(np.float32) if scale < 0 else w
    factor = np.float32(scale)
    exact = x.astype(np.float64) @ (w.astype(np.float64) + scale * (a.astype(np.float64) @ b.astype(np.float64)))
    largest = np.abs(x) @ (np.abs(w) + abs(factor) * (np.abs(a) @ np.abs(b)))
    bound = (256 + 8 + 3) * np.finfo(np.float32).eps / 2 * largest
    assert (np.abs(x @ w + factor * ((x @ a) @ b) - exact) <= bound).all()
    assert (np.abs(x @ (w + factor * (a @ b)) - exact) <= bound).all()
