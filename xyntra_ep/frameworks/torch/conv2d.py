"""Convolutions of PyTorch models by our kernels: a module in the place of nn.Conv2d, and a patch for models as they are."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

import torch

from xyntra_ep.errors import XyntraError
from xyntra_ep.frameworks.ops.functions import conv2d

_original = torch.nn.functional.conv2d


def _why_not(input: Any, weight: Any, bias: Any) -> str:
    """Why PyTorch computes it; "" where we do."""
    operands = [t for t in (input, weight, bias) if t is not None]
    if torch.compiler.is_compiling():
        return "a graph is being made of it"
    if any(type(t) not in (torch.Tensor, torch.nn.Parameter) for t in operands):
        return "a tensor of a class of its own"
    if any(t.device.type != "cpu" for t in operands):
        return f"a tensor on {next(t.device.type for t in operands if t.device.type != 'cpu')}"
    if any(t.dtype is not torch.float32 for t in operands):
        return f"dtype {str(next(t.dtype for t in operands if t.dtype is not torch.float32)).removeprefix('torch.')}"
    if any(size == 0 for t in operands for size in t.shape):
        return "a tensor without elements"
    if torch.is_autocast_enabled("cpu"):
        return "autocast"
    return ""


class Counts:
    """How many convolutions were ours, and what PyTorch computed for which reasons."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.ours = 0
        self._theirs: Counter[str] = Counter()

    @property
    def theirs(self) -> Mapping[str, int]:
        """Reasons, each with how often it was one."""
        return dict(self._theirs)

    def add(self, reason: str = "") -> None:
        with self._lock:
            if reason:
                self._theirs[reason] += 1
            else:
                self.ours += 1

    def explain(self) -> str:
        lines = [f"{self.ours} convolutions by Tracea, {sum(self._theirs.values())} by PyTorch"]
        return "\n".join([*lines, *(f"  {count}: {reason}" for reason, count in self._theirs.most_common())])


def _convolution(counts: Counts, *args: Any, **kwargs: Any) -> torch.Tensor:
    """nn.functional.conv2d, by whoever can."""
    named = dict(zip(("input", "weight", "bias"), args, strict=False)) | kwargs
    reason = _why_not(named["input"], named["weight"], named.get("bias"))
    if not reason:
        try:
            result: torch.Tensor = conv2d(*args, **kwargs)
        except XyntraError as error:
            reason = error.what
        else:
            counts.add()
            return result
    counts.add(reason)
    return _original(*args, **kwargs)


class TraceaConv2d(torch.nn.Conv2d):
    """nn.Conv2d by our kernels, with the same arguments and the same state_dict; `counts` tells what PyTorch computed instead.

    conv = TraceaConv2d(3, 8, kernel_size=3, padding=1)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.counts = Counts()

    def _conv_forward(self, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = torch.nn.functional.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0, 0)
        return _convolution(self.counts, input, weight, bias, self.stride, padding, self.dilation, self.groups)


class ConvolutionPatch:
    """While it holds, nn.functional.conv2d and nn.Conv2d are ours. A context manager, or undone by `undo`."""

    def __init__(self) -> None:
        self.counts = Counts()
        self._before: Callable[..., Any] | None = None

    def explain(self) -> str:
        return self.counts.explain()

    def undo(self) -> None:
        """What was there before is there again; a second time does no harm."""
        if self._before is not None:
            torch.nn.functional.conv2d = self._before
            self._before = None

    def _apply(self) -> ConvolutionPatch:
        def patched(*args: Any, **kwargs: Any) -> torch.Tensor:
            return _convolution(self.counts, *args, **kwargs)

        self._before = torch.nn.functional.conv2d
        torch.nn.functional.conv2d = patched
        return self

    def __enter__(self) -> ConvolutionPatch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.undo()


def patch_conv2d() -> ConvolutionPatch:
    """From now on convolutions of all models are ours, until `undo` or the end of the `with` block.

    with patch_conv2d() as patch:
        model(images)
    print(patch.explain())
    """
    return ConvolutionPatch()._apply()
