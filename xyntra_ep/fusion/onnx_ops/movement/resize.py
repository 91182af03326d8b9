"""Resize and Upsample: nearest and linear, with tables for axes of known size and formulas for the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.frames import in_order, order_of
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, clamp_index, f, maybe, normal_axis, one, total, wrapped
from xyntra_ep.fusion.onnx_ops.movement._sampling import Axis, coordinates, cubic, linear, nearest
from xyntra_ep.fusion.op_spec import FLAG, FLOATS, INDICES, NUMBERS, OpSpec, takes
from xyntra_ep.fusion.tensor import Map, Tensor, literal
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size, either, eq, lt
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr

Tap = tuple[Expr, Expr | None]  # (index, weight; None: the only one)
CUBIC_A = -0.75  # ONNX's default
LARGEST_WHOLE_SCALE = 64


@dataclass(slots=True, kw_only=True)
class _Taps:
    """For each axis the elements that make one of the result; ``tables`` become further inputs of the map."""

    tables: list[Tensor] = field(default_factory=list)
    inside: Expr | None = None

    def table(self, values: NDArray[Any], axis: int) -> Expr:
        dtype = DType.F32 if values.dtype.kind == "f" else DType.BOOL if values.dtype.kind == "b" else DType.I64
        self.tables.append(literal(values, dtype))
        return E.load(len(self.tables), E.axis(axis), dtype=dtype)

    def limit(self, legal: Expr) -> None:
        self.inside = legal if self.inside is None else E.call("and", self.inside, legal)


def _resize(c: Context, node: Node, inputs: Inputs) -> Tensor:
    x = one(inputs, 0)
    mode = str(node.attr("mode", "nearest"))
    if mode != "nearest" and not x.dtype.is_float:
        raise UnsupportedError(f"dtype {x.dtype}")
    old = node.op_type == "Upsample" or node.version < 11
    how = "asymmetric" if old else str(node.attr("coordinate_transformation_mode", "half_pixel"))
    rounding = "simple" if old else str(node.attr("nearest_mode", "round_prefer_floor"))
    shape, scales, regions = _sizes(c, node, inputs, x, old)
    if mode == "linear":
        _require_linear(c, x, shape, scales)
    for extent, result in zip(x.shape, shape, strict=True):
        c.require(either(lt(0, extent), eq(result, 0)), "Cannot scale 0 by any factor to generate a non-zero value")
    taps = _Taps()
    per_axis: list[list[Tap]] = []
    for i in range(x.rank):
        if scales[i] == 1 and x.shape[i] == shape[i] and how != "tf_crop_and_resize":
            per_axis.append([(E.axis(i), None)])
            continue
        extent, result = x.shape[i], shape[i]
        if isinstance(extent, int) and isinstance(result, int):
            start, end = regions[i]
            scale = scales[i]
            known = np.float32(result / extent) if scale is None else np.float32(scale)
            axis = Axis(extent=extent, result=result, scale=known, start=start, end=end)
            per_axis.append(_known(taps, i, axis, node, mode, how, rounding))
        elif mode == "nearest":
            per_axis.append([(_whole_nearest(i, extent, result, scales[i], how, rounding), None)])
        elif mode == "cubic":
            raise UnsupportedError("cubic Resize of a dynamic axis")
        else:
            per_axis.append(_dynamic_linear(i, extent, result, scales[i], how))
    outside = float(node.attr("extrapolation_value", 0.0))
    body = _weighted(per_axis, lambda at: E.load(0, *at, dtype=x.dtype))
    if taps.inside is not None:
        body = E.call("where", taps.inside, body, E.const(outside, x.dtype))
    return in_order(order_of(x), Tensor(shape, x.dtype, Map(inputs=(x, *taps.tables), body=wrapped(x.dtype, body))))


_LINEAR_AXES: Mapping[int, Sequence[Sequence[int]]] = {2: ((0, 1),), 3: ((0, 1, 2),), 4: ((2, 3), (1, 2)), 5: ((2, 3, 4),)}


def _require_linear(c: Context, x: Tensor, shape: Sequence[Size], scales: Scales) -> None:
    """By rank, the axes that ORT interpolates along; it refuses any others."""
    fixed = {i for i, scale in enumerate(scales) if scale is not None and scale != 1.0}
    allowed = next((axes for axes in _LINEAR_AXES.get(x.rank, ()) if fixed <= set(axes)), None)
    if allowed is None:
        raise UnsupportedError("linear Resize along these axes")
    for i, scale in enumerate(scales):
        if scale is None and i not in allowed:
            c.require_equal(shape[i], x.shape[i], "linear Resize along these axes")


Scales = list[float | None]  # None: what the sizes give


def _sizes(
    c: Context, node: Node, inputs: Inputs, x: Tensor, old: bool
) -> tuple[tuple[Size, ...], Scales, list[tuple[float, float]]]:
    """(result extents, scales, region of interest) of every axis."""
    scales_at = 1 if old else 2
    given = node.attr("axes")
    axes = [normal_axis(int(a), x.rank) for a in given] if given else list(range(x.rank))
    sizes = None if old else maybe(inputs, 3)
    shape, scales = list(x.shape), [1.0] * x.rank
    regions = [(0.0, 1.0)] * x.rank
    found: Scales = list(scales)
    if sizes is not None and sizes.shape != (0,):
        wanted = dict(zip(axes, sizes.ints("the sizes of Resize"), strict=True))
        policy = node.attr("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            common = _common_scale(x.shape, wanted, policy)
            for axis in axes:
                found[axis], shape[axis] = common, int(np.floor(common * int(x.shape[axis]) + 0.5))  # type: ignore[arg-type]  # ints
        else:
            for axis, size in wanted.items():
                shape[axis] = size
                found[axis] = 1.0 if size == x.shape[axis] else None
    else:
        values = node.attr("scales") if node.attr("scales") else c.constant(one(inputs, scales_at), "the scales of Resize")
        for axis, scale in zip(axes, [float(v) for v in np.asarray(values).reshape(-1)], strict=True):
            found[axis] = scale
            shape[axis] = _scaled(x.shape[axis], scale)
    if node.attr("coordinate_transformation_mode", "") == "tf_crop_and_resize":
        roi = np.asarray(c.constant(one(inputs, 1), "the region of Resize"), dtype=np.float64).reshape(2, -1)
        for k, axis in enumerate(axes):
            regions[axis] = (float(roi[0, k]), float(roi[1, k]))
    return tuple(shape), found, regions


def _common_scale(shape: Sequence[Size], wanted: Mapping[int, Size], policy: str) -> float:
    """One scale for all axes, so that the result is not larger (or smaller) than asked for."""
    ratios: list[float] = []
    for axis, size in wanted.items():
        extent = shape[axis]
        if not isinstance(extent, int) or not isinstance(size, int):
            raise UnsupportedError("Resize of a dynamic axis that keeps the aspect ratio")
        ratios.append(float(np.float32(size) / np.float32(extent)))
    return min(ratios) if policy == "not_larger" else max(ratios)


def _scaled(extent: Size, scale: float) -> Size:
    if isinstance(extent, int):
        return int(np.floor(np.float32(extent) * np.float32(scale)))
    if scale != int(scale):
        raise UnsupportedError("Resize of a dynamic axis by a fraction")
    return extent * int(scale)


def _known(taps: _Taps, i: int, axis: Axis, node: Node, mode: str, how: str, rounding: str) -> list[Tap]:
    """From tables."""
    x = coordinates(axis, how)
    if how == "tf_crop_and_resize":
        taps.limit(taps.table((x >= 0) & (x <= axis.extent - 1), i))
    if mode == "nearest":
        places = nearest(x, axis.extent, rounding, bool(axis.scale < 1))
        times = axis.result // max(1, axis.extent)
        if times and times & (times - 1) == 0 and np.array_equal(places, np.arange(axis.result) // times):
            if times == 1:
                return [(E.axis(i), None)]
            return [(E.call("div", E.axis(i), E.const(times)), None)]  # each a power of two times: vectors that are shuffled
        return [(taps.table(places, i), None)]
    if mode == "cubic":
        neighbours = cubic(x, axis.extent, node.attr("cubic_coeff_a", CUBIC_A), bool(node.attr("exclude_outside", 0)))
        return [(taps.table(place, i), taps.table(weight, i)) for place, weight in neighbours]
    low, high, weight = linear(x, axis.extent)
    upper = taps.table(weight, i)
    return [(taps.table(low, i), E.call("sub", f(1), upper)), (taps.table(high, i), upper)]


def _whole_nearest(i: int, extent: Size, result: Size, scale: float | None, how: str, rounding: str) -> Expr:
    """Of a whole multiple: every rounding that is not at its tie picks i // scale."""
    whole = scale if scale is not None else next((k for k in range(1, LARGEST_WHOLE_SCALE + 1) if extent * k == result), None)
    centred = how in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric") and rounding.startswith("round_prefer")
    floored = how == "asymmetric" and rounding in ("floor", "simple")
    if whole is None or whole != int(whole) or not (centred or floored):
        raise UnsupportedError("Resize of a dynamic axis to the nearest element")
    return E.call("div", E.axis(i), E.const(int(whole)))


