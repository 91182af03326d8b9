"""What is written after each pass, and what is told of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.support.models.graph_from_model import graph_from_model
from tests.support.models.model_text import normal, parse
from xyntra_ep.fusion.dump import Dump, Step
from xyntra_ep.fusion.graph import NodeId
from xyntra_ep.fusion.passes import PASSES, Target
from xyntra_ep.fusion.reason import Kind, Reason
from xyntra_ep.fusion.schedule import TRACED, build_program
from xyntra_ep.fusion.trace import trace
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Product

LAYER = """(float[N,4] x, float[M,2,5,8] q, float[M,2,7,8] k, float[M,2,7,8] v) => (float[] y, float[] z) {
    m = MatMul(x, w)  a = Add(m, b)  t = Transpose(a)  y = Relu(t)
    kt = Transpose<perm = [0, 1, 3, 2]>(k)  s = MatMul(q, kt)  p = Softmax<axis = -1>(s)  z = MatMul(p, v) }"""

TRACE = """\
g, island0, after trace: 3 nodes
  %0:f32[d0_0, 4] = input x
  %1:f32[4, 3] = const w
  %2:f32[d0_0, 3] = gemm(%0, %1)   # MatMul#0
  %3:f32[3] = const b
  %4:f32[d0_0, 3] = map(%2, %3) {body=add(in0[i0, i1], in1[i1])}   # Add#1
  %5:f32[d0_0, 3] = map(%4) {body=relu(in0[i0, i1])}   # Relu#3
  %6:f32[3, d0_0] = permute(%5) {perm=(1, 0)}   # Relu#3
  return y = %6
"""
LOWERED = """\
g, island0, after lower_to_ops: 2 ops
  d0_0 = dim 0 of input 0
  v0:f32[3, d0_0] = output y
  v1:f32[d0_0, 4] = input x
  v2:f32[4, 3] = const w
  v3:f32[3] = const b
  v4:f32[d0_0, 3] = temp
  v4 = gemm(v1, v2, v3) {product=f32, epilogue=relu(add(acc0, in2[i1]))}   # MatMul#0, Add#1, Relu#3
  v0 = copy(v4[3, d0_0 : 1, 3]) {domain=(3, d0_0), bodies=(in0[i0, i1])}   # Relu#3
