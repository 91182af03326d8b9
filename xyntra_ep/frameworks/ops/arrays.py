"""Arrays of any library as addresses, and new ones of the same library.

NumPy's and PyTorch's are read where they lie, as are those of libraries that speak DLPack (CuPy, JAX); what is not contiguous is
copied first. Neither PyTorch nor CuPy is imported: whoever calls with their arrays has done so.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.core_ir.dtypes import DType

Shape = tuple[int, ...]
_CPU = 1  # kDLCPU
WIDE = "float64"  # which no kernel has, and the interpreter computes in
_OF_NUMPY = {
    "float32": DType.F32, "float16": DType.F16, "int64": DType.I64, "int32": DType.I32, "int16": DType.I16, "uint16": DType.U16,
    "int8": DType.I8, "uint8": DType.U8, "bool": DType.BOOL,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """An array as it lies in memory; ``owner`` keeps it there. ``type_name``: of its elements, as NumPy says it."""

    address: int
    shape: Shape
    type_name: str
    owner: Any

    @property
    def dtype(self) -> DType:
        found = DType.BF16 if self.type_name == "bfloat16" else _OF_NUMPY.get(self.type_name)
        if found is None:
            raise UnsupportedError(f"dtype {self.type_name}", where="tracea.ops", hint="cast to float32")
        return found


class Library(Protocol):
    """Whose arrays they are: a seam, so that no library has to be there."""

    error: type[Exception]  # for shapes that do not fit

    def view(self, array: Any) -> View: ...

    def empty(self, shape: Shape, type_name: str) -> Any: ...

    def finish(self, array: Any) -> Any:
        """What the caller gets of what `empty` made."""
        ...


class NumPy:
    error: type[Exception] = ValueError

    def view(self, array: Any) -> View:
        held = np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array)
        return View(address=held.ctypes.data, shape=held.shape, type_name=held.dtype.name, owner=held)

    def empty(self, shape: Shape, type_name: str) -> Any:
        return np.empty(shape, type_name)

    def finish(self, array: Any) -> Any:
        return array


class Torch:
    error: type[Exception] = RuntimeError

    def view(self, array: Any) -> View:
        if array.device.type != "cpu":
            raise UnsupportedError(
                f"a tensor on {array.device}", where="tracea.ops", hint="in this release ops run on the processor"
            )
        held = array.detach().contiguous()
        name = str(held.dtype).removeprefix("torch.")
        return View(address=held.data_ptr(), shape=tuple(held.shape), type_name=name, owner=held)

    def empty(self, shape: Shape, type_name: str) -> Any:
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, type_name))

    def finish(self, array: Any) -> Any:
        return array


class ByDlpack(NumPy):
    """Of a library that gives and takes memory by DLPack: `from_dlpack` is a function of its module."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def view(self, array: Any) -> View:
        device = array.__dlpack_device__()[0]
        if device != _CPU:
            raise UnsupportedError(
                f"an array on a device (DLPack's {int(device)})",
                where="tracea.ops",
                hint="in this release ops run on the processor",
            )
        return super().view(np.from_dlpack(array))

    def finish(self, array: Any) -> Any:
        return self._module.from_dlpack(array)


def library_of(arrays: Sequence[Any]) -> Library:
    """The one that all are of. Raises TypeError where they are not, or are no arrays."""
    names = {_module_of(array) for array in arrays if array is not None}
    if names == {"numpy"}:
        return NumPy()
    if names == {"torch"}:
        return Torch()
    if len(names) > 1:
        raise TypeError(f"arrays of {' and '.join(sorted(names))} in one call: convert them to one of these")
    (name,) = names
    sample = next(array for array in arrays if array is not None)
    module = sys.modules.get(name)
    if hasattr(sample, "__dlpack__") and hasattr(module, "from_dlpack"):
        return ByDlpack(module)
    raise TypeError(f"{type(sample).__name__} is no array: NumPy's, PyTorch's and those that speak DLPack are")


def _module_of(array: Any) -> str:
    """The library that a class is of, its base classes' where it is a class of the user's own."""
    for kind in type(array).__mro__:
        name = kind.__module__.split(".")[0]
        if name in ("numpy", "torch"):
            return name
    return type(array).__module__.split(".")[0]
