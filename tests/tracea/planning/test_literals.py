"""Kernels by the numbers that steps give them."""

from __future__ import annotations

from dataclasses import replace

from xyntra_ep.tracea.core_ir.dims import Size, symbol
from xyntra_ep.tracea.core_ir.given_size import GivenSize
from xyntra_ep.tracea.core_ir.ops import Program
from xyntra_ep.tracea.planning.literals import with_literals
from xyntra_ep.tracea.planning.plan import PlannedProgram, PlanStep
from xyntra_ep.tracea.runtime.kernel_source import Definition, KernelSource, taking

TEXT = "void \0(i64 *params) {\n  const i64 m = params[0];\n  const i64 n = params[1];\n  use(params[1]);\n}\n"
SOURCE = KernelSource(symbol="f", definitions=(Definition(text=TEXT), taking(0, 2)))
OTHER = replace(SOURCE, symbol="g")


def _step(kernel: int, *params: Size) -> PlanStep:
    return PlanStep(kernel=kernel, label="", buffers=(), params=params, units=1, cost_ns=0, op=0)


def _planned(init: tuple[PlanStep, ...], run: tuple[PlanStep, ...]) -> PlannedProgram:
    return PlannedProgram(
        program=Program(), kernels=(SOURCE, OTHER), buffers=(), init=init, run=run, output_shapes=(), decisions=()
    )


def test_run_steps_with_other_numbers_have_other_kernels() -> None:
    n = symbol("n")
    found = with_literals(_planned((_step(0, 1, 2),), (_step(0, n, 768), _step(0, n, 3072), _step(0, n, 768), _step(1, n, n))))
    assert [k.literals for k in found.kernels] == [(), (None, 768), (None, 3072), ()]
    assert [k.text for k in found.kernels] == [SOURCE.text] * 3 + [OTHER.text]
    assert [s.kernel for s in found.init] == [0]
    assert [s.kernel for s in found.run] == [1, 2, 1, 3]


def test_given_sizes_are_plain_numbers() -> None:
    found = with_literals(_planned((), (_step(0, GivenSize(3, "a"), 4), _step(0, GivenSize(3, "b"), 4))))
    assert len(found.kernels) == 1 and all(type(value) is int for value in found.kernels[0].literals)


def test_literals_are_in_the_text_of_the_successor_alone() -> None:
    one, two = (replace(SOURCE, literals=(None, n)).specialised() for n in (768, 3072))
    assert "const i64 m = params[0];\n  const i64 n = 768;\n  use(params[1]);" in one.text
    assert f"{one.symbol}_takes[2] = {{0, 2}}" in one.text, "it is called like the general one"
    assert len({one.symbol, two.symbol, SOURCE.symbol}) == 3
    assert replace(SOURCE, literals=(None, 768)).text == SOURCE.text
