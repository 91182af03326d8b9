"""Run by `make test-wheel` where the wheel is installed and the checkout is out of sight: does it work?"""

from __future__ import annotations

import importlib
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

SITE = Path(sysconfig.get_path("purelib")).resolve()


def main() -> None:
    for name in ("xyntra_ep", "xyntra_custom_ops", "xyntra_zoo", "xyntra_bench", "xyntra_reports"):
        file = importlib.import_module(name).__file__
        assert file and Path(file).resolve().is_relative_to(SITE), f"{name} comes from {file}, not from the wheel"

    for name in ("custom_ops", "zoo", "bench", "reports"):
        assert not (SITE / name).exists(), f"{name} is what a package of the user's may be called"

    import xyntra_ep

    library = Path(xyntra_ep.get_library_path()).resolve()
    assert library.is_relative_to(SITE) and library.name == "libxyntra_ep.so", library
    assert (library.parent / "py.typed").is_file()
    assert importlib.import_module("xyntra_ep.tracea.optimizer.cost_model").learned().trees, "the learned weights"

    node = helper.make_node("Add", ["x", "x"], ["y"])
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
    graph = helper.make_graph([node], "twice", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    settings = ort.SessionOptions()
    settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")  # an unclaimed node is an error
    session = ort.InferenceSession(model.SerializeToString(), settings, providers=[("XyntraEP", {"claim": "all"})])
    assert session.get_providers()[0] == "XyntraEP", session.get_providers()
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], x + x)

    for command in ("xyntra", "bench"):
        subprocess.run([Path(sys.executable).parent / command, "--help"], check=True, capture_output=True)
    print(f"the wheel works: {xyntra_ep.__version__} in {SITE}")


if __name__ == "__main__":
    main()
