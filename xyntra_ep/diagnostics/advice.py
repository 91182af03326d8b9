"""What would let XyntraEP claim more of a model or make it faster, as far as the explanation's own records show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xyntra_ep.fusion.reason import Kind

if TYPE_CHECKING:
    from xyntra_ep.diagnostics.explain import GraphReport

_MULTIPLY = ("gemm.", "conv.", "attention.")  # families of variants whose kernels multiply
_MOST, _NAMED = 5, 3  # operators and tensors that are named
_UNKNOWN = "unknown rank of input "
# Another precision costs accuracy. Of the zoo's models all gained whose estimate gains this much, measured on AVX-512 (1.3 to 2
# times as fast); of small ones with an estimate of 1.2 to 1.3 one was slower.
_WORTH_ROUNDING, _CLEAR = 0.2, 1.4


def advice(graphs: Sequence[GraphReport]) -> Iterator[str]:
    """Sentences, the most useful first."""
    declined = [d for graph in graphs for d in graph.declined]
    kinds = Counter(d.op_type for d in declined if d.reason == "unsupported")
    for op_type, count in kinds.most_common(_MOST):
        yield f"an operator that XyntraEP has not: {op_type}, {_nodes(count)} of this model"
    lost = [d for d in declined if d.why.kind is Kind.COST]
    dims = _dims(graphs)
    if dims and any(graph.assumed and f" at {graph.assumed}" in d.reason for graph in graphs for d in lost):
        yield (
            f"sizes that are known: {_nodes(len(lost))} would be slower than in ONNX Runtime at what {dims} usually are; option"
            " dim_hints says what they are, --dim shows a session that fixes them"
            " (SessionOptions.add_free_dimension_override_by_name)"
        )
    if strangers := [d.reason.removeprefix(_UNKNOWN) for d in declined if d.reason.startswith(_UNKNOWN)]:
        names = list(dict.fromkeys(strangers))
        shown = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
        yield (
            f"shapes in the model: {_nodes(len(strangers))} may be had where its value_info gives shapes to {shown},"
            " which ONNX Runtime cannot infer (docs/control-flow.md)"
        )
    if small := [d for d in declined if d.reason.endswith(" below min_island")]:
        yield f"a smaller min_island: {_nodes(len(small))} more"
    share = _of_products(graphs)
    for precision in dict.fromkeys(p for graph in graphs for p in graph.products) if share >= _WORTH_ROUNDING else ():
        gain = _gain(graphs, precision)
        if gain >= _CLEAR:
            yield (
                f"precision={precision}: est. {gain:.1f}x as fast, because products are {share:.0%} of the estimated time and"
                " this machine multiplies faster in it; it costs accuracy (docs/precision.md)"
            )
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
        text += f"; {'--dim NAME=SIZE' if _dims(graphs) else '--shape INPUT=64x20'} gives others"
    return text


def _dims(graphs: Sequence[GraphReport]) -> str:
    return ", ".join(dict.fromkeys(d for graph in graphs for d in graph.dims))


def _of_products(graphs: Sequence[GraphReport]) -> float:
    """The share of the page's time that f32 products take."""
    islands = [island for graph in graphs for island in graph.islands]
    products = (k for island in islands for k in island.usual if k.variant.startswith(_MULTIPLY) and "bf16" not in k.variant)
    return sum(k.cost_ns for k in products) / max(1, sum(island.whole_ns for island in islands))


def _gain(graphs: Sequence[GraphReport], precision: str) -> float:
    """How many times as fast the kernels of all graphs are estimated in ``precision``."""
    pairs = [graph.products[precision] for graph in graphs if precision in graph.products]
    return sum(now for now, _ in pairs) / max(1, sum(then for _, then in pairs))


def _nodes(count: int) -> str:
    return f"{count} node{'' if count == 1 else 's'}"
