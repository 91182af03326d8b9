"""PyTorch models as sessions: exported to ONNX once, run by ONNX Runtime with our provider.

session = xyntra_ep.from_torch(module, (example,))
[result] = session(example)
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from xyntra_ep.errors import ConfigError, UnsupportedError
from xyntra_ep.options import PROVIDER
from xyntra_ep.provider import registration

FROM_TORCH, FROM_TORCHSCRIPT = "from_torch", "from_torchscript"


class ExportedModel:
    """A session that takes and gives tensors. `session` is ONNX Runtime's."""

    def __init__(self, model: bytes, options: Mapping[str, Any]) -> None:
        import onnxruntime as ort

        registration.register()
        given = {name: str(int(value)) if isinstance(value, bool) else str(value) for name, value in options.items()}
        self.session = ort.InferenceSession(model, providers=[(PROVIDER, given), "CPUExecutionProvider"])
        self._inputs = [value.name for value in self.session.get_inputs()]

    def __call__(self, *args: torch.Tensor) -> list[torch.Tensor]:
        if len(args) != len(self._inputs):
            raise ConfigError(f"{len(args)} tensors for {len(self._inputs)} inputs ({', '.join(self._inputs)})", where=FROM_TORCH)
        feeds = {name: t.detach().cpu().contiguous().numpy() for name, t in zip(self._inputs, args, strict=True)}
        return [torch.from_numpy(found) for found in self.session.run(None, feeds)]


def from_torch(
    module: torch.nn.Module,
    example_inputs: Sequence[torch.Tensor],
    *,
    dynamic_shapes: Any = None,
    options: Mapping[str, Any] | None = None,
) -> ExportedModel:
    """``dynamic_shapes``: as in torch.export.export; ``options``: provider options."""
    try:
        program = torch.export.export(module, tuple(example_inputs), dynamic_shapes=dynamic_shapes)
    except Exception as error:  # torch.export's errors have no common base
        raise UnsupportedError(f"torch.export refused the module ({_first_line(error)})", where=FROM_TORCH) from error
    return ExportedModel(_onnx(program, tuple(example_inputs), FROM_TORCH, dynamic_shapes=dynamic_shapes), options or {})


def from_torchscript(
    path: str | Path, example_inputs: Sequence[torch.Tensor], *, options: Mapping[str, Any] | None = None
) -> ExportedModel:
    """A TorchScript file, which holds code: load none that you do not trust."""
    if not Path(path).is_file():
        raise ConfigError(f"{path} is no file", where=FROM_TORCHSCRIPT)
    try:
        module = torch.jit.load(str(path), map_location="cpu").eval()
    except RuntimeError as error:
        raise ConfigError(f"{path} is no TorchScript ({_first_line(error)})", where=FROM_TORCHSCRIPT) from error
    return ExportedModel(_onnx(module, tuple(example_inputs), FROM_TORCHSCRIPT, dynamo=False), options or {})


def _onnx(model: Any, inputs: tuple[torch.Tensor, ...], where: str, *, dynamo: bool = True, dynamic_shapes: Any = None) -> bytes:
    """As ONNX. Raises UnsupportedError with what the exporter said."""
    buffer = io.BytesIO()
    try:
        if dynamo:
            program = torch.onnx.export(model, inputs, dynamo=True, verbose=False, dynamic_shapes=dynamic_shapes)
            program.save(buffer)
        else:
            torch.onnx.export(model, inputs, buffer, dynamo=False)
    except ImportError as error:
        raise ConfigError(str(error), where=where, hint="pip install 'xyntra-ep[bench]'") from error
    except Exception as error:  # of the exporter, which has many
        raise UnsupportedError(f"the exporter to ONNX refused the model ({_first_line(error)})", where=where) from error
    return buffer.getvalue()


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
