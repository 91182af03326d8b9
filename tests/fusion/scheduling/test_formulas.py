"""Masks as formulas: those that are computed from positions, and those that are constants with the contents of a triangle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.support.models.alternatives import OneIsland, one_island
from tests.support.models.graph_from_model import trace_model
from tests.support.models.model_text import Array, check, normal, parse
from xyntra_ep.fusion.schedule import build_program
from xyntra_ep.fusion.scheduling.formulas import Band, band
from xyntra_ep.tracea.core_ir.dims import Size, evaluate
from xyntra_ep.tracea.core_ir.ops import Attention
from xyntra_ep.tracea.kernels.shared.causal_mask import CausalMask, find_causal, find_causal_sum
from xyntra_ep.tracea.kernels.shared.column_bounds import ROW, Bounds
from xyntra_zoo import zoo
from xyntra_zoo.params import RandomParams

LOWEST = float(np.finfo(np.float32).min)
B, H, S, D = 2, 3, 5, 8
TABLE = np.tri(16, dtype=bool)
SIZES = """ks = Shape<start = 2, end = 3>(k) qs = Shape<start = 2, end = 3>(q) before = Sub(ks, qs)"""
# As GPT-2 has it: the table's rows from past to past + S, its columns up to there.
ROWS = f"{SIZES} rows = Slice(table, before, ks, two) m = Slice(rows, zero, ks, three)"
NUMBERS = """<int64[1] zero = {0}, int64[1] two = {2}, int64[1] three = {3}, float low = {-3.4028235e38}, float none = {0.0},
    float c1 = {1.0}, float c4 = {10000.0}>"""


def attention(
    nodes: str, extra: str = "", feeds: Mapping[str, Array] | None = None, past: int = 0, **constants: Any
) -> OneIsland:
    """Of x to the past and itself, by ``nodes`` from the scores s to what the softmax takes, w; as ONNX Runtime has it."""
    model = parse(
        f"""(float[B,3,S,8] q, float[B,3,T,8] k{extra}) => (float[] y) {NUMBERS}
        {{ kt = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, kt) {nodes} p = Softmax<axis = -1>(w) y = MatMul(p, k) }}""",
        **constants,
    )
    return check(model, {"q": normal(B, H, S, D), "k": normal(B, H, S + past, D, seed=1), **(feeds or {})})


def mask_of(island: OneIsland) -> tuple[CausalMask | None, int]:
    """The causal mask of its attention, and how many operands the score reads."""
    (op,) = island.ops(Attention)
    return find_causal(op.score), len(op.inputs) - 3


def reach_of(mask: CausalMask) -> Size:
    """Row s sees the columns below s + this, and no other bound."""
    [end] = mask.bounds.ends
    assert end.query is ROW and not mask.bounds.begins
    reach: Size = end.offset.attr
    return reach


def again(found: Band, rows: int, columns: int) -> Array:
    gap = np.arange(columns) - np.arange(rows)[:, None]
    begin = -rows if found.begin is None else found.begin
    table: Array = np.where((begin <= gap) & (gap < found.end), found.inside, found.outside)
    return table


class TestBands:
    def test_along_the_diagonal(self) -> None:
        for rows, columns in ((6, 6), (4, 9), (9, 4)):
            for begin in range(2 - rows, columns - 1):
                for end in range(begin + 1, columns):
                    table = np.tri(rows, columns, end - 1, dtype=bool) & ~np.tri(rows, columns, begin - 1, dtype=bool)
                    found, opposite = band(table), band(~table)
                    assert found == Band(begin=begin, end=end, inside=True, outside=False), (rows, columns, begin, end)
                    assert opposite == Band(begin=begin, end=end, inside=False, outside=True)
                    np.testing.assert_array_equal(again(found, rows, columns), table)

    def test_where_the_diagonal_may_be(self) -> None:
        for rows, columns in ((4, 4), (3, 7), (7, 3), (1, 5), (5, 1)):
            for k in range(-rows, columns + 1):
                table = np.tri(rows, columns, k, dtype=bool)
                found = band(table)
                if table.all() or not table.any():
                    assert found is None
                    continue
                assert found is not None
                np.testing.assert_array_equal(again(found, rows, columns), table)

    def test_of_any_two_values(self) -> None:
        assert band(np.where(np.tri(4, dtype=bool), np.float32(0), np.float32(-np.inf))) == Band(
            end=1, inside=0.0, outside=-np.inf
        )
        found = band(np.triu(np.ones((4, 4), np.int64), 2))
        assert found == Band(end=2, inside=0, outside=1)
        assert band(np.where(np.tri(4, dtype=bool), np.float16(np.nan), np.float16(0))) is not None

    def test_what_is_none(self) -> None:
        for place in np.ndindex(4, 5):
            table = np.tri(4, 5, 1, dtype=bool)
            table[place] = not table[place]
            found = band(table)
            assert found is None or place[0] in (0, 3), place  # a row less or more may be a triangle as well, or a band
            if found is not None:
                np.testing.assert_array_equal(again(found, 4, 5), table)
        signed = np.where(np.tri(4, dtype=bool), np.float32(0), np.float32(1))
        signed[2, 1] = -0.0
        assert band(signed) is None
        assert band(np.zeros((4, 4))) is None
        assert band(np.tri(4)[::-1]) is None
        assert band(np.zeros((0, 4))) is None


class TestTables:
    @pytest.mark.parametrize("past", [0, 4])
    def test_sliced_by_the_length_of_the_past(self, past: int) -> None:
        island = attention(f"{ROWS} w = Where(m, s, low)", past=past, table=TABLE[None, None])
        mask, reads = mask_of(island)
        assert mask is not None and mask.masked == LOWEST and reads == 0
        assert evaluate(reach_of(mask), {"d0_2": S + past, "d1_2": S}) == past + 1

    def test_plans_depend_on_what_is_in_them(self) -> None:
        yes, no = np.tri(40, dtype=bool), ~np.eye(40, dtype=bool)
        for table, depends in ((yes, {"table"}), (no, {"table"}), (yes.astype(np.float32), {"table"}), (normal(40, 40), set())):
            model = parse(
                f"""(float[B,3,S,8] q, float[B,3,T,8] k) => (float[] y) {NUMBERS}
                {{ kt = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, kt) {ROWS} c = Cast<to = 9>(m) w = Where(c, s, low)
                   p = Softmax<axis = -1>(w) y = MatMul(p, k) }}""",
                table=table[None, None],
            )
            graph, context = trace_model(model)
            inputs, _ = graph.boundary([n.id for n in graph.nodes])
            build_program(context, inputs, ["y"])
            assert context.depends == depends

    def test_one_that_is_no_triangle_is_read(self) -> None:
        table = TABLE.copy()
        table[3, 1] = False
        mask, reads = mask_of(attention(f"{ROWS} w = Where(m, s, low)", table=table[None, None]))
        assert mask is None and reads == 1

    def test_the_upper_half_says_what_is_hidden(self) -> None:
        island = attention(f"{ROWS} w = Where(m, low, s)", past=4, table=~TABLE[None, None])
        assert mask_of(island)[0] is not None
        island = attention(f"{ROWS} n = Not(m) w = Where(n, s, low)", past=4, table=~TABLE[None, None])
        assert mask_of(island)[0] is not None

    def test_of_bytes_and_of_numbers(self) -> None:
        for table, nodes in (
            (TABLE.astype(np.uint8), "c = Cast<to = 9>(m) w = Where(c, s, low)"),
            (TABLE.astype(np.float32), "c = Equal(m, none) w = Where(c, low, s)"),
        ):
            mask, reads = mask_of(attention(f"{ROWS} {nodes}", past=4, table=table[None, None]))
            assert mask is not None and reads == 0

    def test_of_rank_two(self) -> None:
        mask, reads = mask_of(attention("w = Where(table, s, low)", table=np.tri(S, dtype=bool)))
        assert mask is not None and reach_of(mask) == 1 and reads == 0

    @pytest.mark.parametrize("past", [0, 4])
    def test_a_window_before_the_diagonal(self, past: int) -> None:
        """As a condition, and as numbers that are added."""
        window = np.tri(16, dtype=bool) & np.triu(np.ones((16, 16), bool), -2)
        as_numbers = np.where(window, 0, -np.inf).astype(np.float32)
        for nodes, table in (("w = Where(m, s, low)", window), ("w = Add(s, m)", as_numbers)):
            island = attention(f"{ROWS} {nodes}", past=past, table=table[None, None])
            (op,) = island.ops(Attention)
            mask = find_causal_sum(op.score, D)
            assert mask is not None and len(op.inputs) == 3
            [begin], [end] = mask.bounds.begins, mask.bounds.ends
            sizes = {"d0_2": S + past, "d1_2": S}
            assert begin.query is ROW and end.query is ROW
            assert [evaluate(bound.offset.attr, sizes) for bound in (begin, end)] == [past - 2, past + 1]

    def test_of_every_head_is_read(self) -> None:
        table = np.stack([np.tri(16, dtype=bool)] * H)[None]
        mask, reads = mask_of(attention(f"{ROWS} w = Where(m, s, low)", table=table))
        assert mask is None and reads == 1

    def test_turned_is_a_mask_of_the_future(self) -> None:
        """Row t sees what comes after it: what is left out lies before it."""
        turned = "u = Transpose<perm = [0,1,3,2]>(m) w = Where(u, s, low)"
        mask, reads = mask_of(attention(f"{ROWS} {turned}", table=TABLE[None, None]))
        assert mask is not None and reads == 0 and not mask.bounds.ends
        assert [begin.query for begin in mask.bounds.begins] == [ROW]

    def test_beside_a_mask_of_padding(self) -> None:
        padding = np.arange(S + 4)[None, None, None] < np.asarray([9, 6])[:, None, None, None]
        for nodes in (
            "both = And(m, f) w = Where(both, s, low)",
            "a = Where(m, s, low) w = Where(f, a, low)",
            "a = Where(f, s, low) w = Where(m, a, low)",
        ):
            island = attention(f"{ROWS} {nodes}", ", bool[B,1,1,T] f", {"f": padding}, 4, table=TABLE[None, None])
            mask, reads = mask_of(island)
            assert mask is not None and reads == 1 and "in3" in repr(mask.visible), nodes

    def test_beside_a_mask_that_puts_another_number(self) -> None:
        padding = np.arange(S)[None, None, None] < np.asarray([5, 3])[:, None, None, None]
        nodes = f"{ROWS} a = Where(m, s, low) w = Where(f, a, other)"
        island = attention(nodes, ", bool[B,1,1,T] f", {"f": padding}, table=TABLE[None, None], other=np.float32(-1e4))
        assert mask_of(island)[0] is None


class TestEdges:
    """What several layers read is read; what is beyond its edge is known."""

    LAYERS = """kt = Transpose<perm = [0,1,3,2]>(k) {mask} s = MatMul(q, kt) w = {apply} p = Softmax<axis = -1>(w)
        o = MatMul(p, k) s2 = MatMul(o, kt) w2 = {again} p2 = Softmax<axis = -1>(w2) y = MatMul(p2, k)"""

    def layers(self, mask: str, apply: str) -> list[Attention]:
        nodes = self.LAYERS.format(mask=f"{ROWS} {mask}", apply=apply, again=apply.replace("s,", "s2,"))
        model = parse(
            f"(float[B,3,S,8] q, float[B,3,T,8] k, bool[B,1,1,T] f) => (float[] y) {NUMBERS} {{ {nodes} }}",
            table=TABLE[None, None],
        )
        padding = np.arange(S + 4)[None, None, None] < np.asarray([9, 6])[:, None, None, None]
        feeds = {"q": normal(B, H, S, D), "k": normal(B, H, S + 4, D, seed=1), "f": padding}
        return check(model, feeds).ops(Attention)

    def test_of_conditions(self) -> None:
        for mask, apply in (
            ("both = And(f, m)", "Where(both, s, low)"),
            ("n = Not(f) l = Not(m) both = Or(l, n)", "Where(both, low, s)"),
        ):
            for op in self.layers(mask, apply):
                found = find_causal(op.score)
                assert found is not None and found.masked == LOWEST and len(op.inputs) == 4, (mask, op.score)

    def test_of_what_is_added(self) -> None:
        for value in ("low", "none"):  # -3.4e38 beyond it, or nothing: then there is no mask
            for op in self.layers(f"both = And(f, m) a = Where(both, none, {value})", "Add(s, a)"):
                found = find_causal_sum(op.score, D)
                assert find_causal(op.score) is None and len(op.inputs) == (4 if value == "low" else 3)
                assert (found is not None) == (value == "low")

    def test_of_what_is_not_stored_as_it_is_computed(self) -> None:
        """-2.5e9 is minus infinity where it is stored as float16."""
        nodes = self.LAYERS.format(
            mask=f"{ROWS} both = And(f, m) a0 = Where(both, none, low) a1 = Mul(a0, low) a = Mul(a1, high)",
            apply="Add(s, a)",
            again="Add(s2, a)",
        )
        values = {"none": 0, "low": -5e4, "high": -1}
        for dtype, known in ((np.float16, False), (np.float32, True)):
            name = {np.float16: "float16", np.float32: "float"}[dtype]
            model = parse(
                f"({name}[B,3,S,8] q, {name}[B,3,T,8] k, bool[B,1,1,T] f) => ({name}[] y) "
                f"<int64[1] zero = {{0}}, int64[1] two = {{2}}, int64[1] three = {{3}}> {{ {nodes} }}",
                table=TABLE[None, None],
                **{key: np.asarray(value, dtype) for key, value in values.items()},
            )
            (op, _) = one_island(model).ops(Attention)
            assert len(op.inputs) == 4 and (find_causal_sum(op.score, D) is not None) == known

    def test_of_numbers_made_of_conditions(self) -> None:
        """(1 - mask) * -10000"""
        for op in self.layers("both = And(f, m) c = Cast<to = 1>(both) d = Sub(c, c1) a = Mul(d, c4)", "Add(s, a)"):
            assert find_causal_sum(op.score, D) is not None


class TestComputed:
    def test_by_comparing_positions(self) -> None:
        nodes = f"""{SIZES} kn = Squeeze(ks) bn = Squeeze(before) from = Range(bn, kn, step) here = Unsqueeze(from, one)
          all = Range(nil, kn, step) m = LessOrEqual(all, here) w = Where(m, s, low)"""
        numbers: dict[str, Any] = {"nil": np.int64(0), "step": np.int64(1), "one": np.asarray([1], np.int64)}
        mask, reads = mask_of(attention(nodes, past=4, **numbers))
        assert mask is not None and reads == 0

    def test_by_cutting_ones(self) -> None:
        nodes = """st = Shape<start = 2>(s) ones = Expand(one, st) tri = Trilu<upper = 0>(ones) keep = Cast<to = 9>(tri)
            w = Where(keep, s, low)"""
        mask, reads = mask_of(attention(nodes, one=np.float32(1)))
        assert mask is not None and reads == 0


@pytest.mark.parametrize(("name", "reach"), [("gpt2-prefill-tiny", 1), ("gpt2-generate-tiny", 34), ("gpt2-decode-tiny", None)])
def test_gpt2(name: str, reach: int | None) -> None:
    """The one row of a decode step sees all columns; no table is read either."""
    island = one_island(zoo[name].build(RandomParams(0)))
    symbols = island.symbols(zoo[name].feeds(2, 33, 0) | ({} if reach == 1 else zoo["gpt2-decode-tiny"].feeds(2, 33, 0)))
    ops = island.ops(Attention)
    assert len(ops) == 2
    for op in ops:
        mask = find_causal(op.score)
        assert mask is not None and len(op.inputs) == 3
        assert reach is None or evaluate(reach_of(mask), symbols) == reach
        assert (mask.bounds.without_idle(op.inputs[1].shape[2]) == Bounds()) == (reach is None)
