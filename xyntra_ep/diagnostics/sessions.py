"""Sessions of ONNX Runtime with and without the provider."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from xyntra_ep.diagnostics.fixed_shapes import with_shapes
from xyntra_ep.errors import ConfigError
from xyntra_ep.options import DEVICE_ID
from xyntra_ep.provider import registration

PROVIDER, CPU = "XyntraEP", "CPUExecutionProvider"
# How ONNX Runtime speaks of files that are none, and of weights in files of their own that are not there.
_NO_MODEL = ("Protobuf parsing failed", "No graph was found in the protobuf")
_DATA = re.compile(r'External data path does not exist: "([^"]*)"')
_DATA_FOLDER = "session.model_external_initializers_file_folder_path"  # of a model that comes as bytes
_QUIET = 4  # ORT's own lines would repeat what a report, or an exception, says


def open_session(
    model: str | Path | bytes,
    options: Mapping[str, str] | None = None,
    *,
    threads: int = 0,
    sizes: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    optimised: bool = True,
    profile_to: Path | None = None,
) -> Any:
    """A session; with the provider and its ``options``, or on the CPU provider alone for None. ``threads`` 0: ORT's choice.
    ``sizes``: symbolic dimensions that are fixed, by name; ``shapes``: inputs that are, in the model. ``optimised``: whether
    ONNX Runtime may rewrite the graph. ``profile_to``: how the file of its profile begins. Raises ConfigError where the model
    cannot be opened."""
    import onnxruntime as ort

    settings = ort.SessionOptions()
    settings.log_severity_level = _QUIET
    settings.intra_op_num_threads = threads
    if profile_to is not None:
        settings.enable_profiling = True
        settings.profile_file_prefix = str(profile_to)
    if not optimised:
        settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    for name, size in (sizes or {}).items():
        settings.add_free_dimension_override_by_name(name, size)
    source = model if isinstance(model, bytes) else str(model)
    if not isinstance(model, bytes):
        check_file(Path(model))
    if shapes:
        source = with_shapes(model, shapes)
        if not isinstance(model, bytes):
            settings.add_session_config_entry(_DATA_FOLDER, str(Path(model).parent))
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
        raise _refused(error, "a model in memory" if isinstance(model, bytes) else str(model)) from error


def check_file(path: Path) -> None:
    """ConfigError where ``path`` can be no model, before anybody reads it."""
    hint = "give the path of an ONNX model"
    if path.is_dir():
        raise ConfigError("is a folder", where=str(path), hint=hint)
    if not path.is_file():
        raise ConfigError("no such file", where=str(path), hint=hint)
    try:
        with path.open("rb") as file:
            if not file.read(1):
                raise ConfigError("is empty", where=str(path), hint=hint)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", where=str(path)) from error


def _refused(error: Exception, model: str) -> ConfigError:
    said = said_by(error)
    if any(mark in said for mark in _NO_MODEL):
        return ConfigError("is not an ONNX model, or not the whole of one", where=model, hint="give the path of an ONNX model")
    if (missing := _DATA.search(said)) is not None:
        hint = "it belongs where the model was exported with it"
        return ConfigError(f"its data is not there: {missing[1]}", where=model, hint=hint)
    return ConfigError(said, where="the session was refused")


def said_by(error: Exception) -> str:
    """What an error of ONNX Runtime says, on one line, without "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT"."""
    return " ".join(str(error).split(" : ", 3)[-1].split()).rstrip(".")
