"""Files that ONNX Runtime has saved after its optimisations: convolutions with activations, and tensors in blocks of channels.

A tensor of the domain `com.microsoft.nchwc` has the shape [N, C, H, W], C being a multiple of the block b, and lies in memory as
[N, C / b, H, W, b]. Each operator here reads that as the tensor it means and leaves its result in blocks: both are views, and
between two such operators they are nothing. What b is, the file does not say: it is that of the machine that saved it, and ONNX
Runtime takes it for that of the machine that it runs on (onnxruntime/core/optimizer/nchwc_transformer.cc, mlas/lib/snchwc.cpp).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, f, float_input, maybe, one, wrapped
from xyntra_ep.fusion.onnx_ops.products._cell_activations import Activation, activation_of
from xyntra_ep.fusion.onnx_ops.products.convolution import CONV_ATTRIBUTES, convolve
from xyntra_ep.fusion.onnx_ops.rows import pooling
from xyntra_ep.fusion.op_spec import ANY, FLAG, FLOATS, OpSpec, takes
from xyntra_ep.fusion.tensor import Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import eq
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr

_DOMAIN = "com.microsoft.nchwc"
_F32 = ((DType.F32,),)
_OF_POOLS = {"ceil_mode": (0,), "auto_pad": ("NOTSET", "VALID")}  # with others windows lie elsewhere than ONNX's


def _block(c: Context, channels: object) -> int:
    """How many channels lie side by side, of a tensor of so many."""
    b = c.graph.channel_block
    if not b:
        raise UnsupportedError("blocks of channels, whose size on this machine is not known")
    if not isinstance(channels, int) or channels % b:
        raise UnsupportedError(f"{channels} channels in blocks of {b}")
    return b


def _from_blocks(c: Context, t: Tensor) -> Tensor:
    """[N, C, H, W] of a tensor in blocks."""
    if t.rank != 4:
        raise UnsupportedError("blocks of channels of no image")
    n, channels, h, w = t.shape
    b = _block(c, channels)
    return t.reshape((n, channels // b, h, w, b)).permute((0, 1, 4, 2, 3)).reshape(t.shape)


def _in_blocks(c: Context, t: Tensor) -> Tensor:
    """The tensor in blocks of [N, C, H, W]."""
    n, channels, h, w = t.shape
    b = _block(c, channels)
    return t.reshape((n, channels // b, b, h, w)).permute((0, 1, 3, 4, 2)).reshape(t.shape)


def _weights(c: Context, w: Tensor, *, inputs_too: bool) -> Tensor:
    """[M, C, kh, kw] of weights that lie as [M / b, C, kh, kw, b] or, ``inputs_too``, as [M / b, C / b, kh, kw, b (of C), b]."""
    if w.rank != 4:
        raise UnsupportedError("blocks of channels of no image")
    outputs, depth, *kernel = w.shape
    b = _block(c, outputs)
    if not inputs_too:
        return w.reshape((outputs // b, depth, *kernel, b)).permute((0, 4, 1, 2, 3)).reshape(w.shape)
    _block(c, depth)
    return w.reshape((outputs // b, depth // b, *kernel, b, b)).permute((0, 5, 1, 4, 2, 3)).reshape(w.shape)


def _activated(c: Context, node: Node, t: Tensor, added: Tensor | None) -> Tensor:
    """What attribute ``activation`` names, of t + added."""
    kind, given = node.attr("activation", ""), [float(p) for p in node.attr("activation_params") or ()]
    if not kind and added is None:
        return t
    activation = _clip(given) if kind == "Clip" else activation_of(kind, given) if kind else lambda v: v
    if added is not None:
        if added.rank != t.rank:
            raise UnsupportedError("a tensor of another rank is added")
        for have, want in zip(added.shape, t.shape, strict=True):
            c.require(eq(have, want), "what is added has another shape than the convolution's result")
        added = added.named(t.shape)

    def body(v: Expr, *z: Expr) -> Expr:
        return wrapped(t.dtype, activation(E.call("add", v, z[0]) if z else v))

    return c.map([t] if added is None else [t, added], body, t.dtype)


def _clip(given: Sequence[float]) -> Activation:
    if len(given) != 2:
        raise UnsupportedError(f"activation Clip with {len(given)} parameters")
    low, high = map(f, given)
    return lambda v: E.call("min", E.call("max", v, low), high)


def _fused_conv(c: Context, node: Node, inputs: Inputs) -> Tensor:
    conv = convolve(c, node, float_input(inputs, 0), one(inputs, 1), maybe(inputs, 2))
    return _activated(c, node, conv, maybe(inputs, 3))


def _conv(c: Context, node: Node, inputs: Inputs) -> Tensor:
    """An image with fewer channels than a block comes as it is."""
    x, w, added = float_input(inputs, 0), one(inputs, 1), maybe(inputs, 3)
    group, depth = int(node.attr("group", 1)), w.shape[1] if w.rank == 4 else None
    if not isinstance(depth, int):
        raise UnsupportedError("a convolution of unknown depth")
    is_plain = group == 1 and depth < _block(c, w.shape[0])
    is_depthwise = group > 1 and depth == 1
    w = _weights(c, w, inputs_too=not is_plain and not is_depthwise)
    conv = convolve(c, node, x if is_plain else _from_blocks(c, x), w, maybe(inputs, 2))
    return _in_blocks(c, _activated(c, node, conv, None if added is None else _from_blocks(c, added)))


def _of_blocks(name: str) -> OpSpec:
    """An operator of ONNX on tensors in blocks."""
    [spec] = (spec for spec in pooling.OPS if spec.name == name)

    def lower(c: Context, node: Node, inputs: Inputs) -> Tensor:
        result = spec.lower(c, node, [_from_blocks(c, one(inputs, 0))])
        assert isinstance(result, Tensor)
        return _in_blocks(c, result)

    attributes = {name: _OF_POOLS.get(name, values) for name, values in spec.attributes.items()}
    return replace(spec, name=f"{_DOMAIN}.{name}", lower=lower, versions=(1, 1), attributes=attributes, types=_F32)


def _reorder_input(c: Context, node: Node, inputs: Inputs) -> Tensor:
    return _in_blocks(c, _channels_first(node, one(inputs, 0)))


def _channels_first(node: Node, x: Tensor) -> Tensor:
    return x.permute((0, 3, 1, 2)) if node.attr("channels_last", 0) and x.rank == 4 else x


def _reorder_output(c: Context, node: Node, inputs: Inputs) -> Tensor:
    x = _from_blocks(c, one(inputs, 0))
    channels = int(node.need("channels"))
    have = x.shape[1]
    if not isinstance(have, int) or not have - _block(c, have) < channels <= have:  # only the last block has some to spare
        raise UnsupportedError(f"{channels} of {have} channels")
    x = x.slice((0, 0, 0, 0), (1, 1, 1, 1), (x.shape[0], channels, *x.shape[2:]))
    return x.permute((0, 2, 3, 1)) if node.attr("channels_last", 0) else x


_ACTIVATION = takes("activation", "activation_params")

OPS = [
    OpSpec(
        name="com.microsoft.FusedConv",
        lower=_fused_conv,
        inputs=4,
        attributes={**CONV_ATTRIBUTES, **_ACTIVATION},
        types=(FLOATS,),
    ),
    OpSpec(name=f"{_DOMAIN}.Conv", lower=_conv, inputs=4, attributes={**CONV_ATTRIBUTES, **_ACTIVATION}, types=_F32),
    *(_of_blocks(name) for name in ("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool")),
    OpSpec(name=f"{_DOMAIN}.ReorderInput", lower=_reorder_input, attributes=takes(channels_last=FLAG), types=_F32),
    OpSpec(
        name=f"{_DOMAIN}.ReorderOutput",
        lower=_reorder_output,
        attributes={"channels": ANY, "channels_last": FLAG},
        types=_F32,
    ),
]