def _dynamic_linear(i: int, extent: Size, result: Size, scale: float | None, how: str) -> list[Tap]:
    """Positions computed as they are needed; linear weights do not care about the last bit."""
    x, n_in, n_out = (E.call("to_f", e) for e in (E.axis(i), E.size(extent), E.size(result)))
    factor = E.call("div", n_out, n_in) if scale is None else f(scale)
    half_pixel = E.call("sub", E.call("div", E.call("add", x, f(0.5)), factor), f(0.5))
    several = E.call("lt", f(1), n_out)
    if how == "asymmetric":
        position = E.call("div", x, factor)
    elif how == "half_pixel":
        position = half_pixel
    elif how == "pytorch_half_pixel":
        position = E.call("where", several, half_pixel, f(0))
    elif how == "align_corners":
        steps = E.call("max", E.call("sub", n_out, f(1)), f(1))
        position = E.call("div", E.call("mul", x, E.call("sub", n_in, f(1))), steps)
    else:
        raise UnsupportedError(f"Resize of a dynamic axis with {how}")
    position = E.call("max", E.call("min", position, E.call("sub", n_in, f(1))), f(0))
    low = clamp_index(E.call("to_i", position), extent)
    high = clamp_index(E.call("add", low, E.const(1)), extent)
    upper = E.call("where", E.call("eq", low, high), f(0.5), E.call("sub", position, E.call("to_f", low)))
    return [(low, E.call("sub", f(1), upper)), (high, upper)]


