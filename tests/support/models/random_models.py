"""Random small ONNX models from a seed: what fusion could get wrong, in every combination.

Elementwise chains with broadcasting, products, reductions, softmax, pieces of normalisations, movement, shape arithmetic, values
with several readers, several outputs, and sizes that are only known when a session runs: some inputs have axes that are 1 in one
run and full in another, under a name that says so, another name, or none.

Only what has one right answer is built: nothing rounds or compares computed floats, and magnitudes stay small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from xyntra_ep.tracea.core_ir.dims import Size, evaluate, symbol

Array = NDArray[Any]
STATIC = (1, 2, 3, 4, 8)
MOST_ELEMENTS = 4096
ROUNDED = 1e-3


@dataclass(frozen=True, slots=True)
class Value:
    """``bound``: no element is larger in magnitude."""

    name: str
    shape: tuple[Size, ...]
    bound: float = 1.0

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(frozen=True, slots=True)
class Input:
    name: str
    shape: tuple[Size, ...]
    is_bool: bool


class RandomModel:
    """``model`` and ``feeds(run)``: the sizes differ from run to run."""

    def __init__(self, seed: int, n_nodes: int = 12, opset: int = 18) -> None:
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[Input] = []
        self._declared: list[onnx.ValueInfoProto] = []
        self._values: list[Value] = []
        self._twins: dict[str, str] = {}  # a size that equals another one, or is 1
        self._outputs: list[tuple[str, int]] = []
        dynamic = self.rng.random() < 0.7
        b: Size = symbol("B") if dynamic else self._pick((1, 2, 3))
        s: Size = symbol("S") if dynamic else self._pick((1, 4, 5))
        self._values.append(self._input((b, s, self._pick((4, 8)))))
        if self.rng.random() < 0.5:
            self._values.append(self._input((b, self._pick((1, 2, 3)), s)))
        steps = self._steps()
        while len(self._nodes) < n_nodes:
            before = len(self._nodes), len(self._constants), len(self._inputs), len(self._declared)
            made = self._pick(steps)(self._recent())
            if made is None or self._too_large(made):
                nodes, constants, inputs, declared = before
                del self._nodes[nodes:], self._constants[constants:], self._inputs[inputs:], self._declared[declared:]
                continue
            if made.bound > 20:
                made = Value(self._node("Tanh", [made.name]), made.shape)
            self._values.append(made)
        self._choose_outputs()
        graph = helper.make_graph(
            self._nodes,
            f"random{seed}",
            self._declared,
            [helper.make_tensor_value_info(name, kind, None) for name, kind in self._outputs],
            self._constants,
        )
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)

    # -- data

    def sizes(self, run: int) -> dict[str, int]:
        rng = np.random.default_rng((self.seed, run))
        sizes = {"B": int(rng.choice([1, 2, 3])), "S": int(rng.choice([1, 2, 5, 7]))}
        for twin, of in self._twins.items():
            sizes[twin] = sizes[of] if rng.random() < 0.5 else 1
        return sizes

    def feeds(self, run: int) -> dict[str, Array]:
        rng = np.random.default_rng((self.seed, run, 1))
        sizes = self.sizes(run)
        result: dict[str, Array] = {}
        for i in self._inputs:
            data = np.asarray(rng.uniform(-1, 1, [evaluate(s, sizes) for s in i.shape]))
            result[i.name] = np.asarray(data > 0) if i.is_bool else np.asarray(data, dtype=np.float32)
        return result

    def text(self) -> str:
        """For a person who has to find out what went wrong."""
        return str(onnx.printer.to_text(self.model))

    # -- making things

    def _pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def _recent(self) -> Value:
        """Mostly one of the latest values, so that chains grow; sometimes an early one, which then has several readers."""
        if self.rng.random() < 0.6:
            return self._values[-1]
        return self._pick(self._values)  # type: ignore[no-any-return]

    def _too_large(self, value: Value) -> bool:
        large = {"B": 3, "S": 7}
        large |= {twin: large[of] for twin, of in self._twins.items()}
        small = dict.fromkeys(large, 1)
        extents = [[evaluate(s, sizes) for s in value.shape] for sizes in (large, small)]
        return int(np.prod(extents[0])) > MOST_ELEMENTS or value.rank > 5 or any(e < 0 for e in extents[1])

    def _fresh(self, prefix: str) -> str:
        return f"{prefix}{len(self._nodes) + len(self._constants) + len(self._inputs)}"

    def _node(self, op: str, inputs: Sequence[str], **attrs: Any) -> str:
        name = self._fresh(op.lower())
        self._nodes.append(helper.make_node(op, list(inputs), [name], **attrs))
        return name

    def _constant(self, array: Any) -> str:
        name = self._fresh("c")
        self._constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def _ints(self, *values: int) -> str:
        return self._constant(np.asarray(values, dtype=np.int64))

    def _input(self, shape: Sequence[Size], is_bool: bool = False) -> Value:
        """Some axes may turn out to be 1; some names lie about that."""
        name = self._fresh("x")
        extents: list[Size] = []
        shown: list[int | str | None] = []
        for extent in shape:
            if extent in (symbol("B"), symbol("S")) and self._inputs and self.rng.random() < 0.5:
                twin = f"{extent}{len(self._twins)}"
                self._twins[twin] = str(extent)
                shown.append(self._pick((str(extent), twin, None)))
                extents.append(symbol(twin))
            else:
                shown.append(extent if isinstance(extent, int) else str(extent))
                extents.append(extent)
        self._inputs.append(Input(name, tuple(extents), is_bool))
        kind = TensorProto.BOOL if is_bool else TensorProto.FLOAT
        self._declared.append(helper.make_tensor_value_info(name, kind, shown))
        return Value(name, tuple(extents))

    def _partner(self, v: Value, is_bool: bool = False) -> Value:
        """Something that broadcasts to the shape of ``v``: a constant, an input, or a computed value."""
        if not is_bool and self.rng.random() < 0.4:
            fitting = [w for w in self._values if _fits(w.shape, v.shape)]
            if fitting:
                return self._pick(fitting)  # type: ignore[no-any-return]
        rank = int(self.rng.integers(0, v.rank + 1))
        shape = [1 if self.rng.random() < 0.3 else s for s in v.shape[v.rank - rank :]]
        static = [s for s in shape if isinstance(s, int)]
        plain = all(s in (1, symbol("B"), symbol("S")) or isinstance(s, int) for s in shape)
        if len(static) == len(shape) and (self.rng.random() < 0.7 or not plain):
            data = self.rng.uniform(-1, 1, static)
            return Value(self._constant(data > 0 if is_bool else data.astype(np.float32)), tuple(shape))
        if not plain:
            return self._partner(v, is_bool)
        return self._input(shape, is_bool)

    def _steps(self) -> list[Callable[[Value], Value | None]]:
        light = [*[self._unary] * 2, *[self._binary] * 3, self._scalar, self._where, self._masked, self._gelu, self._silu]
        rows = [self._reduce, self._softmax, self._normalise, self._layer_norm]
        heavy = [self._matmul, self._gram, self._image, self._conv, self._pool]
        moves = [
            self._transpose, self._merge, self._split_axis, self._slice, self._concat, self._gather, self._unsqueeze,
            self._squeeze, self._expand, self._split, self._pad, self._flatten_by_shape, self._scale_by_size, self._tile,
        ]  # fmt: skip
        return [*light, *rows, *heavy, *moves]

    # -- steps: elementwise

    def _unary(self, v: Value) -> Value | None:
        op = self._pick(("Relu", "Neg", "Abs", "Tanh", "Sigmoid", "Erf", "Exp", "Sqrt", "Softplus"))
        if op == "Sqrt":
            return Value(self._node(op, [self._node("Abs", [v.name])]), v.shape, max(1.0, v.bound))
        if op == "Exp":
            return Value(self._node(op, [self._node("Tanh", [v.name])]), v.shape, 3.0)
        bound = {"Tanh": 1.0, "Sigmoid": 1.0, "Erf": 1.0, "Softplus": v.bound + 1}.get(op, v.bound)
        return Value(self._node(op, [v.name]), v.shape, bound)

    def _binary(self, v: Value) -> Value | None:
        w = self._partner(v)
        op = self._pick(("Add", "Sub", "Mul", "Max", "Min", "Div"))
        if op == "Div":
            w = Value(self._node("Add", [self._node("Abs", [w.name]), self._constant(np.float32(0.5))]), w.shape)
        bound = {"Add": v.bound + w.bound, "Sub": v.bound + w.bound, "Mul": v.bound * w.bound, "Div": 2 * v.bound}
        names = [v.name, w.name]
        if op != "Div" and self.rng.random() < 0.3:
            names.reverse()
        return Value(self._node(op, names), v.shape, bound.get(op, max(v.bound, w.bound)))

    def _scalar(self, v: Value) -> Value | None:
        shape = self._pick(((), (1,), (1, 1)))
        if len(shape) > v.rank:
            return None
        c = self._constant(np.full(shape, self._pick((0.5, 2.0, -1.25)), dtype=np.float32))
        return Value(self._node(self._pick(("Mul", "Add")), [v.name, c]), v.shape, 2 * v.bound + 2)

    def _where(self, v: Value) -> Value | None:
        condition, other = self._partner(v, is_bool=True), self._partner(v)
        return Value(self._node("Where", [condition.name, v.name, other.name]), v.shape, max(v.bound, other.bound))

    def _gelu(self, v: Value) -> Value | None:
        half, one, root = (self._constant(np.float32(x)) for x in (0.5, 1.0, np.sqrt(2)))
        erf = self._node("Erf", [self._node("Div", [v.name, root])])
        scaled = self._node("Mul", [v.name, half])
        return Value(self._node("Mul", [scaled, self._node("Add", [erf, one])]), v.shape, v.bound)

    def _silu(self, v: Value) -> Value | None:
        return Value(self._node("Mul", [self._node("Sigmoid", [v.name]), v.name]), v.shape, v.bound)

    def _masked(self, v: Value) -> Value | None:
        """A comparison, logic, and the bool as data."""
        above = self._node("Greater", [v.name, self._constant(np.float32(0.123))])
        mask = self._partner(v, is_bool=True)
        both = self._node(self._pick(("And", "Or", "Xor")), [above, mask.name])
        if self.rng.random() < 0.3:
            both = self._node("Not", [both])
        if self.rng.random() < 0.5:
            return Value(self._node("Mul", [self._node("Cast", [both], to=TensorProto.FLOAT), v.name]), v.shape, v.bound)
        return Value(self._node("Where", [both, v.name, self._constant(np.float32(-2))]), v.shape, max(2.0, v.bound))

    # -- steps: rows

    def _axes(self, v: Value) -> list[int]:
        if v.rank == 0:
            return []
        n = int(self.rng.integers(1, min(2, v.rank) + 1))
        if self.rng.random() < 0.6:
            return list(range(v.rank - n, v.rank))
        return sorted(int(a) for a in self.rng.choice(v.rank, n, replace=False))

    def _reduced(self, op: str, name: str, axes: Sequence[int], keep: bool) -> str:
        return self._node(op, [name, self._ints(*axes)], keepdims=int(keep))

    def _reduce(self, v: Value) -> Value | None:
        axes, keep = self._axes(v), bool(self.rng.random() < 0.6)
        if not axes:
            return None
        op = self._pick(("ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2"))
        shape = [1 if i in axes else s for i, s in enumerate(v.shape) if keep or i not in axes]
        bound = v.bound if op != "ReduceL2" else v.bound * 10
        return Value(self._reduced(op, v.name, axes, keep), tuple(shape), bound)

    def _softmax(self, v: Value) -> Value | None:
        if v.rank == 0:
            return None
        axis = -1 if self.rng.random() < 0.7 else int(self.rng.integers(-v.rank, v.rank))
        if self.rng.random() < 0.6:
            return Value(self._node("Softmax", [v.name], axis=axis), v.shape)
        top = self._reduced("ReduceMax", v.name, [axis], True)
        weight = self._node("Exp", [self._node("Sub", [v.name, top])])
        return Value(self._node("Div", [weight, self._reduced("ReduceSum", weight, [axis], True)]), v.shape)

    def _normalise(self, v: Value) -> Value | None:
        """Written out; sometimes an intermediate value gets another reader."""
        axes = self._axes(v)
        if not axes:
            return None
        centred = v.name
        if self.rng.random() < 0.6:
            centred = self._node("Sub", [v.name, self._reduced("ReduceMean", v.name, axes, True)])
        square = self._node("Mul", [centred, centred])
        variance = self._reduced("ReduceMean", square, axes, True)
        root = self._node("Sqrt", [self._node("Add", [variance, self._constant(np.float32(0.1))])])
        for name, rows in ((centred, False), (root, True)):
            if self.rng.random() < 0.2 and name != v.name:
                shape = [1 if rows and i in axes else s for i, s in enumerate(v.shape)]
                self._values.append(Value(name, tuple(shape), 2 * v.bound))
        return Value(self._node("Div", [centred, root]), v.shape, 10.0)

    def _layer_norm(self, v: Value) -> Value | None:
        if v.rank == 0 or not isinstance(v.shape[-1], int):
            return None
        scale, bias = (self._constant(self.rng.uniform(-1, 1, v.shape[-1]).astype(np.float32)) for _ in range(2))
        return Value(self._node("LayerNormalization", [v.name, scale, bias], axis=-1, epsilon=0.1), v.shape, 5.0)

    # -- steps: products

    def _matmul(self, v: Value) -> Value | None:
        if v.rank < 1 or not isinstance(v.shape[-1], int):
            return None
        n = self._pick((1, 3, 4))
        weight = self._constant(self.rng.uniform(-1, 1, (v.shape[-1], n)).astype(np.float32))
        return Value(self._node("MatMul", [v.name, weight]), (*v.shape[:-1], n), v.bound * v.shape[-1])

    def _gram(self, v: Value) -> Value | None:
        """x @ x^T, the softmax of it @ x: attention, or nearly."""
        if v.rank not in (2, 3, 4):
            return None
        perm = [*range(v.rank - 2), v.rank - 1, v.rank - 2]
        scores = self._node("MatMul", [v.name, self._node("Transpose", [v.name], perm=perm)])
        square = (*v.shape[:-1], v.shape[-2])
        if self.rng.random() < 0.5:
            scores = self._node("Mul", [scores, self._constant(np.float32(0.25))])
        if self.rng.random() < 0.5:
            scores = self._node("Add", [scores, self._partner(Value(scores, square)).name])
        weights = self._node("Softmax", [scores], axis=-1)
        if self.rng.random() < 0.2:
            self._values.append(Value(weights, square))
        return Value(self._node("MatMul", [weights, v.name]), v.shape, v.bound)

    # -- steps: images

    def _image(self, v: Value) -> Value | None:
        """Something of rank 4 for the next two, from the last static axis: [..., c] -> [n, c, h, 1]."""
        if v.rank not in (2, 3) or not isinstance(v.shape[-1], int):
            return None
        shape = v.shape if v.rank == 3 else (1, *v.shape)
        name = v.name if v.rank == 3 else self._node("Unsqueeze", [v.name, self._ints(0)])
        turned = self._node("Transpose", [name], perm=[0, 2, 1])
        made = (shape[0], shape[2], shape[1], 1)
        return Value(self._node("Unsqueeze", [turned, self._ints(3)]), made, v.bound)

    def _images(self) -> list[Value]:
        return [w for w in self._values if w.rank == 4 and isinstance(w.shape[1], int)]

    def _conv(self, v: Value) -> Value | None:
        """A convolution and what usually follows it: normalisation, activation, a residual."""
        v = self._pick(self._images()) if self._images() else v
        if v.rank != 4 or not isinstance(v.shape[1], int):
            return None
        c, m = v.shape[1], v.shape[1] if self.rng.random() < 0.5 else self._pick((1, 2, 4))
        group = c if m == c and self.rng.random() < 0.3 else 1
        k = self._pick((1, 3))
        data = self.rng.uniform(-1, 1, (m, c // group, k, 1)).astype(np.float32) / k
        inputs = [v.name, self._constant(data)]
        if self.rng.random() < 0.5:
            inputs.append(self._constant(self.rng.uniform(-1, 1, m).astype(np.float32)))
        made = self._node("Conv", inputs, group=group, pads=[k // 2, 0, k // 2, 0], kernel_shape=[k, 1])
        shape, bound = (v.shape[0], m, *v.shape[2:]), v.bound * c + 1
        if self.rng.random() < 0.4:
            four = [self._constant(self.rng.uniform(0.5, 1.5, m).astype(np.float32)) for _ in range(4)]
            made, bound = self._node("BatchNormalization", [made, *four]), bound * 3 + 4
        if m == c and self.rng.random() < 0.5:
            made, bound = self._node("Add", [made, v.name]), bound + v.bound
        if self.rng.random() < 0.5:
            made = self._node("Relu", [made])
        return Value(made, shape, bound)

    def _pool(self, v: Value) -> Value | None:
        v = self._pick(self._images()) if self._images() else v
        if v.rank != 4:
            return None
        op = self._pick(("GlobalAveragePool", "MaxPool", "AveragePool"))
        if op == "GlobalAveragePool":
            return Value(self._node(op, [v.name]), (*v.shape[:2], 1, 1), v.bound)
        return Value(self._node(op, [v.name], kernel_shape=[3, 1], pads=[1, 0, 1, 0]), v.shape, v.bound)

    # -- steps: movement

    def _transpose(self, v: Value) -> Value | None:
        perm = [int(p) for p in self.rng.permutation(v.rank)]
        if not perm:
            return None
        return Value(self._node("Transpose", [v.name], perm=perm), tuple(v.shape[p] for p in perm), v.bound)

    def _merge(self, v: Value) -> Value | None:
        if v.rank < 2:
            return None
        i = int(self.rng.integers(v.rank - 1))
        extent = v.shape[i] * v.shape[i + 1]
        shape = (*v.shape[:i], extent, *v.shape[i + 2 :])
        if any(not isinstance(s, int) for j, s in enumerate(shape) if j > i):
            return None
        spec = [0 if j < i else -1 if j == i else evaluate(s, {}) for j, s in enumerate(shape)]
        return Value(self._node("Reshape", [v.name, self._ints(*spec)]), shape, v.bound)

    def _split_axis(self, v: Value) -> Value | None:
        places = [i for i, s in enumerate(v.shape) if isinstance(s, int) and s in (4, 8, 12, 16)]
        if not places:
            return None
        i = self._pick(places)
        if any(not isinstance(s, int) for s in v.shape[i + 1 :]):
            return None
        parts: tuple[Size, ...] = (2, v.shape[i] // 2)
        shape = (*v.shape[:i], *parts, *v.shape[i + 1 :])
        spec = [0 if j < i else evaluate(s, {}) for j, s in enumerate(shape)]
        return Value(self._node("Reshape", [v.name, self._ints(*spec)]), shape, v.bound)

    def _slice(self, v: Value) -> Value | None:
        if v.rank == 0:
            return None
        axis = int(self.rng.integers(v.rank))
        extent = v.shape[axis]
        start, end, step = self._pick(((0, -1, 1), (1, 2**62, 1), (0, 2**62, 2), (-1, -(2**62), -1), (-2, 2**62, 1), (0, 1, 1)))
        if isinstance(extent, int):
            length: Size = len(range(extent)[slice(start, end if abs(end) < 2**40 else None, step)])
            if length == 0:
                return None
        elif (start, end, step) == (-1, -(2**62), -1):
            length = extent
        elif (start, end, step) == (0, 1, 1):
            length = 1
        else:
            return None
        inputs = [v.name, self._ints(start), self._ints(end), self._ints(axis), self._ints(step)]
        return Value(self._node("Slice", inputs), (*v.shape[:axis], length, *v.shape[axis + 1 :]), v.bound)

    def _concat(self, v: Value) -> Value | None:
        if v.rank == 0:
            return None
        axis = int(self.rng.integers(v.rank))
        others = [w for w in self._values if w.rank == v.rank and _alike(w.shape, v.shape, axis)]
        parts = [v, *(self._pick(others) for _ in range(int(self.rng.integers(1, 3))))] if others else [v, v]
        extent: Size = sum((p.shape[axis] for p in parts), start=0)
        shape = (*v.shape[:axis], extent, *v.shape[axis + 1 :])
        return Value(self._node("Concat", [p.name for p in parts], axis=axis), shape, max(p.bound for p in parts))

    def _gather(self, v: Value) -> Value | None:
        places = [i for i, s in enumerate(v.shape) if isinstance(s, int)]
        if not places:
            return None
        axis = self._pick(places)
        extent = int(v.shape[axis])
        shape = self._pick(((), (1,), (3,), (2, 2)))
        indices = self.rng.integers(-extent, extent, shape)
        name = self._node("Gather", [v.name, self._constant(np.asarray(indices, dtype=np.int64))], axis=axis)
        return Value(name, (*v.shape[:axis], *shape, *v.shape[axis + 1 :]), v.bound)

    def _unsqueeze(self, v: Value) -> Value | None:
        axis = int(self.rng.integers(v.rank + 1))
        return Value(self._node("Unsqueeze", [v.name, self._ints(axis)]), (*v.shape[:axis], 1, *v.shape[axis:]), v.bound)

    def _squeeze(self, v: Value) -> Value | None:
        places = [i for i, s in enumerate(v.shape) if s == 1]
        if not places:
            return None
        i = self._pick(places)
        return Value(self._node("Squeeze", [v.name, self._ints(i)]), (*v.shape[:i], *v.shape[i + 1 :]), v.bound)

    def _expand(self, v: Value) -> Value | None:
        shape = [self._pick((2, 3)) if s == 1 and self.rng.random() < 0.7 else s for s in v.shape]
        spec = [int(s) if isinstance(s, int) else 1 for s in shape]
        return Value(self._node("Expand", [v.name, self._ints(*spec)]), tuple(shape), v.bound)

    def _split(self, v: Value) -> Value | None:
        places = [i for i, s in enumerate(v.shape) if isinstance(s, int) and s % 2 == 0]
        if not places:
            return None
        axis = self._pick(places)
        half = int(v.shape[axis]) // 2
        names = [self._fresh("left"), self._fresh("right")]
        self._nodes.append(helper.make_node("Split", [v.name, self._ints(half, half)], names, axis=axis))
        shape = (*v.shape[:axis], half, *v.shape[axis + 1 :])
        self._values.append(Value(names[0], shape, v.bound))
        return Value(names[1], shape, v.bound)

    def _pad(self, v: Value) -> Value | None:
        if v.rank == 0:
            return None
        pads = [int(self.rng.integers(0, 2)) for _ in range(2 * v.rank)]
        shape = tuple(s + a + b for s, a, b in zip(v.shape, pads[: v.rank], pads[v.rank :], strict=True))
        return Value(self._node("Pad", [v.name, self._ints(*pads), self._constant(np.float32(0.5))]), shape, max(1.0, v.bound))

    def _tile(self, v: Value) -> Value | None:
        repeats = [int(self.rng.integers(1, 3)) for _ in range(v.rank)]
        shape = tuple(s * r for s, r in zip(v.shape, repeats, strict=True))
        return Value(self._node("Tile", [v.name, self._ints(*repeats)]), shape, v.bound)

    def _flatten_by_shape(self, v: Value) -> Value | None:
        """Reshape to [first, the rest], computed as exporters do it: Shape, Gather, Concat."""
        if v.rank < 2:
            return None
        first = self._node("Gather", [self._node("Shape", [v.name]), self._ints(0)], axis=0)
        spec = self._node("Concat", [first, self._ints(-1)], axis=0)
        rest: Size = 1
        for s in v.shape[1:]:
            rest = rest * s
        return Value(self._node("Reshape", [v.name, spec]), (v.shape[0], rest), v.bound)

    def _scale_by_size(self, v: Value) -> Value | None:
        """x / sqrt(extent), the extent read from the tensor."""
        if v.rank == 0:
            return None
        axis = int(self.rng.integers(v.rank))
        extent = self._node("Gather", [self._node("Shape", [v.name]), self._constant(np.int64(axis))], axis=0)
        root = self._node("Sqrt", [self._node("Cast", [extent], to=TensorProto.FLOAT)])
        return Value(self._node("Div", [v.name, root]), v.shape, v.bound)

    # -- outputs

    def _choose_outputs(self) -> None:
        read = {i for n in self._nodes for i in n.input}
        made = [o for n in self._nodes for o in n.output]
        known = {v.name for v in self._values}
        chosen = [o for o in made if o not in read]
        extra = [o for o in made if o in known and o not in chosen and self.rng.random() < 0.12]
        kinds = {"Shape": TensorProto.INT64}
        by_output = {o: n.op_type for n in self._nodes for o in n.output}
        self._outputs = [(o, kinds.get(by_output[o], TensorProto.FLOAT)) for o in (*chosen, *extra)]
        if self.rng.random() < 0.15:
            shape = self._node("Shape", [self._values[-1].name])
            self._outputs.append((shape, TensorProto.INT64))


def _alike(a: Sequence[Size], b: Sequence[Size], but: int) -> bool:
    return all(x == y or i == but for i, (x, y) in enumerate(zip(a, b, strict=True)))


def _fits(shape: Sequence[Size], whole: Sequence[Size]) -> bool:
    """Whether ``shape`` broadcasts to ``whole`` for all sizes."""
    if len(shape) > len(whole):
        return False
    return all(s in (1, w) for s, w in zip(reversed(shape), reversed(whole), strict=False))


def same_values(got: Sequence[Array], want: Sequence[Array], tolerance: float = ROUNDED) -> str:
    """ "" when all outputs agree, else where they do not."""
    for k, (g, w) in enumerate(zip(got, want, strict=True)):
        if g.shape != w.shape or g.dtype != w.dtype:
            return f"output {k}: {g.dtype}{g.shape} instead of {w.dtype}{w.shape}"
        if not w.size:
            continue
        if w.dtype.kind != "f":
            if not np.array_equal(g, w):
                return f"output {k}: {g} instead of {w}"
            continue
        error = np.max(np.abs(g.astype(np.float64) - w))
        if not error <= tolerance * max(1.0, float(np.max(np.abs(w)))):
            return f"output {k}: off by {error}, largest {np.max(np.abs(w))}"
    return ""
