"""Attention: a block of queries for each program, keys and values block by block, softmax on the way (online)."""

from __future__ import annotations

from xyntra_ep.frameworks.triton.expressions import Bodies, Running, Space
from xyntra_ep.frameworks.triton.kernel_text import TRITON_TYPES, KernelText, operand, python_size
from xyntra_ep.frameworks.triton.kinds.products import block_of, counted, dot_type, turned
from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.expr import axis, load
from xyntra_ep.tracea.core_ir.ops import Attention, NoSoftmax
from xyntra_ep.tracea.kernels.shared.causal_mask import find_causal
from xyntra_ep.tracea.kernels.shared.column_bounds import ROW
from xyntra_ep.tracea.kernels.shared.index import Group


def attention(op: Attention) -> KernelText:
    kernel = KernelText()
    q, k, v = op.inputs[:3]
    queries, keys, depth, width = q.shape[2], k.shape[2], q.shape[3], v.shape[3]
    pointers = {i: kernel.pointer(o, stem) for i, (o, stem) in enumerate(((q, "q"), (k, "k"), (v, "v")))}
    block_m = block_of(queries, 64)
    for name, block in (("BLOCK_M", block_m), ("BLOCK_N", block_of(keys, 64))):
        kernel.constexpr(name, block)
    kernel.constexpr("BLOCK_D", block_of(depth, 1 << 20))
    kernel.constexpr("BLOCK_E", block_of(width, 1 << 20))
    kernel.grid = (f"triton.cdiv({python_size(queries)}, {block_m})", python_size(product(q.shape[:2])))
    kernel.line("head = tl.program_id(1)")
    head = Running(group=Group(axes=(0, 1), extents=q.shape[:2]), name="head", is_block=False)
    m = counted(kernel, "m", "tl.program_id(0) * BLOCK_M + ", queries, "BLOCK_M", "[:, None]", 2)
    d = counted(kernel, "d", "", depth, "BLOCK_D", "", 3)
    e = counted(kernel, "e", "", width, "BLOCK_E", "[None, :]", 3)
    cast, more = dot_type(op.product, q, k)
    of_q = Space(kernel, q.shape, [head, m, turned(d, "[None, :]", 3)])
    q_block = _block(op, of_q, 0, pointers)
    kernel.line('top = tl.full([BLOCK_M], float("-inf"), tl.float32)')
    kernel.line("total = tl.zeros([BLOCK_M], tl.float32)")
    kernel.line("acc = tl.zeros([BLOCK_M, BLOCK_E], tl.float32)")
    with kernel.block(f"for start in range(0, {_end(kernel, op, keys)}, BLOCK_N):"):
        n = counted(kernel, "n", "start + ", keys, "BLOCK_N", "", 2)
        columns, rows = turned(n, "[None, :]", 3), turned(n, "[:, None]", 2)
        of_k = Space(kernel, k.shape, [head, turned(n, "[None, :]", 2), turned(d, "[:, None]", 3)])
        k_block = _block(op, of_k, 1, pointers)
        kernel.line(f"s = tl.dot({q_block}{cast}, {k_block}{cast}{more})")
        scores = Space(kernel, (*q.shape[:3], keys), [head, m, columns])
        score = Bodies(scores, op.inputs, [op.score], pointers, {0: "s"}).write(op.score, "score")
        kernel.line(f's = tl.where({columns.mask}, {score}, float("-inf"))' if columns.mask else f"s = {score}")
        kernel.line("new_top = tl.maximum(top, tl.max(s, axis=1))")
        kernel.line('base = tl.where(new_top == float("-inf"), 0.0, new_top)  # nothing seen so far')
        kernel.line("p = tl.exp(s - base[:, None])")
        kernel.line("shrink = tl.exp(top - base)")
        kernel.line("total = total * shrink + tl.sum(p, axis=1)")
        of_v = Space(kernel, v.shape, [head, rows, e])
        v_block = _block(op, of_v, 2, pointers)
        weight = cast or (f".to(tl.{TRITON_TYPES[v.dtype]})" if _alike(op) and v.dtype.bytes == 2 else "")
        kernel.line(f"acc = tl.dot(p{weight}, {v_block}{cast}, acc * shrink[:, None]{more})")
        kernel.line("top = new_top")
    kernel.line("out = acc / total[:, None]")
    if op.no_softmax is NoSoftmax.UNSEEN_ZERO:
        kernel.line('out = tl.where(top[:, None] == float("-inf"), 0.0, out)')
    if op.no_softmax is NoSoftmax.ZERO:
        kernel.line("out = tl.where(total[:, None] > 0.0, out, 0.0)  # no softmax: all is hidden, or a score is NaN")
    of_out = Space(kernel, op.output.shape, [head, m, e])
    Bodies(of_out, op.inputs, [], pointers).store(op.output, kernel.pointer(op.output, "out"), "out")
    return kernel


def _alike(op: Attention) -> bool:
    return len({o.dtype for o in op.inputs[:3]}) == 1


def _block(op: Attention, space: Space, number: int, pointers: dict[int, str]) -> str:
    """A block of q, k or v; widened only where they are not alike."""
    read = load(number, *map(axis, range(4)), dtype=op.inputs[number].dtype)
    return Bodies(space, op.inputs, [], pointers).load(read, as_stored=_alike(op), whole=(2, 3))


def _end(kernel: KernelText, op: Attention, keys: Size) -> str:
    """Behind the last key that some query of the block may see: of a causal mask, the diagonal's."""
    every = kernel.size(keys)
    mask = find_causal(op.score)
    if mask is None or not mask.hides_surely:
        return every
    diagonals = [b.offset.attr for b in mask.bounds.ends if b.query is ROW and b.offset.kind in ("const", "size")]
    if not diagonals:
        return every
    reach = int(diagonals[0]) if isinstance(diagonals[0], float) else diagonals[0]
    further = "" if reach == 1 else f" + {operand(kernel.size(reach - 1))}"
    kernel.line(f"end = tl.minimum((tl.program_id(0) + 1) * BLOCK_M{further}, {every})")
    return "end"
