"""The ops that `plan_kernel` knows by name: what each computes, how it lies in memory in a session, and its usual sizes."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import acc, axis, call, const, load
from xyntra_ep.tracea.core_ir.ops import (
    Attention,
    Conv,
    CoreOp,
    Gemm,
    NoSoftmax,
    Operand,
    Pointwise,
    Product,
    Program,
    ReduceKind,
    RowOutput,
    RowReduce,
    Stage,
    Value,
    ValueKind,
    contiguous_strides,
)

Sizes = Mapping[str, int]


class Draft:
    """A program of one op in the making. What is computed in ``product`` is stored in its type, unless another is named; weights
    come in f32, as models bring them."""

    def __init__(self, product: Product) -> None:
        self.program = Program()
        self.product = product

    def input(self, *shape: Size, dtype: DType | None = None) -> Operand:
        return self._value(ValueKind.INPUT, dtype or self.product.half or DType.F32, shape)

    def weights(self, *shape: int) -> Operand:
        return self._value(ValueKind.CONST, DType.F32, shape)

    def output(self, *shape: Size, dtype: DType | None = None) -> Operand:
        return self._value(ValueKind.OUTPUT, dtype or self.product.half or DType.F32, shape)

    def _value(self, kind: ValueKind, dtype: DType, shape: tuple[Size, ...]) -> Operand:
        index = sum(v.kind is kind for v in self.program.values)
        self.program.values.append(Value(kind=kind, dtype=dtype, shape=shape, index=index))
        return self.program.operand(len(self.program.values) - 1)


def product_of(d: Draft, a: Operand, b: Operand) -> CoreOp:
    """[..., m, k] times [..., k, n], of the same batch."""
    out = d.output(*a.shape[:-1], b.shape[-1])
    return Gemm(inputs=(a, b), epilogue=acc(0), output=out, product=d.product)


def _gemm(d: Draft, m: int, n: int, k: int) -> CoreOp:
    return product_of(d, d.input(m, k), d.weights(k, n))


def _channels_last(image: Operand) -> Operand:
    """NCHW as sessions keep it: channels are neighbours."""
    n, c, h, w = image.shape
    steps = contiguous_strides((n, h, w, c))
    return Operand(value=image.value, dtype=image.dtype, shape=image.shape, strides=(steps[0], steps[3], steps[1], steps[2]))


def _conv(d: Draft, n: int, c: int, h: int, w: int, m: int, k: int, stride: int, pad: int, group: int) -> CoreOp:
    x, weights = _channels_last(d.input(n, c, h, w)), d.weights(m, c // group, k, k)
    out = _channels_last(d.output(n, m, (h + 2 * pad - k) // stride + 1, (w + 2 * pad - k) // stride + 1))
    return Conv(
        inputs=(x, weights), strides=(stride, stride), dilations=(1, 1), pads=(pad, pad), group=group,
        epilogue=acc(0), output=out, product=d.product if group == 1 else Product.F32,
    )  # fmt: skip


def _attention(d: Draft, batch: int, heads: int, s: int, t: int, d_head: int) -> CoreOp:
    q = d.input(batch, heads, s, d_head)
    k, v = (d.input(batch, heads, t, d_head) for _ in range(2))
    score = call("mul", acc(0), const(d_head**-0.5))
    out = d.output(batch, heads, s, d_head)
    return Attention(inputs=(q, k, v), score=score, no_softmax=NoSoftmax.NAN, output=out, product=d.product)


def softmax_of(d: Draft, x: Operand) -> CoreOp:
    """Along the last axis."""
    element = load(0, *map(axis, range(len(x.shape))), dtype=x.dtype)
    power = call("exp", call("sub", element, acc(0)))
    out = d.output(*x.shape)
    return RowReduce(
        outer=x.shape[:-1],
        inner=x.shape[-1:],
        inputs=(x,),
        stages=(Stage(kind=ReduceKind.MAX, body=element), Stage(kind=ReduceKind.SUM, body=power)),
        outputs=(RowOutput(body=call("div", power, acc(1)), operand=out, per_row=False),),
    )


def _softmax(d: Draft, rows: int, columns: int) -> CoreOp:
    return softmax_of(d, d.input(rows, columns))


def _add(d: Draft, n: int) -> CoreOp:
    x, y = d.input(n), d.input(n)
    body = call("add", *(load(j, axis(0), dtype=x.dtype) for j in range(2)))
    return Pointwise(domain=(n,), inputs=(x, y), bodies=(body,), outputs=(d.output(n),))


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedOp:
    """``sizes``: what is taken for a size that is not given, or the function of the others that it then is, in the order in which
    ``build`` takes them; ``of``: where these are from; ``why_not``: of sizes that do not go together, empty for those that do."""

    name: str
    aliases: tuple[str, ...]
    build: Callable[..., CoreOp]
    sizes: Mapping[str, int | Callable[[Sizes], int]]
    of: str
    why_not: Callable[[Sizes], str] = lambda sizes: ""

    def complete(self, given: Sizes) -> dict[str, int]:
        """All sizes, ``given`` first. Raises ConfigError for what is no size of the op, and for sizes that do not go together."""
        where = f"plan_kernel({self.name!r})"
        for name in given:
            if name not in self.sizes:
                raise ConfigError(f"no size {name!r}", where=where, hint=f"it takes {', '.join(self.sizes)}")
        asked = {name: _size(name, value, where) for name, value in given.items()}
        found: dict[str, int] = {}
        for name, usual in self.sizes.items():
            found[name] = asked[name] if name in asked else usual(found) if callable(usual) else usual
        if problem := self.why_not(found):
            raise ConfigError(problem, where=where)
        return found


def _size(name: str, value: object, where: str) -> int:
    least = int(name != "pad")
    try:
        size = operator.index(value)  # type: ignore[arg-type]  # what is no integer raises
    except TypeError:
        size = -1
    if size < least:
        raise ConfigError(f"{name}={value!r} is no size", where=where, hint=f"it wants an integer of at least {least}")
    return int(size)


def _no_conv(s: Sizes) -> str:
    for channels in ("c", "m"):
        if s[channels] % s["group"]:
            return f"{channels}={s[channels]} channels cannot be shared out to group={s['group']} groups"
    for side in ("h", "w"):
        if s["k"] > s[side] + 2 * s["pad"]:
            return f"a kernel of k={s['k']} is larger than {side}={s[side]} with pad={s['pad']} on both sides"
    return ""


OPS: tuple[NamedOp, ...] = (
    NamedOp(
        name="gemm",
        aliases=("matmul", "linear", "fully_connected"),
        build=_gemm,
        sizes={"m": 4096, "n": lambda s: s["m"], "k": lambda s: s["m"]},
        of="what matrix rates are quoted at",
    ),
    NamedOp(
        name="conv",
        aliases=("conv2d", "convolution"),
        build=_conv,
        sizes={
            "n": 32, "c": 64, "h": 56, "w": lambda s: s["h"], "m": lambda s: s["c"], "k": 3,
            "stride": 1, "pad": lambda s: s["k"] // 2, "group": 1,
        },
        of="the 3 x 3 convolutions of ResNet-50's first stage",
        why_not=_no_conv,
    ),
    NamedOp(
        name="attention",
        aliases=(
            "flash_attention", "flash_attention_2", "fused_attention", "multi_head_attention", "scaled_dot_product_attention",
            "sdpa",
        ),
        build=_attention,
        sizes={"batch": 16, "heads": 16, "s": 1024, "t": lambda s: s["s"], "d_head": 128},
        of="a sequence of the FlashAttention-2 paper's measurements: 16k tokens, 2048 wide",
    ),
    NamedOp(
        name="softmax",
        aliases=(),
        build=_softmax,
        sizes={"rows": 4096, "columns": 1024},
        of="rows of scores",
    ),
    NamedOp(
        name="add",
        aliases=("elementwise", "pointwise"),
        build=_add,
        sizes={"n": 1 << 24},
        of="more than caches hold",
    ),
)  # fmt: skip
_BY_NAME = {name: op for op in OPS for name in (op.name, *op.aliases)}


def op_named(name: str) -> NamedOp:
    """By its name or an alias; - and capitals are as good. Raises ConfigError with near names."""
    asked = name.lower().replace("-", "_").strip()
    if asked in _BY_NAME:
        return _BY_NAME[asked]
    near = difflib.get_close_matches(asked, _BY_NAME, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(op.name for op in OPS)}"
    raise ConfigError(f"no op {name!r}", where="plan_kernel", hint=hint)


def table() -> str:
    """Names, aliases and usual sizes as a Markdown table."""
    lines = ["| op | also called | sizes, unless given | of |", "|---|---|---|---|"]
    for op in OPS:
        aliases = ", ".join(f"`{alias}`" for alias in op.aliases)
        sizes = ", ".join(f"{name} {value}" for name, value in op.complete({}).items())
        lines.append(f"| `{op.name}` | {aliases} | {sizes} | {op.of} |")
    return "\n".join(lines)
