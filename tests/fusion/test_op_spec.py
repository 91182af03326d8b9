"""What a row says is what is claimed, and what it says is what the operator's schema knows."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import helper
from onnxruntime.capi import onnxruntime_pybind11_state as ort_state

from tests.support.models.graph_from_model import graph_from_model, trace_model
from tests.support.models.model_text import parse
from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion import operator_table
from xyntra_ep.fusion import trace as trace_module
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.op_spec import ANY, FLOATS, WITHOUT_MEANING, OpSpec, admit, admit_types, takes
from xyntra_ep.fusion.tensor import Leaf, Tensor
from xyntra_ep.fusion.trace import OPS, find_op
from xyntra_ep.tracea.core_ir.dtypes import DType

OURS = "ai.xyntra."
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "operators.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A version of an operator. ``defaults``: the value of each attribute that has one; ONNX Runtime writes it into the node."""

    version: int
    attributes: frozenset[str]
    defaults: Mapping[str, Any]
    inputs: int | None


def _default(attribute: Any) -> Any:
    """None where there is none, or where ONNX Runtime's Python does not show it."""
    value = getattr(attribute, "default_value", None)
    found = helper.get_attribute_value(value) if isinstance(value, onnx.AttributeProto) and value.name else None
    return found.decode() if isinstance(found, bytes) else found


def _schema(found: Any) -> Schema:
    defaults = {name: _default(a) for name, a in found.attributes.items()}
    last = found.inputs[-1] if len(found.inputs) else None
    variadic = last is not None and str(last.option).endswith("Variadic")
    return Schema(
        version=found.since_version,
        attributes=frozenset(found.attributes) - set(WITHOUT_MEANING),
        defaults={name: value for name, value in defaults.items() if value is not None},
        inputs=None if variadic else found.max_input,
    )


def _schemas() -> Mapping[str, Sequence[Schema]]:
    """All versions of every operator that ONNX or ONNX Runtime knows, by the names of our rows."""
    found: dict[str, list[Schema]] = {}
    listed = getattr(ort_state, "get_all_operator_schema", list)
    for schema in (*onnx.defs.get_all_schemas_with_history(), *listed()):
        name = f"{schema.domain}.{schema.name}" if schema.domain else schema.name
        found.setdefault(name, []).append(_schema(schema))
    return found


SCHEMAS = _schemas()
ROWS = [pytest.param(spec, id=spec.name) for spec in OPS if spec.name in SCHEMAS]


def complaints(spec: OpSpec, schemas: Sequence[Schema]) -> list[str]:
    """Where a row and the operator's schemas disagree."""
    found = []
    newest = max(schema.version for schema in schemas)
    if newest > spec.versions[1]:
        found.append(f"there is a version {newest}: read what it changed, then raise versions")
    if spec.versions[1] not in {schema.version for schema in schemas}:
        found.append(f"there is no version {spec.versions[1]}")
    claimed = [schema for schema in schemas if spec.versions[0] <= schema.version <= spec.versions[1]]
    named = frozenset[str]().union(*(schema.attributes for schema in claimed))
    found += [f"attribute {name} is not named" for name in sorted(named - set(spec.attributes))]
    found += [f"no version has an attribute {name}" for name in sorted(set(spec.attributes) - named)]
    for schema in claimed:
        for name, value in schema.defaults.items():
            values = spec.attributes.get(name, ANY)
            if values != ANY and value not in values:
                found.append(f"the default {name} = {value} of version {schema.version} is declined")
    most = [schema.inputs for schema in claimed]
    if spec.inputs is None and None not in most:
        found.append("it has no variadic input")
    if spec.inputs is not None and None not in most and spec.inputs > max(n for n in most if n is not None):
        found.append(f"no version has {spec.inputs} inputs")
    if spec.inputs is not None and None in most:
        found.append("its last input is variadic")
    return found


@pytest.mark.parametrize("spec", ROWS)
def test_rows_and_schemas_agree(spec: OpSpec) -> None:
    """A new version of an operator, or an attribute that a row does not name, is somebody's work."""
    assert not complaints(spec, SCHEMAS[spec.name])


