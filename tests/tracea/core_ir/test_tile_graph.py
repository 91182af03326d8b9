"""Tile graphs: dense, by rows, by masks and by hand; what makes one illegal; the map that kernels read; bounds and lists of
kernels agree with them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import acc, axis, call, const, load, size
from xyntra_ep.tracea.core_ir.tile_graph import ROLES, Role, Tile, TileGraph, TileGraphBuilder
from xyntra_ep.tracea.kernels.shared.causal_mask import find_causal
from xyntra_ep.tracea.kernels.shared.column_bounds import Bounds


def random_masks() -> Iterator[np.ndarray]:
    rng = np.random.default_rng(3)
    for m, k in ((1, 1), (5, 7), (16, 32), (33, 17), (0, 4), (4, 0)):
        for density in (0.0, 0.05, 0.5, 1.0):
            yield rng.random((m, k)) < density


def test_every_mask_makes_a_legal_graph_that_keeps_what_is_needed() -> None:
    for visible in random_masks():
        m, k = visible.shape
        graph = TileGraphBuilder(m, 10, k, tile=(8, 4, 8)).build_mask(visible)
        assert not list(graph.problems(visible)), visible.shape
        for tile in graph.tiles:
            inside = visible[tile.region_m.begin : tile.region_m.end, tile.k_start : tile.k_end]
            assert inside.any() or tile.k_start == tile.k_end
            assert (tile.role is Role.MASKED) == (inside.any() and not inside.all())
        counted = sum(t.terms for t in graph.tiles)
        assert graph.share == counted / max(1, m * 10 * k)


def test_dense() -> None:
    graph = TileGraphBuilder(20, 8, 33, tile=(8, 8, 16)).build_dense()
    assert not list(graph.problems(np.ones((20, 33), bool))) and graph.share == 1.0
    assert len(graph.tiles) == 3 * 3 and sum(t.role is Role.BOUNDARY for t in graph.tiles) == 3 + 2
    assert graph.dependencies[:4] == [None, 0, 1, None]


def test_sums_of_a_graph_are_those_of_the_product() -> None:
    """Tile after tile, as a kernel adds them."""
    rng = np.random.default_rng(5)
    visible = rng.random((37, 50)) < 0.1
    weights, values = np.where(visible, rng.standard_normal((37, 50)), 0.0), rng.standard_normal((50, 12))
    graph = TileGraphBuilder(37, 12, 50, tile=(8, 8, 8)).build_mask(visible)
    out = np.full((37, 12), np.nan)
    for tile, before in zip(graph.tiles, graph.dependencies, strict=True):
        rows, columns = (slice(r.begin, r.end) for r in (tile.region_m, tile.region_n))
        part = weights[rows, tile.k_start : tile.k_end] @ values[tile.k_start : tile.k_end, columns]
        out[rows, columns] = part if before is None else out[rows, columns] + part
    assert np.allclose(out, weights @ values)


def test_by_hand() -> None:
    builder = TileGraphBuilder(4, 4, 6)
    builder.add_tile((0, 4), (0, 2), 0, 3).add_tile((0, 4), (2, 4), 3, 6, Role.MASKED).add_tile((0, 4), (0, 2), 4, 6)
    graph = builder.build_sparse()
    assert graph.dependencies == [None, 0, None] and graph.share == pytest.approx((24 + 24 + 16) / 96)
    with pytest.raises(ValueError, match="only build_sparse"):
        builder.build_dense()


@pytest.mark.parametrize(
    ("tiles", "problem"),
    [
        ([((0, 2), (0, 4), 0, 6)], r"element \(2, 0\) is written never"),
        ([((0, 4), (0, 4), 0, 3), ((0, 4), (0, 4), 2, 6)], "terms 2:3 of 0:4 x 0:4 are counted twice"),
        ([((0, 4), (0, 4), 0, 6), ((1, 2), (3, 4), 0, 6)], r"element \(1, 3\) is written more than once"),
        ([((0, 5), (0, 4), 0, 6)], "rectangle 0:5 x 0:4 is not inside 4 x 4"),
        ([((0, 4), (0, 4), 0, 7)], "terms 0:7 of 0:4 x 0:4 are not inside 6"),
    ],
)
def test_illegal_graphs(tiles: list[tuple[tuple[int, int], tuple[int, int], int, int]], problem: str) -> None:
    builder = TileGraphBuilder(4, 4, 6)
    for tile in tiles:
        builder.add_tile(*tile)
    with pytest.raises(ValueError, match=problem):
        builder.build_sparse()


def test_a_term_that_is_left_out_shows() -> None:
    needed = np.zeros((4, 6), bool)
    needed[3, 5] = True
    graph = TileGraphBuilder(4, 4, 6).add_tile((0, 4), (0, 4), 0, 5).build_sparse()
    assert list(graph.problems(needed)) == ["term 5 of 0:4 x 0:4 is left out"]


def test_the_map() -> None:
    visible = np.zeros((5, 20), bool)
    visible[0, [0, 9, 19]] = visible[4, 3] = True
    graph = TileGraphBuilder(5, 6, 20, tile=(2, 3, 4)).build_mask(visible)
    found = graph.compressed()
    assert found.pointers.tolist() == [0, 3, 6, 6, 6, 7, 8] and found.columns.tolist() == [0, 2, 4] * 2 + [0, 0]
    assert {ROLES[r] for r in found.roles} == {Role.MASKED}
    assert found.spans()[0] == [(0, 4), (8, 12), (16, 20)] and found.spans()[2] == []
    odd = TileGraph(5, 6, 20, (2, 3, 4), (*graph.tiles, Tile(graph.tiles[0].region_m, graph.tiles[0].region_n, 1, 5, Role.MAIN)))
    with pytest.raises(ValueError, match="is not on the grid"):
        odd.compressed()


def bounds_of(rows: int, columns: int) -> list[tuple[Bounds, np.ndarray]]:
    """Masks as formulas, and what they let rows see."""
    s, t = np.arange(rows)[:, None], np.arange(columns)
    low, row, column = const(-np.inf), axis(2), axis(3)
    cases = [
        (call("le", column, call("add", row, size(3))), t <= s + 3),
        (call("and", call("le", column, row), call("lt", call("sub", row, const(4)), column)), (t <= s) & (s - 4 < t)),
        (call("le", column, call("mod", row, const(6))), t <= s % 6),
    ]
    found = []
    for condition, seen in cases:
        mask = find_causal(call("where", condition, acc(), low))
        assert mask is not None
        found.append((mask.bounds, np.broadcast_to(seen, (rows, columns))))
    return found


def test_bounds_are_the_graph_of_their_mask() -> None:
    for rows, columns in ((1, 1), (12, 12), (30, 20), (7, 40)):
        for bounds, seen in bounds_of(rows, columns):
            builder = TileGraphBuilder(rows, 1, columns, tile=(4, 1, 8))
            graph = builder.build_rows(*(x.tolist() for x in bounds.spans(rows, columns)))
            assert graph == builder.build_mask(seen) and not list(graph.problems(seen))
            assert bounds.share(rows, columns) == pytest.approx(seen.mean())


def test_what_is_read_counts_as_the_keys_before() -> None:
    """A cache of 30 keys, of which the last 10 are new, and a window of 8."""
    last = call("add", axis(2), load(3, axis(0), dtype=DType.I64))
    seen = call("and", call("le", axis(3), last), call("lt", call("sub", last, const(8)), axis(3)))
    mask = find_causal(call("where", seen, acc(), const(-np.inf)))
    assert mask is not None
    begin, end = mask.bounds.spans(10, 30)
    assert end.tolist() == list(range(21, 31)) and (end - begin == 8).all()
