"""What ONNX Runtime writes of a model after its optimisations, as nodes of the model that grows.

Its kernels for blocks of channels check little, and shapes that its optimiser never makes end the process. So nobody draws such
nodes: a model of ONNX's operators is drawn, and ONNX Runtime writes the file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper

from tests.hunt.case import Array
from tests.hunt.generation.builder import Builder, Rejected, Value
from tests.hunt.generation.single import constants_of, make_model, session_options

F32 = np.dtype(np.float32)


@dataclass(slots=True, kw_only=True)
class Plain:
    """A model of ONNX's operators, written down and not evaluated. Values are names."""

    opset: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)

    def node(self, op: str, inputs: Sequence[str], **attrs: Any) -> str:
        """The name of the node's one result. Attributes that are None are left out."""
        name = f"n{len(self.nodes)}"
        wanted = {key: value for key, value in attrs.items() if value is not None}
        self.nodes.append(helper.make_node(op, list(inputs), [name], **wanted))
        return name

    def constant(self, array: Array) -> str:
        name = f"w{len(self.constants)}"
        self.constants[name] = array
        return name

    def saved(self, inputs: Mapping[str, Sequence[int | str | None]], outputs: Sequence[str]) -> onnx.ModelProto:
        """As ONNX Runtime saves it on this machine; ``inputs``: float32, by name, with sizes and symbols.

        Raises Rejected where ONNX Runtime makes no session of it.
        """
        declared = {name: (F32, shape) for name, shape in inputs.items()}
        model = make_model(self.nodes, declared, outputs, self.constants, [helper.make_opsetid("", self.opset)])
        options = session_options()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "saved.onnx"
            options.optimized_model_filepath = str(path)
            try:
                ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
            except Exception as error:  # ONNX Runtime's errors have no base class of their own
                raise Rejected(str(error)) from None
            return onnx.load(path)


def grow(b: Builder, model: onnx.ModelProto, given: Mapping[str, Value]) -> None:
    """All nodes of ``model``, whose inputs are ``given``. Other recipes find its outputs, and nothing in between: what lies in
    blocks there is no tensor that they could read."""
    first = len(b.values)
    known: dict[str, Value | None] = {"": None, **given}
    constants = constants_of(model)
    for node in _in_order(model):
        known |= {name: b.constant(constants[name]) for name in node.input if name in constants and name not in known}
        attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        made = b.node(node.op_type, [known[n] for n in node.input], outputs=len(node.output), domain=node.domain, **attrs)
        known |= zip(node.output, made, strict=True)
    b.values[first:] = [value for o in model.graph.output if (value := known[o.name]) is not None]


def _in_order(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """The nodes, each behind what it needs: ONNX Runtime saves what is independent now in one order, now in another."""
    makers = {name: node for node in model.graph.node for name in node.output}
    found: list[onnx.NodeProto] = []

    def visit(name: str) -> None:
        node = makers.get(name)
        if node is not None and node not in found:
            for operand in node.input:
                visit(operand)
            found.append(node)

    for output in model.graph.output:
        visit(output.name)
    return found
