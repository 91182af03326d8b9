"""How plots look: one drawing for print, screen and dark mode.

A figure is drawn in a few named colours. In SVG each becomes a CSS variable that follows the reader's colour scheme and
is the print colour otherwise; in PNG it is on white. Series colours are those of Okabe and Ito, "Color Universal Design"
(2008), which people with any colour vision tell apart, and markers and line styles differ as well.
"""

from __future__ import annotations

import importlib
import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from typing import Any

INK, MUTED, GRID, PAPER = "#1b1f24", "#59636e", "#d4d9df", "#fffffe"
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
SERIES_ON_DARK = ("#4fb0e8", "#ff8b45", "#35d0a2", "#ea9fc9", "#f5bd3d", "#9ad6ff")
MARKERS = ("o", "s", "^", "D", "v", "P")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))
# name of the variable, on light, on dark
COLOURS = (
    ("ink", INK, "#e6e9ed"),
    ("muted", MUTED, "#9aa4af"),
    ("grid", GRID, "#3a424b"),
    ("paper", PAPER, "#14181d"),
    *((f"c{i}", light, dark) for i, (light, dark) in enumerate(zip(SERIES, SERIES_ON_DARK, strict=True))),
)
LIGHT = ";".join(f"--{name}:{light}" for name, light, _ in COLOURS)
DARK = ";".join(f"--{name}:{dark}" for name, _, dark in COLOURS)
SCHEME = f":root{{{LIGHT}}}@media (prefers-color-scheme:dark){{:root{{{DARK}}}}}@media print{{:root{{{LIGHT}}}}}"
STYLE = f"{SCHEME}svg{{background:var(--paper)}}"
PNG_DPI = 160

RC: Mapping[str, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be searched, and follows the page
    "svg.hashsalt": "xyntra",
    "text.parse_math": False,  # node names may hold any character
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "figure.facecolor": "none",
}


@contextmanager
def figure(width: float, height: float) -> Iterator[Any]:
    """A matplotlib figure of so many inches in the reports' style, to be drawn and saved inside."""
    # By name, because its types know each setting by itself and not their table.
    matplotlib, figures = (importlib.import_module(name) for name in ("matplotlib", "matplotlib.figure"))
    with matplotlib.rc_context(dict(RC)):
        yield figures.Figure(figsize=(width, height))


def svg(drawn: Any, titles: Mapping[str, str] | None = None) -> str:
    """The figure as a document of its own. `titles`: by the gid of an artist what a reader who points at it is told."""
    out = io.StringIO()
    drawn.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    for name, light, _ in COLOURS:
        text = text.replace(light, f"var(--{name},{light})")
    for gid, title in (titles or {}).items():
        text = text.replace(f'<g id="{gid}">', f'<g id="{gid}"><title>{escape(title)}</title>', 1)
    return re.sub(r"(<svg[^>]*>)", rf"\1<style>{STYLE}</style>", text, count=1)


def png(drawn: Any) -> bytes:
    """The figure on white."""
    out = io.BytesIO()
    drawn.savefig(out, format="png", dpi=PNG_DPI, facecolor="white", metadata={"Software": None})
    return out.getvalue()


def inline(document: str, prefix: str) -> str:
    """An SVG document as part of a page that has the style already: its ids must not meet those of another."""
    text = re.sub(r"<style>:root.*?</style>", "", document, count=1)
    text = re.sub(r'\bid="', f'id="{prefix}-', text)
    text = re.sub(r'href="#', f'href="#{prefix}-', text)
    return text.replace("url(#", f"url(#{prefix}-")


def si(value: float) -> str:
    """
    >>> si(0.25), si(8.0), si(1500.0), si(2.5e6)
    ('0.25', '8', '1.5k', '2.5M')
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"
