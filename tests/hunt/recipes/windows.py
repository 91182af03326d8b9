"""Windows over images, and images of another size."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.hunt.generation.builder import Builder, Extent, Value
from tests.hunt.recipes._row import Build, Recipe, dtypes_of, maybe


def _image(b: Builder, op: str, channels: int | None = None, *, dims: int | None = None) -> Value:
    dims = dims or b.pick((2, 2, 2, 1, 3))

    def fits(v: Value) -> bool:
        return v.rank == dims + 2 and (channels is None or v.shape[1] == channels)

    dtype = dtypes_of(b, op)[0]
    if b.chance(0.3):
        return b.any((dtype,), least=dims + 2, most=dims + 2, where=fits)
    c = (b.whole(1, 4) if channels is None else channels,) * 3
    spatial = [b.extent() for _ in range(dims)]
    n = b.pick([(1, 1, 1), (2, 1, 3), (1, 2, 0)])
    limit = {1: 40, 2: 12, 3: 5}[dims]
    return b.input([n, c, *(tuple(min(s, limit) for s in e) for e in spatial)], dtype)


def _window(b: Builder, dims: int, kernel: list[int], *, dilates: bool = True) -> dict[str, Any]:
    attrs: dict[str, Any] = {
        "strides": maybe(b, [b.pick((1, 1, 2, 3)) for _ in range(dims)]),
        "dilations": maybe(b, [b.pick((1, 1, 2)) for _ in range(dims)], 0.3) if dilates else None,
    }
    auto = b.pick((None, None, None, "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
    if auto is not None:
        attrs["auto_pad"] = auto
    if auto in (None, "NOTSET"):
        attrs["pads"] = maybe(b, [b.whole(0, max(0, k - 1)) for _ in range(2) for k in kernel], 0.6)
    return attrs


def _conv(b: Builder) -> None:
    group, per = b.pick((1, 1, 1, 2, 3)), b.pick((1, 2, 3))
    x = _image(b, "Conv", group * per)
    dims = x.rank - 2
    kernel = [b.pick((1, 2, 3, 3)) for _ in range(dims)]
    m = group * b.pick((1, 1, 2, 4))
    w = b.tensor([(m,) * 3, (per,) * 3, *((k,) * 3 for k in kernel)], x.dtype, fixed=0.85)
    bias = maybe(b, b.tensor([(m,) * 3], x.dtype, fixed=0.8))
    shown = maybe(b, kernel)
    y = b.one("Conv", [x, w, bias], group=group if group > 1 else None, kernel_shape=shown, **_window(b, dims, kernel))
    if b.chance(0.4):
        y = b.one(b.pick(("Relu", "Sigmoid", "LeakyRelu")), [y])
    if b.chance(0.2):
        b.one("Add", [y, b.partner(y)])


def _conv_transpose(b: Builder) -> None:
    group, per = b.pick((1, 1, 2)), b.pick((1, 2))
    x = _image(b, "ConvTranspose", group * per)
    dims = x.rank - 2
    kernel = [b.pick((1, 2, 3)) for _ in range(dims)]
    m = b.pick((1, 2))
    w = b.tensor([(group * per,) * 3, (m,) * 3, *((k,) * 3 for k in kernel)], x.dtype, fixed=0.85)
    bias = maybe(b, b.tensor([(m * group,) * 3], x.dtype, fixed=0.8))
    attrs = _window(b, dims, kernel)
    strides = attrs["strides"] or [1] * dims
    attrs["output_padding"] = maybe(b, [b.whole(0, s - 1) for s in strides], 0.3)
    if b.chance(0.1):
        attrs["output_shape"] = [s * t + b.whole(-1, 1) for s, t in zip(x.shape[2:], strides, strict=True)]
        attrs.pop("pads", None)
    b.one("ConvTranspose", [x, w, bias], group=group if group > 1 else None, **attrs)


def _pool(op: str) -> Build:
    def build(b: Builder) -> None:
        x = _image(b, op)
        dims = x.rank - 2
        kernel = [b.pick((1, 2, 3, 3, 5)) for _ in range(dims)]
        since = b.since(op)
        dilates = (op == "MaxPool" and since >= 10) or (op == "AveragePool" and since >= 19) or (op == "LpPool" and since >= 18)
        attrs = _window(b, dims, kernel, dilates=dilates)
        if since >= {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}[op]:
            attrs["ceil_mode"] = b.pick((None, 0, 1))
        if op == "AveragePool":
            attrs["count_include_pad"] = b.pick((None, 0, 1))
        if op == "LpPool":
            attrs["p"] = b.pick((None, 1, 2, 3))
        b.node(op, [x], kernel_shape=kernel, outputs=2 if op == "MaxPool" and b.chance(0.05) else 1, **attrs)

    return build


def _global(op: str) -> Build:
    def build(b: Builder) -> None:
        b.one(op, [_image(b, op)], p=b.pick((None, 1, 2, 3)) if op == "GlobalLpPool" else None)

    return build


_HOW = ("half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners")
_ROUNDING = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def _resize(b: Builder) -> None:
    since = b.since("Resize")
    mode = b.pick(("nearest", "nearest", "linear", "cubic"))
    x = _image(b, "Resize", dims=2 if mode == "cubic" else b.pick((1, 2)))
    if mode != "nearest" and x.dtype != np.float32:
        x = b.input(x.extents, np.float32)
    spatial = x.rank - 2
    scales = [1.0, 1.0, *(b.pick((1.0, 2.0, 2.0, 3.0, 0.5, 1.5)) for _ in range(spatial))]
    if since < 11:
        b.one("Resize", [x, b.constant(scales, np.float32)], mode="nearest" if mode == "cubic" else mode)
        return
    later = ("half_pixel_symmetric",) if since >= 19 else ()
    attrs: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": maybe(b, b.pick((*_HOW, *later)), 0.7)}
    if mode == "nearest":
        attrs["nearest_mode"] = maybe(b, b.pick(_ROUNDING), 0.6)
    if mode == "cubic":
        attrs |= {"cubic_coeff_a": maybe(b, -0.5), "exclude_outside": b.pick((None, 0, 1))}
    roi = None if since >= 13 else b.constant(np.zeros(0, np.float32))
    if b.chance(0.5):
        b.one("Resize", [x, roi, b.constant(scales, np.float32)], **attrs)
        return
    sizes = [n if i < 2 else max(1, int(n * s)) for i, (n, s) in enumerate(zip(x.shape, scales, strict=True))]
    if since >= 18 and b.chance(0.4):
        attrs["axes"] = list(range(2, x.rank))
        attrs["keep_aspect_ratio_policy"] = b.pick((None, "stretch", "not_larger", "not_smaller"))
        sizes = sizes[2:]
    empty = b.constant(np.zeros(0, np.float32)) if since < 13 else None
    b.one("Resize", [x, roi, empty, b.ints(sizes)], **attrs)


def _upsample(b: Builder) -> None:
    x = _image(b, "Upsample", dims=2)
    mode = b.pick(("nearest", "linear"))
    if mode == "linear" and x.dtype != np.float32:
        x = b.input(x.extents, np.float32)
    scales = [1.0, 1.0, b.pick((1.0, 2.0, 3.0, 1.5)), b.pick((1.0, 2.0))]
    if b.since("Upsample") < 9:
        b.one("Upsample", [x], scales=scales, mode=maybe(b, mode))
    else:
        b.one("Upsample", [x, b.constant(scales, np.float32)], mode=maybe(b, mode))


def _grid_sample(b: Builder) -> None:
    x = b.input([b.pick([(1, 1, 1), (2, 1, 3)]), (b.whole(1, 3),) * 3, *(tuple(min(n, 8) for n in b.extent()) for _ in range(2))])
    out: list[Extent] = [tuple(min(n, 6) for n in b.extent()) for _ in range(2)]
    grid = b.tensor([x.extents[0], *out, (2, 2, 2)], fixed=0.2)
    modes = ("linear", "nearest", "cubic") if b.since("GridSample") >= 20 else ("bilinear", "nearest", "bicubic")
    padding = b.pick((None, "zeros", "border", "reflection"))
    b.one("GridSample", [x, grid], mode=b.pick((None, *modes)), padding_mode=padding, align_corners=b.pick((None, 0, 1)))


def _residual_block(b: Builder) -> None:
    """A convolution, its normalisation, a residual, an activation, a pool: what fusion makes one of."""
    c = b.pick((1, 3, 4, 8))
    x = _image(b, "Conv", c, dims=2)
    if x.dtype != np.float32:
        x = b.input(x.extents)
    group = c if b.chance(0.3) else 1
    y = b.one("Conv", [x, b.constant(b.rng.uniform(-1, 1, (c, c // group, 3, 3)), np.float32)], pads=[1] * 4, group=group)
    if b.chance(0.5) and b.opset >= 9:
        y = b.one("BatchNormalization", [y, *(b.constant(b.rng.uniform(0.5, 1.5, c), np.float32) for _ in range(4))])
    if b.chance(0.5):
        y = b.one("Add", [y, x])
    y = b.one("Relu", [y])
    if b.chance(0.5):
        b.one("GlobalAveragePool", [y])


ROWS = [
    Recipe(name="Conv", build=_conv, weight=2.5),
    Recipe(name="ConvTranspose", build=_conv_transpose, weight=1.5),
    *(Recipe(name=op, build=_pool(op), weight=1.5) for op in ("MaxPool", "AveragePool", "LpPool")),
    *(Recipe(name=op, build=_global(op)) for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")),
    Recipe(name="Resize", build=_resize, since=10, weight=1.5),
    Recipe(name="Upsample", build=_upsample, until=9),
    Recipe(name="GridSample", build=_grid_sample, since=16),
    Recipe(name="chain.residual_block", build=_residual_block),
]
