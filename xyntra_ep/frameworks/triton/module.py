"""A Python module of Triton kernels for the islands of a model, as text.

    text, refused = module_text("model.onnx", programs)

For each island it has a function that takes the island's inputs as torch tensors, and the weights by name; it makes what the
kernels write, launches them in order and returns the outputs. Kernels of equal text are one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.frameworks.triton.kernel_text import KernelText, Launch, helper_texts, identifier, is_call, python_size
from xyntra_ep.frameworks.triton.kinds.attention import attention
from xyntra_ep.frameworks.triton.kinds.convolution import conv
from xyntra_ep.frameworks.triton.kinds.pointwise import pointwise
from xyntra_ep.frameworks.triton.kinds.products import block_gemm, gemm
from xyntra_ep.frameworks.triton.kinds.rows import rows
from xyntra_ep.frameworks.triton.kinds.sequences import scan, top_k
from xyntra_ep.tracea.core_ir.dims import Size, evaluate
from xyntra_ep.tracea.core_ir.dtypes import DType, to_float64
from xyntra_ep.tracea.core_ir.ops import (
    Attention,
    BlockGemm,
    Conv,
    CoreOp,
    Gemm,
    Pointwise,
    Program,
    RowReduce,
    Scan,
    SymbolKind,
    TopK,
    Value,
    ValueKind,
)

KINDS: Mapping[type[CoreOp], Callable[[Any], KernelText]] = {
    Pointwise: pointwise, RowReduce: rows, Gemm: gemm, BlockGemm: block_gemm, Conv: conv, Attention: attention, Scan: scan,
    TopK: top_k,
}  # fmt: skip
_TORCH = {
    DType.F32: "float32", DType.F16: "float16", DType.BF16: "bfloat16", DType.I64: "int64", DType.I32: "int32",
    DType.I16: "int16", DType.U16: "uint16", DType.I8: "int8", DType.U8: "uint8", DType.BOOL: "bool",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """An island of which there is no Triton, and why."""

    island: int
    op: str
    reason: str

    def __str__(self) -> str:
        return f"island {self.island} is not here: {self.op}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A kernel as Triton's compiler is told of it: the element types of its pointers, its sizes (i32), its block sizes."""

    name: str
    pointers: Mapping[str, DType]
    sizes: tuple[str, ...]
    blocks: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TritonModule:
    """``text`` of the module; its function `island_N` for each island that is not in ``refused``."""

    text: str
    kernels: tuple[Signature, ...]
    refused: tuple[Refused, ...]


@dataclass(slots=True)
class _Kernels:
    """The kernels so far, each text once."""

    named: dict[str, str] = field(default_factory=dict)  # text with the name left open -> name
    helpers: dict[str, None] = field(default_factory=dict)
    signatures: dict[str, Signature] = field(default_factory=dict)

    def add(self, kernel: KernelText, stem: str, values: Sequence[Value]) -> Launch:
        body = kernel.text("_")
        if body not in self.named:
            number = sum(name.rsplit("_", 1)[0] == stem for name in self.named.values())
            self.named[body] = f"{stem}_{number}"
            self.helpers.update(dict.fromkeys(kernel.helpers()))
        launch = kernel.launch(self.named[body])
        pointers = {name: values[i].dtype for name, i in launch.values.items()}
        self.signatures.setdefault(
            launch.kernel, Signature(name=launch.kernel, pointers=pointers, sizes=tuple(launch.sizes), blocks=launch.blocks)
        )
        return launch

    def texts(self) -> list[str]:
        return [body.replace("def _(", f"def {name}(", 1) for body, name in self.named.items()]


def module_text(title: str, programs: Sequence[Program], notes: Sequence[str] = ()) -> TritonModule:
    """``notes``: lines for the head, as which nodes are in no island."""
    kernels = _Kernels()
    functions: list[str] = []
    refused: list[Refused] = []
    for number, program in enumerate(programs):
        try:
            made = [(kernel_of(op), identifier(op.label or op.title().lower())) for op in program.ops]
        except UnsupportedError as error:
            refused.append(Refused(island=number, op=_op_at_fault(program), reason=error.what))
            continue
        launches = [kernels.add(kernel, stem, program.values) for kernel, stem in made]
        functions.append(_function(number, program, launches))
    lines = [f"Triton kernels of {title}, one function for each island.", *notes, *map(str, refused)]
    head = '"""' + "\n".join(lines) + '\n\nWritten by `xyntra fuse --emit triton`.\n"""'
    imports = "import torch\nimport triton\nimport triton.language as tl"
    parts = [f"{head}\n\n{imports}", *helper_texts(list(kernels.helpers)), *kernels.texts(), *functions]
    return TritonModule(text="\n\n\n".join(parts) + "\n", kernels=tuple(kernels.signatures.values()), refused=tuple(refused))


