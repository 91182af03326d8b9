"""A plan file may be damaged in any way: it must be refused, never followed out of memory."""

from __future__ import annotations

import random
from struct import pack
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

from tests.native.conftest import FakePlanner
from tests.native.manifest_builder import ARENA, CONSTANT, INPUT, POOL, Alternative, Island, hash128, u32s
from tests.native.models import add_island, add_model
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
