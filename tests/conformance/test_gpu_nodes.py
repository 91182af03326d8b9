"""ONNX's node tests through the GPU variants as they are made for CUDA, carried out by the simulation: what the interpreter
computes, they compute too."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.node_cases import first_of_each_operator, node_cases
from tests.support.gpu.run import simulate
from tests.support.models.graph_from_model import applicable_program
from tests.tolerances import difference
from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import Recurrence
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import SM_80

SHARDS = 16
MIN_FIRST = 280  # a change that makes operators decline must not pass unseen


def is_right(name: str) -> bool:
    """Whether the whole case is ours; fails where the results differ."""
    case = node_cases()[name]
    try:
        program, inputs, constants = applicable_program(case.model, case.feeds)
    except UnsupportedError:
        return False
    if any(isinstance(op, Recurrence) for op in program.ops):  # declined on devices, which have no kernel for it
        return False
    with np.errstate(all="ignore"):
        wanted = interpret(program, inputs, constants, keep_float64=False)
    got = simulate(program, inputs, constants, SM_80)
    wrong = [text for a, b in zip(got, wanted, strict=True) if (text := difference(np.asarray(a), np.asarray(b)))]
    assert not wrong, f"{name}: {wrong}"
    return True


def test_each_operator() -> None:
    assert sum(is_right(name) for name in first_of_each_operator()) >= MIN_FIRST


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_case(shard: int) -> None:
    assert sum(is_right(name) for name in list(node_cases())[shard::SHARDS]) > 0
