"""Makes the fusion graph from the graph buffer of native code."""

from __future__ import annotations

from collections.abc import Mapping

from xyntra_ep.fusion.graph import Graph, GraphValue, Node, NodeId
from xyntra_ep.provider.graph_buffer import RawGraph
from xyntra_ep.tracea.core_ir.dtypes import from_ort
from xyntra_ep.tracea.doctor.profile import profile

_NCHWC = "com.microsoft.nchwc"


def graph_of(raw: RawGraph, strict: bool = False, dim_hints: Mapping[str, int] | None = None) -> Graph:
    """The fusion graph of a raw one; node ids become positions, missing names become ''."""
    names = [v.name for v in raw.values]

    def pick(indices: tuple[int, ...]) -> tuple[str, ...]:
        return tuple("" if i < 0 else names[i] for i in indices)

    values = {
        v.name: GraphValue(
            name=v.name,
            dtype=from_ort(v.elem_type),
            elem_type=v.elem_type,
            shape=None if v.shape is None else tuple(d or None if isinstance(d, str) else d for d in v.shape),
            is_input=v.is_input,
            is_output=v.is_output,
            is_constant=v.is_constant,
            constant_bytes=v.nbytes,
            has_zeros=v.has_zeros and not strict,
            read=v.array if v.is_constant else None,
        )
        for v in raw.values
    }
    nodes = tuple(
        Node(
            id=NodeId(position),
            ort_id=n.id,
            name=n.name,
            op_type=n.op_type,
            domain=n.domain,
            version=n.since_version,
            inputs=pick(n.inputs),
            outputs=pick(n.outputs),
            attrs=n.attrs,
            implicit_inputs=pick(n.implicit_inputs),
            owner=n.ep_name,
            has_subgraph=n.n_subgraphs > 0,
        )
        for position, n in enumerate(raw.nodes)
    )
    return Graph(
        nodes=nodes,
        values=values,
        opsets=raw.opsets,
        name=raw.name,
        is_subgraph=raw.is_subgraph,
        strict=strict,
        channel_block=channel_block() if any(node.domain == _NCHWC for node in raw.nodes) else 0,
        dim_hints=dim_hints or {},
    )


def channel_block() -> int:
    """How many channels ONNX Runtime keeps side by side here, whatever our kernels are for (NchwcBlockSize in
    onnxruntime/core/mlas/lib/platform.cpp)."""
    machine = profile()
    if machine.architecture != "x86_64":
        return 0
    return 16 if "avx512f" in machine.features else 8
