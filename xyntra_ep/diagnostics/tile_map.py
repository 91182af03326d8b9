"""Maps of tiles: which tiles of each attention's scores exist, and what its kernel has to look at in them.

tile_maps(explain("model.onnx")) -> a page with one picture for each kind of attention

A picture has a rectangle for each tile of the graph (`tracea/core_ir/tile_graph.py`), in the colour of its role. Where there are
no rectangles the mask hides everything, and kernels compute nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import reduce
from html import escape
from typing import Any

import numpy as np

from xyntra_ep.diagnostics.explain import Explanation
from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea.core_ir.tile_graph import Role, TileGraph, TileGraphBuilder
from xyntra_ep.tracea.kernels.shared.column_bounds import on_line
from xyntra_ep.wording import counted

_MOST = 64  # tiles side by side in a picture: of more, several are drawn as one
_SIDE = 512.0
_ROLES = {  # what is said of each, its colour on light and on dark
    Role.MAIN: ("every score counts", "#0072b2", "#4fb0e8"),
    Role.BOUNDARY: ("the same, at the edge of the matrix", "#009e73", "#35d0a2"),
    Role.MASKED: ("some scores are hidden", "#e69f00", "#f5bd3d"),
}
_LIGHT, _DARK = (";".join(f"--{role}:{colours[i]}" for role, colours in _ROLES.items()) for i in (1, 2))
_STYLE = f""":root{{color-scheme:light dark;--paper:#fffffe;--ink:#1b1f24;--grid:#d4d9df;{_LIGHT}}}
@media (prefers-color-scheme:dark){{:root{{--paper:#14181d;--ink:#e6e9ed;--grid:#3a424b;{_DARK}}}}}
body{{margin:0 auto;max-width:60rem;padding:1rem;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}}
svg{{max-width:100%;height:auto}}.scores{{fill:none;stroke:var(--grid)}}.tile{{stroke:var(--paper);stroke-width:.5}}
i{{display:inline-block;width:.8em;height:.8em}}
{"".join(f".{role}{{fill:var(--{role})}}i.{role}{{background:var(--{role})}}" for role in _ROLES)}"""


def tile_maps(found: Explanation) -> str:
    """Raises ConfigError for a model without attention."""
    kinds: Counter[tuple[str, str]] = Counter()
    drawn: dict[tuple[str, str], str] = {}
    for graph in found.graphs:
        for kernel in (k for island in graph.islands for k in island.usual if k.tiles is not None):
            assert kernel.tiles is not None
            tiles = graph_of(kernel.tiles)
            text = f"{kernel.label} by {kernel.variant}, {tiles.m} rows of queries x {tiles.k} keys, drawn in tiles of "
            text += f"{tiles.tile[0]} x {tiles.tile[2]}: {tiles.share:.0%} of them exist. {'; '.join(kernel.notes)}"
            key = (text, repr(kernel.tiles))
            kinds[key] += 1
            drawn[key] = picture(tiles)
    if not drawn:
        raise ConfigError("no attention is fused, so there are no tiles", where="explain --tiles")
    parts = [f"<p>{counted(kinds[key], 'kernel')}: {escape(key[0])}</p>\n{svg}" for key, svg in drawn.items()]
    legend = " ".join(f'<i class="{role}"></i> {text}' for role, (text, *_) in _ROLES.items())
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Tiles of attention</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>Tiles of attention</h1>\n<p>{legend}</p>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>"
    )


def graph_of(tiles: Mapping[str, Any]) -> TileGraph:
    """By what a plan's report says, on a grid that can be drawn."""
    rows, columns = int(tiles["rows"]), int(tiles["columns"])
    tile_m, tile_k = (_drawn(n, int(t)) for n, t in zip((rows, columns), tiles["tile"], strict=True))
    ends = [np.full(rows, columns), *(on_line((p, b), rows) for p, b in tiles["ends"])]
    begins = [np.zeros(rows, np.int64), *(on_line((p, b), rows) for p, b in tiles["begins"])]
    begin, end = reduce(np.maximum, begins), reduce(np.minimum, ends)
    return TileGraphBuilder(rows, 1, columns, tile=(tile_m, 1, tile_k)).build_rows(begin.tolist(), end.tolist())


def _drawn(size: int, tile: int) -> int:
    while size > tile * _MOST:
        tile *= 2
    return tile


def picture(graph: TileGraph) -> str:
    """SVG: queries downwards, keys to the right."""
    scale = _SIDE / max(1, graph.m, graph.k)
    width, height = graph.k * scale, graph.m * scale
    body = "\n".join(_rectangles(graph, scale))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-1 -1 {width + 2:.1f} {height + 2:.1f}" width="{width + 2:.0f}" '
        f'role="img" aria-label="map of {len(graph.tiles)} tiles">\n'
        f'<path class="scores" d="M0 0H{width:.2f}V{height:.2f}H0Z"/>\n{body}\n</svg>'
    )


def _rectangles(graph: TileGraph, scale: float) -> Iterator[str]:
    for tile in graph.tiles:
        x, y = tile.k_start * scale, tile.region_m.begin * scale
        wide, high = (tile.k_end - tile.k_start) * scale, (tile.region_m.end - tile.region_m.begin) * scale
        place = f'x="{x:.2f}" y="{y:.2f}" width="{wide:.2f}" height="{high:.2f}"'
        text = f"queries {tile.region_m}, keys {tile.k_start}:{tile.k_end}, {tile.role}"
        yield f'<rect class="tile {tile.role}" {place}><title>{text}</title></rect>'
