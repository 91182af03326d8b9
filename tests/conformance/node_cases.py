"""ONNX's own node tests as cases that ONNX Runtime's CPU provider can run.

Most tests feed everything as graph inputs, also the shape of a Reshape or the axes of a reduction, which real models have as
constants. So a test with integer inputs or with weights makes a second case: with all but its first input turned into
initializers (".const"). And their shapes are static, which those of real models are not: a third case feeds the same data to
inputs of unknown sizes (".dynamic").
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

Array = NDArray[Any]
MAX_IR_VERSION = 11  # newer files differ in nothing that a node test uses
MAX_OPSET = 26  # the newest that ONNX Runtime 1.25 to 1.31 loads

WITH_WEIGHTS = ("Conv", "ConvTranspose", "Gemm", "MatMul", "BatchNormalization", "Resize", "Upsample")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCase:
    """One model of one operator (or its expansion as a function body), what to feed it, and what ONNX expects of it."""

    name: str
    model: onnx.ModelProto
    feeds: Mapping[str, Array]
    expected: Sequence[Any]


@functools.cache
def node_cases() -> Mapping[str, NodeCase]:
    """All cases by name."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # the generators compute with NaN and infinities
        found = collect_testcases(None)
    cases: dict[str, NodeCase] = {}
    for test in found:
        if test.model is None or not test.data_sets:
            continue
        inputs = [v for v in test.data_sets[0][0]]
        arrays = [numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in inputs]
        if not all(isinstance(a, (np.ndarray, np.generic)) for a in arrays):
            continue  # sequences and optionals
        model = _loadable(test.model)
        feeds = {i.name: np.asarray(a) for i, a in zip(model.graph.input, arrays, strict=False)}
        name = test.name.removeprefix("test_")
        expected = [numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in test.data_sets[0][1]]
        cases[name] = NodeCase(name=name, model=model, feeds=feeds, expected=expected)
        fixed = list(feeds)[1:]
        if fixed and (model.graph.node[0].op_type in WITH_WEIGHTS or any(feeds[n].dtype.kind in "iub" for n in fixed)):
            cases[f"{name}.const"] = _with_constants(cases[name], fixed)
        if not name.endswith("_expanded") and any(a.shape for a in feeds.values()):
            source = cases.get(f"{name}.const", cases[name])
            cases[f"{name}.dynamic"] = _with_dynamic_shapes(source, f"{name}.dynamic")
    return cases


def _loadable(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = min(copy.ir_version, MAX_IR_VERSION)
    for opset in copy.opset_import:
        if opset.domain in ("", "ai.onnx"):
            opset.version = min(opset.version, MAX_OPSET)
    return copy


def _with_constants(case: NodeCase, names: Sequence[str]) -> NodeCase:
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    kept = [i for i in model.graph.input if i.name not in names]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    model.graph.initializer.extend(numpy_helper.from_array(case.feeds[n], n) for n in names)
    feeds = {n: a for n, a in case.feeds.items() if n not in names}
    return replace(case, name=f"{case.name}.const", model=model, feeds=feeds)


def _with_dynamic_shapes(case: NodeCase, name: str) -> NodeCase:
    """No size of any input is known until it is fed."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for value in (*model.graph.input, *model.graph.output):
        if not value.type.HasField("tensor_type"):
            continue
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.Clear()
            dim.dim_param = f"{value.name}_{axis}"
    return replace(case, name=name, model=model)


def session_options() -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return options


def run_cpu(case: NodeCase) -> list[Array] | None:
    """What ONNX Runtime's CPU provider computes; None when it has no kernel for the case or refuses it."""
    try:
        session = ort.InferenceSession(case.model.SerializeToString(), session_options(), providers=["CPUExecutionProvider"])
        results = session.run(None, dict(case.feeds))
    except Exception:  # ONNX Runtime's errors have no base class of their own
        return None
    return [np.asarray(r) for r in results] if all(isinstance(r, (np.ndarray, np.generic)) for r in results) else None


def first_of_each_operator() -> list[str]:
    """A share of the cases that shows every operator: its first test, in each of its forms."""
    seen: set[tuple[str, str]] = set()
    chosen: list[str] = []
    for name, case in node_cases().items():
        form = name.rpartition(".")[2] if "." in name else ""
        key = (case.model.graph.node[0].op_type, form)
        if "_expanded" not in name and key not in seen:
            seen.add(key)
            chosen.append(name)
    return chosen