def test_other_domains_are_compared() -> None:
    """ai.onnx.ml has versions of its own, and schemas of its own."""
    mine = [row.values[0] for row in ROWS if isinstance(row.values[0], OpSpec) and row.values[0].name.startswith("ai.onnx.ml.")]
    assert len(mine) == sum(spec.name.startswith("ai.onnx.ml.") for spec in OPS) > 0
    assert any("there is a version" in text for text in complaints(mine[0], [*SCHEMAS[mine[0].name], *SCHEMAS["Add"]]))


def test_every_row_has_a_schema() -> None:
    """Those of ONNX Runtime's own domain are seen where its Python shows them."""
    unseen = [] if hasattr(ort_state, "get_all_operator_schema") else ["com.microsoft."]
    hidden = (OURS, *unseen)
    missing = [spec.name for spec in OPS if spec.name not in SCHEMAS and not spec.name.startswith(hidden)]
    assert not [name for name in missing if name != "SimplifiedLayerNormalization" or not unseen]


class TestComplaints:
    SPEC = OpSpec(name="Odd", lower=lambda *_: (), versions=(1, 7), attributes=takes("axis", mode=("a", "b")))

    def _schema(self, **changes: Any) -> Schema:
        same = Schema(version=7, attributes=frozenset({"axis", "mode"}), defaults={"mode": "a"}, inputs=1)
        return dataclasses.replace(same, **changes)

    def test_none(self) -> None:
        assert not complaints(self.SPEC, [self._schema()])

    @pytest.mark.parametrize(
        ("changes", "text"),
        [
            ({"version": 9}, "there is a version 9"),
            ({"attributes": frozenset({"axis", "mode", "angle"})}, "attribute angle is not named"),
            ({"attributes": frozenset({"mode"})}, "no version has an attribute axis"),
            ({"defaults": {"mode": "c"}}, "the default mode = c of version 7 is declined"),
            ({"inputs": None}, "its last input is variadic"),
            ({"inputs": 0}, "no version has 1 inputs"),
        ],
    )
    def test_one(self, changes: Mapping[str, Any], text: str) -> None:
        old = self._schema() if "version" in changes else self._schema(**changes)
        assert any(text in complaint for complaint in complaints(self.SPEC, [old, self._schema(**changes)]))