def kernel_of(op: CoreOp) -> KernelText:
    """Raises UnsupportedError."""
    make = KINDS.get(type(op))
    if make is None:
        raise UnsupportedError(f"{op.title()} has no Triton kernel")
    return make(op)


def _op_at_fault(program: Program) -> str:
    for op in program.ops:
        try:
            kernel_of(op)
        except UnsupportedError:
            return op.label or op.title()
    raise AssertionError("some op was refused")


def _function(number: int, program: Program, launches: Sequence[Launch]) -> str:
    inputs = _of_kind(program, ValueKind.INPUT)
    names = _names(program)
    lines = [f"def island_{number}({', '.join([*(names[i] for i in inputs), 'weights'])}):"]
    outputs = _of_kind(program, ValueKind.OUTPUT)
    lines += ['    """Returns the outputs; ``weights``: tensors by their names in the model.', ""]
    lines += [f"    {arrow} {_described(program.values[i])}" for arrow, of in (("<-", inputs), ("->", outputs)) for i in of]
    lines.append('    """')
    contiguous = [f"{names[i]} = {names[i]}.contiguous()" for i in inputs if program.values[i].shape]
    lines += [f"    {line}" for line in contiguous]
    for binding in program.bindings:
        source = names[inputs[[program.values[i].index for i in inputs].index(binding.input)]]
        at = f".shape[{binding.index}]" if binding.kind is SymbolKind.DIM else f".reshape(-1)[{binding.index}].item()"
        lines.append(f"    {identifier(binding.name)} = {source}{at}")
    for name, size in program.definitions:
        lines.append(f"    {identifier(name)} = {python_size(size)}")
    expected = [(size, "sizes of the inputs do not fit together as the model declares them") for size in program.guards]
    checks = [f"    assert {_condition(size)}, {message!r}" for size, message in [*expected, *program.checks]]
    lines += dict.fromkeys(checks)
    device = f"{names[inputs[0]]}.device" if inputs else '"cpu"'
    lines.append(f"    device = {device}")
    for i, value in enumerate(program.values):
        if value.kind is ValueKind.CONST:
            lines.append(f"    {names[i]} = weights[{program.constants[value.index]!r}]")
        elif value.kind is ValueKind.LITERAL:
            lines.append(f"    {names[i]} = torch.tensor({_elements(value)}, dtype=torch.{_TORCH[value.dtype]}, device=device)")
    made: set[int] = set()
    for launch in launches:
        for i in launch.values.values():
            value = program.values[i]
            if value.kind in (ValueKind.TEMP, ValueKind.OUTPUT) and i not in made:
                made.add(i)
                shape = ", ".join(map(python_size, value.shape))
                shape += "," if len(value.shape) == 1 else ""
                lines.append(f"    {names[i]} = torch.empty(({shape}), dtype=torch.{_TORCH[value.dtype]}, device=device)")
        arguments = [names[i] for i in launch.values.values()]
        arguments += launch.sizes.values()
        arguments += [f"{block}={value}" for block, value in launch.blocks.items()]
        grid = ", ".join(launch.grid) + ("," if len(launch.grid) == 1 else "")
        lines.append(f"    {launch.kernel}[({grid})]({', '.join(arguments)})")
    results = ", ".join(names[i] for i in sorted(outputs, key=lambda i: program.values[i].index))
    lines.append(f"    return {results}{',' if len(outputs) == 1 else ''}")
    return "\n".join(lines)


def _of_kind(program: Program, kind: ValueKind) -> list[int]:
    found = [i for i, v in enumerate(program.values) if v.kind is kind]
    return sorted(found, key=lambda i: program.values[i].index)


def _names(program: Program) -> dict[int, str]:
    """What the function calls each value; names of the graph where there are any."""
    taken = {"weights", "device", "torch", "triton", "tl"} | {identifier(b.name) for b in program.bindings}
    found: dict[int, str] = {}
    for i, value in enumerate(program.values):
        stem = {ValueKind.LITERAL: "c", ValueKind.TEMP: "t"}.get(value.kind)
        name = program.constants[value.index] if value.kind is ValueKind.CONST else value.name
        wanted = f"{stem}{i}" if stem else identifier(name or f"x{i}")
        name, number = wanted, 1
        while name in taken:
            name, number = f"{wanted}_{number}", number + 1
        taken.add(name)
        found[i] = name
    return found


def _condition(size: Size) -> str:
    text = python_size(size)
    return text[len("int(") : -1] if text.startswith("int(") and is_call(text) else text


def _described(value: Value) -> str:
    return f"{value.name or 'x'}: {value.dtype}[{', '.join(map(str, value.shape))}]"


def _elements(value: Value) -> str:
    array = to_float64(np.frombuffer(value.literal, dtype=value.dtype.numpy), value.dtype)
    text = repr(array.reshape([evaluate(n, {}) for n in value.shape]).tolist())
    return text.replace("inf", 'float("inf")').replace("nan", 'float("nan")')
