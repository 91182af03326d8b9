"""Gemm and BlockGemm: a tile of the result for each program, the sum over k in blocks, the epilogue on the tile."""

from __future__ import annotations

from xyntra_ep.frameworks.triton.expressions import Bodies, Running, Space
from xyntra_ep.frameworks.triton.kernel_text import TRITON_TYPES, KernelText, operand, python_size
from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.dtypes import BYTES, DType
from xyntra_ep.tracea.core_ir.expr import Expr, axis, call, const, load
from xyntra_ep.tracea.core_ir.ops import BlockGemm, Gemm, Operand, Product
from xyntra_ep.tracea.core_ir.ops.product import EpilogueOp
from xyntra_ep.tracea.kernels.shared.index import Group

LEAST = 16  # of what tl.dot takes
LEAST_BYTES = 32  # of bytes along k


def block_of(extent: Size, most: int, least: int = LEAST) -> int:
    """A power of two for an extent."""
    if not isinstance(extent, int):
        return most
    return max(least, min(most, 1 << (max(extent, 1) - 1).bit_length()))


def counted(kernel: KernelText, name: str, start: str, extent: Size, block: str, lanes: str, number: int) -> Running:
    """A variable over one axis: a block from ``start`` on, as ``lanes`` say ([:, None] for rows)."""
    kernel.line(f"{name} = {start}tl.arange(0, {block}){lanes}")
    mask = ""
    if not isinstance(extent, int) or extent % kernel.blocks[block]:
        mask = kernel.let(f"{name}_mask", f"{name} < {operand(kernel.size(extent))}")
    return Running(group=Group(axes=(number,), extents=(extent,)), name=name, mask=mask)


def turned(running: Running, lanes: str, number: int) -> Running:
    """The same variable along another axis of the block."""
    mask = f"{running.mask}{lanes}" if running.mask else ""
    return Running(group=Group(axes=(number,), extents=running.group.extents), name=f"{running.name}{lanes}", mask=mask)


def batches(kernel: KernelText, extents: tuple[Size, ...], program: int) -> list[Running]:
    """The leading axes, one point of them for each program."""
    if not extents:
        return []
    kernel.line(f"batch = tl.program_id({program})")
    return [Running(group=Group(axes=tuple(range(len(extents))), extents=extents), name="batch", is_block=False)]


def dot_type(kind: Product, a: Operand, b: Operand) -> tuple[str, str]:
    """(what both operands are cast to, further arguments of tl.dot)."""
    if kind.half is not None:
        return f".to(tl.{TRITON_TYPES[kind.half]})", ""
    if kind is Product.TF32:
        return "", ', input_precision="tf32"'
    if a.dtype is b.dtype and a.dtype in (DType.F16, DType.BF16):
        return "", ""  # exact, and summed in f32
    return "", ', input_precision="ieee"'


def add_bytes(kernel: KernelText, a: tuple[str, DType], b: tuple[str, DType], block_k: str) -> None:
    """acc += a @ b of bytes: tl.dot takes signed ones, so unsigned ones are moved by 128, and the sums moved back."""
    names = []
    for name, dtype in (a, b):
        if dtype is DType.U8:
            kernel.line(f"{name} = ({name}.to(tl.int32) - 128).to(tl.int8)")
        names.append(name)
    kernel.line(f"acc = tl.dot({names[0]}, {names[1]}, acc, out_dtype=tl.int32)")
    if a[1] is DType.U8:
        kernel.line(f"acc += 128 * tl.sum({names[1]}.to(tl.int32), axis=0)[None, :]")
    if b[1] is DType.U8:
        kernel.line(f"acc += 128 * tl.sum({names[0]}.to(tl.int32), axis=1)[:, None]")
    if a[1] is DType.U8 and b[1] is DType.U8:
        kernel.line(f"acc += 16384 * {block_k}")


class Tiles:
    """The tile of a product's result over the last two axes: its variables, and the epilogue."""

    def __init__(self, kernel: KernelText, domain: tuple[Size, ...], block_m: int, block_n: int) -> None:
        self.kernel, self.domain = kernel, domain
        rank = len(domain)
        m, n = domain[-2:]
        for name, block in (("BLOCK_M", block_m), ("BLOCK_N", block_n)):
            kernel.constexpr(name, block)
        grid = [f"triton.cdiv({python_size(m)}, {block_m})", f"triton.cdiv({python_size(n)}, {block_n})"]
        self.batch = batches(kernel, domain[:-2], 2)
        if self.batch:
            grid.append(python_size(product(domain[:-2])))
        kernel.grid = tuple(grid)
        self.m = counted(kernel, "m", "tl.program_id(0) * BLOCK_M + ", m, "BLOCK_M", "[:, None]", rank - 2)
        self.n = counted(kernel, "n", "tl.program_id(1) * BLOCK_N + ", n, "BLOCK_N", "[None, :]", rank - 1)
        self.space = Space(kernel, domain, [*self.batch, self.m, self.n])

    def factors(self, depth: Size) -> tuple[Space, Space]:
        """What a block of the factors is indexed by, [..., m, k] and [..., k, n]; in a loop over `start`, which counts k."""
        rank = len(self.domain)
        k = counted(self.kernel, "k", "start + ", depth, "BLOCK_K", "", rank - 1)
        rows, columns = turned(k, "[None, :]", rank - 1), turned(k, "[:, None]", rank - 2)
        return (
            Space(self.kernel, (*self.domain[:-1], depth), [*self.batch, self.m, rows]),
            Space(self.kernel, (*self.domain[:-2], depth, self.domain[-1]), [*self.batch, columns, self.n]),
        )

    def finish(self, op: EpilogueOp, pointers: dict[int, str]) -> None:
        bodies = Bodies(self.space, op.inputs, [op.epilogue], pointers, {0: "acc"})
        value = bodies.write(op.epilogue)
        bodies.store(op.output, self.kernel.pointer(op.output, "out"), value)


