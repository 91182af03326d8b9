"""What is written as Triton: text for each kind of op, and that all of the zoo is."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.elementwise import elementwise, here
from tests.support.programs.recurrences import CELLS, recurrence
from tests.tracea.kernels import attention_programs, block_programs, gemm_programs
from tests.tracea.kernels.attention_programs import AttentionCase
from tests.tracea.kernels.block_programs import BlockCase
from tests.tracea.kernels.conv_programs import ConvCase, conv_program
from tests.tracea.kernels.cpu.rows.test_row_reduce import layer_norm, softmax
from tests.tracea.kernels.gemm_programs import GemmCase
from xyntra_ep.cli import main
from xyntra_ep.diagnostics.fused.graph import read_model, source_of
from xyntra_ep.diagnostics.fused.groups import find_islands
from xyntra_ep.frameworks.triton.module import module_text
from xyntra_ep.tracea.core_ir.dims import symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import call, const
from xyntra_ep.tracea.core_ir.ops import Pointwise, Program, ReduceKind, Scan, ValueKind
from xyntra_zoo import model_path, zoo

TINY = sorted(model.name for model in zoo if model.tiny)
FULL = sorted(model.name for model in zoo if not model.tiny)
PROGRAMS: dict[str, Callable[[], Program]] = {
    "bias_gelu": lambda: elementwise((4, 768), lambda x, y: call("gelu_erf", call("add", x, y)), DType.F32, DType.F32)[0],
    "softmax": partial(softmax, 128, 768),
    "layer_norm": partial(layer_norm, 128, 768),
    "linear": lambda: gemm_programs.build(GemmCase(m=33, k=96, n=70, epilogue="gelu"))[0],
    "four_bits": lambda: block_programs.build(BlockCase(m=3, k=64, n=20, zeros=DType.U8))[0],
    "convolution": lambda: conv_program(ConvCase(x=(1, 32, 14, 14), w=(64, 32, 3, 3), pads=(1, 1, 1, 1), tail=("bias", "relu")))[
        0
    ],
    "depthwise": lambda: conv_program(ConvCase(x=(2, 32, 7, 7), w=(32, 1, 3, 3), group=32, pads=(1, 1, 1, 1), symbolic="n"))[0],
    "causal_attention": lambda: attention_programs.build(AttentionCase(s=128, t=128, d=64, e=64, masks=("causal",)))[0],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_text(name: str, golden: Callable[[str, str], None]) -> None:
    module = module_text(name, [PROGRAMS[name]()])
    assert module.refused == ()
    golden(module.text, ".py.txt")


def islands_of(name: str) -> list[Program]:
    """Of a model of the zoo."""
    path = Path(model_path(zoo[name]))
    return [island.program for island in find_islands(source_of(read_model(path), path.parent).graph).islands]


def check_model(name: str) -> None:
    islands = islands_of(name)
    module = module_text(name, islands)
    assert islands and module.refused == ()
    functions = [node.name for node in ast.parse(module.text).body if isinstance(node, ast.FunctionDef)]
    assert [f for f in functions if f.startswith("island_")] == [f"island_{i}" for i in range(len(islands))]
    assert len(functions) == len(set(functions))


@pytest.mark.parametrize("name", TINY)
def test_each_island_of_the_zoo_is_written(name: str) -> None:
    check_model(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", FULL)
def test_each_island_of_the_full_zoo_is_written(name: str) -> None:
    check_model(name)


@pytest.mark.slow
def test_the_page_counts_what_is_written() -> None:
    rows: list[tuple[str | int, ...]] = []
    for name in TINY:
        programs = islands_of(name)
        module = module_text(name, programs)
        operations = sum(len(program.ops) for program in programs)
        rows.append((name, len(programs), operations, len(module.kernels), len(module.refused)))
    rows.append(("all", *(sum(int(row[i]) for row in rows) for i in range(1, 5))))
    page = (Path(__file__).parents[3] / "docs" / "triton.md").read_text(encoding="utf-8")
    table = page.split("<!-- triton: ")[1].split("<!-- /triton -->")[0]
    assert table.splitlines()[3:] == [f"| {' | '.join(map(str, row))} |" for row in rows]


def test_layers_share_their_kernels() -> None:
    text = module_text("bert", islands_of("bert-base-tiny")).text  # of two layers
    assert text.count("def attention_") == 1 and text.count("attention_0[") == 2


@pytest.mark.parametrize("cell", CELLS)
def test_a_recurrence_is_refused(cell: str) -> None:
    module = module_text("model", [recurrence(cell, width=16)])
    assert [str(line) for line in module.refused] == ["island 0 is not here: Recurrence: Recurrence has no Triton kernel"]
    assert "island 0 is not here: Recurrence" in ast.get_docstring(ast.parse(module.text))  # type: ignore[operator]  # it has one
    assert module.kernels == ()


def test_a_scan_along_a_size_of_a_run_is_refused() -> None:
    p = ProgramBuilder()
    x = p.input(4, "n")
    out = p.value(ValueKind.OUTPUT, 4, symbol("n"))
    p.op(Scan(inputs=(x,), body=here(x, 0), kind=ReduceKind.SUM, exclusive=False, reverse=False, output=out))
    [line] = module_text("model", [p.program]).refused
    assert line.reason == "a scan along an axis whose length only a run knows"


def test_names_of_sizes_do_not_hide_variables() -> None:
    p = ProgramBuilder()
    x = p.input("rows", "k")
    out = p.value(ValueKind.OUTPUT, symbol("rows"), symbol("k"))
    p.op(Pointwise(domain=out.shape, inputs=(x,), bodies=(call("add", here(x, 0), const(1.0)),), outputs=(out,)))
    [kernel] = module_text("model", [p.program]).kernels
    assert set(kernel.sizes) == {"size_rows", "size_k"}


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(model_path(zoo["mobilenetv2-tiny"]))
    assert main(["fuse", model, "--emit", "triton"]) == 0
    printed = capsys.readouterr().out
    assert main(["fuse", model, "-o", str(tmp_path / "fused.py")]) == 0
    assert (tmp_path / "fused.py").read_text(encoding="utf-8") == printed
    assert "def island_0(pixel_values, weights):" in printed
