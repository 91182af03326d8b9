"""A model that grows node by node, for several sizes at once.

Every size that is only known at run time has a value in each of ``WORLDS`` worlds. Each node is evaluated in all of them as soon
as it is made, by ONNX Runtime, so that nobody has to say what shape an operator's result has, and an input that belongs to
another value takes its sizes from there, world by world: they then agree for reasons that the planner has to find out.
A node that ONNX Runtime refuses in the first world is dropped; one that fails in another world makes a run that must fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.hunt.case import Array
from tests.hunt.generation.feeds import Fill, Kind, Rng, odd_values
from tests.hunt.generation.single import NodeRunner, Refused, make_model

WORLDS = 3
MOST_ELEMENTS = 3000
LARGEST = 300.0  # a float result beyond this is no longer tame
T = TypeVar("T")
Extent = tuple[int, ...]  # of one axis, world by world


class Rejected(Exception):
    """A recipe found nothing to work on, or ONNX Runtime does not want the node."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """``arrays``: by world, None where a node before it fails."""

    name: str
    arrays: tuple[Array | None, ...]
    constant: bool = False

    @property
    def first(self) -> Array:
        found = self.arrays[0]
        assert found is not None  # the builder drops what fails there
        return found

    @property
    def rank(self) -> int:
        return self.first.ndim

    @property
    def dtype(self) -> np.dtype:
        return self.first.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.first.shape

    @property
    def extents(self) -> list[Extent]:
        """Of each axis; where a world has failed (or has another rank), the first one's."""
        return [
            tuple(self.shape[i] if a is None or a.ndim != self.rank else a.shape[i] for a in self.arrays)
            for i in range(self.rank)
        ]

    def tame(self) -> bool:
        if self.dtype.kind != "f":
            return True
        known = [a for a in self.arrays if a is not None and a.size]
        return all(np.isfinite(a).all() and float(np.abs(a).max()) <= LARGEST for a in known)


@dataclass(frozen=True, slots=True)
class Input:
    """A graph input: ``sizes`` name the symbol of each axis, or are numbers."""

    name: str
    dtype: np.dtype
    sizes: tuple[str | int, ...]
    shown: tuple[str | int | None, ...]
    fill: Fill
    given: tuple[Array, ...] = ()  # the content in each world, where it belongs to the sizes


def is_static(extent: Extent) -> bool:
    return len(set(extent)) == 1


