"""Real weights: a reader of safetensors (a JSON header and raw bytes) and lookup by checkpoint names."""

from __future__ import annotations

import difflib
import importlib
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from xyntra_zoo.model import Checkpoint
from xyntra_zoo.params import F32, Init

DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",  # numpy has none: read as integers, widened by shifting
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "?",
}
MAX_HEADER_BYTES = 100_000_000  # the format's own limit


class WeightsError(ValueError):
    """A checkpoint that cannot be read, or that is not of this model. Prints "where: what. hint"."""


class SafeTensors(Mapping[str, npt.NDArray[Any]]):
    """The tensors of a file, mapped into memory and read when asked for. bf16 comes back as float32."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._bytes = np.memmap(path, np.uint8, mode="r")
        except FileNotFoundError:
            raise WeightsError(f"{path}: no such file") from None
        except ValueError:
            raise WeightsError(f"{path}: the file is empty") from None
        self._start, self._header = self._read_header()

    def _read_header(self) -> tuple[int, dict[str, dict[str, Any]]]:
        length = int.from_bytes(self._bytes[:8].tobytes(), "little")
        start = 8 + length
        if length > MAX_HEADER_BYTES or start > self._bytes.size:
            raise WeightsError(f"{self._path}: not a safetensors file, its header would be {length} bytes long")
        try:
            header = json.loads(self._bytes[8:start].tobytes())
        except ValueError as error:
            raise WeightsError(f"{self._path}: not a safetensors file, its header is not JSON ({error})") from None
        header.pop("__metadata__", None)
        return start, header

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        entry = self._header[name]
        code, shape = entry["dtype"], entry["shape"]
        if code not in DTYPES:
            raise WeightsError(f"{self._path}: {name} has dtype {code}. known are {', '.join(DTYPES)}")
        dtype = np.dtype(DTYPES[code])
        begin, end = entry["data_offsets"]
        if end - begin != math.prod(shape) * dtype.itemsize or begin < 0 or self._start + end > self._bytes.size:
            raise WeightsError(f"{self._path}: {name} lies outside the file or does not fit its shape {shape}")
        # Copied: the header's length need not leave the data aligned.
        flat = np.frombuffer(self._bytes[self._start + begin : self._start + end].tobytes(), dtype)
        if code == "BF16":
            flat = (flat.astype(np.uint32) << 16).view(np.float32)
        return flat.reshape(shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._header)

    def __len__(self) -> int:
        return len(self._header)


def load_safetensors(path: Path) -> SafeTensors:
    return SafeTensors(path)


def download(checkpoint: Checkpoint) -> Path:
    """The checkpoint's file from the Hugging Face hub, from its local cache if it was fetched before."""
    try:
        hub = importlib.import_module("huggingface_hub")
    except ImportError:
        raise WeightsError(
            f"{checkpoint.hub_id}: huggingface_hub is not installed. "
            "pip install huggingface_hub, or give a local safetensors file"
        ) from None
    return Path(hub.hf_hub_download(checkpoint.hub_id, checkpoint.file))


class CheckpointParams:
    """Weights by the checkpoint's names. A missing name or a wrong shape is an error, never a guess."""

    synthetic = False

    def __init__(self, tensors: Mapping[str, npt.NDArray[Any]], checkpoint: Checkpoint | None, *, source: str) -> None:
        self._tensors = tensors
        self._checkpoint = checkpoint
        self._source = source

    def __call__(self, name: str, shape: tuple[int, ...], init: Init, gain: float = 1.0) -> F32:
        stored = next((n for n in self._spellings(name) if n in self._tensors), None)
        if stored is None:
            near = difflib.get_close_matches(name, self._tensors, n=3)
            hint = f". did you mean {near}?" if near else ""
            raise WeightsError(f"{self._source}: no tensor '{name}'{hint}")
        tensor = self._tensors[stored]
        if tensor.shape != shape:
            raise WeightsError(f"{self._source}: {stored} has shape {tensor.shape}, the model needs {shape}")
        return tensor.astype(np.float32)

    def _spellings(self, name: str) -> Iterator[str]:
        c = self._checkpoint
        prefixes = ("", *c.prefixes) if c else ("",)
        suffixes = (c.suffixes or {}) if c else {}
        older = [name.removesuffix(new) + old for new, old in suffixes.items() if name.endswith(new)]
        for prefix in prefixes:
            for spelling in (name, *older):
                yield prefix + spelling
