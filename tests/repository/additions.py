"""One addition for each line of CONTRIBUTING's table "To add X, write this file": the file, and what shows that it is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """``files``: new ones, by path; ``rows``: by path of a file that is there, the text before which a row goes, and the row.
    ``question`` is a program that prints ``answer`` where the addition is used; ``variables``: its environment."""

    question: str
    answer: str
    files: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


OPERATOR = Addition(
    files={
        "xyntra_ep/fusion/onnx_ops/elementwise/twice.py": """
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, float_input
from xyntra_ep.fusion.op_spec import OpSpec
from xyntra_ep.fusion.tensor import Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir.expr import call


def _twice(c: Context, node: Node, inputs: Inputs) -> Tensor:
    x = float_input(inputs, 0)
    return c.map([x], lambda v: call("add", v, v), x.dtype)


OPS = [OpSpec(name="test.Twice", lower=_twice)]
"""
    },
    question="""
import numpy as np
import onnx.parser

from tests.support.models.graph_from_model import interpret_model
from xyntra_ep.fusion.operator_table import table

model = onnx.parser.parse_model(
    '<ir_version: 10, opset_import: ["" : 21, "test" : 1]> g (float[2] x) => (float[2] y) { y = test.Twice(x) }'
)
print(*interpret_model(model, {"x": np.float32([1, 2])}), "| Twice |" in table())
""",
    answer="[2. 4.] True",
)

RULE = Addition(
    files={
        "xyntra_ep/fusion/rules/halves.py": """
from xyntra_ep.fusion.egraph import Rule

RULES = [Rule(name="own.halves", pattern="tanh(x) + tanh(x)", replacement="erf(x)")]
"""
    },
    question="""
from xyntra_ep.fusion.rules import built_in
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import call, load

half = call("tanh", load(0, dtype=DType.F32))
print(built_in().simplify(call("add", half, half)).expr.attr)
""",
    answer="erf",
)

VARIANT = Addition(
    files={
        "xyntra_ep/tracea/kernels/cpu/pointwise/free.py": """
from dataclasses import replace

from xyntra_ep.tracea.kernels.cpu.pointwise import vector

VARIANTS = [replace(vector.VARIANTS[0], name="pointwise.free", cost_ns=lambda op, config, context: 0.0)]
"""
    },
    question="""
from xyntra_ep.tracea import Context

print(Context().plan_kernel("add", backend="cpu", n=64).variant)
""",
    answer="pointwise.free",
)

KNOWN_GPU = Addition(
    rows={
        "xyntra_ep/tracea/doctor/known_gpus.py": (
            """    KnownGpu(name="RTX 4090",""",
            """    KnownGpu(name="RTX 4060", gpu=_card("sm_89", units=24, fma_tflops=15, memory_gbs=272), source="a"),\n""",
        )
    },
    question="""
from xyntra_ep.tracea.doctor.known_gpus import known_gpu_for, known_gpu_named

print(known_gpu_for("sm_89", "NVIDIA GeForce RTX 4060").name, known_gpu_named("rtx-4060").gpu.units)
""",
    answer="RTX 4060 24",
)

NAMED_OP = Addition(
    rows={
        "xyntra_ep/tracea/interface/named_ops.py": (
            """    NamedOp(\n        name="softmax",""",
            """    NamedOp(name="sum", aliases=("plus",), build=_add, sizes={"n": 8}, of="a test"),\n""",
        )
    },
    question="""
from xyntra_ep.tracea import Context

print(Context().plan_kernel("plus", backend="cpu").title.partition(":")[0])
""",
    answer="plus n=8",
)

CUSTOM_OP = Addition(
    files={
        "custom_ops/twice.py": """
from onnxscript import script

from xyntra_custom_ops._row import XYNTRA, Array, CustomOp, Example, Tensor, op


@script(XYNTRA, default_opset=op)
def Twice(x: Tensor) -> Tensor:
    return op.Add(x, x)


def reference(x: Array) -> tuple[Array, ...]:
    return (x + x,)


CUSTOM_OPS = [CustomOp(name="Twice", function=Twice, reference=reference, examples=[Example(shapes=[(2,)])], max_err=0.0)]
"""
    },
    question="""
import numpy as np
from onnx.reference import ReferenceEvaluator

from xyntra_custom_ops import to_model
from xyntra_ep.diagnostics.fused.bodies import CUSTOM_OPS

row = CUSTOM_OPS["Twice"]
print(*ReferenceEvaluator(to_model(row, row.examples[0])).run(None, {"x": np.float32([1, 2])}))
""",
    answer="[2. 4.]",
)

MODEL = Addition(
    files={
        "zoo/line.py": """
import numpy as np
import onnx.parser

from xyntra_zoo.model import Family, Feeds, ZooModel
from xyntra_zoo.params import Params


def line(params: Params) -> onnx.ModelProto:
    return onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Relu(x) }')


def feeds(batch: int, seq: int, seed: int) -> Feeds:
    return {"x": np.float32([-1, 1])}


MODELS = [ZooModel(name="line", family=Family.VIT, build=line, feeds=feeds)]
"""
    },
    question="""
import onnx

from xyntra_zoo import zoo
from xyntra_zoo.cache import model_path

print(onnx.load(model_path(zoo["line"])).graph.node[0].op_type)
""",
    answer="Relu",
    variables={"XYNTRA_ZOO_DIR": "models"},
)

REPORT = Addition(
    files={
        "reports/count.py": """
from xyntra_bench.results import CaseResult, Run
from xyntra_bench.store import Stored
from xyntra_reports.registry import Part, Report, Section


def render(run: Run, source: str) -> str:
    return f"{len(run.cases)} cases in {source}"


def across(stored: Stored) -> str:
    return "\\n".join(render(run, path.name) for path, run in stored.runs.items())


def section(run: Run, case: CaseResult) -> Section:
    return Section(text=case.model)


REPORTS = [Report(name="count", title="Count", render=render, across=across)]
PARTS = [Part(name="count", title="Count", order=1000, render=section)]
"""
    },
    question="""
from pathlib import Path

from xyntra_bench.store import Stored
from xyntra_reports import parts, update_file

document, stored = Path("document.md"), max(Path("reports/results").glob("wide-*.json"))
document.write_text("<!-- bench:count --><!-- /bench:count -->")
update_file(document, Stored.at(stored), write=True)
print("cases in wide-" in document.read_text(), max(parts, key=lambda part: part.order).name)
""",
    answer="True count",
)

OPTION = Addition(
    rows={
        "xyntra_ep/options.py": ("    log_level: LogLevel = option(", '    careful: bool = option(default=False, doc="")\n'),
        "xyntra_ep/knobs.py": ("    log_level: str | None = None", "    careful: str | None = None\n"),
    },
    question="""
from xyntra_ep import knobs
from xyntra_ep.options import parse
from xyntra_ep.options_table import table

with knobs.scope(careful="1"):
    print(parse({}).careful, parse({"careful": "0"}).careful, "`careful`" in table())
""",
    answer="True False True",
)

# By the first cell of the line.
ADDITIONS = {
    "an ONNX operator": OPERATOR,
    "a fusion rule": RULE,
    "a kernel variant": VARIANT,
    "a GPU that is known by name": KNOWN_GPU,
    "a name that `plan_kernel` answers to": NAMED_OP,
    "a fused operator in ONNX": CUSTOM_OP,
    "a model to measure": MODEL,
    "a report": REPORT,
    "a provider option": OPTION,
}
