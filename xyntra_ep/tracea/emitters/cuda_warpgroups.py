"""CUDA text for kernels whose warpgroups have roles (sm_90a): mbarriers, tensor copies and products out of shared memory, by PTX.

Instructions and the bits of a matrix descriptor are those of the PTX ISA: "mbarrier", "cp.async.bulk.tensor", "wgmma.mma_async",
"Matrix-Descriptor Format", "setmaxnreg".
"""

from __future__ import annotations

from xyntra_ep.tracea.emitters.gpu_c import Dialect, GpuPrinter
from xyntra_ep.tracea.runtime.kernel_source import Definitions
from xyntra_ep.tracea.semantic_ir.gpu.nodes import SharedArray
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_nodes import (
    ROW_BYTES,
    SWIZZLED_ROWS,
    WARPGROUP,
    Arrive,
    CopyTensor,
    ExpectBytes,
    Once,
    Role,
    Roles,
    SharedMatrix,
    WaitAt,
    WarpgroupCommit,
    WarpgroupDot,
    WarpgroupFence,
    WarpgroupWait,
)
from xyntra_ep.tracea.semantic_ir.nodes import Kernel, Statement

_DEVICE = "static __device__ __forceinline__"
_SHARED = '"r"((unsigned)__cvta_generic_to_shared({}))'
_REGISTERS = 65536  # of a multiprocessor, which a block of roles has to itself
_GROUP = SWIZZLED_ROWS * ROW_BYTES  # bytes from one swizzled group of rows to the next
_UNUSED = 16  # the distance of panels where there is one
_UNIT = 16  # bytes, of a descriptor's addresses


_MEET = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"  # all threads of a cluster


def _on_mbarrier(name: str, arguments: str, text: str, more: str = "") -> str:
    return f'{_DEVICE} void {name}(void *at{arguments}) {{ asm volatile("{text}" :: {_SHARED.format("at")}{more} : "memory"); }}'


TENSOR_MAP = "xy_tensor_map"
WARPGROUP_HELPERS = {
    TENSOR_MAP: "struct __align__(64) xy_tensor_map { unsigned long long words[16]; };",  # CUtensorMap
    "xy_mbarrier_init(": _on_mbarrier(
        "xy_mbarrier_init", ", int arrivals", "mbarrier.init.shared::cta.b64 [%0], %1;", ', "r"(arrivals)'
    ),
    "xy_mbarriers_ready(": f"{_DEVICE} void xy_mbarriers_ready() "
    '{ asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory"); }',
    "xy_expect(": _on_mbarrier(
        "xy_expect", ", int bytes", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;", ', "r"(bytes)'
    ),
    "xy_arrive(": _on_mbarrier("xy_arrive", "", "mbarrier.arrive.shared::cta.b64 _, [%0];"),
    # Who arrives has read, and written nothing: its products are complete. With .release.cluster the assembler puts a fence of
    # the whole GPU before each arrival, which cost 40 % of a product's speed (H100).
    "xy_arrive_at(": f"{_DEVICE} void xy_arrive_at(int block, void *at) "
    '{ asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; '
    f'mbarrier.arrive.shared::cluster.b64 _, [there]; }}" :: {_SHARED.format("at")}, "r"(block) : "memory"); }}',
    "xy_meet_cluster(": f'{_DEVICE} void xy_meet_cluster() {{ asm volatile("{_MEET}" ::: "memory"); }}',
    "xy_passed(": f"{_DEVICE} int xy_passed(void *at, int parity) "
    '{ int passed; asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }" '
    f': "=r"(passed) : {_SHARED.format("at")}, "r"(parity) : "memory"); return passed; }}',
    # What all threads of a warp have: the compiler cannot see that they agree, and descriptors are in registers of whole warps.
    "xy_of_warp(": f"{_DEVICE} int xy_of_warp(int v) {{ return __shfl_sync(0xffffffffu, v, 0); }}",
    "xy_matrix(": f"{_DEVICE} unsigned long long xy_matrix(const void *at, int apart) "
    "{ const unsigned long long address = __cvta_generic_to_shared(at); "
    f"return (address & 0x3ffff) / {_UNIT} | (unsigned long long)(apart / {_UNIT}) << 16 "
    f"| {_GROUP // _UNIT}ull << 32 | 1ull << 62; }}",
}


