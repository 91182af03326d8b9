"""Plans by hand, for tests of native code: docs/plan-format.md once more, independent of the product's writer.

alt = Alternative()
n = alt.dim(0, 0)
alt.output_dims(n)
x, y = alt.input(0), alt.output(0)
alt.step("relu", [x, y], params=[n], units=1)
island = Island("relu", nodes=[0], inputs=[Tensor("x", rank=1)], outputs=[Tensor("y", rank=1)], alternatives=[alt])
Plan(digest, root, kernels=[kernel], islands=[island]).bytes()
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from struct import pack

from xyntra_ep.provider import registration
from xyntra_ep.tracea.runtime.kernel_source import taking, text_of

NO_OFFSET = 0xFFFFFFFF
_OPS = "const symbol add sub mul floordiv ceildiv mod min max eq ne lt le and or not select"
OPS = _OPS.split()
INPUT, OUTPUT, CONSTANT, POOL, ARENA, LITERAL, INIT = range(7)


def hash128(data: bytes) -> bytes:
    result = ctypes.create_string_buffer(16)
    registration.library().xyntra_hash128(data, len(data), result)
    return result.raw


def text(value: str | bytes) -> bytes:
    raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    return pack("<I", len(raw)) + raw


def many(items: list[bytes]) -> bytes:
    return pack("<I", len(items)) + b"".join(items)


def u32s(items: list[int]) -> bytes:
    return pack(f"<I{len(items)}I", len(items), *items)


@dataclass
class Tensor:
    name: str
    elem_type: int = 1
    rank: int = 1

    def bytes(self) -> bytes:
        return text(self.name) + pack("<ii", self.elem_type, self.rank)


@dataclass
class Kernel:
    path: str
    symbol: str
    hash: bytes
    threads: int = 0
    shared_bytes: int = 0
    successor: str = ""
    successor_symbol: str = ""

    def bytes(self) -> bytes:
        return (
            text(self.path)
            + text(self.symbol)
            + self.hash
            + pack("<II", self.threads, self.shared_bytes)
            + text(self.successor)
            + text(self.successor_symbol)
        )


@dataclass
class Alternative:
    """One way to run an island; expressions, buffers and steps are numbered in the order in which they are made."""

    symbols: list[bytes] = field(default_factory=list)
    exprs: list[bytes] = field(default_factory=list)
    guards: list[int] = field(default_factory=list)
    checks: list[tuple[int, str]] = field(default_factory=list)
    outputs: list[list[int]] = field(default_factory=list)
    buffers: list[bytes] = field(default_factory=list)
    init: list[bytes] = field(default_factory=list)
    run: list[bytes] = field(default_factory=list)
    faults: list[tuple[int, str]] = field(default_factory=list)
    loops: list[bytes] = field(default_factory=list)
    waves: list[tuple[int, int]] = field(default_factory=list)

    def op(self, name: str, a: int = 0, b: int = 0, c: int = 0) -> int:
        self.exprs.append(pack("<Bqqq", OPS.index(name), a, b, c))
        return len(self.exprs) - 1

    def const(self, value: int) -> int:
        return self.op("const", value)

    def dim(self, input_index: int, axis: int) -> int:
        self.symbols.append(pack("<BII", 0, input_index, axis))
        return self.op("symbol", len(self.symbols) - 1)

    def element(self, input_index: int, index: int) -> int:
        self.symbols.append(pack("<BII", 1, input_index, index))
        return self.op("symbol", len(self.symbols) - 1)

    def output_dims(self, *exprs: int) -> None:
        self.outputs.append(list(exprs))

    def buffer(self, kind: int, index: int = 0, size: int = 0, first: int = 0, last: int = 0, data: bytes = b"") -> int:
        literal = text(data) if kind == LITERAL else b""
        self.buffers.append(pack("<BIIII", kind, index, size, first, last) + literal)
        return len(self.buffers) - 1

    def input(self, index: int) -> int:
        return self.buffer(INPUT, index)

    def output(self, index: int) -> int:
        return self.buffer(OUTPUT, index)

    def step(
        self,
        kernel: int,
        buffers: list[int | tuple[int, int]],
        params: list[int] | None = None,
        units: int | None = None,
        cost: int | None = None,
        init: bool = False,
        label: str = "step",
        flops: int | None = None,
        moved: int | None = None,
        tensors: list[bytes] | None = None,
    ) -> None:
        uses = [use if isinstance(use, tuple) else (use, NO_OFFSET) for use in buffers]
        units = self.const(1) if units is None else units
        cost = self.const(0) if cost is None else cost
        flops = self.const(0) if flops is None else flops
        moved = self.const(0) if moved is None else moved
        (self.init if init else self.run).append(
            pack("<I", kernel)
            + text(label)
            + many([pack("<II", *use) for use in uses])
            + u32s(params or [])
            + pack("<IIII", units, cost, flops, moved)
            + many(tensors or [])
        )

    def loop(self, first: int, last: int, images: int, strides: Mapping[int, int]) -> None:
        """Run steps `first` to `last` for each image; `strides`: the expression of bytes, by buffer."""
        self.loops.append(pack("<III", first, last, images) + many([pack("<II", *stride) for stride in strides.items()]))

    def bytes(self) -> bytes:
        return (
            many(self.symbols)
            + many(self.exprs)
            + u32s(self.guards)
            + many([pack("<I", expr) + text(message) for expr, message in self.checks])
            + many([u32s(dims) for dims in self.outputs])
            + many(self.buffers)
            + many(self.init)
            + many(self.run)
            + many([pack("<I", buffer) + text(message) for buffer, message in self.faults])
            + many(self.loops)
            + many([pack("<II", *wave) for wave in self.waves])
        )


@dataclass
class Island:
    name: str
    nodes: list[int]
    inputs: list[Tensor]
    outputs: list[Tensor]
    alternatives: list[Alternative]
    constants: list[str] = field(default_factory=list)

    def bytes(self) -> bytes:
        return (
            text(self.name)
            + pack(f"<I{len(self.nodes)}Q", len(self.nodes), *self.nodes)
            + many([tensor.bytes() for tensor in self.inputs])
            + many([tensor.bytes() for tensor in self.outputs])
            + many([text(name) for name in self.constants])
            + many([alternative.bytes() for alternative in self.alternatives])
        )


@dataclass
class Plan:
    digest: str
    root: str = ""
    device: str = ""
    refuse: bool = False
    message: str = ""
    log_level: int = 1
    log_line: str = ""
    report: str = ""
    depends: list[tuple[str, bytes]] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    islands: list[Island] = field(default_factory=list)

    def bytes(self) -> bytes:
        content = (
            b"XYPL"
            + pack("<I", 10)
            + text(self.digest)
            + text(self.root)
            + text(self.device)
            + pack("<B", self.refuse)
            + text(self.message)
            + pack("<B", self.log_level)
            + text(self.log_line)
            + text(self.report)
            + many([text(name) + digest for name, digest in self.depends])
            + many([kernel.bytes() for kernel in self.kernels])
            + many([island.bytes() for island in self.islands])
        )
        return content + hash128(content)


def _reach(table: str, body: str) -> int:
    return max((int(index) + 1 for index in re.findall(rf"\b{table}\[(\d+)\]", body)), default=0)


def compile_kernel(folder: Path, name: str, body: str) -> Kernel:
    """A kernel from the body of its C function; `b` are the buffers, `p` the parameters, [begin, end) the units."""
    source = folder / f"{name}.c"
    library = folder / f"{name}.so"
    source.write_text(
        "#include <stdint.h>\n"
        f"void {name}(void *const *b, const int64_t *p, int64_t begin, int64_t end) {{\n"
        f"(void)b; (void)p; (void)begin; (void)end;\n{body}\n}}\n"
        + text_of([taking(_reach("b", body), _reach("p", body))], name),
        encoding="utf-8",
    )
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    library.chmod(0o600)
    return Kernel(library.name, name, hash128(library.read_bytes()))
