"""Where the time of one run goes, by width: the run, its islands, kinds of kernel, kernels by their ONNX nodes.

The widths are times of the profile's clock, which is read between the kernels of an island; they are not stack samples. A
kernel has no frames below it, and every nanosecond of the run is in some box. Time is that of the calling thread; its helper
threads work meanwhile. Time outside of kernels is ONNX Runtime's: its own nodes, and the steps between islands.

Compiled kernels are shared objects with symbols, so `perf record -g` names them as well: `xy_<ops>_<dtype>_<tile>_<target>`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from xyntra_bench.results import CaseResult, Inside, KernelTime, Measurement, Run
from xyntra_bench.show import milliseconds
from xyntra_reports._figure import STYLE
from xyntra_reports._kernels import KIND_ORDER, kind_of, likeness, profiled, shortened
from xyntra_reports.registry import Part, Picture, Section

WIDTH, ROW, TOP = 960.0, 22.0, 30.0
CHARACTER = 6.1  # width of one at the font size of the boxes
LEAST_LETTERS = 12  # of a name that is cut: fewer tell nothing
NARROWEST = 0.3  # of a box that is drawn
REST = "ONNX Runtime and its own nodes"


@dataclass(slots=True)
class Box:
    """`colour` is the name of a CSS variable."""

    name: str
    ns: int
    colour: str
    title: str = ""
    children: list[Box] = field(default_factory=list)

    @property
    def depth(self) -> int:
        return 1 + max((child.depth for child in self.children), default=0)


def tree(inside: Inside) -> Box:
    """Kinds of kernel and the kernels of a kind in the order of their first execution."""
    root = Box("run", max(inside.run_ns, sum(k.ns for k in inside.kernels)), "grid", f"{milliseconds(inside.run_ns)} ms")
    for island, members in _apart(inside.kernels, lambda k: k.island).items():
        root.children.append(Box(island, _sum(members), "muted", f"{len(members)} kernels", _kinds(members)))
    rest = root.ns - sum(child.ns for child in root.children)
    if rest > 0:
        root.children.append(Box(REST, rest, "grid", "what is in no kernel"))
    return root


def _kinds(kernels: Sequence[KernelTime]) -> list[Box]:
    found = []
    for kind, members in _apart(kernels, kind_of).items():
        colour = f"c{KIND_ORDER.index(kind) % 6}"
        boxes = [_alike(same, colour) for same in _apart(members, likeness).values()]
        found.append(Box(kind, _sum(members), colour, f"{len(members)} kernels", boxes))
    return found


def _alike(kernels: Sequence[KernelTime], colour: str) -> Box:
    """Kernels that do the same work for other nodes, as in the layers of a transformer, stand below one box."""
    boxes = [_box(kernel, colour) for kernel in kernels]
    if len(boxes) == 1:
        return boxes[0]
    return Box(f"{boxes[0].name} x{len(boxes)}", _sum(kernels), colour, boxes[0].title, boxes)


def _box(k: KernelTime, colour: str) -> Box:
    ops = ", ".join(op if n == 1 else f"{op} x{n}" for op, n in k.op_types.items())
    rate = f"; {k.flops / max(k.ns, 1):.3g} GFLOP/s" if k.flops else ""
    return Box(k.nodes[0] if k.nodes else k.label, k.ns, colour, f"{ops}; {k.variant}; {', '.join(k.symbols)}{rate}")


def _apart(kernels: Sequence[KernelTime], key: Callable[[KernelTime], Any]) -> dict[Any, list[KernelTime]]:
    found: dict[Any, list[KernelTime]] = {}
    for kernel in kernels:
        found.setdefault(key(kernel), []).append(kernel)
    return found


def _sum(kernels: Sequence[KernelTime]) -> int:
    return sum(kernel.ns for kernel in kernels)


def drawing(inside: Inside, heading: str) -> str:
    """The tree as SVG, the run at the top. Who points at a box is told all of it."""
    root = tree(inside)
    height = TOP + root.depth * ROW + 8
    boxes = "\n".join(_boxes(root, root, 0.0, 0))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height:.0f}" width="{WIDTH:.0f}" '
        f'font-family="sans-serif" font-size="11"><style>{STYLE}</style>'
        f'<text x="4" y="18" font-size="13" font-weight="bold" fill="var(--ink)">{escape(heading)}</text>\n{boxes}\n</svg>\n'
    )


def _boxes(root: Box, box: Box, left: float, level: int) -> Iterator[str]:
    scale = WIDTH / max(root.ns, 1)
    width = box.ns * scale
    if width < NARROWEST:
        return
    y = TOP + level * ROW
    told = f"{box.name}: {milliseconds(box.ns)} ms, {box.ns / max(root.ns, 1):.1%} of the run" + (
        f"; {box.title}" if box.title else ""
    )
    room = int((width - 8) / CHARACTER)
    label = shortened(box.name, room) if room >= LEAST_LETTERS or len(box.name) <= room else ""
    text = f'<text x="{left + 4:.2f}" y="{y + 15:.2f}" fill="var(--ink)">{escape(label)}</text>' if label else ""
    shade = 0.45 if box.colour.startswith("c") else 0.55 if box.colour == "grid" else 0.35
    yield (
        f'<g class="box"><title>{escape(told)}</title><rect x="{left:.2f}" y="{y:.2f}" width="{max(width - 0.5, 0.2):.2f}" '
        f'height="{ROW - 1:.2f}" rx="1.5" fill="var(--{box.colour})" fill-opacity="{shade}"/>{text}</g>'
    )
    for child in box.children:
        yield from _boxes(root, child, left, level + 1)
        left += child.ns * scale


def picture(case: CaseResult, m: Measurement, inside: Inside, number: int = 0) -> Picture:
    threads = f"{case.threads} thread{'s' if case.threads > 1 else ''}"
    heading = f"{case.model} {case.shape}, {threads}: {m.label}, {milliseconds(inside.run_ns)} ms"
    alt = f"Where the time of a run goes: {heading}; the table of kernels has the same in numbers"
    return Picture(name=f"flamegraph-{case.model}-{case.shape}-t{case.threads}-{number}", alt=alt, svg=drawing(inside, heading))


def part(run: Run, case: CaseResult) -> Section | None:
    found = profiled(case)
    if not found:
        return None
    pictures = tuple(picture(case, m, inside, i) for i, (m, inside) in enumerate(found))
    note = (
        "Width is time by the profile's clock; from the top: run, islands, kinds of kernel, kernels alike, kernels. "
        "Point at a box to read all of it."
    )
    return Section(text=note, pictures=pictures)


PARTS = [Part(name="flamegraph", title="Where the time goes", order=40, render=part)]