class TestAdmission:
    SPEC = OpSpec(
        name="Odd",
        lower=lambda *_: (),
        versions=(3, 7),
        inputs=2,
        attributes=takes("axis", mode=("a", "b"), alpha=(1.0,)),
        types=(FLOATS, (DType.I64,)),
    )

    def _node(self, version: int = 7, inputs: Sequence[str] = ("x",), **attrs: Any) -> Node:
        node = graph_from_model(parse("(float[N] x) => (float[] y) { y = Relu(x) }")).nodes[0]
        return dataclasses.replace(node, version=version, inputs=tuple(inputs), attrs=attrs)

    @pytest.mark.parametrize(
        "attrs", [{}, {"axis": -9}, {"mode": "a"}, {"mode": b"b", "axis": 3}, {"alpha": 1.0}, {"consumed_inputs": (0,)}]
    )
    def test_known(self, attrs: dict[str, Any]) -> None:
        admit(self.SPEC, self._node(**attrs))

    @pytest.mark.parametrize(
        ("attrs", "reason"),
        [
            ({"tomorrow": 0}, "unknown attribute tomorrow = 0"),
            ({"mode": "c"}, "mode = c"),
            ({"mode": ("a",)}, "mode = "),
            ({"alpha": 0.5}, "alpha = 0.5"),
            ({"axis": None}, "attribute axis is of an unknown kind"),
            ({"version": 2}, "unsupported at opset 2"),
            ({"version": 8}, "unsupported at opset 8"),
            ({"inputs": ("x", "", "z")}, "input 2 is not read"),
        ],
    )
    def test_unknown(self, attrs: dict[str, Any], reason: str) -> None:
        with pytest.raises(UnsupportedError, match=reason):
            admit(self.SPEC, self._node(**attrs))

    def test_inputs_left_out(self) -> None:
        admit(self.SPEC, self._node(inputs=("x", "", "")))

    @pytest.mark.parametrize(
        ("types", "declined"),
        [
            ([DType.F16], ""),
            ([DType.F32, None], ""),
            ([DType.F32, DType.I64, DType.I64], ""),
            ([DType.I64], "i64"),
            ([DType.F32, DType.F32], "f32"),
            ([DType.F32, DType.I64, DType.I32], "i32"),
        ],
    )
    def test_types(self, types: Sequence[DType | None], declined: str) -> None:
        inputs = [None if t is None else Tensor((3,), t, Leaf(kind="input", name="x")) for t in types]
        if not declined:
            admit_types(self.SPEC, inputs)
            return
        with pytest.raises(UnsupportedError, match=f"dtype {declined}"):
            admit_types(self.SPEC, inputs)

    def test_the_walk_asks_for_types(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Before the lowering, which may know nothing of them."""
        spec = OpSpec(name="Abs", lower=lambda c, node, inputs: [t for t in inputs if t is not None], types=(FLOATS,))
        monkeypatch.setattr(trace_module, "find_op", lambda node: spec)
        trace_model(parse("(float[N] x) => (float[] y) { y = Abs(x) }"))
        with pytest.raises(UnsupportedError, match="dtype i64"):
            trace_model(parse("(int64[N] x) => (int64[] y) { y = Abs(x) }"))

    def test_all_rows_are_asked(self) -> None:
        """Whatever the operator: an attribute of tomorrow is nothing that a lowering has heard of."""
        for spec in OPS:
            domain, _, name = spec.name.rpartition(".")
            node = self._node(version=spec.versions[1], inputs=(), attribute_of_tomorrow=1)
            node = dataclasses.replace(node, op_type=name, domain=domain)
            with pytest.raises(UnsupportedError, match="unknown attribute attribute_of_tomorrow"):
                find_op(node)


class TestTable:
    def test_the_document_shows_the_rows_as_they_are(self) -> None:
        text = DOCUMENT.read_text(encoding="utf-8")
        assert text == operator_table.table(), f"run: python -m xyntra_ep.fusion.operator_table --write docs/{DOCUMENT.name}"

    def test_every_row_is_there(self) -> None:
        lines = operator_table.table().splitlines()
        rows = [line for line in lines[: lines.index("## Quantised models")] if line.startswith("| ")]
        assert len(rows) == len(OPS) + sum(row.startswith("| operator |") for row in rows)

    def test_quantised_operators_are_claimed_or_there_is_a_reason(self) -> None:
        """Each is one that ONNX or ONNX Runtime knows; a reason goes when the row comes."""
        names = set(operator_table.quantised_operators())
        assert {name for name in names if name not in OPS} == set(operator_table.NOT_CLAIMED)
        unseen = () if hasattr(ort_state, "get_all_operator_schema") else ("com.microsoft.", "SimplifiedLayerNormalization")
        assert not [name for name in names if name not in SCHEMAS and not name.startswith(unseen)]

    def test_operators_of_bytes_are_in_the_table_of_quantised_models(self) -> None:
        made_for_it = [spec.name for spec in OPS if spec.lower.__module__.startswith("xyntra_ep.fusion.onnx_ops.quantised.")]
        assert set(made_for_it) <= set(operator_table.quantised_operators())

    def test_the_table_says_what_is_declined(self) -> None:
        text = operator_table.table()
        for name, reason in operator_table.NOT_CLAIMED.items():
            assert re.search(rf"^\| {re.escape(name)} \| .+ \| declined: {re.escape(reason)} \|$", text, re.MULTILINE)
        assert "| MatMulInteger | `quantize_dynamic`, Optimum, transformers.js | claimed |" in text

    def test_the_command(self, tmp_path: Path) -> None:
        document = tmp_path / "operators.md"
        command = [sys.executable, "-m", "xyntra_ep.fusion.operator_table"]
        subprocess.run([*command, "--write", str(document)], check=True)
        assert document.read_text(encoding="utf-8") == operator_table.table()
        assert operator_table.main(["--check", str(document)]) == 0
        document.write_text("something else", encoding="utf-8")
        assert operator_table.main(["--check", str(document)]) == 1
