from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import pytest

from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.toy_variants import POINTWISE, TABLE
from xyntra_ep import knobs
from xyntra_ep.errors import CompileError, UnsupportedError
from xyntra_ep.tracea.core_ir.dims import typical
from xyntra_ep.tracea.core_ir.ops import Pointwise, Program, Range
from xyntra_ep.tracea.interface import Context, Island, TensorEntry, compile_islands, report_of, write_plan
from xyntra_ep.tracea.interface.devices import known_target
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall
from xyntra_ep.tracea.planning.manifest_reader import read_manifest
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Let, Var, index

pytestmark = pytest.mark.compiler("cc")
DIGEST = "0123456789abcdef" * 2


def hash128(data: bytes) -> bytes:
    return hashlib.md5(data).digest()


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(cache_dir=tmp_path / "cache", hash128=hash128, caps=SCALAR, variants=TABLE)


def island(name: str, *programs: Program) -> Island:
    return Island(
        name=name,
        nodes=tuple(n for p in programs for source in p.sources for n in source),
        inputs=(TensorEntry(name="x", elem_type=1, rank=2),),
        outputs=(TensorEntry(name="y", elem_type=1, rank=2),),
        alternatives=programs,
    )


def chain(*ops: str) -> Program:
    p = ProgramBuilder()
    x = p.input("s", 4)
    for op in ops:
        x = p.pointwise(op, x, x)
    p.output(x)
    return p.program


def test_kernels_are_shared_between_islands_and_found_again(context: Context) -> None:
    islands = [island("a", chain("add", "mul")), island("b", chain("mul", "mul"))]
    result = compile_islands(islands, context)
    assert result.failures == () and result.compiled == len(result.kernels) == 2
    data = write_plan(DIGEST, result, context, report="{}", log_line="hello")
    plan = read_manifest(data, hash128)
    assert plan.root == str(context.root.path)
    for kernel in plan.kernels:
        assert hash128((context.root.path / kernel.path).read_bytes()) == kernel.hash128
    used = [[s.kernel for s in i.alternatives[0].run] for i in plan.islands]
    assert used == [[0, 1], [1, 1]]
    assert compile_islands(islands, context).compiled == 0


def test_every_op_that_fails_is_named_with_its_nodes(context: Context) -> None:
    islands = [island("a", chain("add")), island("b", chain("min", "add", "max")), island("c", chain("max"))]
    result = compile_islands(islands, context)
    assert [(f.island, f.op, f.nodes) for f in result.failures] == [(1, 0, (100,)), (1, 2, (102,)), (2, 0, (100,))]
    assert "does not know ['min']" in result.failures[0].reason
    assert [i is None for i in result.islands] == [False, True, True]
    assert len(read_manifest(write_plan(DIGEST, result, context)).islands) == 1


def test_a_kernel_that_does_not_compile_fails_the_ops_that_need_it(tmp_path: Path) -> None:
    def build(op: Pointwise, config: Config, context: BuildContext) -> list[KernelCall]:
        [call] = POINTWISE.build(op, config, context)
        if "mul" in repr(op.bodies):
            nonsense = Let(Var(INDEX, "double"), index(1))  # legal IR, but no name for C
            kernel = dataclasses.replace(call.kernel, body=(nonsense, *call.kernel.body))
            call = dataclasses.replace(call, kernel=kernel)
        return [call]

    broken = {**TABLE, Pointwise: (dataclasses.replace(POINTWISE, build=build),)}
    context = Context(cache_dir=tmp_path, hash128=hash128, caps=SCALAR, variants=broken)
    result = compile_islands([island("a", chain("add", "mul", "add", "mul")), island("b", chain("add"))], context)
    assert [(f.island, f.op) for f in result.failures] == [(0, 1), (0, 3)]
    assert all(isinstance(f.error, CompileError) and "double" in f.error.log for f in result.failures)
    assert [i is None for i in result.islands] == [True, False]


def test_a_broken_compiler_fails_all_ops_and_nothing_else(context: Context, tmp_path: Path) -> None:
    script = tmp_path / "cc"
    script.write_text('#!/bin/sh\n[ "$1" = --version ] && echo gcc 13.1 && exit\necho sick >&2; exit 1\n')
    script.chmod(0o700)
    with knobs.scope(cc=str(script)):
        result = compile_islands([island("a", chain("add", "mul"))], context)
    assert [f.op for f in result.failures] == [0, 1]
    assert "ended with status 1" in result.failures[0].reason


