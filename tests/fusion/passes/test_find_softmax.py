"""Softmax that an exporter wrote out becomes part of attention; what is none stays."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.models.alternatives import OneIsland
from tests.support.models.model_text import check, normal, parse
from xyntra_ep.tracea.core_ir.ops import Attention

B, H, S, T, D, E = 2, 3, 4, 5, 8, 6
FEEDS = {"q": normal(B, H, S, D), "k": normal(B, H, T, D, seed=1), "v": normal(B, H, T, E, seed=2)}
LAST = np.asarray([-1], dtype=np.int64)
SCORES = "kt = Transpose<perm = [0,1,3,2]>(k) qk = MatMul(q, kt) s = Mul(qk, scale)"


def island(nodes: str, extra: str = "", **feeds: np.ndarray) -> OneIsland:
    constants = "<float scale = {0.35}, float one = {1.0}, float factor = {2.0}, float minus = {-3.0}>"
    inputs = f"float[B,H,S,8] q, float[B,H,T,8] k, float[B,H,T,6] v{extra}"
    model = parse(f"({inputs}) => (float[] y) {constants} {{ {SCORES} {nodes} y = MatMul(p, v) }}", last=LAST)
    return check(model, {**FEEDS, **feeds})


SHIFTED = "m = ReduceMax(s, last) d = Sub(s, m) e = Exp(d) t = ReduceSum(e, last)"


@pytest.mark.parametrize(
    "nodes",
    [
        f"{SHIFTED} p = Div(e, t)",
        f"{SHIFTED} r = Reciprocal(t) p = Mul(e, r)",
        f"{SHIFTED} r = Div(one, t) p = Mul(r, e)",
        "l = LogSoftmax<axis = -1>(s) p = Exp(l)",
        "m = ReduceMax(s, last) d = Sub(s, m) e = Exp(d) t = ReduceSum(e, last) l = Log(t) f = Sub(d, l) p = Exp(f)",
        "m = ReduceMax(s, last) d = Sub(s, m) f = Mul(d, factor) e = Exp(f) t = ReduceSum(e, last) p = Div(e, t)",
        "m = ReduceMax(s, last) n = Neg(m) d = Add(s, n) e = Exp(d) t = ReduceSum(e, last) p = Div(e, t)",
    ],
    ids=["divided", "reciprocal", "one over", "exp of LogSoftmax", "its logarithm", "scaled after the shift", "shift added"],
)
def test_it_is_attention(nodes: str) -> None:
    found = island(nodes)
    assert len(found.ops(Attention)) == 1 and len(found.program.ops) == 1


def test_with_a_mask() -> None:
    mask = np.where(np.arange(T) < 3, 0, -1e4).astype(np.float32).reshape(1, 1, 1, T)
    found = island(f"w = Add(s, mask) {SHIFTED.replace('(s', '(w')} p = Div(e, t)", ", float[1,1,1,T] mask", mask=mask)
    assert len(found.ops(Attention)) == 1


@pytest.mark.parametrize(
    "nodes",
    [
        "e = Exp(s) t = ReduceSum(e, last) p = Div(e, t)",  # overflows where softmax does not: another function in float32
        f"{SHIFTED} u = Add(t, one) p = Div(e, u)",
        "m = ReduceMin(s, last) d = Sub(s, m) e = Exp(d) t = ReduceSum(e, last) p = Div(e, t)",
        "m = ReduceMax(s, last) d = Sub(s, m) f = Mul(d, minus) e = Exp(f) t = ReduceSum(e, last) p = Div(e, t)",
        f"{SHIFTED} e2 = Mul(e, factor) p = Div(e2, t)",
    ],
    ids=["no shift", "one more", "the smallest", "turned round", "twice"],
)
def test_what_is_none_stays(nodes: str) -> None:
    assert not island(nodes).ops(Attention)


def test_the_rule_is_told() -> None:
    program = island(f"{SHIFTED} p = Div(e, t)").program
    [(rule, nodes)] = program.rules
    assert rule == "softmax.shifted" and set(nodes) < set(program.sources[0])