@dataclass(slots=True)
class Builder:
    """The model so far. ``contrary``: how likely a size of a constant or a partner is not the one that fits."""

    rng: Rng
    opset: int
    functions: Sequence[onnx.FunctionProto] = ()
    contrary: float = 0.02
    dynamic: float = 0.75
    half: float = 0.08
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    symbols: dict[str, Extent] = field(default_factory=dict)
    least: dict[str, int] = field(default_factory=dict)  # by symbol: what no run goes below
    runner: NodeRunner = field(init=False)
    _count: int = 0

    def __post_init__(self) -> None:
        domains = {"": self.opset, "com.microsoft": 1, "com.microsoft.nchwc": 1, "ai.onnx.ml": 3, "ai.xyntra": 1}
        self.runner = NodeRunner([helper.make_opsetid(d, v) for d, v in domains.items()], self.functions)

    # -- chance

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.rng.integers(len(options)))]

    def whole(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    # -- values

    def extent(self) -> Extent:
        """A new size: static or not."""
        first = self.pick((1, 2, 3, 4, 4, 5, 6, 8, 8, 12, 17))
        if not self.chance(self.dynamic):
            return (first,) * WORLDS
        return (first, *(self.pick((1, 1, 2, 3, 5, 7, 8, 16, 9, 0)) for _ in range(WORLDS - 1)))

    def extents(self, rank: int) -> list[Extent]:
        found = [self.extent() for _ in range(rank)]
        while any(np.prod(sizes) > MOST_ELEMENTS // 4 for sizes in zip(*found, strict=True)):
            i = self.whole(0, rank - 1)
            found[i] = tuple(min(n, 3) for n in found[i])
        return found

    def input(
        self,
        extents: Sequence[Extent],
        dtype: Any = np.float32,
        fill: Fill = Fill(),  # noqa: B008 (frozen)
        *,
        least: Sequence[int | None] = (),
    ) -> Value:
        """A graph input with these sizes. ``least``: what no run goes below, of each; None: it is the same in all of them."""
        name, dtype = self.fresh("x"), np.dtype(dtype)
        sizes: list[str | int] = []
        shown: list[str | int | None] = []
        for i, extent in enumerate(extents):
            smallest = least[i] if least else 0
            if smallest is None or (is_static(extent) and self.chance(0.5)):
                sizes.append(extent[0])
                shown.append(extent[0])
                continue
            symbol = f"{name}_{i}"
            same = [s for s, e in self.symbols.items() if e == extent]
            self.symbols[symbol] = extent
            self.least[symbol] = smallest
            sizes.append(symbol)
            known = self.pick(same) if same and self.chance(0.1) else symbol
            shown.append(None if self.chance(0.05) else known)
        arrays = [fill.draw(self.rng, tuple(e[w] for e in extents), dtype) for w in range(WORLDS)]
        self.inputs.append(Input(name, dtype, tuple(sizes), tuple(shown), fill))
        value = Value(name, tuple(arrays))
        self.values.append(value)
        return value

    def by_world(self, arrays: Sequence[Array], *, low: int, high: int) -> Value:
        """An input whose content belongs to the sizes of each world."""
        value = self.input(list(zip(*(a.shape for a in arrays), strict=True)), arrays[0].dtype, Fill(Kind.INDEX, low, high))
        self.values[-1] = replaced = Value(value.name, tuple(arrays))
        self.inputs[-1] = replace(self.inputs[-1], given=tuple(arrays))
        return replaced

    def constant(self, array: Any, dtype: Any = None) -> Value:
        data = np.asarray(array, dtype=dtype)
        if data.dtype.kind == "f" and data.size and self.chance(0.01):
            data = data.copy()
            data.reshape(-1)[self.whole(0, data.size - 1)] = self.pick(list(odd_values(data.dtype)))
        name = self.fresh("c")
        self.constants[name] = data
        return Value(name, (data,) * WORLDS, constant=True)

    def proto_of(self, array: Array) -> onnx.TensorProto:
        """An attribute that is a tensor."""
        return numpy_helper.from_array(array, "value")

    def ints(self, numbers: int | Sequence[int], dtype: Any = np.int64, *, fixed: float = 0.8) -> Value:
        """Integers that an operator reads as axes, sizes, positions: mostly a constant, else fed, or made of a constant."""
        data = np.asarray(numbers, dtype=dtype)
        if self.chance(fixed):
            return self.constant(data)
        name = self.fresh("x")
        fill = Fill(Kind.INDEX, -1, 5, fixed=tuple(int(v) for v in data.reshape(-1)))
        self.inputs.append(Input(name, data.dtype, data.shape, data.shape, fill))
        value = Value(name, (data,) * WORLDS)
        self.values.append(value)
        return value

    def tensor(self, extents: Sequence[Extent], dtype: Any = np.float32, fill: Fill = Fill(), *, fixed: float = 0.6) -> Value:  # noqa: B008
        """Something of these sizes: a constant where they are known (or in spite of it), else an input, or a value there is."""
        wanted = [self._crooked(e) for e in extents]
        static = all(map(is_static, wanted))
        if self.chance(fixed if static else fixed * 0.12):
            return self.constant(fill.draw(self.rng, tuple(e[0] for e in wanted), np.dtype(dtype)))
        if fill.kind is Kind.SIGNED and self.chance(0.3):
            fitting = [v for v in self.values if v.dtype == np.dtype(dtype) and v.extents == wanted and v.tame()]
            if fitting:
                return self.pick(fitting)
        return self.input(wanted, dtype, fill)

    def _crooked(self, extent: Extent) -> Extent:
        """Sometimes one that does not fit, in one world or in all."""
        if not self.chance(self.contrary):
            return extent
        changed = [max(0, n + self.pick((-1, 1, n, 1 - n))) for n in extent]
        worlds = range(1, WORLDS) if self.chance(0.8) else range(WORLDS)
        return tuple(changed[w] if w in worlds else n for w, n in enumerate(extent))

    def any(
        self,
        dtypes: Sequence[Any] = (np.float32,),
        *,
        least: int = 0,
        most: int = 4,
        where: Callable[[Value], bool] | None = None,
        fill: Fill = Fill(),  # noqa: B008
    ) -> Value:
        """A value to work on: mostly one of the latest, so that chains grow, else a new input."""
        allowed = [np.dtype(d) for d in dtypes]
        if fill.kind in (Kind.SIGNED, Kind.EXACT) and self.chance(0.8):
            fitting = [
                v for v in self.values
                if v.dtype in allowed and least <= v.rank <= most and v.tame() and (where is None or where(v))
            ]  # fmt: skip
            if fitting:
                return fitting[-1] if self.chance(0.6) else self.pick(fitting)
        for _ in range(4):
            made = self.input(
                self.extents(self.whole(least, most) if self.chance(0.3) else self.whole(least, min(most, max(least, 3)))),
                self.pick(allowed),
                fill,
            )
            if where is None or where(made):
                return made
            self.inputs.pop()
            self.values.pop()
        raise Rejected("nothing fits")

    def partner(self, v: Value, dtype: Any = None, fill: Fill = Fill(), *, wider: float = 0.1) -> Value:  # noqa: B008
        """Something that broadcasts with ``v``: of fewer axes, with ones, with sizes that are 1 in some worlds only."""
        dtype = v.dtype if dtype is None else dtype
        if fill.kind is Kind.SIGNED and self.chance(0.3):
            fitting = [w for w in self.values if w.dtype == dtype and w.tame() and _broadcasts(w, v)]
            if fitting:
                return self.pick(fitting)
        kept = v.rank if self.chance(0.5) else self.whole(0, v.rank)
        wanted: list[Extent] = []
        for extent in v.extents[v.rank - kept :]:
            if self.chance(0.2):
                extent = (1,) * WORLDS
            elif self.chance(0.12):
                extent = tuple(1 if self.chance(0.5) else n for n in extent)
            wanted.append(extent)
        if self.chance(wider) and kept == v.rank < 4:
            wanted.insert(0, self.pick([(2, 1, 3), (1, 1, 1), (2, 2, 2)]))
        return self.tensor(wanted, dtype, fill)

    # -- nodes

    def since(self, op: str) -> int:
        """The version of ONNX's operator that this opset has."""
        return int(onnx.defs.get_schema(op, self.opset, "").since_version)

    def node(
        self,
        op: str,
        inputs: Sequence[Value | None],
        *,
        outputs: int = 1,
        domain: str = "",
        skip: Sequence[int] = (),
        **attrs: Any,
    ) -> list[Value]:
        """Adds a node; ``skip``: outputs without a name. Attributes that are None are left out."""
        names = [self.fresh(op.lower()) if i not in skip else "" for i in range(outputs)]
        wanted = {name: value for name, value in attrs.items() if value is not None}
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        made = helper.make_node(op, ["" if v is None else v.name for v in given], names, domain=domain, **wanted)
        present = {v.name: v for v in given if v is not None}
        fixed = {n: v.first for n, v in present.items() if v.constant}
        feeds = [
            None
            if any(v.arrays[w] is None for v in present.values())
            else {n: v.arrays[w] for n, v in present.items() if not v.constant}
            for w in range(WORLDS)
        ]
        try:
            results = self.runner.run(made, fixed, feeds)  # type: ignore[arg-type]  # None was left out a line above
        except Refused as error:
            raise Rejected(str(error)) from None
        if results[0] is None or sum(x.size for r in results if r is not None for x in r) > 2 * MOST_ELEMENTS:
            raise Rejected(f"{op} fails, or is too large")
        self.nodes.append(made)
        named = [n for n in names if n]
        values = [Value(n, tuple(None if r is None else r[i] for r in results)) for i, n in enumerate(named)]
        self.values.extend(values)
        return values

    def one(self, op: str, inputs: Sequence[Value | None], **attrs: Any) -> Value:
        """A node with one output."""
        return self.node(op, inputs, **attrs)[0]

    # -- undoing and finishing

    def mark(self) -> tuple[int, int, int, set[str], set[str]]:
        return len(self.nodes), len(self.values), len(self.inputs), set(self.constants), set(self.symbols)

    def back_to(self, mark: tuple[int, int, int, set[str], set[str]]) -> None:
        """As it was at ``mark``."""
        nodes, values, inputs, constants, symbols = mark
        del self.nodes[nodes:], self.values[values:], self.inputs[inputs:]
        self.constants = {n: a for n, a in self.constants.items() if n in constants}
        self.symbols = {n: e for n, e in self.symbols.items() if n in symbols}
        self.least = {n: e for n, e in self.least.items() if n in symbols}

    def model(self, outputs: Sequence[str]) -> onnx.ModelProto:
        """With what the nodes read, and no more."""
        read = {name for node in self.nodes for name in node.input}
        self.inputs = [i for i in self.inputs if i.name in read]
        constants = {n: a for n, a in self.constants.items() if n in read}
        inputs = {i.name: (i.dtype, i.shown) for i in self.inputs}
        domains = {n.domain for n in self.nodes}
        opsets = [o for o in self.runner.opsets if o.domain in domains | {""}]
        functions = self.functions if "ai.xyntra" in domains else ()
        return make_model(self.nodes, inputs, outputs, constants, opsets, functions)


def _broadcasts(w: Value, v: Value) -> bool:
    if w.rank > v.rank:
        return False
    pairs = zip(reversed(w.extents), reversed(v.extents), strict=False)
    return all(all(a in (1, b) for a, b in zip(have, want, strict=True)) for have, want in pairs)
