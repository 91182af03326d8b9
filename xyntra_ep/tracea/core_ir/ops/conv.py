"""Conv: convolutions of any number of spatial axes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.ops.core_op import unlike
from xyntra_ep.tracea.core_ir.ops.memory import Memory
from xyntra_ep.tracea.core_ir.ops.product import EpilogueOp, Product, rounded, unlike_product, wrapped


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv(EpilogueOp):
    """out[n, m, o...] = epilogue(acc = sum over (c, k...) of x[n, g*C/G + c, o*stride + k*dilation - pad] * w[m, c, k...]).

    ``inputs[0]`` is x [N, C, spatial...], ``inputs[1]`` is w [M, C/group, kernel...]; out is [N, M, out spatial...] (logical
    order; strides say the layout). Outside x is zero. Further inputs feed the epilogue over out's domain; acc is an
    integer where x and w are. ``product`` is not INT8W.
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[Size, ...]  # begin of each spatial axis (the end follows from out's shape)
    group: int

    shared_by_images: ClassVar[frozenset[int]] = frozenset({1})

    def further_sizes(self) -> tuple[Size, ...]:
        return self.pads

    def problems(self) -> Iterator[str]:
        x, w = self.inputs[0].shape, self.inputs[1].shape
        spatial = len(w) - 2
        yield from unlike_product(self.product, self.inputs)
        if not len(self.strides) == len(self.dilations) == len(self.pads) == spatial == len(x) - 2:
            yield "strides, dilations, pads, x and w disagree on the number of spatial axes"
        yield from unlike("x's channels", (x[1],), (w[1] * self.group,))
        yield from unlike("the output", self.domain[:2], (x[0], w[0]))

    def interpret(self, memory: Memory) -> None:
        x, w = (rounded(memory.read(o), self.product) for o in self.inputs[:2])
        n, c = x.shape[:2]
        m, c_group = w.shape[:2]
        kernel, out_spatial = w.shape[2:], memory.shape(self.output.shape)[2:]
        padded_extent = [
            (o - 1) * s + (k - 1) * d + 1 for o, s, k, d in zip(out_spatial, self.strides, kernel, self.dilations, strict=True)
        ]
        begin = memory.shape(self.pads)
        widths = [(b, max(0, e - b - i)) for b, e, i in zip(begin, padded_extent, x.shape[2:], strict=True)]
        padded = np.pad(x, [(0, 0), (0, 0), *widths])
        result = np.zeros((n, m, *out_spatial))
        for tap in np.ndindex(*kernel):
            window = tuple(
                slice(t * d, t * d + (o - 1) * s + 1, s)
                for t, d, o, s in zip(tap, self.dilations, out_spatial, self.strides, strict=True)
            )
            part = padded[(slice(None), slice(None), *window)].reshape(n, self.group, c_group, int(np.prod(out_spatial)))
            weights = w[(slice(None), slice(None), *tap)].reshape(self.group, m // self.group, c_group)
            result += np.einsum("ngcp,gmc->ngmp", part, weights).reshape(n, m, *out_spatial)
        assert len(kernel) == len(self.strides) and c == c_group * self.group
        self.finish(memory, wrapped(result) if self.product is Product.I32 else result)

    def flops(self) -> Size:
        return 2 * product(self.domain) * product(self.inputs[1].shape[1:])

    def tuned_by(self) -> tuple[Any, ...]:
        return (self.strides, self.dilations, self.pads, self.group)
