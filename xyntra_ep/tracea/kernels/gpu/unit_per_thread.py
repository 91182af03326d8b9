"""CPU kernels without vectors, a work unit per thread: what has no kernel of its own for GPUs computes the same there, slowly.

Such kernels share nothing and wait for nobody: their units are independent, so a thread is as good as a core.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from functools import partial
from typing import Any

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv
from xyntra_ep.tracea.core_ir.ops import CoreOp
from xyntra_ep.tracea.kernels.cpu import attention_fused, conv_generic, scan_rows, topk_rows
from xyntra_ep.tracea.kernels.gpu._launch import estimate_ns, gpu_of, steps_ns
from xyntra_ep.tracea.kernels.variant import FALLBACK_RANK, BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR
from xyntra_ep.tracea.semantic_ir.nodes import (
    BEGIN,
    BLOCK,
    END,
    INDEX,
    THREAD,
    Array,
    CallStatement,
    CallValue,
    Function,
    If,
    Kernel,
    Let,
    Offset,
    PointerType,
    Rvalue,
    Space,
    Statement,
    Var,
    lt,
)

_THREADS = 64
_UNITS = "units"  # a parameter beside those of the kernel
_STEPS_PER_UNIT = 1000  # nobody knows; enough to lose against any kernel of its own
_SOURCES = (attention_fused, conv_generic, scan_rows, topk_rows)


def _scalar(context: BuildContext) -> BuildContext:
    return replace(context, caps=SCALAR)


def _admits(variant: Variant[CoreOp], op: CoreOp, context: BuildContext) -> str | None:
    return variant.admits(op, _scalar(context))


def _cost_ns(variant: Variant[CoreOp], op: CoreOp, config: Config, context: BuildContext) -> float:
    return variant.cost_ns(op, config, _scalar(context)) + estimate_ns(_STEPS_PER_UNIT, gpu_of(context))


def _build(variant: Variant[CoreOp], op: CoreOp, config: Config, context: BuildContext) -> list[KernelCall]:
    return [_on_gpu(call, context) for call in variant.build(op, config, _scalar(context))]


def _on_gpu(call: KernelCall, context: BuildContext) -> KernelCall:
    kernel, units = call.kernel, Var(INDEX, f"p_{_UNITS}")
    unit = Let(BEGIN, BLOCK * _THREADS + THREAD)
    body = (unit, Let(END, BEGIN + 1), If(lt(BEGIN, units), kernel.body))
    blocks: Size = ceildiv(call.units, _THREADS)
    return replace(
        call,
        kernel=_with_own_arrays(
            replace(kernel, name=f"{kernel.name}_unit", params=(*kernel.params, units.name), body=body, threads=_THREADS)
        ),
        params=(*call.params, call.units),
        units=blocks,
        cost_ns=steps_ns(call.units * _STEPS_PER_UNIT, gpu_of(context)),
    )


def _with_own_arrays(kernel: Kernel) -> Kernel:
    """Local arrays are a thread's own, which pointers to them must say: also the parameters of functions that are given them."""
    spaces = _Spaces()
    body = spaces.rewritten(kernel.body, spaces.arrays_of(kernel.body))
    return replace(kernel, body=body, functions=tuple(spaces.functions.values()))


class _Spaces:
    """Rewrites a kernel's body. A function has a version for each choice of spaces that it is called with."""

    def __init__(self) -> None:
        self.functions: dict[tuple[str, tuple[bool, ...]], Function] = {}  # in the order of definition

    def arrays_of(self, node: Any) -> frozenset[str]:
        own = {node.var.name} if isinstance(node, Array) else set()
        return frozenset(own.union(*(self.arrays_of(part) for part in _parts(node))))

    def rewritten(self, node: Any, own: frozenset[str]) -> Any:
        """``node`` with the pointers named in ``own`` to a thread's own memory."""
        if isinstance(node, Var):
            is_own = node.name in own and isinstance(node.vtype, PointerType)
            return Var(replace(node.vtype, space=Space.PRIVATE), node.name) if is_own else node  # type: ignore[type-var]
        if isinstance(node, tuple):
            return tuple(self.rewritten(part, own) for part in node)
        if not isinstance(node, Rvalue | Statement):
            return node
        parts = {f.name: self.rewritten(getattr(node, f.name), own) for f in fields(node)}  # type: ignore[arg-type]
        if isinstance(node, CallStatement | CallValue):
            parts["function"] = self._function(node.function, parts["args"])
        return replace(node, **parts)  # type: ignore[type-var]

    def _function(self, function: Function, args: tuple[Rvalue, ...]) -> Function:
        own = tuple(_is_own(arg) for arg in args)
        key = (function.name, own)
        if key not in self.functions:
            names = frozenset(p.name for p, is_own in zip(function.arguments, own, strict=True) if is_own)
            names |= self.arrays_of(function.body)
            versions = sum(name == function.name for name, _ in self.functions)
            made = replace(
                function,
                name=f"{function.name}_v{versions}" if versions else function.name,
                arguments=self.rewritten(function.arguments, names),
                body=self.rewritten(function.body, names),
            )
            self.functions[key] = made  # after those that it calls
        return self.functions[key]


def _is_own(argument: Rvalue) -> bool:
    kind = argument.vtype if isinstance(argument, Var | Offset) else None
    return isinstance(kind, PointerType) and kind.space is Space.PRIVATE


def _parts(node: Any) -> Iterable[Any]:
    if isinstance(node, tuple):
        return node
    return (getattr(node, f.name) for f in fields(node)) if isinstance(node, Rvalue | Statement) else ()  # type: ignore[arg-type]


VARIANTS = [
    Variant(
        name=f"{variant.name}.unit_per_thread",
        op=variant.op,
        admits=partial(_admits, variant),
        space=lambda op, context: (),
        default=partial(lambda variant, op, context: variant.default(op, _scalar(context)), variant),
        cost_ns=partial(_cost_ns, variant),
        build=partial(_build, variant),
        rank=FALLBACK_RANK + 1,
    )
    for source in _SOURCES
    for variant in source.VARIANTS
]
