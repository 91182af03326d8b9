from __future__ import annotations

import hashlib

import pytest

from tests.support.evaluate_rows import evaluate_rows
from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.toy_variants import TABLE
from xyntra_ep.errors import XyntraError
from xyntra_ep.tracea.core_ir.dims import eq, evaluate, symbol
from xyntra_ep.tracea.planning.manifest import (
    Alternative,
    IslandEntry,
    KernelEntry,
    LogLevel,
    Manifest,
    TensorEntry,
    merge_constants,
    write_manifest,
)
from xyntra_ep.tracea.planning.manifest_reader import read_manifest
from xyntra_ep.tracea.planning.plan import BufferKind, PlannedProgram
from xyntra_ep.tracea.planning.planner import plan_program
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR


def hash128(data: bytes) -> bytes:
    return hashlib.md5(data).digest()


def planned() -> PlannedProgram:
    p = ProgramBuilder()
    x = p.input("s", 4)
    y = p.gemm(x, p.constant(4, 6))
    p.output(p.add(y, p.constant(6)))
    p.program.guards.append(eq(symbol("s") % 2, 0))
    p.program.checks.append((symbol("s"), "s must not be zero"))
    return plan_program(p.program, SCALAR, variants=TABLE)


def manifest(plan: PlannedProgram) -> Manifest:
    island = IslandEntry(
        name="island 0",
        nodes=(7, 1 << 40),
        inputs=(TensorEntry(name="x", elem_type=1, rank=-1),),
        outputs=(TensorEntry(name="ÿ", elem_type=1, rank=2),),
        constants=tuple(reversed(merge_constants([plan]))),
        alternatives=(Alternative(planned=plan, kernels=tuple(range(5, 5 + len(plan.kernels)))),),
    )
    return Manifest(
        digest="ab" * 16,
        root="/cache",
        log_level=LogLevel.WARNING,
        log_line="two of three",
        report='{"islands": []}',
        depends=(("w", b"0123456789abcdef"),),
        kernels=(KernelEntry(path="kernels/k.so", symbol="xy_k", hash128=b"f" * 16),),
        islands=(island,),
    )


def test_what_is_written_is_read() -> None:
    plan = planned()
    wanted = manifest(plan)
    got = read_manifest(write_manifest(wanted, hash128), hash128)
    assert (got.digest, got.root, got.refusal, got.report) == (wanted.digest, "/cache", "", wanted.report)
    assert (got.log_level, got.log_line) == (LogLevel.WARNING, "two of three")
    assert (got.depends, got.kernels) == (wanted.depends, wanted.kernels)
    [island] = got.islands
    assert island.nodes == (7, 1 << 40)
    assert island.inputs == wanted.islands[0].inputs and island.outputs == wanted.islands[0].outputs
    assert island.constants == ("const1", "const0") or island.constants == ("const0", "const1")
    [alternative] = island.alternatives
    assert alternative.symbols == ((0, 0, 0),)
    values = evaluate_rows(alternative.sizes, (6,))
    assert [values[s] for s in alternative.output_shapes[0]] == [6, 6]
    assert [values[g] for g in alternative.guards] == [1]
    assert [(values[c], m) for c, m in alternative.checks] == [(6, "s must not be zero")]
    for a, b in zip(alternative.buffers, plan.buffers, strict=True):
        assert (a.kind, a.first, a.last, a.literal) == (b.kind, b.first, b.last, b.literal)
        if b.kind in (BufferKind.POOL, BufferKind.ARENA, BufferKind.INIT):
            assert values[a.size] == evaluate(b.size_bytes, {"s": 6})
        if b.kind is BufferKind.CONSTANT:
            assert island.constants[a.index] == plan.program.constants[b.index]
    for a_step, b_step in zip(alternative.init + alternative.run, plan.init + plan.run, strict=True):
        assert (a_step.kernel, a_step.label) == (b_step.kernel + 5, b_step.label)
        assert [u for u, _ in a_step.buffers] == [u.buffer for u in b_step.buffers]
        assert [values[p] for p in a_step.params] == [evaluate(p, {"s": 6}) for p in b_step.params]
        assert values[a_step.units] == evaluate(b_step.units, {"s": 6})


def test_a_refusal() -> None:
    data = write_manifest(Manifest(digest="", root="", refusal="no option 'x'"), hash128)
    assert read_manifest(data, hash128).refusal == "no option 'x'"


def test_the_first_bytes_are_those_of_the_format() -> None:
    data = write_manifest(Manifest(digest="d", root="r"), hash128)
    assert data.startswith(b"XYPL\x0a\0\0\0\x01\0\0\0d\x01\0\0\0r\0\0\0\0\0\0\0\0\0")


def test_damage_is_found() -> None:
    data = write_manifest(manifest(planned()), hash128)
    with pytest.raises(XyntraError, match="checksum"):
        read_manifest(data[:50] + b"?" + data[51:], hash128)
    for cut in range(0, len(data), 7):
        with pytest.raises(XyntraError):
            read_manifest(data[:cut])
    with pytest.raises(XyntraError, match="is not a plan"):
        read_manifest(b"ELF" + data[3:])
