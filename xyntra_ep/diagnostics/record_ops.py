"""Adds ops of models to those that kernels are prebuilt for: `python -m xyntra_ep.diagnostics.record_ops model.onnx ...`.

Each model is opened as a session opens it, once for each kind of processor. An op is kept if some processor's kernels for it are
new.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from xyntra_ep.fusion.rules import algebra
from xyntra_ep.options import parse
from xyntra_ep.provider import registration
from xyntra_ep.provider.callback import make_callback
from xyntra_ep.provider.fusion_graph import graph_of
from xyntra_ep.provider.graph_buffer import RawGraph
from xyntra_ep.provider.placement import Placement
from xyntra_ep.provider.planner import planner_of
from xyntra_ep.tracea.core_ir.ops import CoreOp
from xyntra_ep.tracea.doctor.targets import BEST_FIRST
from xyntra_ep.tracea.doctor.variants import cpu_variants
from xyntra_ep.tracea.emitters.cpu import emit
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.islands import CompileResult, write_plan
from xyntra_ep.tracea.interface.tuning.model import request_at_hand
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.planning.builder import OpBuilder
from xyntra_ep.tracea.prebuilt.build import capabilities_of, general_builder, sources_of
from xyntra_ep.tracea.prebuilt.catalogue import OPS, RecordedOp, read_ops, recorded, write_ops
from xyntra_ep.tracea.prebuilt.library import PrebuiltKernels, digest_of
from xyntra_ep.tracea.runtime.hashing import hash128_of
from xyntra_ep.tracea.runtime.kernel_files import CompiledKernel
from xyntra_ep.tracea.runtime.kernel_source import KernelSource


class Recorder:
    """Ops by what their kernels are on the ``targets``: kinds of processors."""

    def __init__(self, ops: Sequence[RecordedOp] = (), targets: Sequence[str] = BEST_FIRST) -> None:
        self.ops: list[RecordedOp] = []
        self.targets = targets
        self._builders = {target: general_builder(capabilities_of(target)) for target in targets}
        self._known: set[tuple[str, str]] = set()
        for op in ops:
            self.add(op)

    def add(self, op: RecordedOp) -> None:
        """Keep it, if it brings a kernel that no other has brought."""
        found = {(target, digest_of(s)) for target, builder in self._builders.items() for s in sources_of(op, builder)}
        if not found <= self._known:
            self._known |= found
            self.ops.append(op)


class _Everything(PrebuiltKernels):
    """A library that has every kernel, so that all of a graph is planned."""

    def __init__(self) -> None:
        pass

    def _found(self, source: KernelSource) -> CompiledKernel:
        return CompiledKernel(symbol=source.symbol, key=source.symbol, path=Path(source.symbol), hash128=b"", cached=True)


class _Context(Context):
    """One for a kind of processor, which records what is built."""

    def __init__(self, target: str, recorder: Recorder, folder: Path) -> None:
        super().__init__(cache_dir=folder, caps=capabilities_of(target))
        self._recorder = recorder

    @cached_property
    def kernels(self) -> PrebuiltKernels:
        return _Everything()

    @cached_property
    def builder(self) -> OpBuilder:
        def heard(op: CoreOp, context: BuildContext) -> None:
            self._recorder.add(recorded(op, context.program, context.constants))

        return OpBuilder(self.caps, cpu_variants(), emit, general=True, heard=heard)


def record(models: Sequence[Path], options: dict[str, str], recorder: Recorder) -> None:
    """Ops of ``models``, opened with these provider options; their nodes stay with ONNX Runtime."""
    import onnxruntime

    registration.register()
    library = registration.library()
    hash128 = hash128_of(library)
    with tempfile.TemporaryDirectory(prefix="xyntra-record-") as place:
        folder = Path(place) / "cache"

        def heard(raw: RawGraph, digest: str) -> bytes:
            parsed = parse(raw.options)
            rules = algebra(parsed.rules, strict=parsed.fp32_strict)
            graph = graph_of(raw, strict=parsed.fp32_strict, dim_hints=dict(parsed.dim_hints))
            for target in recorder.targets:
                context = _Context(target, recorder, folder)
                planner_of(graph, parsed, rules, context, Placement(), request_at_hand()).run()
            nothing = CompileResult(islands=(), kernels=(), failures=(), compiled=0)
            return write_plan(digest, nothing, Context(cache_dir=folder, hash128=hash128))

        registration.attach(library, make_callback(library, heard))
        try:
            for model in models:
                known = len(recorder.ops)
                provider = ("XyntraEP", {"cache_dir": str(folder), **options})
                onnxruntime.InferenceSession(str(model), providers=[provider, "CPUExecutionProvider"])
                sys.stdout.write(f"{model.name}: {len(recorder.ops) - known} ops\n")
        finally:
            registration.attach(library, make_callback(library))


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m xyntra_ep.diagnostics.record_ops", description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="of the provider")
    parser.add_argument("--ops", type=Path, default=OPS, help="the file that they are added to; default: the package's own")
    parser.add_argument("--anew", action="store_true", help="forget what was recorded")
    asked = parser.parse_args(arguments)
    recorder = Recorder([] if asked.anew or not asked.ops.exists() else read_ops(asked.ops))
    options = dict(option.split("=", 1) for option in asked.option)
    for model in asked.models:  # some take minutes: what was found is kept
        record([model], options, recorder)
        write_ops(recorder.ops, asked.ops)


if __name__ == "__main__":
    main(sys.argv[1:])
