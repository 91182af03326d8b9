"""A copy of a model in which the inputs have the given shapes.

ONNX Runtime fixes a dimension by its name. One without a name, as exporters of scikit-learn's models leave it, is fixed in the
model itself, in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from xyntra_ep.errors import ConfigError
from xyntra_ep.wording import wording


def with_shapes(model: str | Path | bytes, shapes: Mapping[str, Sequence[int]]) -> bytes:
    """The model with these ``shapes`` of its inputs; data in files of its own stays there. Raises ConfigError without the onnx
    package, and for a file in ONNX Runtime's own form."""
    try:
        import onnx
    except ImportError as error:
        raise ConfigError("fixing a shape needs the onnx package", where=wording().shapes, hint="pip install onnx") from error
    try:
        changed = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model, load_external_data=False)
    except Exception as error:  # protobuf's DecodeError, whose module has no types; what is no file a session has refused before
        hint = "give the .onnx that it was made of"
        raise ConfigError("a shape is fixed in ONNX models only", where=str(model)[:80], hint=hint) from error
    for value in changed.graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, shapes.get(value.name, ()), strict=False):
            dim.dim_value = size
    serialized: bytes = changed.SerializeToString()
    return serialized
