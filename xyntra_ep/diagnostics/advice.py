"""What would bring more of a model to XyntraEP, or bring it faster: only what its own records show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xyntra_ep.diagnostics.explain import GraphReport

_MULTIPLY = ("gemm.", "conv.", "attention.")  # families of variants whose kernels multiply
_MOST = 5  # operators that are named


def advice(graphs: Sequence[GraphReport]) -> Iterator[str]:
    """Sentences, the most useful first."""
    declined = [d for graph in graphs for d in graph.declined]
    kinds = Counter(d.op_type for d in declined if d.reason == "unsupported")
    for op_type, count in kinds.most_common(_MOST):
        yield f"an operator that XyntraEP has not: {op_type}, {_nodes(count)} of this model"
    lost = [d for d in declined if d.reason.startswith("declined: est.")]
    dims = _dims(graphs)
    if dims and any(graph.assumed and f" at {graph.assumed}" in d.reason for graph in graphs for d in lost):
        yield (
            f"sizes that are known: {_nodes(len(lost))} would be slower than in ONNX Runtime at what {dims} usually are; option"
            " dim_hints says what they are, --dim shows a session that fixes them"
            " (SessionOptions.add_free_dimension_override_by_name)"
        )
    if lost and any(graph.claim == "profitable" for graph in graphs):
        yield f"claim=all: {_nodes(len(lost))} more, slower than in ONNX Runtime by the estimates"
    if small := [d for d in declined if d.reason.endswith(" below min_island")]:
        yield f"a smaller min_island: {_nodes(len(small))} more"
    share = _of_products(graphs)
    for precision in dict.fromkeys(p for graph in graphs for p in graph.products) if share else ():
        yield f"precision={precision}: this machine multiplies faster in it, and products are {share:.0%} of the estimated time"
    if any(island.estimate and not graph.measured for graph in graphs for island in graph.islands) or (
        lost and not any(graph.measured for graph in graphs)
    ):
        yield "`xyntra doctor --measure`: estimates, and what is claimed by them, follow this machine's own figures then"


def basis(graphs: Sequence[GraphReport]) -> str:
    """What all times of a page are taken at; "" where it has none."""
    islands = [(graph, island) for graph in graphs for island in graph.islands]
    if not islands:
        return ""
    if any(graph.device for graph, _ in islands):
        return "times are estimates of single kernels on the device, sizes that are not known being usual ones"
    figures = "measured on this machine" if all(graph.measured for graph, _ in islands) else "assumed for this kind of machine"
    text = f"times are estimates for one core by figures {figures}"
    if assumed := ", ".join(dict.fromkeys(graph.assumed for graph in graphs if graph.assumed)):
        text += f", for {assumed}"
        text += "; --dim NAME=SIZE gives others" if _dims(graphs) else ""
    return text


def _dims(graphs: Sequence[GraphReport]) -> str:
    return ", ".join(dict.fromkeys(d for graph in graphs for d in graph.dims))


def _of_products(graphs: Sequence[GraphReport]) -> float:
    """The share of the islands' time that f32 products take."""
    kernels = [k for graph in graphs for island in graph.islands for k in island.kernels if k.alternative == 0]
    products = [k for k in kernels if k.variant.startswith(_MULTIPLY) and "bf16" not in k.variant]
    return sum(k.cost_ns for k in products) / max(1, sum(k.cost_ns for k in kernels))


def _nodes(count: int) -> str:
    return f"{count} node{'' if count == 1 else 's'}"