"""


def dumped(folder: Path, text: str = LAYER, product: Product = Product.F32) -> Dump:
    """What passes do to ``text`` as one island."""
    graph = graph_from_model(parse(text, w=normal(4, 3), b=normal(3)))
    members = [node.id for node in graph.nodes]
    inputs, outputs = graph.boundary(members)
    dump = Dump(folder)
    target = Target(product=product, halves=frozenset({DType.BF16}))
    build_program(
        trace(graph, members, inputs, trust=True), inputs, outputs, target=target, watch=dump.watch(graph, members, "island0")
    )
    return dump


def written(folder: Path, name: str, suffix: str = ".txt") -> str:
    [file] = folder.glob(f"*-island0-*-{name}{suffix}")
    return file.read_text(encoding="utf-8")


def numbers(*ids: int) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, ids))


def test_there_are_two_files_for_each_pass(tmp_path: Path) -> None:
    dumped(tmp_path / "a")
    found = sorted(path.name for path in (tmp_path / "a").iterdir())
    number = found[0].split("-")[0]
    assert re.fullmatch(r"\d{3,}", number)
    assert found == sorted(
        f"{number}-island0-{k}-{name}.{suffix}"
        for k, name in enumerate((TRACED, *(each.name for each in PASSES)))
        for suffix in ("dot", "txt")
    )
    dumped(tmp_path / "a")
    assert len(list((tmp_path / "a").iterdir())) == 2 * len(found), "another program is another number"


def test_the_text_of_a_small_island(tmp_path: Path) -> None:
    """Lazy nodes before the lowering, ops after it."""
    dumped(tmp_path, "(float[N,4] x) => (float[] y) { m = MatMul(x, w) a = Add(m, b) t = Transpose(a) y = Relu(t) }")
    assert written(tmp_path, "trace") == TRACE
    assert written(tmp_path, "lower_to_ops") == LOWERED


def test_the_same_island_has_the_same_text(tmp_path: Path) -> None:
    texts = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        dumped(folder)
        texts.append([path.read_text(encoding="utf-8") for path in sorted(folder.iterdir())])
    assert texts[0] == texts[1]


def test_what_each_pass_touched(tmp_path: Path) -> None:
    steps = {step.name: step for step in dumped(tmp_path, product=Product.BF16).steps["island0"]}
    assert list(steps) == [TRACED, *(each.name for each in PASSES)]
    assert steps[TRACED].before == 8 and steps[TRACED].removed == numbers(2), "a transposition is behind the Relu that reads it"
    assert steps["fuse_attention"].fused == (numbers(5, 6, 7),) and steps["fuse_attention"].removed == numbers(4)
    assert (steps["fuse_attention"].before, steps["fuse_attention"].after) == (6, 4)
    assert steps["lower_to_ops"].fused == (numbers(0, 1, 3),) and not steps["lower_to_ops"].changed
    assert steps["choose_precision"].changed == numbers(5, 6, 7), "the other product is too short to be worth it"
    for name in ("settle_repeats", "join_projections", "fuse_rows", "limit_elements"):
        step = steps[name]
        assert (step.fused, step.changed, step.removed, step.refused, step.before) == ((), (), (), (), step.after)


def test_a_picture_is_one_that_graphviz_draws(tmp_path: Path) -> None:
    dumped(tmp_path)
    text = written(tmp_path, "trace", ".dot")
    assert text.startswith("digraph {\n") and text.endswith("}\n")
    nodes = set(re.findall(r"^  (n\d+) \[label=\"(?:[^\"\\]|\\.)*\"(?:, style=dashed)?\];$", text, flags=re.MULTILINE))
    edges = re.findall(r"^  (n\d+) -> (n\d+);$", text, flags=re.MULTILINE)
    assert {end for edge in edges for end in edge} <= nodes and len(nodes) + len(edges) + 3 == len(text.splitlines())
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg"], input=text, text=True, check=True, capture_output=True)


def test_names_of_nodes_are_quoted(tmp_path: Path) -> None:
    graph = graph_from_model(model := parse("(float[2] x) => (float[2] y) { y = Relu(x) }"))
    model.graph.node[0].name = 'a "b" \\n'
    graph = graph_from_model(model)
    dump = Dump(tmp_path)
    traced = trace(graph, [NodeId(0)], ["x"], trust=True)
    build_program(traced, ["x"], ["y"], watch=dump.watch(graph, [NodeId(0)], "island0"))
    assert '[label="map\\nRelu(a \\"b\\" \\\\n)"]' in written(tmp_path, "trace", ".dot")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (file := tmp_path / "file").write_text("")
    dump = dumped(file)
    assert dump.problem.startswith("dump_dir cannot be written (") and len(dump.steps["island0"]) == 1 + len(PASSES)


def test_endless_expressions_have_an_end(tmp_path: Path) -> None:
    """Each addition reads the last result twice: written out, the expression has 2^60 terms."""
    chain = " ".join(f"x{i + 1} = Add(x{i}, x{i})" for i in range(60))
    dumped(tmp_path, f"(float[N] x0) => (float[] x60) {{ {chain} }}")
    assert max(map(len, written(tmp_path, "lower_to_ops").splitlines())) < 1000


def test_steps_survive_json() -> None:
    why = Reason(kind=Kind.PATTERN, text="no", nodes=(4,))
    step = Step(name="p", before=3, after=2, fused=(numbers(0, 1),), changed=numbers(2), removed=numbers(3), refused=(why,))
    assert Step.of_row(json.loads(json.dumps(asdict(step)))) == step


@pytest.mark.parametrize("product", [Product.F32, Product.BF16])
def test_who_does_not_watch_gets_the_same_program(tmp_path: Path, product: Product) -> None:
    graph = graph_from_model(parse(LAYER, w=normal(4, 3), b=normal(3)))
    members = [node.id for node in graph.nodes]
    inputs, outputs = graph.boundary(members)
    target = Target(product=product, halves=frozenset({DType.BF16}))
    programs = [
        build_program(trace(graph, members, inputs, trust=True), inputs, outputs, target=target, watch=watch)
        for watch in (None, Dump(tmp_path).watch(graph, members, "island0"))
    ]
    assert programs[0] == programs[1]