def _copy_helper(name: str, axes: int, blocks: int) -> str:
    """``blocks``: of a cluster, to all of which it goes."""
    at = [f"x{i}" for i in range(axes)]
    everywhere, more = (".multicast::cluster", f', %{axes + 3};" :: ') if blocks > 1 else ("", ';" :: ')
    mask = f', "h"((unsigned short){(1 << blocks) - 1})' if blocks > 1 else ""
    places = ", ".join(f"%{i + 3}" for i in range(axes))
    coordinates = ", ".join(f'"r"({x})' for x in at)
    return (
        f"{_DEVICE} void {name}(void *to, const xy_tensor_map &map, void *at, {', '.join(f'int {x}' for x in at)}) "
        f'{{ asm volatile("cp.async.bulk.tensor.{axes}d.shared::cluster.global.mbarrier::complete_tx::bytes{everywhere} '
        f'[%0], [%1, {{{places}}}], [%2]{more}{_SHARED.format("to")}, "l"(&map), {_SHARED.format("at")}, '
        f'{coordinates}{mask} : "memory"); }}'
    )


def _dot_helper(name: str, s: WarpgroupDot) -> str:
    sums = [f"c{i}" for i in range(len(s.c))]
    shared = isinstance(s.a, SharedMatrix)
    first = ["a"] if shared else [f"a{i}" for i in range(4)]
    of = [f"%{i}" for i in range(len(sums) + len(first) + 1)]
    registers, (*a, b) = ", ".join(of[: len(sums)]), of[len(sums) :]
    turned = [str(int(m.across)) for m in s.matrices]
    outputs = ", ".join(f'"{"=" if s.fresh else "+"}f"({c})' for c in sums)
    inputs = ", ".join([*(f'"{"l" if shared else "r"}"({x})' for x in first), '"l"(b)'])
    arguments = [*(f"{'unsigned long long' if shared else 'int'} {x}" for x in first), "unsigned long long b"]
    return (
        f"{_DEVICE} void {name}({', '.join([*arguments, *(f'float &{c}' for c in sums)])}) "
        f'{{ asm volatile("{{ .reg .pred p; setp.{"ne" if s.fresh else "eq"}.u32 p, 0, 0; '
        f"wgmma.mma_async.sync.aligned.m64n{s.columns}k16.f32.{s.dtype}.{s.dtype} "
        f'{{{registers}}}, {a[0] if shared else "{" + ", ".join(a) + "}"}, {b}, p, 1, 1, {", ".join(turned)}; }}" '
        f": {outputs} : {inputs}); }}"
    )


def _wait_helper(name: str, pending: int, count: int) -> str:
    """The sums are named so that nothing that uses them comes before it."""
    sums = [f"c{i}" for i in range(count)]
    outputs = ", ".join(f'"+f"({c})' for c in sums)
    return (
        f"{_DEVICE} void {name}({', '.join(f'float &{c}' for c in sums)}) "
        f'{{ asm volatile("wgmma.wait_group.sync.aligned {pending};" : {outputs} :: "memory"); }}'
    )


