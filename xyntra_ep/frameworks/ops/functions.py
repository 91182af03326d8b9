"""The operations, with PyTorch's arguments (`matmul`: NumPy's) and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xyntra_ep.frameworks.graph_draft import GraphDraft
from xyntra_ep.frameworks.ops.arrays import Library, NumPy, Shape, View, library_of
from xyntra_ep.frameworks.ops.compiled import Operation, is_interpreted, run
from xyntra_ep.tracea.core_ir.dtypes import DType

_FLOATS = ("float32", "float16", "bfloat16")
_LAST = (-1,)


def matmul(x1: Any, x2: Any, /, out: Any = None) -> Any:
    """The matrix product of NumPy and PyTorch, vectors and batches included."""
    call = Call("matmul", (x1, x2))
    a, b = call.shape(0), call.shape(1)
    if not a or not b:
        raise call.error("matmul: an operand has no dimensions")
    inner = b[0] if len(b) == 1 else b[-2]
    if a[-1] != inner:
        raise call.error(f"matmul: shapes {a} and {b} do not fit: {a[-1]} is not {inner}")
    batch = call.broadcast(a[:-2], b[:-2])
    shape = (*batch, *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))

    def build(d: GraphDraft, names: Sequence[str | None]) -> str:
        return d.node("MatMul", *call.promoted(d, names))

    return call.run(build, shape, out, fixed=(_LAST, (-1, -2)), reference=lambda torch: torch.matmul)


def linear(input: Any, weight: Any, bias: Any = None, *, out: Any = None) -> Any:
    """input @ weight.T + bias"""
    call = Call("linear", (input, weight, bias))
    x, w = call.shape(0), call.shape(1)
    if not x or len(w) != 2 or x[-1] != w[1]:
        raise call.error(f"linear: input {x} and weight {w} do not fit")
    if bias is not None and call.shape(2) != w[:1]:
        raise call.error(f"linear: bias {call.shape(2)} does not fit weight {w}")

    def build(d: GraphDraft, names: Sequence[str | None]) -> str:
        x, w, *rest = call.promoted(d, names)
        found = d.node("MatMul", x, d.node("Transpose", w, perm=[1, 0]))
        return d.node("Add", found, rest[0]) if rest else found

    return call.run(build, (*x[:-1], w[0]), out, fixed=(_LAST, None, None), reference=lambda torch: torch.nn.functional.linear)


def conv2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: str | int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    *,
    out: Any = None,
) -> Any:
    """A convolution of images (N, C, H, W), or of one (C, H, W)."""
    call = Call("conv2d", (input, weight, bias))
    x, w = call.shape(0), call.shape(1)
    if len(x) not in (3, 4) or len(w) != 4:
        raise call.error(f"conv2d: expected an input of 3 or 4 dimensions and a weight of 4, got {x} and {w}")
    if groups < 1 or x[-3] != w[1] * groups or w[0] % groups:
        raise call.error(f"conv2d: an input of {x[-3]} channels and weight {w} do not fit in {groups} groups")
    if bias is not None and call.shape(2) != w[:1]:
        raise call.error(f"conv2d: bias {call.shape(2)} does not fit weight {w}")
    strides, dilations = _pair(call, stride, "stride"), _pair(call, dilation, "dilation")
    pads = _pads(call, padding, w[2:], strides, dilations)
    sizes = tuple(
        (n + before + after - d * (k - 1) - 1) // s + 1
        for n, k, s, d, (before, after) in zip(x[-2:], w[2:], strides, dilations, pads, strict=True)
    )
    if min(sizes) < 1:
        raise call.error(f"conv2d: kernel {w[2:]} is larger than the padded input {x[-2:]}")
    alone = len(x) == 3

    def build(d: GraphDraft, names: Sequence[str | None]) -> str:
        image, *rest = call.promoted(d, names)
        image = d.node("Unsqueeze", image, d.ints(0)) if alone else image
        found = d.node(
            "Conv",
            image,
            *rest,
            kernel_shape=[*w[2:]],
            strides=strides,
            dilations=dilations,
            pads=[pads[0][0], pads[1][0], pads[0][1], pads[1][1]],
            group=groups,
        )
        return d.node("Squeeze", found, d.ints(0)) if alone else found

    settings = (tuple(strides), tuple(dilations), tuple(pads), groups)
    return call.run(
        build,
        (*x[:-3], w[0], *sizes),
        out,
        fixed=((-3,), None, None),
        settings=settings,
        reference=lambda torch: lambda *t: torch.nn.functional.conv2d(*t, stride, padding, dilation, groups),
    )


def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    out: Any = None,
) -> Any:
    """torch.nn.functional.scaled_dot_product_attention of (batch, heads, positions, depth).

    A mask of bools says what is seen, one of floats is added. With ``enable_gqa`` several query heads share keys and values.
    """
    call = Call("attention", (query, key, value, attn_mask))
    q, k, v = (call.shape(i) for i in range(3))
    if not len(q) == len(k) == len(v) == 4:
        raise call.error(f"attention: expected four dimensions each, got {q}, {k} and {v}")
    if q[0] != k[0] or q[3] != k[3] or k[:3] != v[:3]:
        raise call.error(f"attention: query {q}, key {k} and value {v} do not fit")
    if q[1] != k[1] and (not enable_gqa or q[1] % k[1]):
        raise call.error(f"attention: {q[1]} query heads and {k[1]} key heads" + ("" if enable_gqa else " without enable_gqa"))
    if dropout_p:
        raise call.error("attention: dropout_p is not 0: kernels draw no random numbers")
    if attn_mask is not None:
        if is_causal:
            raise call.error("attention: attn_mask and is_causal exclude each other")
        scores = (*q[:3], k[2])
        if call.broadcast(call.shape(3), scores) != scores:
            raise call.error(f"attention: mask {call.shape(3)} does not fit scores {scores}")
    factor = 1 / math.sqrt(q[3]) if scale is None else float(scale)
    is_short = attn_mask is not None and call.shape(3)[-1] != k[2]

    def build(d: GraphDraft, names: Sequence[str | None]) -> str:
        parts = call.promoted(d, names[:3])
        mask = names[3]
        if mask is None:
            return d.node("Attention", *parts, is_causal=int(is_causal), scale=factor)
        if is_short:  # of one column, which stands for all
            width = d.node("Shape", parts[1], dtype=DType.I64, start=2, end=3)
            mask = d.node("Expand", mask, d.node("Concat", d.ints(*[1] * (len(call.shape(3)) - 1)), width, axis=0))
        return d.node("Attention", *parts, mask, scale=factor)

    def reference(torch: Any) -> Callable[..., Any]:
        function = torch.nn.functional.scaled_dot_product_attention
        return lambda *t: function(*t, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa)

    heads = (-1, -3)
    return call.run(
        build,
        (*q[:3], v[3]),
        out,
        fixed=(heads, heads, heads, ()),
        settings=(is_causal, factor, is_short),
        floats=3,
        reference=reference,
    )


def layer_norm(
    input: Any, normalized_shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5, *, out: Any = None
) -> Any:
    call = Call("layer_norm", (input, weight, bias))
    axis = _normalized(call, normalized_shape, 2)

    def build(d: GraphDraft, names: Sequence[str | None]) -> str:
        x, w, b = call.promoted_or_none(d, names)
        w = w or d.node("Expand", d.constant(1, d.dtype(x)), d.ints(*normalized_shape))
        return d.node("LayerNormalization", x, w, *([b] if b else []), axis=axis, epsilon=float(eps))

    return call.run(
        build,
        call.shape(0),
        out,
        fixed=([*range(axis, 0)], None, None),
        settings=(axis, float(eps)),
        reference=lambda torch: lambda x, w=None, b=None: torch.nn.functional.layer_norm(x, [*normalized_shape], w, b, eps),
    )


def rms_norm(
    input: Any, normalized_shape: Sequence[int], weight: Any = None, eps: float | None = None, *, out: Any = None
) -> Any:
    """``eps``: None is the distance from 1 to the next number of the type."""
    call = Call("rms_norm", (input, weight))
    axis = _normalized(call, normalized_shape, 1)
    least = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 2.0**-52}.get(call.type_name(0), 2.0**-23)
    epsilon = least if eps is None else float(eps)

    def build(d: GraphDraft, names: Sequence[str | None]) -> str:
        x, w = call.promoted_or_none(d, names)
        w = w or d.node("Expand", d.constant(1, d.dtype(x)), d.ints(*normalized_shape))
        return d.node("RMSNormalization", x, w, axis=axis, epsilon=epsilon)

    return call.run(
        build,
        call.shape(0),
        out,
        fixed=([*range(axis, 0)], None),
        settings=(axis, epsilon),
        reference=lambda torch: lambda x, w=None: torch.nn.functional.rms_norm(x, [*normalized_shape], w, eps),
    )


def softmax(input: Any, dim: int = -1, *, axis: int | None = None, out: Any = None) -> Any:
    """Along ``dim``, which ``axis`` is another name of."""
    call = Call("softmax", (input,))
    place, rank = dim if axis is None else axis, len(call.shape(0))
    if not -max(rank, 1) <= place < max(rank, 1):
        raise IndexError(f"softmax: dimension {place} of an array of {rank}")
    place = place + rank if place < 0 else place

    def build(d: GraphDraft, names: Sequence[str | None]) -> str:
        [x] = call.promoted(d, names)
        return d.node("Softmax", x, axis=place) if rank else d.node("Div", x, x)

    return call.run(
        build,
        call.shape(0),
        out,
        fixed=((place - rank,),),
        settings=(place,),
        reference=lambda torch: lambda x: torch.softmax(x, place),
    )


def gelu(input: Any, *, approximate: str = "none", out: Any = None) -> Any:
    call = Call("gelu", (input,))
    if approximate not in ("none", "tanh"):
        raise call.error(f"gelu: approximate must be 'none' or 'tanh', not {approximate!r}")

    def build(d: GraphDraft, names: Sequence[str | None]) -> str:
        return d.node("Gelu", *call.promoted(d, names), approximate=approximate)

    return call.run(
        build,
        call.shape(0),
        out,
        fixed=((),),
        settings=(approximate,),
        reference=lambda torch: lambda x: torch.nn.functional.gelu(x, approximate=approximate),
    )


class Call:
    """The operands of a call, looked at."""

    def __init__(self, name: str, operands: Sequence[Any | None]) -> None:
        self.name = name
        self.operands = operands
        self.library: Library = library_of(operands)
        self._views: list[View | None] = [None if array is None else self.library.view(array) for array in operands]

    def shape(self, i: int) -> Shape:
        view = self._views[i]
        assert view is not None
        return view.shape

    def type_name(self, i: int) -> str:
        view = self._views[i]
        assert view is not None
        return view.type_name

    def error(self, text: str) -> Exception:
        return self.library.error(text)

    def broadcast(self, a: Shape, b: Shape) -> Shape:
        try:
            return np.broadcast_shapes(a, b)
        except ValueError:
            raise self.error(f"{self.name}: shapes {a} and {b} cannot be broadcast") from None

    def result_type(self, count: int | None = None) -> str:
        """Of the operands. PyTorch wants them to be equal, NumPy promotes them."""
        names = list(dict.fromkeys(view.type_name for view in self._views[:count] if view is not None))
        if len(names) > 1:
            if not isinstance(self.library, NumPy):
                raise self.error(f"{self.name}: operands of {' and '.join(names)}: they must have one type")
            names = [np.result_type(*names).name]
        if names[0] not in _FLOATS and not (is_interpreted() and names[0] == "float64"):
            raise TypeError(f"{self.name} of {names[0]}: kernels compute {', '.join(_FLOATS)}")
        return names[0]

    def promoted_or_none(self, d: GraphDraft, names: Sequence[str | None]) -> list[Any]:
        """Names of the operands as the type of the result."""
        name = self.result_type(len(names))
        dtype = DType.F32 if name == "float64" else {"float32": DType.F32, "float16": DType.F16, "bfloat16": DType.BF16}[name]
        return [
            operand if operand is None or d.dtype(operand) is dtype else d.node("Cast", operand, dtype=dtype, to=dtype.ort)
            for operand in names
        ]

    def promoted(self, d: GraphDraft, names: Sequence[str | None]) -> list[str]:
        return [name for name in self.promoted_or_none(d, names) if name is not None]

    def run(
        self,
        build: Callable[[GraphDraft, Sequence[str | None]], str],
        shape: Shape,
        out: Any,
        *,
        fixed: Sequence[Sequence[int] | None],
        reference: Callable[[Any], Callable[..., Any]],
        settings: tuple[Any, ...] = (),
        floats: int | None = None,
    ) -> Any:
        """``reference``: the same in PyTorch, given the module, for gradients. ``floats``: how many operands have the type."""
        result = self.result_type(floats)
        operation = Operation(name=self.name, settings=settings, build=build, fixed=fixed)

        def compute(*operands: Any) -> Any:
            return run(operation, self.library, operands, out, shape, result)

        if isinstance(self.library, NumPy) or not any(getattr(t, "requires_grad", False) for t in self.operands):
            return compute(*self.operands)
        from xyntra_ep.frameworks.torch.gradients import differentiable

        if out is not None:
            raise self.error(f"{self.name}: functions with out=... arguments do not support automatic differentiation")
        return differentiable(compute, reference, (self.name, settings), self.operands)


def _pair(call: Call, value: int | Sequence[int], what: str) -> list[int]:
    found = [value, value] if isinstance(value, int) else [int(n) for n in value]
    if len(found) != 2 or min(found) < 1:
        raise call.error(f"conv2d: {what} must be a positive integer or two, not {value!r}")
    return found


def _pads(
    call: Call, padding: str | int | Sequence[int], kernel: Shape, strides: Sequence[int], dilations: Sequence[int]
) -> list[tuple[int, int]]:
    """Before and behind each axis."""
    if padding == "valid":
        return [(0, 0), (0, 0)]
    if padding == "same":
        if any(s != 1 for s in strides):
            raise call.error("conv2d: padding='same' is not supported for strided convolutions")
        totals = [d * (k - 1) for k, d in zip(kernel, dilations, strict=True)]
        return [(total // 2, total - total // 2) for total in totals]
    if isinstance(padding, str):
        raise call.error(f"conv2d: padding must be a number, two, 'same' or 'valid', not {padding!r}")
    found = [padding, padding] if isinstance(padding, int) else [int(n) for n in padding]
    if len(found) != 2 or min(found) < 0:
        raise call.error(f"conv2d: padding must be a number that is not negative or two, not {padding!r}")
    return [(n, n) for n in found]


def _normalized(call: Call, normalized_shape: Sequence[int], parameters: int) -> int:
    """The first axis that is normalised, counted from the end."""
    wanted, shape = tuple(normalized_shape), call.shape(0)
    if not wanted or shape[-len(wanted) :] != wanted:
        raise call.error(f"{call.name}: normalized_shape {list(wanted)} does not fit an input of {shape}")
    for i in range(1, parameters + 1):
        if call.operands[i] is not None and call.shape(i) != wanted:
            raise call.error(f"{call.name}: a parameter of {call.shape(i)} for normalized_shape {list(wanted)}")
    return -len(wanted)