def test_no_compiler(context: Context) -> None:
    with knobs.scope(cc="/nonexistent/cc"), pytest.raises(UnsupportedError, match="set XYNTRA_CC"):
        compile_islands([island("a", chain("add"))], context)


def test_a_program_that_is_not_legal_fails_its_island(context: Context) -> None:
    bad = chain("add")
    bad.sources.append((1,))
    result = compile_islands([island("a", bad), island("b", chain("add"))], context)
    [failure] = result.failures
    assert (failure.island, failure.op) == (0, None) and "1 ops but 2 sources" in failure.reason
    assert result.islands[1] is not None


def test_alternatives_share_constants_by_name(context: Context) -> None:
    programs = []
    for order in ((0, 1), (1, 0)):
        p = ProgramBuilder()
        x = p.input("s", 4)
        weights = [p.constant(4), p.constant(4)]
        p.output(p.mul(p.add(x, weights[order[0]]), weights[order[1]]))
        p.program.constants[:] = [f"w{i}" for i in order]
        programs.append(p.program)
    result = compile_islands([island("a", *programs)], context)
    [entry] = read_manifest(write_plan(DIGEST, result, context)).islands
    assert sorted(entry.constants) == ["w0", "w1"]
    for alternative, program in zip(entry.alternatives, programs, strict=True):
        named = [entry.constants[b.index] for b in alternative.buffers if b.kind == 2]
        assert sorted(named) == sorted(program.constants)


def test_the_rows_of_a_report(context: Context) -> None:
    result = compile_islands([island("a", chain("add", "mul"))], context)
    [entry] = result.islands
    assert entry is not None
    rows, steps = report_of(entry, result.kernels, context)
    assert [(r["label"], r["variant"], r["nodes"]) for r in rows] == [
        ("add", "toy.pointwise", [100]),
        ("mul", "toy.pointwise", [101]),
    ]
    assert steps == [[0, 1]] and all(row["launches"] == [] for row in rows)


def test_a_report_has_what_kernels_were_chosen_for_and_the_runner_up(context: Context) -> None:
    """Over the sizes that are assumed, as the choice is: the geometric mean. Steps cost 2 ns for each of 4s elements; those that
    have no units cost nothing."""

    def with_an_idle_step(op: Pointwise, config: Config, context: BuildContext) -> list[KernelCall]:
        [call] = POINTWISE.build(op, config, context)
        return [call, dataclasses.replace(call, units=0)]

    program = chain("add")
    program.bindings[:] = [dataclasses.replace(b, plausible=Range(1, 8, 512)) for b in program.bindings]
    costly = dataclasses.replace(POINTWISE, name="toy.costly", cost_ns=lambda op, config, context: 10.0 * typical(op.domain[0]))
    twice = dataclasses.replace(POINTWISE, build=with_an_idle_step)
    for variants, runner_up in (((costly, POINTWISE), ["toy.costly", 160]), ((twice,), None)):
        made = Context(cache_dir=context.root.path, hash128=hash128, caps=SCALAR, variants={Pointwise: variants})
        result = compile_islands([island("a", program)], made)
        [entry] = result.islands
        assert entry is not None
        ([row], _) = report_of(entry, result.kernels, made, {0: 77.0})
        assert (row["variant"], row["decided_ns"], row["steps_ns"], row["cost_ns"]) == ("toy.pointwise", 100, 2 * 4 * 16, 77)
        assert row["runner_up"] == runner_up


@pytest.mark.compiler("nvrtc")
def test_a_device_s_compiler_reports_its_kernels(tmp_path: Path) -> None:
    device = Context(cache_dir=tmp_path, device=known_target("sm_80"))
    result = compile_islands([island("a", chain("add"))], device)
    [entry] = result.islands
    assert entry is not None
    ([row], _) = report_of(entry, result.kernels, device)
    [launch] = row["launches"]
    assert launch["threads"] == 256 and launch["report"]["registers"] > 0 and launch["occupancy"]["blocks"] == 8
    assert launch["text"].endswith("0 KiB shared: 8 on a multiprocessor, 64 of 64 warps by warps")


def test_plans_need_the_native_hash(tmp_path: Path) -> None:
    context = Context(cache_dir=tmp_path, caps=SCALAR, variants=TABLE)
    result = compile_islands([], context)
    with pytest.raises(UnsupportedError, match="hash function"):
        write_plan(DIGEST, result, context)