def gemm(op: Gemm) -> KernelText:
    kernel = KernelText()
    a, b = op.inputs[:2]
    in_bytes = a.dtype in BYTES
    depth, rank = a.shape[-1], len(op.domain)
    pointers = {0: kernel.pointer(a, "a"), 1: kernel.pointer(b, "b")}
    tiles = Tiles(kernel, op.domain, block_of(op.domain[-2], 64), block_of(op.domain[-1], 64))
    kernel.constexpr("BLOCK_K", block_of(depth, 32, LEAST_BYTES if in_bytes else LEAST))
    cast, more = dot_type(op.product, a, b)
    kernel.line(f"acc = tl.zeros([BLOCK_M, BLOCK_N], tl.{'int32' if in_bytes else 'float32'})")
    with kernel.block(f"for start in range(0, {kernel.size(depth)}, BLOCK_K):"):
        names = [
            Bodies(space, op.inputs, [], pointers).load(
                load(i, *map(axis, range(rank)), dtype=o.dtype),
                as_stored=in_bytes or a.dtype is b.dtype,
                whole=(rank - 2, rank - 1),
            )
            for i, (space, o) in enumerate(zip(tiles.factors(depth), (a, b), strict=True))
        ]
        if in_bytes:
            add_bytes(kernel, (names[0], a.dtype), (names[1], b.dtype), "BLOCK_K")
        else:
            kernel.line(f"acc = tl.dot({names[0]}{cast}, {names[1]}{cast}, acc{more})")
    tiles.finish(op, pointers)
    return kernel


def block_gemm(op: BlockGemm) -> KernelText:
    """Weights are unpacked and scaled as they are multiplied, in f32: that keeps more digits than ``product`` asks for."""
    kernel = KernelText()
    depth, rank = op.depth, len(op.domain)
    stems = ("a", "q", "scale", "zero")[: op.reads_directly]
    pointers = {i: kernel.pointer(op.inputs[i], stem) for i, stem in enumerate(stems)}
    tiles = Tiles(kernel, op.domain, block_of(op.domain[-2], 64), block_of(op.domain[-1], 64))
    kernel.constexpr("BLOCK_K", block_of(depth, 32))
    kernel.line("acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)")
    with kernel.block(f"for start in range(0, {kernel.size(depth)}, BLOCK_K):"):
        of_a, of_b = tiles.factors(depth)
        a = Bodies(of_a, op.inputs, [], pointers).load(
            load(0, *map(axis, range(rank)), dtype=op.inputs[0].dtype), whole=(rank - 2, rank - 1)
        )
        weights = Bodies(of_b, op.inputs, [], pointers)
        n, k = axis(rank - 1), axis(rank - 2)
        group = call("div", k, const(op.block))
        level = _unpacked(op, weights, 1, n, k)
        zero = f"{float(op.middle)}"
        if op.zeros is not None:
            packed = op.zeros.dtype is DType.U8
            zero = _unpacked(op, weights, 3, n, group) if packed else weights.write(load(3, n, group, dtype=op.zeros.dtype))
        scale = weights.write(load(2, n, group, dtype=op.inputs[2].dtype))
        kernel.line(f"b = ({level} - {zero}) * {scale}")
        kernel.line(f'acc = tl.dot({a}, b, acc, input_precision="ieee")')
    tiles.finish(op, pointers)
    return kernel


def _unpacked(op: BlockGemm, bodies: Bodies, number: int, n: Expr, at: Expr) -> str:
    """The integer at [n, ``at``], of which a byte holds several, as a float."""
    dtype = op.inputs[number].dtype
    each = 8 // op.bits
    byte = bodies.write(load(number, n, call("div", at, const(each)) if each > 1 else at, dtype=dtype))
    if each == 1:
        return f"{byte}.to(tl.float32)"
    place = bodies.write(call("mul", call("mod", at, const(each)), const(op.bits)))
    return f"(({byte} >> ({place})) & {(1 << op.bits) - 1}).to(tl.float32)"
