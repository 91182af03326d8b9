"""A GPU in numpy: carries out the semantic IR of a kernel, all threads of a block at a time, and watches what they do.

It needs no device and no text, so it runs what only the text for CUDA says otherwise (exchange between registers, asynchronous
copies), and it sees what no device shows: an element outside of its buffer, shared memory that another thread wrote, or still
reads, since the last barrier, an element that two threads write, an access that is not aligned, an index beyond 32 bits, a wait
that not all threads reach. ``bank_conflicts`` are counted over all accesses of whole warps to shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.tracea.core_ir.dtypes import DType, from_float64, to_float64
from xyntra_ep.tracea.semantic_ir.gpu.banks import WARP, conflicts
from xyntra_ep.tracea.semantic_ir.gpu.fragment_nodes import ROW_BYTES, FragmentDot, LoadFragments, depth_of
from xyntra_ep.tracea.semantic_ir.gpu.lane_map import LaneMap
from xyntra_ep.tracea.semantic_ir.gpu.matrix_dot import MatrixDot, TakePacket
from xyntra_ep.tracea.semantic_ir.gpu.nodes import (
    AsyncCommit,
    AsyncCopy,
    AsyncWait,
    Barrier,
    LoadPacket,
    SharedArray,
    StorePacket,
    SubgroupXor,
)
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_nodes import Roles
from xyntra_ep.tracea.semantic_ir.nodes import (
    COMPARE,
    Array,
    Assign,
    Binary,
    Bitcast,
    CallValue,
    Comment,
    Const,
    Convert,
    Elem,
    Fma,
    For,
    Gather,
    If,
    Kernel,
    Let,
    Load,
    Offset,
    Pointer,
    PointerType,
    Return,
    Rvalue,
    Select,
    Statement,
    Store,
    Type,
    Unary,
    Var,
)

Values = NDArray[Any]
_NUMPY: dict[Elem, Any] = {Elem.F32: np.float32, Elem.I32: np.int32, Elem.I64: np.int64}
_NOBODY = -1


class SimulatedGpu:
    """Runs launches one after the other; buffers are flat arrays of bytes that kernels change."""

    def __init__(self) -> None:
        self.bank_conflicts = 0

    def launch(
        self,
        kernel: Kernel,
        blocks: int,
        buffers: Sequence[NDArray[np.uint8]],
        params: Sequence[int],
        tensors: Sequence[Tensor] = (),
    ) -> None:
        memories = {
            b.name: Memory(b.name, b.dtype, data.view(b.dtype.numpy)) for b, data in zip(kernel.buffers, buffers, strict=True)
        }
        with np.errstate(all="ignore"):
            assert blocks % kernel.cluster == 0, "a launch is of whole clusters"
            for first in range(0, blocks, kernel.cluster):
                cluster = []
                for block in range(first, first + kernel.cluster):
                    running = Block(kernel, block, memories, dict(zip(kernel.params, params, strict=True)))
                    running.tensors = dict(zip((m.name for m in kernel.maps), tensors, strict=True))
                    running.run()
                    cluster.append(running)
                if isinstance(roles := kernel.body[-1], Roles):
                    from tests.support.gpu.warpgroups import take_roles  # which builds on this module

                    take_roles(cluster, roles)
                self.bank_conflicts += sum(running.bank_conflicts for running in cluster)


@dataclass(slots=True)
class Tensor:
    """What a launch says of a tensor: elements of a buffer, the contiguous axis first; strides in elements, the first is 1."""

    data: NDArray[Any]
    offset: int
    extents: Sequence[int]
    strides: Sequence[int]
    box: Sequence[int]

    def __post_init__(self) -> None:
        size = self.data.dtype.itemsize
        assert self.offset * size % 16 == 0 and all(s * size % 16 == 0 for s in self.strides[1:]), "a tensor is not aligned"
        assert all(extent >= 1 for extent in self.extents) and len(self.extents) == len(self.box) <= 5

    def boxed(self, at: Sequence[int]) -> NDArray[np.uint16]:
        """The box from ``at`` on, [rows, elements of a row]; 0 outside of the tensor."""
        axes = np.meshgrid(*(np.arange(n) + first for n, first in zip(self.box, at, strict=True)), indexing="ij")
        inside = np.logical_and.reduce([(x >= 0) & (x < extent) for x, extent in zip(axes, self.extents, strict=True)])
        where = np.asarray(self.offset + sum(x * stride for x, stride in zip(axes, self.strides, strict=True)))
        assert (where[inside] < self.data.size).all(), "a tensor ends behind its buffer"
        found = np.where(inside, self.data.view(np.uint16)[np.where(inside, where, 0)], 0)
        return found.T.reshape(-1, self.box[0])


class Memory:
    """Elements of one buffer or array, and who touched them. ``own``: how many each thread has to itself, one after the other;
    ``epoch`` counts the barriers that shared memory has seen."""

    def __init__(self, name: str, dtype: DType, data: Values, shared: bool = False, own: int = 0) -> None:
        self.name = name
        self.dtype = dtype
        self.data = data
        self.shared = shared
        self.own = own
        self.epoch = 0
        self._writer = np.full(data.size, _NOBODY, dtype=np.int64)
        self._written = np.full(data.size, _NOBODY, dtype=np.int64)  # in which epoch
        self._reader = np.full(data.size, _NOBODY, dtype=np.int64)
        self._read = np.full(data.size, _NOBODY, dtype=np.int64)

    def _check(self, at: Values) -> None:
        outside = at[(at < 0) | (at >= self.data.size)]
        assert not outside.size, f"{self.name} has {self.data.size} elements, {outside[0]} is used"

    def raw(self, at: Values, thread: Values) -> Values:
        """Elements as they are stored."""
        self._check(at)
        if self.shared:
            assert (self._written[at] != _NOBODY).all(), f"{self.name} is read where nobody has written"
            early = (self._written[at] == self.epoch) & (self._writer[at] != thread)
            assert not early.any(), f"{self.name}[{at[early][0]}] is read before a barrier follows its writing"
            several = (self._read[at] == self.epoch) & (self._reader[at] != thread)
            self._reader[at] = np.where(several, -2, thread)
            many, count = np.unique(at, return_counts=True)
            self._reader[many[count > 1]] = -2
            self._read[at] = self.epoch
        return self.data[at]

    def put(self, at: Values, stored: Values, thread: Values) -> None:
        """Write elements as they are stored."""
        self._check(at)
        assert np.unique(at).size == at.size, f"two threads write the same element of {self.name}"
        if self.shared:
            late = (self._read[at] == self.epoch) & (self._reader[at] != thread)
            assert not late.any(), f"{self.name}[{at[late][0]}] is written before a barrier follows its reading"
        other = (self._written[at] == self.epoch) & (self._writer[at] != thread)
        assert not other.any(), f"two threads write {self.name}[{at[other][0]}]"
        self._writer[at], self._written[at] = thread, self.epoch
        self.data[at] = stored

    def widened(self, stored: Values) -> Values:
        wide = to_float64(stored, self.dtype)
        if self.dtype is DType.BOOL:
            return -wide.astype(np.int32)
        return wide.astype(np.float32) if self.dtype.is_float else wide

    def narrowed(self, values: Values) -> Values:
        if self.dtype is DType.BOOL:
            return (values & 1).astype(np.bool_)
        return from_float64(values, self.dtype)


class Block:
    """The threads of one block. ``tensors``: those of the launch, by the names of the kernel's maps."""

    tensors: dict[str, Tensor]

    def __init__(self, kernel: Kernel, block: int, buffers: dict[str, Memory], params: dict[str, int]) -> None:
        n = kernel.threads
        self.bank_conflicts = 0
        self._kernel = kernel
        self.number = block
        self._threads = np.arange(n)
        self._number = block * n + self._threads  # of a thread in the launch
        self._active = np.ones(n, dtype=np.bool_)
        self._group = self._active  # who comes by together, if nothing parts them
        self.memories = dict(buffers)
        whole = {**params, "block": block}
        self._names: dict[str, Values] = {name: np.full(n, value, dtype=np.int64) for name, value in whole.items()}
        self._names["thread"] = self._threads.astype(np.int64)

    def run(self) -> None:
        self._body(self._kernel.body)

    # -- statements

    def _body(self, statements: Sequence[Statement]) -> None:
        for s in statements:
            self._statement(s)

    def _statement(self, s: Statement) -> None:
        match s:
            case Let():
                self._names[s.var.name] = self._full(self._value(s.value), s.var.type)
            case Assign():
                value = self._full(self._value(s.value), s.var.type)
                self._names[s.var.name] = np.where(self._active, value, self._names[s.var.name])
            case Store():
                here = self._active if s.count is None else self._active & (self._value(s.count) > 0)
                self._store(s.pointer, self._value(s.index), [self._value(s.value)], here)
            case StorePacket():
                self._store(s.pointer, self._value(s.index), [self._value(v) for v in s.values], self._active)
            case LoadPacket():
                loaded = self._load(s.pointer, self._value(s.index), len(s.variables), self._active)
                for var, value in zip(s.variables, loaded, strict=True):
                    self._names[var.name] = value
            case AsyncCopy():
                self._copy(s)
            case LoadFragments():
                self._load_fragments(s)
            case FragmentDot():
                self._fragment_dot(s)
            case TakePacket():
                self._take_packet(s)
            case MatrixDot():
                self._matrix_dot(s)
            case For():
                self._loop(s)
            case If():
                self._branch(s)
            case SharedArray():
                data = np.zeros(s.slots * s.count, dtype=s.dtype.numpy)
                self.memories[s.var.name] = Memory(s.var.name, s.dtype, data, shared=True)
            case Array():
                data = np.zeros(s.count * self._threads.size, dtype=s.dtype.numpy)
                self.memories[s.var.name] = Memory(s.var.name, s.dtype, data, own=s.count)
            case Barrier() | AsyncCommit() | AsyncWait():
                assert self._active.all(), "not all threads come by"
                if isinstance(s, Barrier):
                    for memory in self.memories.values():
                        memory.epoch += memory.shared
            case Comment():
                pass
            case Roles():  # are taken by all blocks of a cluster together, when they have come so far
                pass
            case _:
                raise AssertionError(f"no meaning for {s}")

    def _loop(self, s: For) -> None:
        before, step = self._active, self._value(s.step)
        self._names[s.var.name] = self._full(self._value(s.begin), s.var.type)
        while True:
            self._active = before & (self._names[s.var.name] < self._value(s.end))
            if not self._active.any():
                break
            self._body(s.body)
            self._names[s.var.name] = self._names[s.var.name] + step
        self._active = before

    def _branch(self, s: If) -> None:
        before, condition = self._active, self._value(s.condition) != 0
        for body, here in ((s.then, before & condition), (s.otherwise, before & ~condition)):
            self._active = here
            if here.any():
                self._body(body)
        self._active = before

    # -- memory

    def _place(self, pointer: Pointer, at: Values) -> tuple[Memory, Values]:
        while isinstance(pointer, Offset):
            at = at + self._value(pointer.index)
            pointer = pointer.pointer
        memory = self.memories[pointer.name]
        return memory, np.broadcast_to(at + self._threads * memory.own if memory.own else at, self._threads.shape)

    def _count_conflicts(self, memory: Memory, at: Values, count: int, here: Values) -> None:
        if memory.shared:
            for first in range(0, self._threads.size, WARP):
                warp = slice(first, first + WARP)
                if here[warp].all():
                    self.bank_conflicts += conflicts((at[warp] * memory.dtype.bytes).tolist(), count * memory.dtype.bytes)

    def _reach(self, pointer: Pointer, at: Values, count: int, here: Values) -> tuple[Memory, Values]:
        memory, at = self._place(pointer, at)
        assert not (at[here] % count).any(), f"{count} elements of {memory.name} are not aligned"
        self._count_conflicts(memory, at, count, here)
        return memory, at

    def _load(self, pointer: Pointer, at: Values, count: int, here: Values) -> list[Values]:
        memory, at = self._reach(pointer, at, count, here)
        loaded = []
        for i in range(count):
            some = memory.widened(memory.raw(at[here] + i, self._threads[here]))
            value = np.zeros(self._threads.shape, dtype=some.dtype)
            value[here] = some
            loaded.append(value)
        return loaded

    def _store(self, pointer: Pointer, at: Values, values: Sequence[Values], here: Values) -> None:
        memory, at = self._reach(pointer, at, len(values), here)
        who = self._threads if memory.shared else self._number
        for i, value in enumerate(values):
            memory.put(at[here] + i, memory.narrowed(np.broadcast_to(value, here.shape)[here]), who[here])

    def _copy(self, s: AsyncCopy) -> None:
        source, source_at = self._reach(s.source, self._value(s.source_index), s.count, self._active)
        target, target_at = self._reach(s.target, self._value(s.target_index), s.count, self._active)
        valid = np.broadcast_to(s.count if s.valid is None else self._value(s.valid), self._active.shape)
        for i in range(s.count):
            moved = np.zeros(self._threads.size, dtype=source.data.dtype)
            some = self._active & (valid > i)
            moved[some] = source.raw(source_at[some] + i, self._threads[some])
            target.put(target_at[self._active] + i, moved[self._active], self._threads[self._active])

    # -- fragments

    def _load_fragments(self, s: LoadFragments) -> None:
        assert self._active.all(), "not all threads of the warp come by"
        kind, t = s.pointer.vtype, self._threads
        assert isinstance(kind, PointerType)
        many = ROW_BYTES // kind.dtype.bytes
        memory, at = self._reach(s.pointer, self._value(s.index), many, self._active)
        # Read as a row a thread, then handed out: [warp, matrix, row, column].
        rows = np.stack([memory.raw(at + i, t) for i in range(many)], axis=1).view(np.uint16)
        matrices = rows.reshape(-1, 4, 8, 8)
        if s.transposed:
            assert kind.dtype.bytes == 2, "only elements of 16 bits are turned round"
            matrices = matrices.transpose(0, 1, 3, 2)
        warp, row, column = t // WARP, t % WARP // 4, t % 4 * 2
        for j, var in enumerate(s.variables):
            low, high = (matrices[warp, j, row, column + i].astype(np.uint32) for i in (0, 1))
            self._names[var.name] = (low | high << 16).view(np.int32)

    def _fragment_dot(self, s: FragmentDot) -> None:
        assert self._active.all(), "not all threads of the warp come by"
        t = self._threads
        depth, together = depth_of(s.dtype), 4 // s.dtype.bytes
        warp, row, place = t // WARP, t % WARP // 4, t % 4 * together
        a, b = np.zeros((t.size // WARP, 16, depth)), np.zeros((t.size // WARP, depth, 8))
        for j, value in enumerate(s.a):
            for i, part in enumerate(_elements(self._value(value), s.dtype)):
                a[warp, row + 8 * (j % 2), place + i + depth // 2 * (j // 2)] = part
        for j, value in enumerate(s.b):
            for i, part in enumerate(_elements(self._value(value), s.dtype)):
                b[warp, place + i + depth // 2 * j, row] = part
        product = a @ b
        for j, var in enumerate(s.c):
            total = self._names[var.name] + product[warp, row + 8 * (j // 2), t % 4 * 2 + j % 2]
            self._names[var.name] = total.astype(np.float32)

    # -- matrices

    def _take_packet(self, s: TakePacket) -> None:
        source, at = self._reach(s.pointer, self._value(s.index), s.count, self._active)
        target, to = self._place(s.target, np.zeros(1, np.int64))
        here = self._active
        for i in range(s.count):
            target.put(to[here] + i, source.raw(at[here] + i, self._threads[here]), self._number[here])

    def _matrix_dot(self, s: MatrixDot) -> None:
        """By the maps of the shape alone, in float64. Lanes that should hold the same element do."""
        shape, t = s.shape, self._threads
        warps = t.reshape(-1, shape.lanes)
        assert self._active.all(), "not all threads of the warp come by"

        def matrix(pointer: Pointer, of: LaneMap, rows: str, columns: str) -> Values:
            memory, first = self._place(pointer, np.zeros(1, np.int64))
            found = np.full((len(warps), of.extent(rows), of.extent(columns)), np.nan)
            for i in range(shape.held(of)):
                elements = memory.widened(memory.raw(first + i, t)).astype(np.float64).reshape(warps.shape)
                if shape.rounded and of is not shape.c:
                    bits = elements.astype(np.float32).view(np.uint32)[~np.isnan(elements)]
                    assert not (bits & 0x1FFF).any(), "an element that is not rounded"
                for lane in range(shape.lanes):
                    place = shape.place(of, lane, i)
                    known = found[:, place[rows], place[columns]]
                    same = (known == elements[:, lane]) | np.isnan(known) | np.isnan(elements[:, lane])
                    assert same.all(), "lanes that hold the same element do not"
                    found[:, place[rows], place[columns]] = elements[:, lane]
            return found

        sums = matrix(s.c, shape.c, "m", "n") + matrix(s.a, shape.a, "m", "k") @ matrix(s.b, shape.b, "k", "n")
        memory, first = self._place(s.c, np.zeros(1, np.int64))
        for i in range(shape.held(shape.c)):
            places = [shape.place(shape.c, lane, i) for lane in range(shape.lanes)]
            mine = sums[:, [p["m"] for p in places], [p["n"] for p in places]].reshape(-1)
            memory.put(first + i, memory.narrowed(mine.astype(np.float32)), self._number)

    # -- values

    def _full(self, value: Values, kind: Type) -> Values:
        return np.asarray(np.broadcast_to(value, self._threads.shape).astype(_NUMPY[kind.elem]))

    def _value(self, e: Rvalue) -> Values:
        match e:
            case Const():
                return np.asarray(e.value, dtype=_NUMPY[e.ctype.elem])
            case Var():
                return self._names[e.name]
            case Unary():
                return _unary(e.op, self._value(e.a))
            case Binary():
                value = _binary(e.op, self._value(e.a), self._value(e.b), e.a.type)
                if e.type.lanes == 0:
                    whole = np.broadcast_to(value, self._active.shape)[self._active]
                    assert (np.abs(whole) < 2**31).all(), "an index is beyond 32 bits"
                return value
            case Fma():
                a, b, c = (self._value(x).astype(np.float64 if e.type.elem is Elem.F32 else np.int64) for x in (e.a, e.b, e.c))
                return np.asarray(a * b + c, dtype=_NUMPY[e.type.elem])
            case Select():
                return np.where(self._value(e.mask) != 0, self._value(e.a), self._value(e.b))
            case Convert():
                return np.asarray(self._value(e.a).astype(_NUMPY[e.to.elem]))
            case Bitcast():
                return np.asarray(self._full(self._value(e.a), e.a.type).view(_NUMPY[e.to.elem]))
            case Load():
                here = self._active if e.count is None else self._active & (self._value(e.count) > 0)
                return self._load(e.pointer, self._value(e.index), 1, here)[0]
            case Gather():
                return self._load(e.pointer, self._value(e.index), 1, self._active)[0]
            case SubgroupXor():
                assert (self._active == self._group).all(), "not all threads exchange values"
                return np.asarray(self._full(self._value(e.value), e.type)[self._threads ^ e.mask])
            case CallValue():
                return self._call(e)
        raise AssertionError(f"no meaning for {e}")

    def _call(self, e: CallValue) -> Values:
        given = {v.name: self._value(a) for v, a in zip(e.function.arguments, e.args, strict=True)}
        outside, self._names = self._names, given
        *body, last = e.function.body
        assert isinstance(last, Return)
        self._body(body)
        result = self._value(last.value)
        self._names = outside
        return result


def _elements(words: Values, dtype: DType) -> list[Values]:
    """The two 16-bit floats in each i32, or the one tf32."""
    bits = words.view(np.uint32)
    if dtype is DType.F32:
        elements = words.view(np.float32)
        assert not (bits[~np.isnan(elements)] & 0x1FFF).any(), "an element that is not rounded"
        return [elements.astype(np.float64)]
    return [to_float64((bits >> shift & 0xFFFF).astype(np.uint16).view(dtype.numpy), dtype) for shift in (0, 16)]


def _unary(op: str, a: Values) -> Values:
    if op in ("neg", "not", "abs"):
        whole: dict[str, Any] = {"neg": np.negative, "not": np.invert, "abs": np.abs}
        return np.asarray(whole[op](a))
    if op == "round_f16":
        return a.astype(np.float16).astype(np.float32)
    name = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}
    function = getattr(np, name.get(op, op))
    return np.asarray(function(a.astype(np.float64)), dtype=np.float32)


def _binary(op: str, a: Values, b: Values, kind: Type) -> Values:
    if op in COMPARE:
        relations: dict[str, Any] = {"lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal}
        holds = relations[op](a, b)
        return np.asarray(holds, dtype=np.int64) if kind.lanes == 0 else -np.asarray(holds, dtype=np.int32)
    if op in ("min", "max"):
        return np.where(a < b if op == "min" else a > b, a, b)
    if op in ("div", "mod") and kind.elem is not Elem.F32:
        safe = np.where(b == 0, 1, b)
        quotient = np.where(b == 0, 0, np.sign(a) * np.sign(safe) * (np.abs(a) // np.abs(safe)))
        return quotient if op == "div" else np.where(b == 0, 0, a - quotient * b)
    table: dict[str, Any] = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "and": np.bitwise_and, "or": np.bitwise_or,
        "xor": np.bitwise_xor, "shl": np.left_shift, "shr": np.right_shift, "pow": np.power, "fmod": np.fmod,
    }  # fmt: skip
    return np.asarray(table[op](a, b))
