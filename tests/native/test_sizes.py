"""Sizes of a run: every operation over the corners of 64 bits, against Python's own integers, and what becomes of numbers that do
not fit, or that lead outside of a buffer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from tests.native.conftest import FakePlanner
from tests.native.plans.kernels import NUMBER
from tests.native.plans.manifest_builder import ARENA, LITERAL, OPS, Alternative, Island, Tensor
from tests.native.plans.models import model, names, node_of, relu_island, relu_model, tensor
from tests.support.evaluate_rows import evaluate_rows
from xyntra_ep.provider.graph_buffer import RawGraph
from xyntra_ep.tracea.core_ir.dims import DimOp

pytestmark = [pytest.mark.native, pytest.mark.compiler("gcc")]
InvalidArgument = ort.capi.onnxruntime_pybind11_state.InvalidArgument

LEAST, MOST = -(1 << 63), (1 << 63) - 1
CORNERS = (0, 1, -1, 2, -3, 7, (1 << 31) - 1, -(1 << 31), 1 << 32, MOST, MOST - 1, LEAST, LEAST + 1)


OPERATIONS = [op for op in OPS if op not in ("const", "symbol", "select")]


def exact(op: str, a: int, b: int) -> int:
    return evaluate_rows([(DimOp.SYMBOL, 0, 0, 0), (DimOp.SYMBOL, 1, 0, 0), (DimOp[op.upper()], 0, 1, 0)], (a, b))[-1]


Session = Callable[[Callable[[Alternative], int]], ort.InferenceSession]


@pytest.fixture
def telling(planner: FakePlanner, make_session: Any) -> Session:
    """A session that answers with the size that a plan makes of the elements of x."""

    def make(size: Callable[[Alternative], int]) -> ort.InferenceSession:
        def decide(raw: RawGraph) -> list[Island]:
            node = node_of(raw, "Neg")
            (x,), (y,) = names(raw, node.inputs), names(raw, node.outputs)
            alternative = Alternative()
            alternative.output_dims(alternative.dim(0, 0))
            alternative.step(NUMBER["tell"], [alternative.output(0)], [size(alternative)])
            return [Island("tell", [node.id], [Tensor(x, 7)], [Tensor(y, 7)], [alternative])]

        planner.decide = decide
        dims = [tensor(name, ["N"], TensorProto.INT64) for name in ("x", "y")]
        return make_session(model([helper.make_node("Neg", ["x"], ["y"])], dims[:1], dims[1:]))

    return make


def told(session: ort.InferenceSession, *elements: int) -> int | None:
    """None: the size is too large."""
    try:
        return int(session.run(None, {"x": np.array(elements, np.int64)})[0][0])
    except InvalidArgument as error:
        assert "a size is too large" in str(error)
        return None


@pytest.mark.parametrize("op", OPERATIONS)
def test_corners(telling: Session, op: str) -> None:
    session = telling(lambda a: a.op(op, a.element(0, 0), a.element(0, 1)))
    for a, b in itertools.product(CORNERS, repeat=2):
        meant = exact(op, a, b)
        assert told(session, a, b) == (meant if LEAST <= meant <= MOST else None), (op, a, b)


def test_what_is_not_used_may_be_too_large(telling: Session) -> None:
    # The end of a slice, from the back where it is negative: MOST stands for "to the end".
    def end(a: Alternative) -> int:
        last, length = a.element(0, 0), a.element(0, 1)
        return a.op("select", a.op("lt", last, a.const(0)), a.op("add", last, length), last)

    session = telling(end)
    assert told(session, MOST, 5) == MOST
    assert told(session, -2, 5) == 3
    assert told(session, -2, LEAST) is None


@pytest.mark.parametrize(("op", "decides"), [("and", 0), ("or", 1)])
def test_a_side_that_decides_alone(telling: Session, op: str, decides: int) -> None:
    def both(a: Alternative) -> int:
        return a.op(op, a.op("mul", a.element(0, 0), a.element(0, 1)), a.element(0, 2))

    session = telling(both)
    assert told(session, MOST, 2, decides) == decides
    assert told(session, MOST, 2, 1 - decides) is None
    assert told(session, 1, 1, 1) == 1


@pytest.mark.parametrize("part", ["guard", "check", "dims", "arena", "units", "param", "offset"])
def test_nothing_that_is_used_may_be_too_large(planner: FakePlanner, make_session: Any, part: str) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        island = relu_island(raw)
        (a,) = island.alternatives
        rows = a.op("mul", a.dim(0, 0), a.const(1 << 62))
        match part:
            case "guard":
                a.guards.append(a.op("lt", a.const(-1), rows))
            case "check":
                a.checks.append((a.op("lt", a.const(-1), rows), "never"))
            case "dims":
                a.outputs[0][0] = rows
            case "arena":
                a.step(NUMBER["fill"], [a.buffer(ARENA, size=rows, first=1, last=1)], [a.const(0), a.const(0)])
            case "units":
                a.step(NUMBER["relu"], [0, 1], [a.const(0)], rows)
            case "param":
                a.step(NUMBER["relu"], [0, 1], [rows], a.const(0))
            case "offset":
                a.step(NUMBER["relu"], [(0, rows), 1], [a.const(0)])
        return [island]

    planner.decide = decide
    session = make_session(relu_model())
    x = np.ones((4, 4), np.float32)
    with pytest.raises(InvalidArgument, match="a size is too large"):
        session.run(None, {"x": x})


def test_a_tensor_that_no_memory_holds(planner: FakePlanner, make_session: Any) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        island = relu_island(raw)
        (a,) = island.alternatives
        a.outputs[0] = [a.op("mul", a.dim(0, 0), a.const(1 << 31)), a.const(1 << 31)]
        return [island]

    planner.decide = decide
    session = make_session(relu_model())
    with pytest.raises(InvalidArgument, match="a size is too large"):  # 2 * 2^62 elements: each extent fits
        session.run(None, {"x": np.ones((2, 4), np.float32)})


@pytest.mark.parametrize("kind", ["input", "output", "temporary", "literal"])
def test_a_step_begins_inside_of_its_buffer(planner: FakePlanner, make_session: Any, kind: str) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        island = relu_island(raw)
        (a,) = island.alternatives
        rows = a.dim(0, 0)
        offset = a.op("mul", a.op("sub", rows, a.const(2)), a.const(16))  # two rows of four floats are too many, one too few
        match kind:
            case "temporary":
                buffer = a.buffer(ARENA, size=a.const(16), first=1, last=1)
            case "literal":
                buffer = a.buffer(LITERAL, data=bytes(16))
            case _:
                buffer = 0 if kind == "input" else 1
                offset = a.op("mul", offset, rows)
        a.step(NUMBER["relu"], [(buffer, offset), (buffer, offset)], [a.const(0)])
        return [island]

    planner.decide = decide
    session = make_session(relu_model())
    for rows in (2, 3):  # at the front, and behind the last byte, where nothing is to be read
        session.run(None, {"x": np.ones((rows, 4), np.float32)})
    for rows in (1, 4):
        with pytest.raises(InvalidArgument, match="would begin outside of its buffer"):
            session.run(None, {"x": np.ones((rows, 4), np.float32)})
    session.run(None, {"x": np.ones((2, 4), np.float32)})


def test_no_step_is_left_out_for_its_size(planner: FakePlanner, make_session: Any) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        island = relu_island(raw)
        (a,) = island.alternatives
        a.step(NUMBER["relu"], [0, 1], [a.const(0)], a.op("sub", a.dim(0, 0), a.const(2)), label="cropped")
        return [island]

    planner.decide = decide
    session = make_session(relu_model())
    session.run(None, {"x": np.ones((2, 4), np.float32)})
    with pytest.raises(InvalidArgument, match=r"step 'cropped' would have a negative size \(x \[1,4\]\)"):
        session.run(None, {"x": np.ones((1, 4), np.float32)})
