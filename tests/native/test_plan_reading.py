"""A plan file may be damaged in any way: it must be refused, never followed out of memory."""

from __future__ import annotations

import random
from pathlib import Path
from struct import pack
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

from tests.native.conftest import FakePlanner
from tests.native.plans.kernels import NUMBER
from tests.native.plans.manifest_builder import ARENA, CONSTANT, INIT, INPUT, POOL, Alternative, Island, hash128, u32s
from tests.native.plans.models import add_answer, add_island, add_model
from tests.native.test_claims import report
from xyntra_ep.provider.graph_buffer import RawGraph

pytestmark = [pytest.mark.native, pytest.mark.compiler("gcc")]
W = np.arange(300, dtype=np.float32)
InvalidArgument = ort.capi.onnxruntime_pybind11_state.InvalidArgument


def bad_symbol_input(a: Alternative) -> None:
    a.dim(7, 0)


def bad_symbol_axis(a: Alternative) -> None:
    a.dim(0, 2)


def element_of_floats(a: Alternative) -> None:
    a.element(0, 0)


def forward_reference(a: Alternative) -> None:
    a.op("add", 0, len(a.exprs))


def negative_reference(a: Alternative) -> None:
    a.op("not", -1)


def unknown_op(a: Alternative) -> None:
    a.exprs.append(pack("<Bqqq", 18, 0, 0, 0))


def bad_guard(a: Alternative) -> None:
    a.guards.append(len(a.exprs))


def bad_kernel(a: Alternative) -> None:
    a.step(99, [])


def bad_buffer(a: Alternative) -> None:
    a.step(0, [99])


def bad_offset(a: Alternative) -> None:
    a.step(0, [(0, 9999)])


def constant_at_run_time(a: Alternative) -> None:
    a.step(0, [a.buffer(CONSTANT, 0)])


def input_in_init(a: Alternative) -> None:
    a.step(0, [a.buffer(INPUT, 0)], init=True)


def shape_in_init(a: Alternative) -> None:
    a.step(0, [], [a.dim(0, 0)], init=True)


def pool_of_symbolic_size(a: Alternative) -> None:
    a.buffer(POOL, size=a.dim(0, 0))


def pool_never_made(a: Alternative) -> None:
    a.buffer(POOL, size=a.const(4))


def outside_of_lifetime(a: Alternative) -> None:
    temporary = a.buffer(ARENA, size=a.const(4), first=0, last=0)
    a.step(0, [temporary])
    a.step(0, [temporary])


def lifetime_beyond_the_run(a: Alternative) -> None:
    a.buffer(ARENA, size=a.const(4), first=0, last=50)


def bad_input_index(a: Alternative) -> None:
    a.buffer(INPUT, 1)


def bad_buffer_kind(a: Alternative) -> None:
    a.buffer(7)


def output_of_other_rank(a: Alternative) -> None:
    a.outputs[0].append(0)


def output_too_many(a: Alternative) -> None:
    a.outputs.append([])


def tensor(buffer: int, extents: list[int], strides: list[int], box: list[int]) -> bytes:
    return pack("<III", buffer, 2, 0) + u32s(extents) + u32s(strides) + u32s(box)


def weight_of_negative_size(a: Alternative) -> None:
    a.step(0, [a.buffer(POOL, size=a.op("sub", a.const(0), a.const(1)))], init=True)


def weight_beyond_memory(a: Alternative) -> None:
    a.step(0, [a.buffer(POOL, size=a.const((1 << 62) + 1))], init=True)


def size_that_does_not_fit(a: Alternative) -> None:
    a.step(0, [], [a.op("mul", a.const(1 << 62), a.const(4))], init=True)


def init_of_negative_units(a: Alternative) -> None:
    a.step(0, [], units=a.const(-1), init=True)


def init_outside_of_its_weight(a: Alternative) -> None:
    a.step(0, [(a.buffer(POOL, size=a.const(4)), a.const(5))], init=True)


def init_before_its_temporary(a: Alternative) -> None:
    a.step(0, [(a.buffer(INIT, size=a.const(4)), a.const(-4))], init=True)


def init_outside_of_its_constant(a: Alternative) -> None:
    a.step(0, [(a.buffer(CONSTANT, 0), a.const(4 * len(W) + 4)), 1], [a.const(0)], init=True)


def too_few_buffers(a: Alternative) -> None:
    a.step(NUMBER["relu"], [a.input(0)], [a.const(0)])


def too_few_parameters(a: Alternative) -> None:
    a.step(NUMBER["relu"], [a.input(0), a.output(0)])


def weight_twice_in_a_step(a: Alternative) -> None:
    weight = a.buffer(POOL, size=a.const(4))
    a.step(0, [weight, weight], init=True)


def fault_in_no_buffer(a: Alternative) -> None:
    a.faults.append((99, "data"))


def fault_in_an_input(a: Alternative) -> None:
    a.faults.append((a.input(0), "data"))


def fault_that_is_overwritten(a: Alternative) -> None:
    a.faults.append((a.buffer(ARENA, size=a.const(4), first=0, last=0), "data"))


def tensor_in_no_buffer(a: Alternative) -> None:
    a.step(0, [0], tensors=[tensor(1, [0], [], [1])])


def tensor_of_few_strides(a: Alternative) -> None:
    a.step(0, [0], tensors=[tensor(0, [0, 0], [], [1, 1])])


