"""What XyntraEP makes of a model, as a file: the fused graph in standard ONNX, or as DOT, JSON or text to look at.

    print(fuse("model.onnx", "fused.onnx"))     # each group of nodes that becomes one kernel is one function call
    print(picture("model.onnx", "dot"))         # every node, coloured by its island

Needs the onnx package, so nothing here is imported by a session.
"""

from __future__ import annotations

import filecmp
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from xyntra_ep.errors import ConfigError, XyntraError

if TYPE_CHECKING:
    from onnx import ModelProto


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfused:
    """Nodes that one kernel computes and that stay single nodes in the file, and why."""

    nodes: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedModel:
    """What was written. ``functions``: how often each is called. ``declined``: nodes that ONNX Runtime keeps, by reason."""

    output: Path
    nodes_before: int
    nodes_after: int
    islands: int
    functions: Mapping[str, int]
    unfused: tuple[Unfused, ...]
    declined: Mapping[str, int]

    def __str__(self) -> str:
        calls = sum(self.functions.values())
        lines = [
            f"{self.output}: {self.nodes_before} nodes in {self.islands} islands became {self.nodes_after},"
            f" {calls} of them calls of {len(self.functions)} functions"
        ]
        lines += [f"  {count:>5} {name}" for name, count in self.functions.items()]
        lines += [f"  stay single nodes: {', '.join(group.nodes)}: {group.reason}" for group in self.unfused]
        lines += [f"  on CPU: {reason}, {count} nodes" for reason, count in self.declined.items()]
        return "\n".join(lines)


def fuse(model: str | Path, output: str | Path) -> FusedModel:
    """Write the model with its groups as functions of domain ai.xyntra; any ONNX Runtime runs it, without the provider too."""
    source, target = Path(model), Path(output)
    _need_onnx()
    from xyntra_ep.diagnostics.fused_graph import check_model, read_model
    from xyntra_ep.diagnostics.fused_rewrite import rewrite

    if target.exists() and source.exists() and target.samefile(source):
        raise ConfigError("would overwrite the model it is made from", where=str(target), hint="write to another file")
    original = read_model(source)
    fused, summary = rewrite(original, source.parent, target)
    _write(fused, source, target)
    try:
        check_model(target)
    except ConfigError as error:
        target.unlink()
        raise XyntraError(f"the fused model would be wrong, nothing was written ({error.what})", where=str(source)) from error
    return summary


def picture(model: str | Path, form: str) -> str:
    """The graph with its islands, ``form`` dot, json or text."""
    _need_onnx()
    from xyntra_ep.diagnostics.fused_graph import read_model, source_of
    from xyntra_ep.diagnostics.fused_groups import find_islands
    from xyntra_ep.diagnostics.fused_print import PRINTERS

    path = Path(model)
    graph = source_of(read_model(path), path.parent).graph
    return PRINTERS[form](graph, find_islands(graph))


def _need_onnx() -> None:
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401 - the named operators' bodies are written in it
    except ImportError as error:
        hint = "pip install 'xyntra-ep[bench]'"
        raise ConfigError(f"needs the packages onnx and onnxscript ({error})", where="fuse", hint=hint) from error


def _write(model: ModelProto, source: Path, target: Path) -> None:
    """Save the model; data in files of its own stays as it is, or comes along into another folder."""
    import onnx
    from onnx.external_data_helper import ExternalDataInfo

    tensors = [t for t in model.graph.initializer if t.data_location == onnx.TensorProto.EXTERNAL]
    locations = sorted({ExternalDataInfo(t).location for t in tensors})
    try:
        for location in locations:
            data, copy = source.parent / location, target.parent / location
            if copy.exists() and not filecmp.cmp(data, copy, shallow=False):
                raise ConfigError("is another model's data", where=str(copy), hint="write into an empty folder")
            if not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(data, copy)
        onnx.save(model, target)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror or error}", where=str(target)) from error
