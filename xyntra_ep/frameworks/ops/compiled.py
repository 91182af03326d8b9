"""Compiled operations: each once for all sizes, kept by what it depends on.

(name, settings, element types, fixed sizes)    ->    an opened island
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.errors import ConfigError, UnsupportedError
from xyntra_ep.frameworks.graph_draft import GraphDraft
from xyntra_ep.frameworks.ops.arrays import WIDE, Library, Shape, View
from xyntra_ep.provider.opened_graph import PlannedGraph, checked, plan_for_cpu
from xyntra_ep.provider.opened_island import OpenedIsland
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.doctor.profile import usable_cores

WHERE = "tracea.ops"
_THREADS = usable_cores()
_interpreted: ContextVar[bool] = ContextVar("xyntra_ops_interpreted", default=False)


@contextmanager
def interpreted() -> Iterator[None]:
    """Within it operations are computed in float64 by the definition of what kernels compute, slowly; float64 is allowed.

    For checks of gradients, and of kernels: what they differ by is rounding.
    """
    token = _interpreted.set(True)
    try:
        yield
    finally:
        _interpreted.reset(token)


def is_interpreted() -> bool:
    return _interpreted.get()


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """``build`` adds its nodes to a draft, given the names of the operands (None: left out), and returns the result's name.
    ``fixed``: for each operand the axes whose sizes it is compiled for, counted from the end; None: all."""

    name: str
    settings: tuple[Any, ...]
    build: Callable[[GraphDraft, Sequence[str | None]], str]
    fixed: Sequence[Sequence[int] | None]


@dataclass(slots=True)
class _Compiled:
    island: OpenedIsland
    order: tuple[int, ...]  # the operand that each input of the island is


@dataclass(slots=True)
class _Cache:
    found: dict[tuple[Any, ...], _Compiled] = field(default_factory=dict)
    plans: dict[tuple[Any, ...], PlannedGraph] = field(default_factory=dict)  # of what was interpreted
    lock: threading.Lock = field(default_factory=threading.Lock)


_cache = _Cache()


def run(
    operation: Operation, library: Library, operands: Sequence[Any | None], out: Any | None, shape: Shape, result: str
) -> Any:
    """Compute into a new array of ``shape`` and type ``result``, or into ``out``."""
    views = [library.view(array) if array is not None else None for array in operands]
    if is_interpreted():
        value = _interpret(operation, views).astype(_numpy_name(result), copy=False)
        target = library.empty(shape, result) if out is None else out
        _checked_out(library, target, shape, result)
        np.asarray(target)[...] = value
        return library.finish(target) if out is None else out
    compiled = _compiled(operation, views)
    direct = out is not None and _checked_out(library, out, shape, result).owner is not None and _is_contiguous(library, out)
    target = out if direct else library.empty(shape, result)
    inputs = [view for view in (views[i] for i in compiled.order) if view is not None]
    shapes = tuple(view.shape for view in inputs)
    addresses = [view.address for view in inputs]
    [computed] = compiled.island.output_shapes(addresses, shapes)
    assert computed == shape, f"{operation.name}: {computed} is not {shape}"
    compiled.island.run(addresses, shapes, [library.view(target).address], _THREADS)
    if out is None:
        return library.finish(target)
    if target is not out:
        out[...] = library.finish(target)
    return out


def _checked_out(library: Library, out: Any, shape: Shape, result: str) -> View:
    view = library.view(out)
    if view.shape != shape:
        raise library.error(f"out has shape {view.shape}, the result {shape}")
    if view.type_name != result:
        raise library.error(f"out is of {view.type_name}, the result of {result}")
    return view


def _is_contiguous(library: Library, out: Any) -> bool:
    """Whether what is written to its view arrives in it."""
    view = library.view(out)
    return view.owner is out or _address_of(out) == view.address


def _address_of(out: Any) -> int:
    return int(out.ctypes.data) if isinstance(out, np.ndarray) else int(out.data_ptr()) if hasattr(out, "data_ptr") else 0


def _numpy_name(name: str) -> str:
    return "float32" if name == "bfloat16" else name


def _compiled(operation: Operation, views: Sequence[View | None]) -> _Compiled:
    dtypes = tuple(view.dtype if view is not None else None for view in views)
    key = _key(operation, views, dtypes)
    found = _cache.found.get(key)
    if found is None:
        with _cache.lock:
            found = _cache.found.get(key)
            if found is None:
                found = _cache.found[key] = _compile(operation, views, dtypes)
    return found


def _key(operation: Operation, views: Sequence[View | None], dtypes: Sequence[DType | None]) -> tuple[Any, ...]:
    declared = tuple(_declared(view.shape, fixed) if view else None for view, fixed in zip(views, operation.fixed, strict=True))
    return (operation.name, operation.settings, tuple(dtypes), declared)


def _declared(shape: Shape, fixed: Sequence[int] | None) -> tuple[int | None, ...]:
    """What is known of a shape while planning: a 1 always is, as it may be repeated."""
    if fixed is None:
        return shape
    return tuple(n if n == 1 or i - len(shape) in fixed else None for i, n in enumerate(shape))


def _graph(operation: Operation, views: Sequence[View | None], dtypes: Sequence[DType | None]) -> GraphDraft:
    names: list[str | None] = []
    hints: dict[str, int] = {}
    draft = GraphDraft(operation.name, hints)
    for number, (view, dtype, fixed) in enumerate(zip(views, dtypes, operation.fixed, strict=True)):
        if view is None or dtype is None:
            names.append(None)
            continue
        dims: list[int | str] = []
        for axis, size in enumerate(_declared(view.shape, fixed)):
            dims.append(f"{operation.name}_{number}_{axis}" if size is None else size)
            if size is None:
                hints[str(dims[-1])] = max(1, view.shape[axis])
        names.append(draft.input(f"x{number}", dtype, tuple(dims)))
    draft.set_hints(hints)
    draft.output(operation.build(draft, names))
    return draft


def _planned(operation: Operation, views: Sequence[View | None], dtypes: Sequence[DType | None]) -> PlannedGraph:
    plan = plan_for_cpu(_graph(operation, views, dtypes).graph(), checked({"claim": "all"}))
    if plan.note:
        raise ConfigError(plan.note, where=WHERE)
    if plan.declined or len(plan.members) != 1:
        reasons = dict.fromkeys(str(reason) for reason in plan.declined.values())
        raise UnsupportedError(f"{operation.name}: {'; '.join(reasons) or 'it is no single kernel program'}", where=WHERE)
    return plan


def _compile(operation: Operation, views: Sequence[View | None], dtypes: Sequence[DType | None]) -> _Compiled:
    plan = _planned(operation, views, dtypes)
    [island] = plan.opened().islands
    return _Compiled(island.opened, tuple(int(name[1:]) for name in island.inputs))


def _interpret(operation: Operation, views: Sequence[View | None]) -> NDArray[Any]:
    """In float64; element types that no kernel has are taken for float32."""
    dtypes = tuple((DType.F32 if view.type_name == WIDE else view.dtype) if view is not None else None for view in views)
    key = _key(operation, views, dtypes)
    plan = _cache.plans.get(key) or _cache.plans.setdefault(key, _planned(operation, views, dtypes))
    entry = plan.result.islands[0]
    assert entry is not None
    program = entry.alternatives[-1].planned.program  # the last has no guards
    inputs = [view for view in (views[int(tensor.name[1:])] for tensor in entry.inputs) if view is not None]
    constants = [plan.graph.values[name].read for name in program.constants]
    [value] = interpret(program, [_as_array(view) for view in inputs], [read() for read in constants if read is not None])
    return np.asarray(value)


def _as_array(view: View) -> NDArray[Any]:
    """As the interpreter takes it: bfloat16 as uint16."""
    owner: Any = view.owner
    if view.type_name == "bfloat16":
        owner = owner.view(sys.modules["torch"].uint16)
    return np.asarray(owner)
