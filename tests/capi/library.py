"""The C functions of include/tracea/tracea.h by ctypes, as they are declared there."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xyntra_ep.provider import registration

SUCCESS, INVALID_PARAMS, UNSUPPORTED, CUDA_ERROR, CPU_ERROR, OUT_OF_MEMORY, INVALID_MODEL, FILE_ERROR = range(8)
DTYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11}
MAX_RANK = 16


class View(ctypes.Structure):
    _fields_ = (
        ("ptr", ctypes.c_void_p),
        ("rank", ctypes.c_uint32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("stride", ctypes.POINTER(ctypes.c_int64)),
        ("dtype", ctypes.c_int),
        ("device_id", ctypes.c_int32),
    )


class Info(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("symbol", ctypes.POINTER(ctypes.c_char_p)),
    )


class ModelOptions(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("threads", ctypes.c_uint32),
        ("parallel_for", ctypes.c_void_p),
        ("parallel_for_user", ctypes.c_void_p),
        ("digests", ctypes.c_char_p),
    )


def tracea() -> ctypes.CDLL:
    library = ctypes.CDLL(registration.get_library_path())
    library.tracea_version.restype = ctypes.c_char_p
    library.tracea_get_last_error.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    library.tracea_get_last_error.restype = ctypes.c_size_t
    library.tracea_model_close.argtypes = [ctypes.c_void_p]
    library.tracea_model_close.restype = None
    return library


def last_error() -> str:
    text = ctypes.create_string_buffer(4096)
    tracea().tracea_get_last_error(text, len(text))
    return text.value.decode()


def view(array: np.ndarray[Any, Any], stride: Sequence[int] | None = None, **more: Any) -> View:
    """Of an array that must live as long as the view."""
    numbers = ctypes.c_int64 * max(array.ndim, 1)
    fields = {
        "ptr": array.ctypes.data,
        "rank": array.ndim,
        "shape": numbers(*array.shape),
        "stride": numbers(*stride) if stride is not None else None,
        "dtype": DTYPES[array.dtype.name],
        "device_id": -1,
    }
    return View(**(fields | more))


def views(found: Sequence[View]) -> Any:
    return (View * max(len(found), 1))(*found)


class Model:
    """An opened model; `status` other than SUCCESS where it could not be."""

    def __init__(self, source: Path | bytes, options: ModelOptions | None = None) -> None:
        self._library, self._model = tracea(), ctypes.c_void_p(1)
        given = ctypes.byref(options) if options is not None else None
        if isinstance(source, bytes):
            size = ctypes.c_size_t(len(source))
            self.status = self._library.tracea_model_open_bytes(source, size, given, ctypes.byref(self._model))
        else:
            self.status = self._library.tracea_model_open(str(source).encode(), given, ctypes.byref(self._model))

    def __enter__(self) -> Model:
        assert self.status == SUCCESS, last_error()
        return self

    def __exit__(self, *_: object) -> None:
        self._library.tracea_model_close(self._model)

    @property
    def is_null(self) -> bool:
        return self._model.value is None

    def counts(self) -> tuple[int, int]:
        inputs, outputs = ctypes.c_size_t(), ctypes.c_size_t()
        assert self._library.tracea_model_counts(self._model, ctypes.byref(inputs), ctypes.byref(outputs)) == SUCCESS
        return inputs.value, outputs.value

    def info(self, what: str, number: int, size: int = ctypes.sizeof(Info)) -> Info | int:
        found = Info(struct_size=size)
        function = getattr(self._library, f"tracea_model_{what}")
        status = int(function(self._model, ctypes.c_size_t(number), ctypes.byref(found)))
        return found if status == SUCCESS else status

    def output_shape(self, inputs: Sequence[View], number: int = 0) -> tuple[int, ...] | int:
        rank, shape = ctypes.c_uint32(), (ctypes.c_int64 * MAX_RANK)()
        sizes = ctypes.c_size_t(len(inputs)), ctypes.c_size_t(number)
        function = self._library.tracea_model_output_shape
        status = int(function(self._model, views(inputs), *sizes, ctypes.byref(rank), shape))
        return tuple(shape[: rank.value]) if status == SUCCESS else status

    def run(self, inputs: Sequence[View], outputs: Sequence[View]) -> int:
        sizes = ctypes.c_size_t(len(inputs)), ctypes.c_size_t(len(outputs))
        return int(self._library.tracea_model_run(self._model, views(inputs), sizes[0], views(outputs), sizes[1]))


CALLBACK = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_size_t, ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t), ctypes.c_void_p
)


def threads_of_a_caller(counts: list[int]) -> Any:
    """A `parallel_for` with a thread for each task; ``counts`` is told how many these are."""

    def parallel_for(user: int, count: int, task: Any, argument: int) -> None:
        counts.append(count)
        threads = [threading.Thread(target=task, args=(argument, i)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return CALLBACK(parallel_for)
