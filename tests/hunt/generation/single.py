"""Nodes one at a time, by ONNX Runtime's CPU provider: the builder needs every value at once, and the reducer those inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnxruntime as ort
from onnx import ValueInfoProto, helper, numpy_helper

from tests.hunt.case import Array, Feeds

IR_VERSION = 10


class Refused(Exception):
    """ONNX Runtime does not make a session of it."""


def session_options(*, threads: int = 1, optimise: bool = True) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    if not optimise:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options


def make_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, tuple[np.dtype, Sequence[int | str | None]]],
    outputs: Sequence[str],
    constants: Mapping[str, Array],
    opsets: Sequence[onnx.OperatorSetIdProto],
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """``inputs``: element type and declared sizes by name. Types of outputs are ONNX Runtime's to infer."""
    declared = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), list(shape))
        for name, (dtype, shape) in inputs.items()
    ]
    graph = helper.make_graph(
        list(nodes),
        "hunt",
        declared,
        [ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=list(opsets), functions=list(functions), ir_version=IR_VERSION)


def symbols(name: str, rank: int) -> list[int | str | None]:
    """Each size its own."""
    return [f"{name}_{i}" for i in range(rank)]


@dataclass
class NodeRunner:
    """Evaluates single nodes of one model."""

    opsets: Sequence[onnx.OperatorSetIdProto]
    functions: Sequence[onnx.FunctionProto] = field(default_factory=list)

    def run(
        self, node: onnx.NodeProto, constants: Mapping[str, Array], feeds: Sequence[Feeds | None]
    ) -> list[list[Array] | None]:
        """Named outputs for each of ``feeds``; None where ONNX Runtime reports an error (or there are no feeds)."""
        wanted = [name for name in node.output if name]
        first = next(f for f in feeds if f is not None)
        inputs = {name: (value.dtype, symbols(name, value.ndim)) for name, value in first.items()}
        model = make_model([node], inputs, wanted, constants, self.opsets, self.functions)
        try:
            session = ort.InferenceSession(
                model.SerializeToString(), session_options(optimise=False), providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime's errors have no base class of their own
            raise Refused(str(error)) from None
        results: list[list[Array] | None] = []
        for f in feeds:
            try:
                found = None if f is None else session.run(None, dict(f))
            except Exception:
                found = None
            if found is not None and not all(isinstance(x, (np.ndarray, np.generic)) for x in found):
                raise Refused("sequences and optionals")
            results.append(None if found is None else [np.asarray(x) for x in found])
        return results


def constants_of(model: onnx.ModelProto) -> dict[str, Array]:
    return {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}


Change = Callable[[onnx.NodeProto, Array], Array]


def unchanged(_: onnx.NodeProto, value: Array) -> Array:
    return value


def values_inside(
    model: onnx.ModelProto, feeds: Feeds, change: Change = unchanged, change_given: Change = unchanged
) -> tuple[dict[str, Array], int]:
    """(every value that ONNX Runtime computes, in single nodes; the number of the first node that fails, or of nodes).

    ``change``: of what a node gives, before others read it; ``change_given``: of what it is given, for it alone.
    """
    constants = constants_of(model)
    runner = NodeRunner(model.opset_import, model.functions)
    known: dict[str, Array] = {name: np.asarray(value) for name, value in feeds.items()}
    failing = len(model.graph.node)
    for number, node in enumerate(model.graph.node):
        if any(name and name not in known and name not in constants for name in node.input):
            continue  # behind one that fails
        single, names = apart(node)
        fed = {name: change_given(node, known[old]) for name, old in names.items() if old in known}
        own = {name: change_given(node, constants[old]) for name, old in names.items() if old in constants}
        try:
            [found] = runner.run(single, own, [fed])
        except Refused:
            found = None
        if found is None:
            failing = min(failing, number)
        else:
            outputs = (name for name in node.output if name)
            known |= {name: change(node, value) for name, value in zip(outputs, found, strict=True)}
    return known, failing


def apart(node: onnx.NodeProto) -> tuple[onnx.NodeProto, dict[str, str]]:
    """The node with a name of its own for each input, and which value each is: what is read twice may differ then."""
    made = onnx.NodeProto()
    made.CopyFrom(node)
    for place, name in enumerate(node.input):
        if name in node.input[:place] and name:
            made.input[place] = f"{name} at {place}"
    return made, dict(zip(made.input, node.input, strict=True))


def ancestors(model: onnx.ModelProto, outputs: Sequence[str], stop: set[str] | None = None) -> list[onnx.NodeProto]:
    """What computes ``outputs``; nothing behind a value of ``stop``."""
    wanted = set(outputs)
    kept: list[onnx.NodeProto] = []
    for node in reversed(model.graph.node):
        if wanted & set(node.output) - (stop or set()):
            kept.append(node)
            wanted |= set(node.input)
    return list(reversed(kept))
