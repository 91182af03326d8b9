"""What a check of gradients has found: a row for each operand of an operation, or each input and parameter of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.wording import counted

HEADER = ("of", "tensor", "shape", "max abs", "max rel", "eager rel", "interpreted", "differences", "verdict")


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientRow:
    """The gradient of float32 kernels by one tensor, against PyTorch's in float64.

    ``absolute``: the largest difference of an element; ``relative``: that over the largest element, at most ``bound``. ``eager``:
    the same of eager PyTorch in float32. Of a model, ``interpreted`` is the same of the definition of what kernels compute, in
    float64. Of an operation, ``gradcheck`` is whether `torch.autograd.gradcheck` agrees with its definition in float64, and
    ``differences`` is how far the derivative along a random direction is from finite differences of its float32 kernels, over the
    gradient's norm plus 1. None stands where nothing was asked, and ``note`` says what could not be."""

    of: str
    tensor: str
    shape: tuple[int, ...]
    absolute: float
    relative: float
    bound: float
    eager: float
    gradcheck: bool | None = None
    interpreted: float | None = None
    interpreted_bound: float = 0.0
    differences: float | None = None
    differences_bound: float = 0.0
    note: str = ""

    @property
    def wrong(self) -> tuple[str, ...]:
        """What fails, in words; nothing of a gradient that is right. What is not a number fails."""
        found = []
        if not self.relative <= self.bound:
            found.append("kernels")
        if self.gradcheck is False:
            found.append("gradcheck")
        if self.interpreted is not None and not self.interpreted <= self.interpreted_bound:
            found.append("definition")
        if self.differences is not None and not self.differences <= self.differences_bound:
            found.append("differences")
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientReport:
    """``claimed`` of ``calls`` calls of the graphs of a model are XyntraEP's; None of operations, which are so as a whole."""

    rows: tuple[GradientRow, ...]
    claimed: int | None = None
    calls: int | None = None

    @property
    def ok(self) -> bool:
        """Whether there are gradients, and all are right."""
        return bool(self.rows) and not any(row.wrong for row in self.rows)

    def __str__(self) -> str:
        lines = list(_aligned([HEADER, *map(_cells, self.rows)]))
        lines += dict.fromkeys(f"! {row.note}" for row in self.rows if row.note)
        if self.calls is not None:
            lines.append(f"XyntraEP carries out {self.claimed} of {counted(self.calls, 'call')}, forward and backward")
        wrong = sum(bool(row.wrong) for row in self.rows)
        told = f"{wrong} of {counted(len(self.rows), 'gradient')} wrong" if wrong else "all are right"
        return "\n".join([*lines, told if self.rows else "nothing has a gradient"])


def _cells(row: GradientRow) -> tuple[str, ...]:
    verdict = f"WRONG: {', '.join(row.wrong)}" if row.wrong else "ok"
    shape = "x".join(map(str, row.shape)) or "1"
    figures = [_figure(f) for f in (row.absolute, row.relative, row.eager, row.interpreted, row.differences)]
    if row.gradcheck is not None:
        figures[3] = "gradcheck" if row.gradcheck else "no"
    return (row.of, row.tensor, shape, *figures, verdict)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"


def _aligned(lines: Sequence[Sequence[str]]) -> Sequence[str]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
