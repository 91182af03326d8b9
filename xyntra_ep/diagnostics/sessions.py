"""Sessions of ONNX Runtime with and without the provider."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xyntra_ep.errors import ConfigError
from xyntra_ep.options import DEVICE_ID
from xyntra_ep.provider import registration

PROVIDER, CPU = "XyntraEP", "CPUExecutionProvider"
_QUIET = 4  # ORT's own lines would repeat what a report, or an exception, says


def open_session(model: str | Path | bytes, options: Mapping[str, str] | None = None, *, threads: int = 0) -> Any:
    """A session; with the provider and its ``options``, or on the CPU provider alone for None. ``threads`` 0: ORT's choice."""
    import onnxruntime as ort

    settings = ort.SessionOptions()
    settings.log_severity_level = _QUIET
    settings.intra_op_num_threads = threads
    source = model if isinstance(model, bytes) else str(model)
    if not isinstance(model, bytes) and not Path(model).is_file():
        raise ConfigError("no such file", where=str(model), hint="give the path of an ONNX model")
    providers: list[Any] = [CPU]
    if options is not None:
        registration.register()
        providers.insert(0, (PROVIDER, dict(options)))
    try:
        return ort.InferenceSession(source, settings, providers=providers, enable_fallback=0)
    except Exception as error:  # ONNX Runtime's own classes have no common base of their own
        number = (options or {}).get(DEVICE_ID)
        if number is not None and "Unknown Provider Type" in str(error):  # ORT looks for the device before it asks us
            what = f"{DEVICE_ID}={number} cannot be had: this machine shows no NVIDIA GPU of that number"
            raise ConfigError(what, where=PROVIDER, hint="leave it out; xyntra doctor lists what there is") from error
        raise ConfigError(said_by(error), where="the session was refused") from error


def said_by(error: Exception) -> str:
    """What an error of ONNX Runtime says, without "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT"."""
    return str(error).split(" : ", 3)[-1]
