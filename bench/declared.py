"""The inputs that a model file declares, read without a session, so that mistakes are found before anything is measured."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from xyntra_bench.errors import BenchError
from xyntra_bench.feeds import TRIPS, dims_of, is_count
from xyntra_bench.plan import Case

ORT_FORM = ".ort"  # ONNX Runtime's own, which only a session reads


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """An input as ONNX Runtime's `get_inputs` describes it. A dim is a size, a name, or None."""

    name: str
    type: str
    shape: tuple[int | str | None, ...]


def check_inputs(cases: Sequence[Case], given: Collection[str] = ()) -> str:
    """Whether inputs that are not `given` can be made up for all cases of somebody's model, which is one file. Returns what
    single integers are made up as: how often a loop runs may hang on them."""
    file = Path(cases[0].file)
    if file.suffix == ORT_FORM:
        return ""
    inputs = declared_inputs(file)
    for case in cases:
        dims_of(inputs, case.shapes, case.batch, given)
    counts = [value.name for value in inputs if value.name not in given and is_count(value)]
    return ", ".join(f"{name}={TRIPS}" for name in counts)


def declared_inputs(file: Path) -> list[Declared]:
    import onnx

    try:
        model = onnx.load(file, load_external_data=False)
    except OSError as error:
        raise BenchError(f"{file}: cannot be read ({error.strerror})") from None
    except Exception:  # protobuf's DecodeError, whose module has no types
        model = onnx.ModelProto()
    if not model.ir_version:  # nor has it an empty file, which protobuf reads
        raise BenchError(f"{file}: not an ONNX model. export one, with torch.onnx.export for example")
    graph = model.graph
    constants = {constant.name for constant in graph.initializer}
    found = []
    for value in graph.input:
        if value.name in constants:  # a weight that old exporters list among the inputs
            continue
        tensor = value.type.tensor_type
        kind = onnx.TensorProto.DataType.Name(tensor.elem_type).lower() if value.type.HasField("tensor_type") else ""
        dims = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim]
        found.append(Declared(name=value.name, type=f"tensor({kind})" if kind else "no tensor", shape=tuple(dims)))
    return found
