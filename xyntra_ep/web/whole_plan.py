"""A model file planned as one island for a target that need not be here.

What ONNX Runtime does to a graph before it asks a provider is done by ONNX Runtime: constants are folded, normalisations become
part of convolutions. The rest is the planner of sessions.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from xyntra_ep.diagnostics.fixed_shapes import with_shapes
from xyntra_ep.diagnostics.sessions import check_file, said_by
from xyntra_ep.errors import ConfigError, XyntraError
from xyntra_ep.fusion.graph import Graph
from xyntra_ep.fusion.rules import algebra
from xyntra_ep.options import Options
from xyntra_ep.provider.placement import Placement
from xyntra_ep.provider.planner import planner_of
from xyntra_ep.tracea.backends import DeviceTarget
from xyntra_ep.tracea.doctor.policy import Policy
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.kernel_texts import KernelTexts
from xyntra_ep.tracea.interface.tuning.model import TuningRequest
from xyntra_ep.tracea.planning.manifest import IslandEntry
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities

_SHOWN = 5  # nodes that hinder, in a message
_INLINE_BYTES = "1024"  # smaller weights stay in the model file
_DATA_FOLDER = "session.model_external_initializers_file_folder_path"  # of a model that comes as bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class WholePlan:
    """``kernels[i]``: the text of the kernel that steps know as i."""

    entry: IslandEntry
    kernels: tuple[KernelSource, ...]


@contextmanager
def opened(model: Path, options: Options, sizes: Mapping[str, int], shapes: Mapping[str, Sequence[int]]) -> Iterator[Graph]:
    """The graph of a model as a provider would be shown it; its constants can be read meanwhile. ``sizes``, ``shapes``: fixed in
    it, as `open_session` takes them. Raises ConfigError where the model cannot be opened."""
    import onnxruntime as ort

    check_file(model)
    with tempfile.TemporaryDirectory(prefix="xyntra-web-") as folder:
        optimised = Path(folder) / "optimised.onnx"
        settings = ort.SessionOptions()
        settings.log_severity_level = 4  # what goes wrong is raised
        settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        settings.optimized_model_filepath = str(optimised)
        settings.add_session_config_entry("session.optimized_model_external_initializers_file_name", "optimised.data")
        settings.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", _INLINE_BYTES)
        for name, size in sizes.items():
            settings.add_free_dimension_override_by_name(name, size)
        source: str | bytes = str(model)
        if shapes:
            source = with_shapes(model, shapes)
            settings.add_session_config_entry(_DATA_FOLDER, str(model.parent))
        try:
            ort.InferenceSession(source, settings, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime's own classes have no common base of their own
            raise ConfigError(f"cannot be opened: {said_by(error)}", where=str(model)) from error
        try:
            from xyntra_ep.diagnostics.fused.graph import read_model, source_of
        except ImportError as error:
            hint = "pip install 'xyntra-ep[bench]'"
            raise ConfigError(f"needs the package onnx ({error})", where="web", hint=hint) from error
        graph = source_of(read_model(optimised), Path(folder), strict=options.fp32_strict).graph
        yield replace(graph, dim_hints=dict(options.dim_hints))


def plan_whole(
    graph: Graph, options: Options, *, caps: Capabilities | None = None, device: DeviceTarget | None = None
) -> WholePlan:
    """All of ``graph`` in one island, for the processor that ``caps`` describe or for ``device``. Raises XyntraError, naming the
    nodes, where it does not become one."""
    texts = KernelTexts()
    # What was measured is this machine's.
    policy = replace(Policy.of(options), asks_tuning=False)
    context = Context(caps=caps, device=device, strict=options.fp32_strict, policy=policy, texts=texts)
    rules = algebra(options.rules, strict=options.fp32_strict)
    work = planner_of(graph, options, rules, context, Placement(device=device), TuningRequest())
    result = work.run()
    declined = {node: reason for node, reason in work.declined.items() if not _is_idle(graph, node)}
    if declined:
        told = [f"{graph.nodes[node].title}: {reason.text}" for node, reason in sorted(declined.items())[:_SHOWN]]
        more = f"; and {len(declined) - _SHOWN} more" if len(declined) > _SHOWN else ""
        hint = "xyntra explain tells of each node of the model"
        raise XyntraError(f"not all of the model can be taken: {'; '.join(told)}{more}", where="web", hint=hint)
    entries = [entry for entry in result.islands if entry is not None]
    if len(entries) != 1:
        firsts = [graph.nodes[group[0]].title for group in work.members[:_SHOWN]]
        what = (
            f"the model falls into {len(entries)} parts, which begin at {', '.join(firsts)}"
            if firsts
            else "the model computes nothing"
        )
        raise XyntraError(what, where="web")
    [entry] = entries
    outputs = {value.name for value in graph.values.values() if value.is_output}
    if missing := sorted(outputs - {output.name for output in entry.outputs}):
        raise XyntraError(f"no node makes the output {missing[0]!r}", where="web")
    return WholePlan(entry=entry, kernels=tuple(texts.sources[kernel.symbol] for kernel in result.kernels))


def _is_idle(graph: Graph, node: int) -> bool:
    """Whether nobody reads what a node makes."""
    made = [name for name in graph.nodes[node].outputs if name]
    return not any(graph.consumers.get(name) or graph.values[name].is_output for name in made)
