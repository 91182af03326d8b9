"""What XyntraEP makes of a model, as a file: the fused graph in standard ONNX, or as DOT, JSON or text to look at.

    print(fuse("model.onnx", "fused.onnx"))     # each group of nodes that becomes one kernel is one function call
    print(picture("model.onnx", "dot"))         # every node, coloured by its island

Needs the onnx package (and onnxscript for functions), so nothing here is imported by a session.
"""

from __future__ import annotations

import filecmp
import importlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from xyntra_ep.errors import ConfigError, XyntraError
from xyntra_ep.fusion.trace import CONTROL_FLOW
from xyntra_ep.options import Claim, Options, parse
from xyntra_ep.wording import counted

if TYPE_CHECKING:
    from onnx import ModelProto

    from xyntra_ep.diagnostics.fused.print import Printer

FORMATS = {".onnx": "onnx", ".py": "triton", ".dot": "dot", ".json": "json", ".txt": "text"}  # by the suffix of the file


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfused:
    """Nodes that one kernel computes and that stay single nodes in the file, and why."""

    nodes: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedModel:
    """What was written. ``functions``: how often each is called. ``declined``: nodes that ONNX Runtime keeps, by reason.
    ``bodies``: how many nodes the bodies of control flow have, by operator: they stay as they are."""

    output: Path
    nodes_before: int
    nodes_after: int
    islands: int
    functions: Mapping[str, int]
    unfused: tuple[Unfused, ...]
    declined: Mapping[str, int]
    bodies: Mapping[str, int]

    def __str__(self) -> str:
        calls = sum(self.functions.values())
        if calls:
            made = f"{calls} of them calls of {counted(len(self.functions), 'function')}"
        elif self.islands:
            made = "none of them a function: " + ("see below" if self.unfused else "each kernel computes a single node")
        else:
            made = "none of them a function: XyntraEP could take no node"
        before = f"{counted(self.nodes_before, 'node')} in {counted(self.islands, 'island')}"
        lines = [f"{self.output}: {before} became {self.nodes_after}, {made}"]
        lines += [f"  {count:>5} {name}" for name, count in self.functions.items()]
        lines += [f"  stay single nodes: {', '.join(group.nodes)}: {group.reason}" for group in self.unfused]
        lines += [
            f"  on CPU: {reason}, {counted(count, 'node')}"
            for reason, count in self.declined.items()
            if not reason.endswith(f"({CONTROL_FLOW})")
        ]
        lines += [
            f"  bodies of {kind}, {counted(count, 'node')} in them, stay as they are; a session fuses each as a graph of its own"
            for kind, count in self.bodies.items()
        ]
        lines.append("  nodes are those of the file; `xyntra explain` counts what ONNX Runtime's optimizations leave of them")
        return "\n".join(lines)


def format_of(output: Path, form: str | None = None) -> str:
    """What is written to ``output``: its suffix says it. Raises ConfigError for one that says nothing, for a folder, and where
    ``form`` asks for something else."""
    if output.is_dir():
        raise ConfigError("is a folder", where=str(output), hint=f"name a file, as in {output / 'fused.onnx'}")
    found = FORMATS.get(output.suffix)
    if found is None:
        suffix = f"the suffix {output.suffix!r}" if output.suffix else "a name without a suffix"
        raise ConfigError(f"{suffix} says no format", where=str(output), hint=f"there are {', '.join(FORMATS)}")
    if form not in (None, found):
        raise ConfigError(f"would hold {form}, which its suffix does not say", where=str(output), hint="leave out --format")
    return found


def fuse(model: str | Path, output: str | Path, *, options: Mapping[str, str] | None = None) -> FusedModel:
    """Write the model with its groups as functions of domain ai.xyntra; any ONNX Runtime runs it, without the provider too. Of
    ``options``, min_island and fp32_strict say what is grouped. Raises ConfigError for what cannot be read, written or asked."""
    source, target = Path(model), Path(output)
    asked = _asked(options or {})
    _need("onnx", "onnxscript")  # in which the named operators' bodies are written
    from xyntra_ep.diagnostics.fused.graph import check_model, read_model
    from xyntra_ep.diagnostics.fused.rewrite import rewrite

    if target.exists() and source.exists() and target.samefile(source):
        raise ConfigError("would overwrite the model it is made from", where=str(target), hint="write to another file")
    original = read_model(source)
    fused, summary = rewrite(original, source.parent, target, asked)
    _write(fused, source, target)
    try:
        check_model(target)
    except ConfigError as error:
        target.unlink()
        raise XyntraError(f"the fused model would be wrong, nothing was written ({error.what})", where=str(source)) from error
    return summary


def picture(
    model: str | Path, form: str, *, options: Mapping[str, str] | None = None, more: Mapping[str, Printer] | None = None
) -> str:
    """The graph with its islands, ``form`` dot, json or text, or one that ``more`` prints; ``options`` as for `fuse`."""
    asked = _asked(options or {})
    _need("onnx")
    from xyntra_ep.diagnostics.fused.graph import read_model, source_of
    from xyntra_ep.diagnostics.fused.groups import find_islands
    from xyntra_ep.diagnostics.fused.print import PRINTERS

    path = Path(model)
    graph = source_of(read_model(path), path.parent, strict=asked.fp32_strict).graph
    return {**PRINTERS, **(more or {})}[form](graph, find_islands(graph, asked.min_island))


_HEEDED = ("claim", "min_island", "fp32_strict")


def _asked(given: Mapping[str, str]) -> Options:
    """A file is for any machine: what pays on this one is not asked."""
    asked = parse({"claim": "all", **given})
    if idle := [name for name in given if name not in _HEEDED]:
        raise ConfigError(f"{idle[0]} changes nothing in a fused model", where="fuse", hint=f"there are {', '.join(_HEEDED[1:])}")
    if asked.claim is not Claim.ALL:
        hint = "leave it out; `xyntra explain` says what pays here"
        raise ConfigError("claim=profitable is about one machine, the fused model for all", where="fuse", hint=hint)
    return asked


def _need(*packages: str) -> None:
    try:
        for package in packages:
            importlib.import_module(package)
    except ImportError as error:
        hint = "pip install 'xyntra-ep[bench]'"
        what = f"package{'s' if len(packages) > 1 else ''} {' and '.join(packages)}"
        raise ConfigError(f"needs the {what} ({error})", where="fuse", hint=hint) from error


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
