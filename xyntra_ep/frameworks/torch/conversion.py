"""From an FX graph of core ATen to a fusion graph.

    %addmm = aten.addmm(%bias, %x, %w)    ->    addmm = Add(MatMul(x, w), bias)

An ATen operator is one row, `AtenRow`, in a file of `aten/`. A call without a row, or one that a row refuses, stays a node that
nobody but ATen can carry out; the reason is kept.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule
from torch.fx import Node as FxNode

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.frameworks.graph_draft import GraphDraft
from xyntra_ep.frameworks.torch.dtypes import OURS, array_of
from xyntra_ep.frameworks.torch.sizes import Sizes, expression_of
from xyntra_ep.frameworks.torch.triton_calls import IN_NO_ISLAND, is_launch
from xyntra_ep.fusion.graph import DeclaredDim, NodeId
from xyntra_ep.registry import Registry
from xyntra_ep.tracea.core_ir.dtypes import DType

Result = str | Sequence[str | None]
ATEN = "aten"  # the domain of what stays with PyTorch


@dataclass(frozen=True, slots=True, kw_only=True)
class AtenRow:
    """``name``: as FX prints it ("aten.relu.default"). ``convert`` adds nodes to the draft and returns the result's name, or one
    for each result, None where a result cannot be had; it raises UnsupportedError for what it does not cover."""

    name: str
    convert: Callable[[Conversion, FxNode], Result]


ROWS: Registry[AtenRow] = Registry("xyntra_ep.frameworks.torch.aten", "ROWS")


def target_name(node: FxNode) -> str:
    """What an FX node calls."""
    return str(node.target) if node.op == "call_function" and not callable_name(node) else callable_name(node) or str(node.target)


def callable_name(node: FxNode) -> str:
    """Of a plain function; empty for an ATen operator."""
    return "" if isinstance(node.target, str | torch._ops.OpOverload) else getattr(node.target, "__name__", str(node.target))


@dataclass(slots=True, kw_only=True)
class Conversion:
    """``constants``: placeholders that are read now and kept, with what is in them. ``opaque``: calls that PyTorch keeps."""

    module: GraphModule
    constants: Mapping[FxNode, torch.Tensor]
    opaque: dict[FxNode, str]
    draft: GraphDraft = field(init=False)
    sizes: Sizes = field(init=False)
    names: dict[FxNode, str] = field(default_factory=dict)  # the value that each FX node is
    owner: dict[NodeId, FxNode] = field(default_factory=dict)  # the call that each fusion node is of
    _results: dict[FxNode, Sequence[str | None]] = field(default_factory=dict)

    def run(self) -> None:
        graph = self.module.graph
        hints = _hints(graph.nodes)
        self.draft = GraphDraft("graph", hints)
        self.sizes = Sizes(self.draft)
        for node in graph.nodes:
            if node.op == "placeholder":
                self._placeholder(node)
            elif node.op == "get_attr":
                self._attribute(node)
            elif node.op == "output":
                self.draft.output(*{self.names[arg] for arg in node.all_input_nodes if self.names[arg] in self.draft.values})
            else:
                before = len(self.draft.nodes)
                self._call(node)
                for number in range(before, len(self.draft.nodes)):
                    self.owner[NodeId(number)] = node

    # -- what rows use

    def value(self, arg: Any) -> str:
        """The tensor that an argument is."""
        if not isinstance(arg, FxNode):
            raise UnsupportedError(f"an argument that is {type(arg).__name__}")
        name = self.names[arg]
        if self.draft.values[name].dtype is None:
            raise UnsupportedError(f"dtype of {name}")
        return name

    def operand(self, arg: Any, dtype: DType) -> str:
        """A tensor or a number, as ``dtype``."""
        if isinstance(arg, FxNode) and isinstance(arg.meta.get("val"), torch.Tensor):
            return self.cast(self.value(arg), dtype)
        if isinstance(arg, bool | int | float):
            return self.draft.constant(arg, dtype)
        raise UnsupportedError(f"a scalar that is {type(arg).__name__}")

    def cast(self, name: str, dtype: DType) -> str:
        if self.draft.dtype(name) is dtype:
            return name
        return self.draft.node("Cast", name, dtype=dtype, to=dtype.ort)

    def node(self, op_type: str, *inputs: str, dtype: DType | None = None, **attrs: Any) -> str:
        return self.draft.node(op_type, *inputs, dtype=dtype, **attrs)

    def number(self, value: float, like: str) -> str:
        """A constant of the type of ``like``."""
        return self.draft.constant(value, self.draft.dtype(like))

    def dtype_of(self, node: Any) -> DType:
        """Of the tensor that an FX node is."""
        return dtype_of(meta(node))

    def shape(self, sizes: Sequence[Any], of: str = "") -> str:
        """The sizes as a value. Where at most one is known at run time only and ``of`` is what is reshaped, it is -1."""
        found = [expression_of(size) for size in sizes]
        unknown = [i for i, size in enumerate(found) if not isinstance(size, int)]
        if (
            of
            and len(unknown) == 1
            and all(isinstance(size, int) and size > 0 for i, size in enumerate(found) if i != unknown[0])
        ):
            return self.draft.ints(*(-1 if i in unknown else int(size) for i, size in enumerate(found)))
        return self.sizes.vector(sizes)

    # -- the walk

    def _placeholder(self, node: FxNode) -> None:
        self.names[node] = name = node.name
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            self.draft.input(name, None, None)
            return
        dtype = OURS.get(value.dtype)
        known = self.constants.get(node)
        if known is not None and dtype is not None:
            self._keep(name, known)
            return
        self.draft.input(name, dtype, _declared(value))
        self.sizes.learn(name, value.shape)

    def _keep(self, name: str, tensor: torch.Tensor) -> None:
        self.draft.weights(
            name, OURS[tensor.dtype], tensor.shape, tensor.numel() * tensor.element_size(), lambda: array_of(tensor)
        )

    def _attribute(self, node: FxNode) -> None:
        self.names[node] = node.name
        found: Any = self.module
        for part in str(node.target).split("."):
            found = getattr(found, part)
        is_ours = isinstance(found, torch.Tensor) and type(found) in (torch.Tensor, torch.nn.Parameter) and found.dtype in OURS
        if is_ours:
            self._keep(node.name, found)
        else:
            self.draft.input(node.name, None, None)

    def _call(self, node: FxNode) -> None:
        if node.target is operator.getitem and (source := node.args[0]) in self._results:
            results, index = self._results[source], node.args[1]
            name = results[index]
            assert name is not None, "such a call was made opaque"
            self.names[node] = name
            return
        if node.target is operator.getitem and isinstance(node.args[0], FxNode) and node.args[0] in self.opaque:
            self.names[node] = node.name  # its call declared it
            return
        if node not in self.opaque and (why := self._converted(node)):
            self.opaque[node] = why
        if node in self.opaque:
            self._leave(node)

    def _converted(self, node: FxNode) -> str:
        """Convert a call, or say why it cannot be."""
        name = target_name(node)
        if is_launch(node):
            return IN_NO_ISLAND
        if name not in ROWS:
            return "no row for it"
        before, known = len(self.draft.nodes), set(self.draft.values)
        try:
            if is_elsewhere(node):
                raise UnsupportedError("not on the processor")
            results = ROWS[name].convert(self, node)
            wanted = meta(node)
            if isinstance(results, str):
                if not isinstance(wanted, torch.Tensor):
                    raise UnsupportedError("its result is no tensor")
                self.names[node] = self._named(node, self.cast(results, dtype_of(wanted)), wanted)
                return ""
            users = [user for user in node.users if user.target is operator.getitem]
            for user in users:
                if results[user.args[1]] is None:
                    raise UnsupportedError(f"result {user.args[1]} is not computed")
            final = list(results)
            for user in users:
                made = results[user.args[1]]
                assert made is not None
                final[user.args[1]] = self._named(user, self.cast(made, dtype_of(meta(user))), meta(user))
            self._results[node] = final
            self.names[node] = node.name
            return ""
        except UnsupportedError as error:
            del self.draft.nodes[before:]
            for name in [n for n, value in self.draft.values.items() if n not in known and not value.is_constant]:
                del self.draft.values[name]
            return error.what

    def _named(self, node: FxNode, made: str, value: torch.Tensor) -> str:
        """What PyTorch knows of the shape of a result, beside its name."""
        if made in self.names.values() or self.draft.values[made].is_constant:
            made = self.draft.node("Identity", made)
        self.draft.declare(made, self.draft.dtype(made), _declared(value))
        return made

    def _leave(self, node: FxNode) -> None:
        """A call that stays with PyTorch."""
        self.names[node] = node.name
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            outputs: list[FxNode] = [node]
        else:
            outputs = [user for user in node.users if user.target is operator.getitem] or [node]
        for output in outputs:
            made = output.meta.get("val")
            if isinstance(made, torch.Tensor):
                self.draft.declare(output.name, None if is_elsewhere(output) else OURS.get(made.dtype), _declared(made))
            else:
                self.draft.declare(output.name, None, None)
        names = list(dict.fromkeys(self.names[arg] for arg in node.all_input_nodes))
        self.draft.opaque(target_name(node), names, [output.name for output in outputs], domain=ATEN)


def meta(node: FxNode) -> Any:
    """What a node is: a tensor without data, or several."""
    if "val" not in node.meta:
        raise UnsupportedError("nothing is known of its result")
    return node.meta["val"]


def is_elsewhere(node: FxNode) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.device.type != "cpu"


def dtype_of(value: torch.Tensor) -> DType:
    if value.dtype not in OURS:
        raise UnsupportedError(f"dtype {str(value.dtype).removeprefix('torch.')}")
    return OURS[value.dtype]


def _declared(value: torch.Tensor) -> tuple[DeclaredDim, ...]:
    return tuple(size if isinstance(size, int) else str(size) for size in map(expression_of, value.shape))


def _hints(nodes: Any) -> dict[str, int]:
    """What each symbol was when the graph was made."""
    found: dict[str, int] = {}
    for node in nodes:
        value = node.meta.get("val")
        for size in value.shape if isinstance(value, torch.Tensor) else ():
            if isinstance(size, torch.SymInt) and size.node.has_hint():
                found[str(size.node.expr)] = max(1, int(size.node.hint))
    return found