def _weighted(per_axis: Sequence[Sequence[Tap]], load: Callable[[list[Expr]], Expr], chosen: Sequence[Expr] = ()) -> Expr:
    """The weighted sum over the taps of all axes."""
    if len(chosen) == len(per_axis):
        return load(list(chosen))
    terms: list[Expr] = []
    for index, weight in per_axis[len(chosen)]:
        value = _weighted(per_axis, load, [*chosen, index])
        terms.append(value if weight is None else E.call("mul", value, weight))
    return total(terms)


_MODES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)  # fmt: skip

OPS = [
    OpSpec(
        name="Resize",
        lower=_resize,
        versions=(10, 19),
        inputs=4,
        attributes=takes(
            "axes",
            "cubic_coeff_a",
            "extrapolation_value",
            antialias=(0,),
            coordinate_transformation_mode=_MODES,
            exclude_outside=FLAG,
            keep_aspect_ratio_policy=("stretch", "not_larger", "not_smaller"),
            mode=("nearest", "linear", "cubic"),
            nearest_mode=("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
        ),
        types=(NUMBERS, FLOATS, FLOATS, INDICES),
        note="of integers to the nearest element only",
    ),
    OpSpec(
        name="Upsample",
        lower=_resize,
        versions=(7, 10),
        inputs=2,
        attributes=takes("scales", mode=("nearest", "linear")),
        types=(NUMBERS, FLOATS),
        note="of integers to the nearest element only",
    ),
]
