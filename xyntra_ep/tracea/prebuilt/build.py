"""Compiles the recorded ops' kernels: `python -m xyntra_ep.tracea.prebuilt.build [--target avx2 ...] [--output FOLDER]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from xyntra_ep import knobs
from xyntra_ep.errors import InternalError, UnsupportedError
from xyntra_ep.tracea.doctor.profile import this_machine
from xyntra_ep.tracea.doctor.targets import BASE_OF, BEST_FIRST, target_capabilities
from xyntra_ep.tracea.doctor.variants import cpu_variants
from xyntra_ep.tracea.emitters.cpu import emit
from xyntra_ep.tracea.planning.builder import OpBuilder
from xyntra_ep.tracea.prebuilt.catalogue import OPS, RecordedOp, read_ops
from xyntra_ep.tracea.prebuilt.library import FOLDER, SUFFIX, LibraryIndex, best_target, compressed, content_digest, digest_of
from xyntra_ep.tracea.runtime.cache_root import open_root
from xyntra_ep.tracea.runtime.compilers import find_compiler, target_flags
from xyntra_ep.tracea.runtime.kernel_cache import KernelCache
from xyntra_ep.tracea.runtime.kernel_files import CompiledKernel
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities

COMPILE_LIMIT_S = 3600.0  # for a hundred kernels at a time, and nobody waits for a session meanwhile


def sources_of(op: RecordedOp, builder: OpBuilder) -> Iterator[KernelSource]:
    """The kernels of an op; none where nothing admits it on this processor. Raises InternalError for a fault of ours."""
    try:
        built = builder.build(op.op, op.program, op.constants)
    except UnsupportedError as error:
        if isinstance(error, InternalError):
            raise
        return
    yield from (launch.source.distinct() for launch in built.launches)


def capabilities_of(target: str) -> Capabilities:
    """As prebuilt kernels are decided for."""
    caps = target_capabilities(target)
    assert caps is not None
    return caps


def general_builder(caps: Capabilities) -> OpBuilder:
    return OpBuilder(caps, cpu_variants(), emit, general=True)


def build_library(target: str, ops: Sequence[RecordedOp], folder: Path) -> tuple[int, int]:
    """Write the library and the index of a target, without what its base has; (kernels, bytes of the file). Nothing is written
    where the base has all. Raises
    UnsupportedError without a compiler and CompileError for a kernel that it does not compile."""
    caps = capabilities_of(target)
    sources = _sources(caps, ops)
    if (base := BASE_OF.get(target)) is not None:
        for digest in _sources(capabilities_of(base), ops):
            sources.pop(digest, None)
    if not sources:
        return 0, 0
    limit = knobs.scope(compile_timeout_s=max(COMPILE_LIMIT_S, knobs.current().compile_timeout_s))
    with limit, tempfile.TemporaryDirectory(prefix="xyntra-prebuilt-") as place:
        root = open_root(Path(place) / "cache")
        flags = target_flags(caps.isa, bf16=caps.avx512_bf16, vnni=caps.vnni)
        made = KernelCache(root, find_compiler(), (*flags, "-s")).compile_many(list(sources.values()))
        files = {}
        for kernel in made:
            if not isinstance(kernel, CompiledKernel):
                raise kernel
            files[kernel.path.stat().st_ino] = kernel.path
        assert len(files) == 1, "what is compiled together is linked to one file"
        [path] = files.values()
        data = path.read_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    packed = compressed(data)
    (folder / f"{target}{SUFFIX}").write_bytes(packed)
    LibraryIndex(content_digest(data), frozenset(sources)).write(folder, target)
    return len(sources), len(packed)


def _sources(caps: Capabilities, ops: Iterable[RecordedOp]) -> dict[str, KernelSource]:
    """The kernels of ``ops``, by digest."""
    builder = general_builder(caps)
    return {digest_of(source): source for op in ops for source in sources_of(op, builder)}


def used_here() -> list[str]:
    """The best target of this machine, and its base; none where it has no vectors."""
    best = best_target(this_machine())
    return [] if best is None else [best, *filter(None, [BASE_OF.get(best)])]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m xyntra_ep.tracea.prebuilt.build", description=__doc__)
    parser.add_argument("--target", action="append", choices=BEST_FIRST, help="default: all of them")
    parser.add_argument("--here", action="store_true", help="those that this machine uses")
    parser.add_argument("--ops", type=Path, default=OPS, help="recorded ones; default: those of the package")
    parser.add_argument("--kind", help="of ops, as Gemm: no others")
    parser.add_argument("--output", type=Path, default=FOLDER)
    asked = parser.parse_args(arguments)
    ops = [op for op in read_ops(asked.ops) if asked.kind in (None, type(op.op).__name__)]
    for target in asked.target or (used_here() if asked.here else BEST_FIRST):
        kernels, size_bytes = build_library(target, ops, asked.output)
        sys.stdout.write(f"{target}: {kernels} kernels of {len(ops)} ops, {size_bytes / 1e6:.2f} MB\n")


if __name__ == "__main__":
    main(sys.argv[1:])
