from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.programs.recurrences import recurrence
from tests.tracea.kernels.attention_programs import AttentionCase
from tests.tracea.kernels.attention_programs import build as attention
from tests.tracea.kernels.conv_programs import ConvCase, conv_program
from tests.tracea.kernels.gemm_programs import GemmCase
from tests.tracea.kernels.gemm_programs import build as gemm
from xyntra_ep import knobs
from xyntra_ep.errors import InternalError, InvariantError
from xyntra_ep.tracea.core_ir.ops import Attention, Conv, Gemm, Pointwise, Program, RowReduce
from xyntra_ep.tracea.doctor.variants import cpu_variants
from xyntra_ep.tracea.emitters.cpu import emit
from xyntra_ep.tracea.planning import builder as builder_module
from xyntra_ep.tracea.planning.builder import OpBuilder
from xyntra_ep.tracea.planning.constants import constant_ops, live_ops
from xyntra_ep.tracea.prebuilt.build import build_library, capabilities_of, general_builder, sources_of, used_here
from xyntra_ep.tracea.prebuilt.catalogue import OPS, RecordedOp, read_line, read_ops, recorded, write_line, write_ops
from xyntra_ep.tracea.semantic_ir.nodes import Kernel

PROGRAMS = {
    "gemm": gemm(GemmCase(m=7, k=33, n=20, batch=(2,), a_batch=(2,), epilogue="gelu", symbolic="m"))[0],
    "conv": conv_program(ConvCase(x=(1, 8, 9, 9), w=(8, 8, 3, 3), pads=(1,) * 4, tail=("bias", "relu")))[0],
    "attention": attention(AttentionCase(masks=("causal",), past=2))[0],
    "recurrence": recurrence("lstm", 24),
}


def first_op(program: Program) -> RecordedOp:
    live = live_ops(program)
    once, known = constant_ops(program, live)
    number = next(i for i in live if i not in once)
    return recorded(program.ops[number], program, known)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_written_is_read(name: str) -> None:
    op = first_op(PROGRAMS[name])
    again = read_line(write_line(op))
    assert write_line(again) == write_line(op)
    assert again.op == op.op and dict(again.values) == dict(op.values) and again.constants == op.constants


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_of_a_recorded_op_are_those_of_the_op(name: str) -> None:
    program = PROGRAMS[name]
    builder = general_builder(capabilities_of("avx2"))
    live = live_ops(program)
    once, known = constant_ops(program, live)
    number = next(i for i in live if i not in once)
    own = [launch.source.distinct().text for launch in builder.build(program.ops[number], program, known).launches]
    again = read_line(write_line(first_op(program)))
    assert [source.text for source in sources_of(again, general_builder(capabilities_of("avx2")))] == own != []


def test_nothing_that_people_named_is_kept() -> None:
    op = first_op(PROGRAMS["gemm"])
    assert op.op.label == "" and {value.name for value in op.values.values()} == {""}


def test_the_catalogue_has_the_kinds_that_models_are_made_of(tmp_path: Path) -> None:
    ops = read_ops()
    assert {type(op.op) for op in ops} >= {Gemm, Conv, Attention, RowReduce, Pointwise}
    lines = [write_line(op) for op in ops]
    assert lines == sorted(set(lines)), "sorted, each once"
    write_ops(ops, tmp_path / "again.xz")
    assert (tmp_path / "again.xz").read_bytes() == OPS.read_bytes()


def test_a_kernel_that_is_in_a_library_was_checked_when_that_was_built(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(kernel: Kernel) -> None:
        raise InvariantError(kernel.name)

    monkeypatch.setattr(builder_module, "check_kernel", wrong)
    op, caps = first_op(PROGRAMS["gemm"]), capabilities_of("avx2")
    known = OpBuilder(caps, cpu_variants(), emit, general=True, is_checked=lambda source: True)
    assert list(sources_of(op, known))
    with pytest.raises(InternalError, match="InvariantError"):
        list(sources_of(op, general_builder(caps)))


@pytest.mark.skipif(not used_here(), reason="no vectors that kernels are prebuilt for")
def test_a_library_is_built_however_long_its_kernels_take(tmp_path: Path) -> None:
    with knobs.scope(compile_timeout_s=0.01):
        kernels, size_bytes = build_library(used_here()[-1], [first_op(PROGRAMS["gemm"])], tmp_path)
    assert kernels > 0 and size_bytes > 0
