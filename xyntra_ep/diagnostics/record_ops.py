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
from types import TracebackType
from typing import Any

from xyntra_ep import knobs
from xyntra_ep.fusion.egraph import Algebra
from xyntra_ep.fusion.graph import Graph
from xyntra_ep.options import Options
from xyntra_ep.provider import registration
from xyntra_ep.provider.placement import Placement
from xyntra_ep.provider.planner import hearing, planner_of
from xyntra_ep.tracea.core_ir.ops import CoreOp
from xyntra_ep.tracea.doctor.targets import BEST_FIRST
from xyntra_ep.tracea.doctor.variants import cpu_variants
from xyntra_ep.tracea.emitters.cpu import emit
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.tuning.model import request_at_hand
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.planning.builder import OpBuilder
from xyntra_ep.tracea.prebuilt.build import capabilities_of, general_builder, sources_of
from xyntra_ep.tracea.prebuilt.catalogue import OPS, RecordedOp, read_ops, recorded, write_ops
from xyntra_ep.tracea.prebuilt.library import digest_of
from xyntra_ep.tracea.runtime.compilers import NO_COMPILER
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


class _Pretended:
    """Has every kernel, so that all of a graph is planned."""

    dump_problem = distrusted = ""

    def __enter__(self) -> _Pretended:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def compilation(self) -> _Pretended:
        return self

    def add(self, source: KernelSource) -> None:
        pass

    def finish(self, sources: Sequence[KernelSource]) -> list[CompiledKernel]:
        return [CompiledKernel(symbol=s.symbol, key=s.symbol, path=Path(s.symbol), hash128=b"", cached=True) for s in sources]

    compile_many = finish


class _Context(Context):
    """One for a kind of processor, which records what is built."""

    def __init__(self, target: str, recorder: Recorder, folder: Path) -> None:
        super().__init__(cache_dir=folder, caps=capabilities_of(target))
        self._recorder = recorder

    @cached_property
    def kernels(self) -> Any:
        return _Pretended()

    @cached_property
    def builder(self) -> OpBuilder:
        def heard(op: CoreOp, context: BuildContext) -> None:
            self._recorder.add(recorded(op, context.program, context.constants))

        return OpBuilder(self.caps, cpu_variants(), emit, general=True, heard=heard)


def record(models: Sequence[Path], options: dict[str, str], recorder: Recorder) -> None:
    """Ops of ``models``, opened with these provider options."""
    import onnxruntime

    registration.register()
    with tempfile.TemporaryDirectory(prefix="xyntra-record-") as place:

        def heard(graph: Graph, parsed: Options, rules: Algebra) -> None:
            for target in recorder.targets:
                context = _Context(target, recorder, Path(place) / "cache")
                planner_of(graph, parsed, rules, context, Placement(), request_at_hand()).run()

        with hearing(heard), knobs.scope(cc=NO_COMPILER):
            for model in models:
                known = len(recorder.ops)
                provider = ("XyntraEP", {"cache_dir": f"{place}/{model.name}", **options})
                onnxruntime.InferenceSession(str(model), providers=[provider, "CPUExecutionProvider"])
                sys.stdout.write(f"{model.name}: {len(recorder.ops) - known} ops\n")


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
