"""Whether a GPU kernel is legal: the rules of `semantic_ir/check.py`, and these.

values     are single elements
memory     shared arrays are declared at the top of the body; pointers keep the kind of memory that they point to
packets    are neighbours of 16 bytes at most, a power of two of them; copies move 4, 8 or 16 bytes from global to shared memory
matrices   are a thread's own arrays of the types that their product has, which no element lies behind
fragments  are of 16-bit elements or f32 in shared memory, their sums mutable floats
functions  neither wait nor exchange: what waits for what is seen in the kernel's own body
waiting    see `synchronization.py`
warpgroups see `proofs/warpgroups.py` and `rings.py`
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.check import Checker, require
from xyntra_ep.tracea.semantic_ir.gpu.fragment_nodes import DTYPES as FRAGMENT_TYPES
from xyntra_ep.tracea.semantic_ir.gpu.fragment_nodes import FragmentDot, LoadFragments
from xyntra_ep.tracea.semantic_ir.gpu.matrix_dot import MatrixDot, TakePacket
from xyntra_ep.tracea.semantic_ir.gpu.nodes import (
    COPY_BYTES,
    PACKET_BYTES,
    SHARED_ALIGNMENT,
    AsyncCommit,
    AsyncCopy,
    AsyncWait,
    Barrier,
    LoadPacket,
    SharedArray,
    Slot,
    StorePacket,
    SubgroupXor,
)
from xyntra_ep.tracea.semantic_ir.gpu.proofs.synchronization import check_waiting
from xyntra_ep.tracea.semantic_ir.gpu.proofs.warpgroups import WARPGROUP_STATEMENTS, WarpgroupRules
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_nodes import Roles
from xyntra_ep.tracea.semantic_ir.nodes import (
    BLOCK,
    THREAD,
    Array,
    Const,
    Elem,
    Function,
    Kernel,
    Offset,
    Pointer,
    PointerType,
    Prefetch,
    Rvalue,
    Space,
    Statement,
    Var,
    f32,
    i32,
    loaded_type,
)

MAX_THREADS = 1024


class GpuChecker(Checker):
    """See the module's docstring."""

    positions = (BLOCK, THREAD)
    arrays_in = Space.PRIVATE

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0
        self._in_function = False
        self._slots: dict[str, int] = {}
        self._own: dict[str, int] = {}  # elements of a thread's own arrays
        self._warpgroups: WarpgroupRules
        self._rules[SubgroupXor] = self._subgroup_xor

    def kernel(self, kernel: Kernel) -> None:
        require(0 < kernel.threads <= MAX_THREADS, "a block of {} threads", kernel.threads)
        require(kernel.cluster == 1 or isinstance(kernel.body[-1], Roles), "a cluster of blocks that have no roles")
        self._warpgroups = WarpgroupRules(kernel, self._value, self._pointer, self._block, lambda name: name in self._mutable)
        super().kernel(kernel)
        check_waiting(kernel)

    def _function(self, function: Function) -> None:
        self._in_function = True
        shared = [v.name for v in function.arguments if isinstance(v.vtype, PointerType) and v.vtype.space is Space.SHARED]
        require(not shared, "function {} takes shared memory", function.name)
        super()._function(function)
        self._in_function = False

    def _block(self, statements: Sequence[Statement]) -> None:
        self._depth += 1
        super()._block(statements)
        self._depth -= 1

    def _value(self, e: Rvalue) -> None:
        super()._value(e)
        require(e.type.lanes <= 1, "a thread's value has one element, not {}", e.type.lanes)

    def _statement(self, s: Statement) -> None:
        if isinstance(s, WARPGROUP_STATEMENTS):
            self._not_in_function()
            self._warpgroups.statement(s)
            return
        match s:
            case SharedArray():
                self._shared_array(s)
            case Barrier() | AsyncCommit():
                self._not_in_function()
            case AsyncWait():
                self._not_in_function()
                require(s.pending >= 0, "{} groups cannot be pending", s.pending)
            case AsyncCopy():
                self._async_copy(s)
            case LoadPacket():
                kind = self._packet(s.pointer, s.index, len(s.variables))
                for var in s.variables:
                    require(var.type == loaded_type(kind.dtype, 1), "{} of a packet of {}", var.type, kind.dtype)
                    self._define(var)
            case StorePacket():
                self._store_packet(s)
            case LoadFragments():
                self._load_fragments(s)
            case FragmentDot():
                self._fragment_dot(s)
            case TakePacket():
                self._take_packet(s)
            case MatrixDot():
                self._matrix_dot(s)
            case Array():
                super()._statement(s)
                self._own[s.var.name] = s.count
            case Prefetch():
                require(False, "a prefetch is for CPUs")
            case _:
                super()._statement(s)

    def _not_in_function(self) -> None:
        require(not self._in_function, "a function waits or exchanges")

    def _shared_array(self, s: SharedArray) -> None:
        require(self._depth == 1 and not self._in_function, "shared memory is declared at the top of the kernel")
        require(s.count > 0 and s.slots > 0, "an array must have elements")
        require(s.alignment % PACKET_BYTES == 0 and SHARED_ALIGNMENT % s.alignment == 0, "an alignment of {}", s.alignment)
        fits = s.var.vtype == PointerType(s.dtype, writable=True, space=Space.SHARED)
        require(fits, "an array's name must be a writable pointer to its type")
        require(s.count * s.dtype.bytes % PACKET_BYTES == 0 or s.slots == 1, "slots of {} are not aligned", s.count)
        self._slots[s.var.name] = s.slots
        self._define(s.var)

    def _pointer(self, pointer: Pointer) -> PointerType:
        kind = super()._pointer(pointer)
        if kind.space is Space.SHARED:
            part = pointer
            while not isinstance(part, (Slot, Var)):
                part = part.pointer
            one = isinstance(part, Slot) or self._slots.get(part.name) == 1
            require(one, "an array of several slots is used without saying which")
        return kind

    def _packet(self, pointer: Pointer, index: Rvalue, count: int) -> PointerType:
        kind = self._pointer(pointer)
        self._index(index, "an address")
        require(count > 1 and count & (count - 1) == 0, "a packet of {}", count)
        require(count * kind.dtype.bytes <= PACKET_BYTES, "a packet of {} {}", count, kind.dtype)
        return kind

    def _store_packet(self, s: StorePacket) -> None:
        kind = self._packet(s.pointer, s.index, len(s.values))
        require(kind.writable, "a store needs a writable pointer")
        for value in s.values:
            self._value(value)
            integers = Elem.F32 not in (value.type.elem, loaded_type(kind.dtype, 1).elem)
            fits = integers or value.type.elem is loaded_type(kind.dtype, 1).elem
            require(fits, "{} is stored as {}", value.type.elem, kind.dtype)

    def _async_copy(self, s: AsyncCopy) -> None:
        self._not_in_function()
        target, source = self._pointer(s.target), self._pointer(s.source)
        self._index(s.target_index, "an address")
        self._index(s.source_index, "an address")
        if s.valid is not None:
            self._index(s.valid, "a count")
        require((target.space, source.space) == (Space.SHARED, Space.GLOBAL), "a copy from {} to {}", source.space, target.space)
        require(target.dtype is source.dtype, "a copy from {} to {}", source.dtype, target.dtype)
        require(s.count * target.dtype.bytes in COPY_BYTES, "a copy of {} {}", s.count, target.dtype)

    def _load_fragments(self, s: LoadFragments) -> None:
        self._not_in_function()
        kind = self._pointer(s.pointer)
        self._index(s.index, "an address")
        require(kind.space is Space.SHARED and kind.dtype in FRAGMENT_TYPES, "fragments of {} {}", kind.space, kind.dtype)
        require(kind.dtype.bytes == 2 or not s.transposed, "fragments of {} are turned round", kind.dtype)
        require(len(s.variables) == 4 and all(v.type == i32(1) for v in s.variables), "fragments are four i32")
        for var in s.variables:
            self._define(var)

    def _fragment_dot(self, s: FragmentDot) -> None:
        self._not_in_function()
        require((len(s.c), len(s.a), len(s.b)) == (4, 4, 2), "a product of fragments has 4, 4 and 2 values")
        require(s.dtype in FRAGMENT_TYPES, "a product of {}", s.dtype)
        for value in (*s.c, *s.a, *s.b):
            self._value(value)
        sums = all(v.type == f32(1) and v.name in self._mutable for v in s.c)
        require(sums and all(v.type == i32(1) for v in (*s.a, *s.b)), "fragments are i32, their sums mutable f32")

    def _take_packet(self, s: TakePacket) -> None:
        source = self._packet(s.pointer, s.index, s.count)
        require(source.space is not Space.PRIVATE, "a packet is taken from {} memory", source.space)
        self._own_array(s.target, source.dtype, s.count)

    def _matrix_dot(self, s: MatrixDot) -> None:
        self._not_in_function()
        shape = s.shape
        for part, of, dtype in ((s.c, shape.c, DType.F32), (s.a, shape.a, shape.dtype), (s.b, shape.b, shape.dtype)):
            self._own_array(part, dtype, shape.held(of))

    def _own_array(self, pointer: Pointer, dtype: DType, count: int) -> None:
        """``count`` elements from a place on that is a number are in the array."""
        kind, at = self._pointer(pointer), 0
        while isinstance(pointer, Offset):
            require(isinstance(pointer.index, Const), "a place in a thread's own array that is no number")
            assert isinstance(pointer.index, Const)
            at, pointer = at + int(pointer.index.value), pointer.pointer
        require(kind.space is Space.PRIVATE and kind.writable, "no array of the thread's own")
        require(kind.dtype is dtype, "an array of {} where {} is wanted", kind.dtype, dtype)
        require(at >= 0 and at + count <= self._own[pointer.name], "{} has no {} elements from {} on", pointer.name, count, at)

    def _subgroup_xor(self, e: SubgroupXor) -> None:
        self._not_in_function()
        self._value(e.value)
        require(0 < e.mask < 64, "a subgroup has no bit {}", e.mask)  # of the largest there is