def tensor_on_the_cpu(a: Alternative) -> None:
    a.step(0, [a.buffer(INPUT, 0)], tensors=[tensor(0, [0, 0], [0], [1, 1])])


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (bad_symbol_input, "a symbol names no input"),
        (bad_symbol_axis, "a symbol names no dimension"),
        (fault_in_no_buffer, "a fault is in no temporary"),
        (fault_in_an_input, "a fault is in no temporary"),
        (fault_that_is_overwritten, "a fault is gone before the run ends"),
        (element_of_floats, "an element that is no integer"),
        (forward_reference, "an expression uses a later one"),
        (negative_reference, "an expression uses a later one"),
        (unknown_op, "unknown expression op 18"),
        (bad_guard, "an expression index is out of range"),
        (bad_kernel, "a step names no kernel"),
        (bad_buffer, "a step names no buffer"),
        (bad_offset, "an expression index is out of range"),
        (constant_at_run_time, "a kind of buffer it must not"),
        (input_in_init, "a kind of buffer it must not"),
        (shape_in_init, "an init step depends on a shape"),
        (pool_of_symbolic_size, "the size of a packed weight depends on a shape"),
        (pool_never_made, "no init step makes a packed weight"),
        (weight_of_negative_size, "a size of the init steps cannot be"),
        (weight_beyond_memory, "a size of the init steps cannot be"),
        (size_that_does_not_fit, "a size of the init steps cannot be"),
        (init_of_negative_units, "a size of the init steps cannot be"),
        (init_outside_of_its_weight, "an init step begins outside of its buffer"),
        (init_before_its_temporary, "a size of the init steps cannot be"),
        (weight_twice_in_a_step, "an init step names a packed weight twice"),
        (outside_of_lifetime, "a temporary outside of its lifetime"),
        (lifetime_beyond_the_run, "not within the run"),
        (bad_input_index, "a buffer names no input"),
        (bad_buffer_kind, "unknown kind of buffer"),
        (output_of_other_rank, "the rank of an output differs"),
        (output_too_many, "the number of outputs differs"),
        (tensor_in_no_buffer, "a tensor is in no buffer of its step"),
        (tensor_of_few_strides, "the axes of a tensor differ"),
        (tensor_on_the_cpu, "tensors are for kernels on a device"),
    ],
)
def test_what_is_wrong_is_named(planner: FakePlanner, make_session: Any, spoil: Any, why: str) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        island = add_island(raw)
        spoil(island.alternatives[0])
        return [island]

    planner.decide = decide
    session = make_session(add_model(W))
    assert why in report(session)[0]["failure"]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda island: setattr(island.inputs[0], "elem_type", 7), "'x' is of type 1, the plan says 7"),
        (lambda island: setattr(island.outputs[0], "elem_type", 11), "'y' is of type 1, the plan says 11"),
        (lambda island: init_outside_of_its_constant(island.alternatives[0]), "begins outside of a constant"),
        (lambda island: too_few_buffers(island.alternatives[0]), "gives relu 1 buffers and 1 parameters, it takes 2 and 1"),
        (lambda island: too_few_parameters(island.alternatives[0]), "gives relu 2 buffers and 0 parameters, it takes 2 and 1"),
    ],
    ids=["input", "output", "constant", "buffers", "parameters"],
)
def test_a_plan_for_others(planner: FakePlanner, make_session: Any, tmp_path: Path, spoil: Any, why: str) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        island = add_island(raw)
        if planner.calls == 1:
            spoil(island)
        return [island]

    planner.decide = decide
    graph, options = add_model(W), {"cache_dir": str(tmp_path)}
    assert why in str(report(make_session(graph, options))[0]["unclaimed"])
    plan = planner.plan([add_island(planner.graphs[0])])
    spoil(plan.islands[0])
    plan.digest = planner.digests[0]
    planner.store(tmp_path, planner.digests[0], plan.bytes())
    x = np.ones((2, len(W)), np.float32)
    np.testing.assert_array_equal(make_session(graph, options).run(None, {"x": x})[0], add_answer(x, W))
    assert planner.calls == 2  # a stored plan like that is none


def test_two_outputs_of_a_name(planner: FakePlanner, make_session: Any) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        island = add_island(raw)
        island.outputs *= 2
        island.alternatives[0].outputs *= 2
        return [island]

    planner.decide = decide
    assert "two inputs or outputs have the same name" in report(make_session(add_model(W)))[0]["failure"]


def test_random_damage_with_a_right_checksum(planner: FakePlanner, make_session: Any) -> None:
    # The reader's own checks, without the checksum in front of them. Only the reading is tested: a plan that is still
    # well-formed may say nonsense, which its writer has to prevent. So its islands are for a node that is not there.
    generator = random.Random(1)
    outcomes = {"refused": 0, "read": 0}

    def decide(raw: RawGraph) -> bytes:
        island = add_island(raw)
        island.nodes = [1 << 40]
        plan = planner.plan([island])
        plan.digest = planner.digests[-1]
        content = bytearray(plan.bytes()[:-16])
        kind = generator.randrange(3)
        if kind == 0:
            del content[generator.randrange(len(content)) :]
        else:
            for _ in range(kind):
                at = generator.randrange(8, len(content))
                content[at] = generator.choice((0, 1, 0x7F, 0xFF, generator.randrange(256)))
        return bytes(content) + hash128(bytes(content))

    planner.decide = decide
    graph = add_model(W)
    ort.set_default_logger_severity(4)
    try:
        for _ in range(300):
            try:
                (entry,) = report(make_session(graph))
            except InvalidArgument:  # the verdict was hit
                continue
            outcomes["refused" if entry["failure"] else "read"] += 1
    finally:
        ort.set_default_logger_severity(2)
    assert outcomes["refused"] > 100
    assert outcomes["read"] > 10
