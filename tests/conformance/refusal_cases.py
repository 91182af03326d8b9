"""Models of one idea each with feeds whose sizes or data contradict it: where ONNX Runtime's CPU provider reports an error, so
must we, and where it computes, the numbers are its numbers. No size is known when the session is created."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper

Array = NDArray[Any]
Feeds = Mapping[str, Array]
MS = {"domain": "com.microsoft"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """``runs``: feeds, one after the other in one session."""

    name: str
    nodes: Sequence[NodeProto]
    runs: Sequence[Feeds]
    constants: Mapping[str, Any] = field(default_factory=dict)
    opset: int = 18
    outputs: tuple[str, ...] = ("y",)

    @property
    def model(self) -> ModelProto:
        inputs = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), [f"{n}{i}" for i in range(x.ndim)])
            for n, x in self.runs[0].items()
        ]
        constants = [numpy_helper.from_array(np.asarray(c), n) for n, c in self.constants.items()]
        graph = helper.make_graph(list(self.nodes), "g", inputs, [ValueInfoProto(name=o) for o in self.outputs], constants)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def node(op: str, inputs: str, outputs: str = "y", **attributes: Any) -> NodeProto:
    """``inputs`` and ``outputs`` are names, `_` for one that is left out; the node is called after its operator."""
    names = ["" if i == "_" else i for i in inputs.split()]
    return helper.make_node(op, names, outputs.split(), name=f"the_{op}_{names[0]}_{outputs.split()[0]}", **attributes)


def ones(*shape: int) -> Array:
    return np.ones(shape, np.float32)


def counted(*shape: int) -> Array:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def ints(*values: int, dtype: type = np.int64) -> Array:
    return np.array(values, dtype)


def zeros(*shape: int) -> Array:
    return np.zeros(shape, np.int64)


def xs(*shapes: tuple[int, ...]) -> list[Feeds]:
    return [{"x": counted(*s)} for s in shapes]


SIZE = [node("Shape", "x", "s"), node("Sub", "s k", "d")]
TABLES = {"w": ones(5, 4), "p": ones(6, 4), "k": ones(2, 4), "s": ones(4)}
EMBED = node("EmbedLayerNormalization", "t u w p k s s", "y m", **MS)

Q_TABLES = {name: np.full(table.shape, 3, np.uint8) for name, table in TABLES.items()} | {"f": np.array(0.1, np.float32),
           "z": np.array(1, np.uint8)}  # fmt: skip
Q_EMBED = node("QEmbedLayerNormalization", "t u w p k s s m f f f f f z z z z z", "y n", **MS)

PARAMETERS = [
    Case(name="LayerNormalization, 8 scales", nodes=[node("LayerNormalization", "x g g")], constants={"g": ones(8)},
         runs=xs((2, 8), (2, 9), (2, 7), (2, 1))),
    Case(name="LayerNormalization, one scale", nodes=[node("LayerNormalization", "x g")], constants={"g": ones(1)},
         runs=xs((2, 8), (2, 1), (2, 0), (0, 3))),
    Case(name="LayerNormalization, scales of the rows, too",
         nodes=[node("LayerNormalization", "x g")], constants={"g": counted(3, 1)},
         runs=xs((3, 4), (2, 4), (1, 4))),
    Case(name="RMSNormalization", nodes=[node("RMSNormalization", "x g")], constants={"g": ones(8)}, opset=23,
         runs=xs((2, 8), (2, 12), (2, 5))),
    Case(name="BatchNormalization, 4 channels", nodes=[node("BatchNormalization", "x s s s s")], constants={"s": ones(4)},
         runs=xs((2, 4, 3), (2, 1, 3), (2, 5, 3))),
    Case(name="BatchNormalization, 1 channel", nodes=[node("BatchNormalization", "x s s s s")], constants={"s": ones(1)},
         runs=xs((2, 1, 3), (2, 4, 3))),
    Case(name="InstanceNormalization", nodes=[node("InstanceNormalization", "x s s")], constants={"s": ones(4)},
         runs=xs((2, 4, 3), (2, 7, 3), (2, 2, 3))),
    Case(name="SkipLayerNormalization", nodes=[node("SkipLayerNormalization", "x x s", **MS)], constants={"s": ones(8)},
         runs=xs((1, 2, 8), (1, 2, 12), (1, 2, 5))),
    Case(name="BiasGelu", nodes=[node("BiasGelu", "x s", **MS)], constants={"s": ones(8)}, runs=xs((2, 8), (2, 1))),
    Case(name="FastGelu", nodes=[node("FastGelu", "x s", **MS)], constants={"s": ones(8)}, runs=xs((2, 8), (2, 1))),
    Case(name="MatMul", nodes=[node("MatMul", "x w")], constants={"w": ones(4, 3)}, runs=xs((2, 4), (2, 5), (2, 3), (0, 4))),
    Case(name="Conv, channels", nodes=[node("Conv", "x w")], constants={"w": ones(2, 3, 1, 1)},
         runs=xs((1, 3, 4, 4), (1, 4, 4, 4), (1, 1, 4, 4))),
    Case(name="MultiHeadAttention, bias", outputs=("y",), constants={"s": ints(1, -1, 8)},
         nodes=[node("Concat", "x x x", "b", axis=0), node("Reshape", "q s", "q8"),
                node("MultiHeadAttention", "q8 q8 q8 b", num_heads=2, **MS)],
         runs=[{"x": ones(n), "q": ones(16)} for n in (8, 2, 9)]),
]  # fmt: skip

PARTS = [
    Case(name="Split by an attribute", opset=11, outputs=("y", "z"), runs=xs((8,), (4,), (12,)),
         nodes=[node("Split", "x", "a b", axis=0, split=[3, 5]), node("Neg", "a"), node("Neg", "b", "z")]),
    Case(name="Split in two", opset=13, outputs=("y", "z"), runs=xs((4,), (5,), (1,)),
         nodes=[node("Split", "x", "a b", axis=0), node("Neg", "a"), node("Neg", "b", "z")]),
    Case(name="Split in four", outputs=("y", "z"), runs=xs((8,), (7,), (5,), (1,)),
         nodes=[node("Split", "x", "a b c d", axis=0, num_outputs=4), node("Neg", "a"), node("Neg", "d", "z")]),
    Case(name="a window that does not fit: Conv", nodes=[node("Conv", "x w")], constants={"w": ones(1, 1, 5)},
         runs=xs((1, 1, 8), (1, 1, 4), (1, 1, 2))),
    Case(name="a window that does not fit: ConvTranspose", nodes=[node("ConvTranspose", "x w", pads=[3, 3])],
         constants={"w": ones(1, 1, 3)}, runs=xs((1, 1, 8), (1, 1, 4), (1, 1, 0))),
    *(Case(name=f"a window that does not fit: {op}", nodes=[node(op, "x", kernel_shape=[5], strides=[3])],
           runs=xs((1, 1, 8), (1, 1, 4), (1, 1, 1))) for op in ("AveragePool", "MaxPool", "LpPool")),
    Case(name="mean of a convolution", constants={"w": ones(1, 1, 5, 5)}, runs=xs((1, 1, 6, 6), (1, 1, 3, 3)),
         nodes=[node("Conv", "x w", "c"), node("GlobalAveragePool", "c", "t"), node("Neg", "t")]),
    Case(name="sum of a pool", runs=xs((1, 1, 6, 6), (1, 1, 3, 3), (1, 1, 2, 2)),
         nodes=[node("MaxPool", "x", "c", kernel_shape=[5, 5]), node("ReduceSum", "c", "t"), node("Neg", "t")]),
    Case(name="a crop", constants={"p": ints(-2, -3)}, runs=xs((6,), (5,), (4,)),
         nodes=[node("Pad", "x p", "c"), node("ReduceSum", "c", "t"), node("Neg", "t")]),
    Case(name="ConstantOfShape(n - 3)", constants={"k": ints(3)}, runs=xs((5,), (3,), (2,)),
         nodes=[*SIZE, node("ConstantOfShape", "d", "c"), node("ReduceSum", "c", "t"), node("Neg", "t")]),
    Case(name="Tile by n - 3", constants={"k": ints(3)}, runs=xs((5,), (3,), (2,)),
         nodes=[*SIZE, node("Tile", "x d", "c"), node("ReduceSum", "c", "t"), node("Neg", "t")]),
    Case(name="ArgMax of nothing", nodes=[node("ArgMax", "x", axis=1)], runs=xs((2, 3), (2, 0))),
    Case(name="ReduceMean of nothing", nodes=[node("ReduceMean", "x a")], constants={"a": ints(1)}, runs=xs((2, 3), (2, 0))),
    Case(name="GlobalMaxPool of nothing", nodes=[node("GlobalMaxPool", "x")], runs=xs((2, 3, 4), (2, 3, 0))),
    Case(name="Pad by reflection", nodes=[node("Pad", "x p", mode="reflect")], constants={"p": ints(0, 1, 0, 1)},
         runs=xs((2, 3), (2, 1))),
]  # fmt: skip

RESHAPES = [
    Case(name="to [0, -1]", nodes=[node("Reshape", "x s")], constants={"s": ints(0, -1)}, runs=xs((2, 3, 4), (0, 3, 4))),
    Case(name="to [a, b * c]", runs=xs((2, 3, 4), (0, 8, 0)), constants={"zero": ints(0), "one": ints(1), "three": ints(3)},
         nodes=[node("Shape", "x", "s"), node("Slice", "s zero one", "a"), node("Slice", "s one three", "bc"),
                node("ReduceProd", "bc zero", "p"), node("Concat", "a p", "t", axis=0), node("Reshape", "x t")]),
    Case(name="to [n / 4, -1]", runs=xs((8, 6), (2, 6), (6, 6)),
         constants={"zero": ints(0), "one": ints(1), "four": ints(4), "m": ints(-1)},
         nodes=[node("Shape", "x", "s"), node("Slice", "s zero one", "a"), node("Div", "a four", "q"),
                node("Concat", "q m", "t", axis=0), node("Reshape", "x t")]),
]  # fmt: skip

INDICES = [
    *(Case(name=f"Gather of {index}", nodes=[node("Gather", "x i", "z"), node("Add", "z z")], constants={"i": np.array(index)},
           runs=xs(*((n, 4) for n in extents)))
      for index, extents in ((5, (6, 3, 0)), (-1, (1, 0)), (-4, (4, 3)), (10**9, (3,)), ([2, -3], (3, 2, 4)))),
    Case(name="Gather from nothing", outputs=("y", "r"), constants={"c": ints(2), "zero": np.array(0)}, runs=xs((3,), (0,)),
         nodes=[node("Neg", "x", "r"), node("Gather", "r c", "p"), node("CumSum", "p zero")]),
    *(Case(name=f"Gather, {dtype.__name__} data", nodes=[node("Gather", "x i", axis=1)],
           runs=[{"x": counted(2, 3), "i": ints(*i, dtype=dtype)} for i in ((0, 2), (-3, 1), (3, 0), (0, -4))])
      for dtype in (np.int64, np.int32)),
    Case(name="Gather of computed indices", nodes=[node("Add", "i i", "j"), node("Gather", "x j")],
         runs=[{"x": counted(5, 2), "i": ints(*i)} for i in ((0, 2), (-2, 1), (3, 0), (0, -3))]),
    Case(name="GatherElements, shape of the indices", nodes=[node("GatherElements", "x i", axis=1)],
         runs=[{"x": counted(3, 4), "i": zeros(*s)} for s in ((3, 2), (7, 2), (2, 9))]),
    Case(name="GatherElements, data", nodes=[node("GatherElements", "x i", axis=0)],
         runs=[{"x": counted(3, 2), "i": ints(*i).reshape(1, 2)} for i in ((0, 2), (-3, 1), (3, 0), (0, -4))]),
    Case(name="GatherND", nodes=[node("GatherND", "x i")],
         runs=[{"x": counted(3, 4), "i": ints(*i).reshape(2, 2)} for i in ((0, 3, 2, 0), (-3, -4, 1, 1), (3, 0, 0, 0),
                                                                       (0, 0, 0, 4), (0, 0, 0, -5))]),
    Case(name="ReverseSequence, lengths", nodes=[node("ReverseSequence", "x n", time_axis=0, batch_axis=1)],
         runs=[{"x": counted(4, 3), "n": n} for n in (ints(1, 1, 1), ints(1), ints(1, 1, 1, 1, 1), ints(4, 0, 2),
                                                   ints(5, 1, 1), ints(-1, 1, 1))]),
    *(Case(name=f"{op}, lengths", nodes=[node(op, "x w r _ n", hidden_size=2)], outputs=("y",),
           constants={"w": ones(1, gates * 2, 3), "r": ones(1, gates * 2, 2)},
           runs=[{"x": counted(4, 3, 3), "n": ints(*n, dtype=np.int32)}
                 for n in ((1, 1, 1), (4, 0, 2), (5, 1, 1), (-1, 1, 1), (1, 1), (1, 1, 1, 1))])
      for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1))),
    Case(name="DynamicQuantizeLSTM, lengths and depth", outputs=("y",),
         nodes=[node("DynamicQuantizeLSTM", "x w r _ n _ _ _ s z s z", hidden_size=2, domain="com.microsoft")],
         constants={"w": np.ones((1, 3, 8), np.int8), "r": np.ones((1, 2, 8), np.int8),
                    "s": ones(1) / 512, "z": np.zeros(1, np.int8)},
         runs=[{"x": counted(4, 1, k), "n": ints(*n, dtype=np.int32)}
               for k, n in ((3, (1,)), (3, (4,)), (3, (5,)), (3, (-1,)), (3, (1, 1)), (2, (1,)), (4, (1,)))]),
    Case(name="LSTM, states", nodes=[node("LSTM", "x w r _ _ h c", hidden_size=2)],
         constants={"w": ones(1, 8, 3), "r": ones(1, 8, 2)},
         runs=[{"x": counted(4, 3, 3), "h": ones(*h), "c": ones(*c)}
               for h, c in (((1, 3, 2),) * 2, ((1, 1, 2), (1, 3, 2)), ((1, 3, 2), (1, 3, 1)), ((2, 3, 2), (1, 3, 2)))]),
    Case(name="GridSample, grid", nodes=[node("GridSample", "x g")],
         runs=[{"x": counted(2, 1, 3, 3), "g": np.zeros((b, 2, 2, k), np.float32)} for b, k in ((2, 2), (5, 2), (1, 2), (2, 1))]),
    Case(name="OneHot, values", nodes=[node("OneHot", "i d v")], constants={"d": np.array(3)},
         runs=[{"i": zeros(2), "v": counted(k)} for k in (2, 1, 0)]),
    Case(name="TensorScatter, positions", nodes=[node("TensorScatter", "x u p", axis=-2)], opset=24,
         runs=[{"x": counted(1, 4, 2), "u": ones(1, n, 2), "p": ints(p)} for n, p in ((2, 1), (7, 0), (2, 3), (2, -1))]),
    Case(name="Attention, masks", outputs=("y",), constants={"w": counted(6, 12) / 50, "b": counted(12) / 9},
         nodes=[node("Attention", "x w b m", num_heads=2, **MS)],
         runs=[{"x": counted(2, 3, 6) / 9, "m": ints(*(i % 2 for i in range(r * k)), dtype=np.int32).reshape(r, k)}
               for r, k in ((2, 3), (1, 1), (2, 1), (3, 1), (1, 3), (2, 2), (2, 4))]),
    Case(name="Attention, lengths of keys", outputs=("y",), constants={"w": counted(6, 12) / 50, "b": counted(12) / 9},
         nodes=[node("Attention", "x w b m", num_heads=2, **MS)],
         runs=[{"x": counted(n, 3, 6) / 9, "m": np.resize(ints(2, 1, 3, dtype=np.int32), k)}
               for n, k in ((2, 2), (2, 8), (2, 4), (2, 3), (1, 5), (0, 0), (0, 2), (0, 1))]),
    *(Case(name=f"{op}, images without elements", nodes=[node(op, "x w b", pads=[pad] * 4)],
           constants={"w": counted(3, 3, 3, 3), "b": counted(3)},
           runs=[{"x": counted(n, 3, h, w)} for n, h, w in ((1, 4, 5), (1, 0, 5), (1, 4, 0), (1, 0, 0), (0, 0, 4))])
      for op, pad in (("Conv", 2), ("Conv", 1), ("ConvTranspose", 0), ("ConvTranspose", 1))),
    *(Case(name=f"Pad, {before} before and {after} after", constants={"p": ints(before, 0, after, 0), "v": np.float32(9)},
           nodes=[node("Pad", "x p v")], runs=[{"x": counted(n, 3)} for n in range(5)])
      for before, after in ((2, -1), (-1, 2), (2, -3), (-3, 2), (-2, -1), (-1, 0), (0, -2))),
    Case(name="EmbedLayerNormalization, shapes", nodes=[EMBED], constants=TABLES, outputs=("y", "m"),
         runs=[{"t": np.ones(a, np.int32), "u": np.ones(b, np.int32)}
               for a, b in (((2, 3), (2, 3)), ((2, 3), (1, 3)), ((2, 3), (2, 2)), ((2, 9), (2, 9)))]),
    Case(name="EmbedLayerNormalization, tokens", nodes=[EMBED], constants=TABLES, outputs=("y", "m"),
         runs=[{"t": ints(*t, dtype=np.int32).reshape(1, 2), "u": ints(*u, dtype=np.int32).reshape(1, 2)}
               for t, u in (((1, 4), (0, 1)), ((1, 5), (0, 1)), ((1, 4), (0, 2)), ((-1, 4), (0, 1)))]),
    Case(name="EmbedLayerNormalization, positions", outputs=("y", "m"), constants=TABLES,
         nodes=[node("EmbedLayerNormalization", "t _ w p _ s s _ a", "y m", **MS)],
         runs=[{"t": np.ones((2, 3), np.int32), "a": np.ones(a, np.int32)} for a in ((2, 3), (1, 3), (3, 3), (2, 1), (1, 4))]),
    Case(name="QEmbedLayerNormalization, shapes", nodes=[Q_EMBED], constants=Q_TABLES, outputs=("y", "n"),
         runs=[{"t": np.ones(a, np.int32), "u": np.ones(b, np.int32), "m": np.ones(c, np.int32)}
               for a, b, c in (((2, 3),) * 3, ((2, 3), (1, 3), (2, 3)), ((2, 3), (2, 3), (2, 1)), ((2, 9),) * 3)]),
    Case(name="QEmbedLayerNormalization, tokens", nodes=[Q_EMBED], constants=Q_TABLES, outputs=("y", "n"),
         runs=[{"t": ints(*t, dtype=np.int32).reshape(1, 2), "u": ints(*u, dtype=np.int32).reshape(1, 2),
                "m": np.ones((1, 2), np.int32)}
               for t, u in (((1, 4), (0, 1)), ((1, 5), (0, 1)), ((1, 4), (0, 2)), ((-1, 4), (0, 1)))]),
    Case(name="RotaryEmbedding, positions", opset=23,
         nodes=[node("RotaryEmbedding", "x c c p", num_heads=2)], constants={"c": ones(4, 2)},
         runs=[{"x": counted(1, 2, 8), "p": ints(*p).reshape(1, 2)} for p in ((0, 3), (3, 4), (-1, 0))]),
    Case(name="GroupQueryAttention, lengths", outputs=("y", "a", "b"),
         nodes=[node("GroupQueryAttention", "q q q p p n t", "y a b", num_heads=2, kv_num_heads=2, **MS)],
         runs=[{"q": ones(1, 1, 16), "p": counted(1, 2, 5, 8), "n": ints(n, dtype=np.int32), "t": np.array(t, np.int32)}
               for n, t in ((5, 6), (4, 6), (9, 6), (-1, 6), (5, 5), (5, 9))]),
    *(Case(name=f"{op} by data", nodes=[node(op, "x d")],
           runs=[{"x": ints(7, -7, 5), "d": ints(*d)} for d in ((2, -3, 1), (2, 0, 1))]) for op in ("Div", "Mod")),
    Case(name="Div of sizes by sizes", constants={"k": ints(4)}, runs=xs((7,), (4,)),
         nodes=[node("Shape", "x", "s"), node("Sub", "s k", "d"), node("Div", "s d", "q"), node("Neg", "q")]),
]  # fmt: skip

CASES = [*PARAMETERS, *PARTS, *RESHAPES, *INDICES]