class CudaPrinter(GpuPrinter):
    """A GpuPrinter that knows warpgroups."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        self._arrays: dict[str, SharedArray] = {}
        self._first = 0  # thread of the role that is printed
        self._cluster = 1  # blocks

    def kernel(self, kernel: Kernel) -> Definitions:
        self._cluster = kernel.cluster
        return super().kernel(kernel)

    def _statement(self, s: Statement, depth: int) -> None:
        match s:
            case SharedArray():
                self._arrays[s.var.name] = s
                super()._statement(s, depth)
            case Roles():
                self._roles(s, depth)
            case Once():
                self._line(depth, f"if (thread == {self._first}) {{")
                self.block(s.body, depth + 1)
                self._line(depth, "}")
            case ExpectBytes():
                self._say(depth, f"xy_expect({self.address(s.mbarrier)}, {s.bytes});")
            case Arrive():
                self._arrive(s, depth)
            case WaitAt():
                self._say(depth, f"while (!xy_passed({self.address(s.mbarrier)}, {self.expr(s.parity)})) {{}}")
            case CopyTensor():
                self._copy_tensor(s, depth)
            case WarpgroupDot():
                self._dot(s, depth)
            case WarpgroupFence():
                self._line(depth, 'asm volatile("wgmma.fence.sync.aligned;" ::: "memory");')
            case WarpgroupCommit():
                self._line(depth, 'asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");')
            case WarpgroupWait():
                self._wait(s, depth)
            case _:
                super()._statement(s, depth)

    def _roles(self, s: Roles, depth: int) -> None:
        self._line(depth, "if (thread == 0) {")
        for m in s.mbarriers:
            array = self._arrays[m.array.name]
            begin = f"for (int i = 0; i < {array.slots}; ++i)"
            self._say(depth + 1, f"{begin} xy_mbarrier_init({array.var.name} + {array.count} * i, {m.arrivals});")
        self._say(depth + 1, "xy_mbarriers_ready();")
        self._line(depth, "}")
        if self._cluster > 1:  # before others copy to this block's memory, or arrive there
            self._say(depth, "xy_meet_cluster();")
        else:
            self._line(depth, "__syncthreads();")
        threads = sum(part.warpgroups for part in s.parts) * WARPGROUP
        self._first = 0
        for number, part in enumerate(s.parts):
            end = self._first + part.warpgroups * WARPGROUP
            last = number == len(s.parts) - 1
            condition = "else" if last and number else f"{'else ' if number else ''}if (thread < {end})"
            self._line(depth, f"{condition} {{  // {part.name}")
            self._registers(part, threads, depth + 1)
            if part.group is not None:
                group = f"(thread - {self._first}) / {WARPGROUP}" if self._first else f"thread / {WARPGROUP}"
                self._say(depth + 1, f"const int {part.group.name} = xy_of_warp({group});")
            self.block(part.body, depth + 1)
            if self._cluster > 1:  # a block that has ended has no memory
                self._line(depth + 1, "__syncwarp();")
                self._say(depth + 1, "xy_meet_cluster();")
            self._line(depth, "}")
            self._first = end

    def _arrive(self, s: Arrive, depth: int) -> None:
        at = self.address(s.mbarrier)
        if not s.everywhere:
            self._say(depth, f"if (thread % 32 == 0) xy_arrive({at});")
        else:  # one thread for each block
            self._say(depth, f"if (thread % 32 < {self._cluster}) xy_arrive_at(thread % 32, {at});")

    def _registers(self, part: Role, threads: int, depth: int) -> None:
        if part.registers:
            change = "inc" if part.registers > _REGISTERS // threads else "dec"
            self._line(depth, f'asm volatile("setmaxnreg.{change}.sync.aligned.u32 {part.registers};");')

    def _copy_tensor(self, s: CopyTensor, depth: int) -> None:
        name = f"xy_copy_tensor_{len(s.coordinates)}{'_everywhere' if s.everywhere else ''}"
        self.target.define(name, _copy_helper(name, len(s.coordinates), self._cluster if s.everywhere else 1))
        at = ", ".join(self.expr(x) for x in s.coordinates)
        self._line(depth, f"{name}({self.address(s.target)}, {s.map}, {self.address(s.mbarrier)}, {at});")

    def _dot(self, s: WarpgroupDot, depth: int) -> None:
        kinds = [str(int(m.across)) for m in s.matrices]
        name = f"xy_dot_{s.dtype}_{s.columns}_{'' if len(kinds) > 1 else 'r'}{''.join(kinds)}{'_fresh' if s.fresh else ''}"
        self.target.define(name, _dot_helper(name, s))
        a = [self._matrix(s.a)] if isinstance(s.a, SharedMatrix) else [v.name for v in s.a]
        self._line(depth, f"{name}({', '.join([*a, self._matrix(s.b), *(v.name for v in s.c)])});")

    def _matrix(self, m: SharedMatrix) -> str:
        """The slot's, which products share, and behind it how far the matrix is in it, in the descriptor's unit."""
        base, at = self.target.use(f"xy_matrix({self.address(m.pointer)}, {m.apart or _UNUSED})"), self.expr(m.index)
        return base if at == "0" else f"{base} + (unsigned)({at}) / {_UNIT // self._dtype(m.pointer).bytes}"

    def _wait(self, s: WarpgroupWait, depth: int) -> None:
        if not s.sums:
            self._line(depth, f'asm volatile("wgmma.wait_group.sync.aligned {s.pending};" ::: "memory");')
            return
        name = f"xy_products_complete_{len(s.sums)}{f'_but_{s.pending}' if s.pending else ''}"
        self.target.define(name, _wait_helper(name, s.pending, len(s.sums)))
        self._line(depth, f"{name}({', '.join(v.name for v in s.sums)});")
