"""Python readers of foreign bytes: damage is an error of the kind that is promised, quickly, and nothing else."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.provider.test_graph_buffer import written
from tests.tracea.planning.test_manifest import hash128, manifest, planned
from xyntra_ep.errors import XyntraError
from xyntra_ep.provider.graph_buffer import read
from xyntra_ep.tracea.planning.manifest import write_manifest
from xyntra_ep.tracea.planning.manifest_reader import read_manifest

GRAPH = written(3)
PLAN = write_manifest(manifest(planned()), hash128)
NUMBERS = st.sampled_from([0, 1, 0x7F, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, (1 << 64) - 1])


@st.composite
def damage(draw: st.DrawFn, data: bytes) -> bytes:
    """Some bytes changed, left out or put in, and perhaps the end cut off."""
    damaged = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(4, len(damaged) - 1))
        match draw(st.integers(0, 3)):
            case 0:
                damaged[at] = draw(st.integers(0, 255))
            case 1:
                number = struct.pack("<Q", draw(NUMBERS))[: draw(st.sampled_from((4, 8)))]
                damaged[at : at + len(number)] = number
            case 2:
                del damaged[at : at + draw(st.integers(1, 8))]
            case _:
                damaged[at:at] = draw(st.binary(min_size=1, max_size=8))
        if len(damaged) < 6:
            break
    return bytes(damaged[: draw(st.integers(0, len(damaged)))] if draw(st.booleans()) else damaged)


@given(damage(GRAPH))
def test_graph_buffers(data: bytes) -> None:
    try:
        graph = read(memoryview(data))
    except ValueError:
        return
    for node in graph.nodes:  # what is read can be followed
        for index in (*node.inputs, *node.implicit_inputs, *node.outputs):
            assert -1 <= index < len(graph.values)


@given(damage(PLAN))
def test_plans(data: bytes) -> None:
    try:
        read_manifest(data)
    except XyntraError:
        return


@pytest.mark.parametrize(("reader", "data"), [(read, GRAPH), (read_manifest, PLAN)], ids=["graph", "plan"])
def test_cut_anywhere(reader: Callable[[memoryview], object], data: bytes) -> None:
    for length in range(len(data)):
        with pytest.raises((ValueError, XyntraError)):
            reader(memoryview(data[:length]) if reader is read else data[:length])  # type: ignore[arg-type]
