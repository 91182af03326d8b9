"""What a session keeps of the memory that its creation took."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]

CHILD = """
import numpy as np, onnx, onnx.parser, onnxruntime as ort
import xyntra_ep
from onnx import TensorProto, helper, numpy_helper

LAYERS, N = 32, 512
rng = np.random.default_rng(0)
weights = [numpy_helper.from_array(rng.standard_normal((N, N)).astype(np.float32) / 32, f"w{i}") for i in range(LAYERS)]
nodes = [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(LAYERS)]
value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["m", N])
graph = helper.make_graph(nodes, "layers", [value("x0")], [value(f"x{LAYERS}")], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
del weights, graph
text = '<ir_version: 8, opset_import: ["": 17]> small (float[4] x) => (float[4] y) { e = Exp(x) n = Neg(e) y = Exp(n) }'
small = onnx.parser.parse_model(text).SerializeToString()

def mib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20

# Once for what the runtime itself and the planner take.
strict = [("XyntraEP", {"claim": "all"}), "CPUExecutionProvider"]
session = ort.InferenceSession(model, providers=strict)
x = np.ones((3, N), np.float32)
session.run(None, {"x0": x})
serving = ort.InferenceSession(small, providers=strict)
serving.run(None, {"x": np.ones(4, np.float32)})
del session
before = mib()
session = ort.InferenceSession(model, providers=strict)
created = mib()
serving.run(None, {"x": np.ones(4, np.float32)})
served = mib()
session.run(None, {"x0": x})
print(LAYERS * N * N * 4 / 2**20, created - before, served - before, mib() - before)
"""


def test_the_originals_of_packed_weights_are_gone_after_the_first_run() -> None:
    child = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=300, check=True)
    weights_mib, created_mib, served_mib, kept_mib = map(float, child.stdout.split())
    assert created_mib > weights_mib * 1.5, "this test shows nothing: creation gives its memory back by itself"
    assert served_mib > created_mib - 0.1 * weights_mib, "a session that serves has paid for one created beside it"
    assert kept_mib < weights_mib * 1.2
