"""`plan_kernel`: ask Tracea what it would do with one op, in words, without a graph.

Context().plan_kernel("gemm", m=128, n=768, k=3072)     the variant, its configuration, and what was rejected
and why
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import acc, axis, call, const, load
from xyntra_ep.tracea.core_ir.ops import (
    Attention,
    Conv,
    CoreOp,
    Gemm,
    Operand,
    Pointwise,
    Program,
    ReduceKind,
    RowOutput,
    RowReduce,
    Stage,
    Value,
    ValueKind,
)
from xyntra_ep.tracea.doctor.decision import Evidence

if TYPE_CHECKING:
    from xyntra_ep.tracea.interface.context import Context

PRECISIONS = ("fp32",)
LATER_PRECISIONS = ("bf16", "fp16", "int8w")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPlan:
    """An answer. ``rejected``: variants, precisions and backends that were not taken, with the reason."""

    op: str
    sizes: Mapping[str, int]
    variant: str
    backend: str
    precision: str
    config: Mapping[str, int]
    cost_ns: float
    evidence: Evidence
    rejected: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        sizes = " ".join(f"{name}={value}" for name, value in self.sizes.items())
        config = " ".join(f"{name}={value}" for name, value in self.config.items()) or "nothing to choose"
        lines = [
            f"{self.op} {sizes}: {self.variant} on {self.backend}, {self.precision}",
            f"  configuration: {config}",
            f"  cost: {self.cost_ns / 1000:.1f} us on one core ({self.evidence})",
        ]
        return "\n".join(lines + [f"  not {name}: {why}" for name, why in self.rejected])


class _Draft:
    """A program of one op in the making."""

    def __init__(self) -> None:
        self.program = Program()

    def value(self, kind: ValueKind, *shape: Size) -> Operand:
        index = sum(v.kind is kind for v in self.program.values)
        self.program.values.append(Value(kind=kind, dtype=DType.F32, shape=shape, index=index))
        return self.program.operand(len(self.program.values) - 1)


def _gemm(d: _Draft, m: int, n: int, k: int) -> CoreOp:
    a, b = d.value(ValueKind.INPUT, m, k), d.value(ValueKind.CONST, k, n)
    return Gemm(inputs=(a, b), epilogue=acc(0), output=d.value(ValueKind.OUTPUT, m, n))


def _conv(d: _Draft, n: int, c: int, h: int, w: int, m: int, k: int, stride: int = 1, pad: int = 0, group: int = 1) -> CoreOp:
    x, weights = d.value(ValueKind.INPUT, n, c, h, w), d.value(ValueKind.CONST, m, c // group, k, k)
    out = d.value(ValueKind.OUTPUT, n, m, (h + 2 * pad - k) // stride + 1, (w + 2 * pad - k) // stride + 1)
    return Conv(
        inputs=(x, weights), strides=(stride, stride), dilations=(1, 1), pads=(pad, pad), group=group,
        epilogue=acc(0), output=out,
    )  # fmt: skip


def _attention(d: _Draft, batch: int, heads: int, s: int, t: int, d_head: int) -> CoreOp:
    q = d.value(ValueKind.INPUT, batch, heads, s, d_head)
    k, v = (d.value(ValueKind.INPUT, batch, heads, t, d_head) for _ in range(2))
    score = call("mul", acc(0), const(d_head**-0.5))
    out = d.value(ValueKind.OUTPUT, batch, heads, s, d_head)
    return Attention(inputs=(q, k, v), score=score, nan_to_zero=False, output=out)


def _softmax(d: _Draft, rows: int, columns: int) -> CoreOp:
    x, out = d.value(ValueKind.INPUT, rows, columns), d.value(ValueKind.OUTPUT, rows, columns)
    element = load(0, axis(0), axis(1), dtype=DType.F32)
    power = call("exp", call("sub", element, acc(0)))
    return RowReduce(
        outer=(rows,),
        inner=(columns,),
        inputs=(x,),
        stages=(Stage(kind=ReduceKind.MAX, body=element), Stage(kind=ReduceKind.SUM, body=power)),
        outputs=(RowOutput(body=call("div", power, acc(1)), operand=out, per_row=False),),
    )


def _add(d: _Draft, n: int) -> CoreOp:
    x, y = d.value(ValueKind.INPUT, n), d.value(ValueKind.INPUT, n)
    body = call("add", *(load(j, axis(0), dtype=DType.F32) for j in range(2)))
    return Pointwise(domain=(n,), inputs=(x, y), bodies=(body,), outputs=(d.value(ValueKind.OUTPUT, n),))


_OPS: Mapping[str, Callable[..., CoreOp]] = {
    "gemm": _gemm,
    "conv": _conv,
    "attention": _attention,
    "softmax": _softmax,
    "add": _add,
}


def plan_kernel(context: Context, op: str, *, precision: str, sizes: Mapping[str, int]) -> KernelPlan:
    """What ``context`` would do for ``op``. Raises ConfigError for what does not exist, UnsupportedError when
    no variant admits the op; a precision of a later release falls to fp32 and says so."""
    if op not in _OPS:
        near = difflib.get_close_matches(op, _OPS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(_OPS)}"
        raise ConfigError(f"no op {op!r}", where="plan_kernel", hint=hint)
    rejected: list[tuple[str, str]] = []
    if (asked := precision.lower()) not in PRECISIONS:
        if asked not in LATER_PRECISIONS:
            raise ConfigError(f"no precision {precision!r}", where="plan_kernel", hint=f"there are {', '.join(PRECISIONS)}")
        rejected.append((f"precision {asked}", f"precision {asked} is not in this release; fp32 is used"))
    draft = _Draft()
    try:
        built = _OPS[op](draft, **sizes)
    except TypeError as error:  # a size too many or too few
        raise ConfigError(_say(error), where=f"plan_kernel({op!r})", hint=_signature(op)) from None
    known = frozenset(i for i, v in enumerate(draft.program.values) if v.kind is ValueKind.CONST)
    decision = context.estimate(built, draft.program, known)
    return KernelPlan(
        op=op,
        sizes=dict(sizes),
        variant=decision.chosen.name,
        backend="cpu",
        precision="fp32",
        config=dict(decision.config),
        cost_ns=decision.cost_ns,
        evidence=decision.evidence,
        rejected=(*rejected, *decision.rejected),
    )


def _say(error: TypeError) -> str:
    return str(error).partition("() ")[2] or str(error)


def _signature(op: str) -> str:
    names = [n for n in _OPS[op].__code__.co_varnames[1 : _OPS[op].__code__.co_argcount]]
    return f"it takes {', '.join(names)}"
