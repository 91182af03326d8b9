"""A cost model that was learned from measured configurations: it ranks those of an op before any of them is measured.

Extremely randomised trees (Geurts, Ernst, Wehenkel 2006) say by how much the estimate of a configuration is off, as a logarithm.
So where they know nothing the estimates' ranking stays. `bench learn` fits them to stored runs of `bench run tune` with
scikit-learn, and writes `cost_model.json`; here they are evaluated in NumPy. docs/learned-costs.md says what that is worth on
shapes and on an instruction set that the trees have not seen.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities

FILE = Path(__file__).parent / "cost_model.json"
FORMAT = 1
_OPERAND = re.compile(r"\[([\d,]*)\]")
_DIMS = 3  # of the output, the last ones: rows, columns, channels
_VECTORS = "vectors"  # the axis that counts vectors, not elements
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """What kernels are chosen by. ``lanes``: fp32 in a vector; ``gflops``: of one core, fp32."""

    lanes: int
    vector_registers: int
    unit_bits: int
    l1d_bytes: int
    l2_bytes: int
    l3_bytes: int
    gflops: float
    dram_gbs: float

    @classmethod
    def of(cls, caps: Capabilities) -> MachineFacts:
        return cls(
            lanes=caps.lanes,
            vector_registers=caps.vector_registers,
            unit_bits=caps.unit_bits,
            l1d_bytes=caps.l1d_bytes,
            l2_bytes=caps.l2_bytes,
            l3_bytes=caps.l3_bytes,
            gflops=caps.fma_gflops,
            dram_gbs=caps.dram_gbs,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpFacts:
    """``op``: as `tuning_cache.signature` writes it; ``flops`` and ``bytes``: what it must at least do."""

    op: str
    flops: int
    bytes: int

    @property
    def kind(self) -> str:
        return self.op.partition(" ")[0]

    @property
    def output(self) -> tuple[int, ...]:
        """Its extents, channels last."""
        shapes = [tuple(int(n) for n in found.split(",") if n) for found in _OPERAND.findall(self.op)]
        out = shapes[-1] if shapes else ()
        return (*out[:1], *out[2:], out[1]) if self.kind == "Conv" else out


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A configuration, and what it is estimated to take, in nanoseconds."""

    variant: str
    config: Mapping[str, int]
    estimate_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The names that a model knows: of ``variants``, and of their ``axes``."""

    variants: tuple[str, ...]
    axes: tuple[str, ...]


def features(op: OpFacts, machine: MachineFacts, options: Sequence[Option], known: Vocabulary) -> Matrix:
    """A row for each option, all relative or logarithmic. An axis that a configuration does not have is 0."""
    estimates = centred_logs([option.estimate_ns for option in options])
    outer = [*op.output[-_DIMS:]]
    dims = [1] * (_DIMS - len(outer)) + outer
    elements = max(1, math.prod(op.output))
    of_op = [math.log2(n + 1) for n in (op.flops, op.bytes, op.flops / max(1, op.bytes), op.flops / (2 * elements), *dims)]
    of_machine = [math.log2(n) for n in asdict(machine).values()]
    of_caches = [math.log2((op.bytes + 1) / n) for n in (machine.l1d_bytes, machine.l2_bytes, machine.l3_bytes)]
    rows = []
    for option, above in zip(options, estimates - estimates.min(), strict=True):
        sizes = {a: v * (machine.lanes if a == _VECTORS else 1) for a, v in option.config.items() if a in known.axes}
        values = [math.log2(1 + option.config.get(axis, 0)) for axis in known.axes]
        waste = [_waste(sizes.get(axis, 0), dim) for axis in known.axes for dim in dims]
        which = [float(option.variant == variant) for variant in known.variants]
        rows.append([above, sum(values), *values, *waste, *which, *of_op, *of_caches, *of_machine])
    return np.array(rows, dtype=np.float64)


def centred_logs(times: Sequence[float]) -> Matrix:
    """Logarithms, less their mean."""
    logs = np.log(np.maximum(times, 1e-9))
    return np.asarray(logs - logs.mean(), dtype=np.float64)


def _waste(size: int, extent: int) -> float:
    """How much more work there is where an extent is done in whole steps of so many."""
    return math.log2(-(-extent // size) * size / extent) if size > 0 and extent > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Nodes by number, the root first. Where ``feature`` is -1 there is a leaf, and ``value`` is what it says; else rows of
    which the feature is at most ``threshold`` go ``left``, others right."""

    feature: NDArray[np.int64]
    threshold: Matrix
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: Matrix

    @classmethod
    def of(cls, rows: Sequence[Sequence[float]]) -> Tree:
        """Of `data`."""
        nodes = [(-1, 0.0, 0, 0, row[0]) if len(row) == 1 else (*row, 0.0) for row in rows]
        feature, threshold, left, right, value = zip(*nodes, strict=True)
        return cls(
            feature=np.array(feature, dtype=np.int64),
            threshold=np.array(threshold, dtype=np.float64),
            left=np.array(left, dtype=np.int64),
            right=np.array(right, dtype=np.int64),
            value=np.array(value, dtype=np.float64),
        )

    def data(self) -> list[list[float]]:
        """A row for each node: of a leaf its value, else feature, threshold, left and right. Numbers have as many digits as
        matter."""
        rows = zip(self.feature.tolist(), self.threshold, self.left.tolist(), self.right.tolist(), self.value, strict=True)
        return [[f, float(f"{t:.6g}"), le, ri] if f >= 0 else [float(f"{v:.4g}")] for f, t, le, ri, v in rows]

    def __call__(self, rows: Matrix) -> Matrix:
        at = np.zeros(len(rows), dtype=np.int64)
        while (inner := self.feature[at] >= 0).any():
            goes_left = rows[np.arange(len(rows)), np.maximum(self.feature[at], 0)] <= self.threshold[at]
            at = np.where(inner, np.where(goes_left, self.left[at], self.right[at]), at)
        return self.value[at]


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    """``better_for``: the kinds of ops on which it ranks better than the estimates, on shapes that it has not seen."""

    known: Vocabulary
    trees: tuple[Tree, ...]
    better_for: frozenset[str]

    def predict(self, op: OpFacts, machine: MachineFacts, options: Sequence[Option]) -> Matrix:
        """The logarithm of each option's time, but for what is the same for all."""
        rows = features(op, machine, options, self.known)
        total: Matrix = np.zeros(len(rows))
        for tree in self.trees:
            total = total + tree(rows)
        return centred_logs([option.estimate_ns for option in options]) + total / max(1, len(self.trees))

    def ranked(self, op: OpFacts, machine: MachineFacts, options: Sequence[Option]) -> list[int]:
        """Numbers of ``options``, the fastest first."""
        return [int(i) for i in np.argsort(self.predict(op, machine, options), kind="stable")]

    def data(self) -> dict[str, Any]:
        """As `cost_model.json` has it."""
        return {
            "format": FORMAT,
            **asdict(self.known),
            "better_for": sorted(self.better_for),
            "trees": [tree.data() for tree in self.trees],
        }

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> CostModel:
        """Raises ValueError for another format."""
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']}, and this release knows {FORMAT}")
        return cls(
            known=Vocabulary(variants=tuple(data["variants"]), axes=tuple(data["axes"])),
            trees=tuple(map(Tree.of, data["trees"])),
            better_for=frozenset(data["better_for"]),
        )


@cache
def learned() -> CostModel:
    """The model that comes with the package."""
    return CostModel.of(json.loads(FILE.read_text(encoding="utf-8")))
