"""What a GPU can do, as far as choosing and generating kernels needs to know."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.gpu.matrix_dot import MATRIX_SHAPES, MatrixShape
from xyntra_ep.tracea.semantic_ir.gpu.multiprocessor import MULTIPROCESSORS, Multiprocessor

STATIC_SHARED_BYTES = 48 << 10  # what a kernel may declare; more is asked for at the launch


@dataclass(frozen=True, slots=True)
class MatrixUnit:
    """Products of a ``shape``, at a rate of the whole device."""

    shape: MatrixShape
    gflops: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU as kernels see it. ``max_threads`` and ``shared_bytes`` are what a block may have at most; ``subgroup``: how many
    threads exchange values between their registers, 1 where none can. ``units``: multiprocessors, as most call them."""

    name: str
    max_threads: int
    shared_bytes: int
    subgroup: int
    units: int
    fma_gflops: float  # fp32, the whole device
    memory_gbs: float
    fragment_gflops: float = 0.0  # products of 16-bit fragments, summed in f32; 0 where there are none
    halves: frozenset[DType] = frozenset()  # 16-bit floats in which products are worth asking for
    multiprocessor: Multiprocessor | None = None  # what one of the units has, where that is known
    warpgroups: bool = False  # products by warpgroups, tensors that are copied: compute capability 9.0 alone, as sm_90a
    max_buffers: int | None = None  # that a kernel may take, and how large one of them may be, where either is limited
    buffer_bytes: int | None = None
    matrix_units: tuple[MatrixUnit, ...] = ()  # the products that its matrix units make, the preferred ones first
    aliases: bool = True  # what a kernel writes may be what it reads, as another of its buffers
    is_cpu: bool = False  # behind a device's driver: its shared memory is memory like any other

    def fragment_rate(self, dtype: DType) -> float:
        """GFLOP/s of products of fragments of ``dtype``: of f32, as tf32, half of what those of 16-bit floats make, on every GPU
        that has both (NVIDIA's white papers of the architectures Ampere, Ada and Hopper)."""
        return self.fragment_gflops * DType.F16.bytes / dtype.bytes

    @property
    def multiplies_tf32(self) -> bool:
        """Whether its matrix units take an f32 so."""
        return self.fragment_gflops > 0 or any(unit.shape.rounded for unit in self.matrix_units)

    @property
    def target(self) -> str:
        """What kernels are compiled for: what only one architecture has must be asked for by its name."""
        return f"{self.name}a" if self.warpgroups else self.name

    @property
    def common_shared_bytes(self) -> int:
        """What a block may have without taking so much of a unit that few others find room beside it."""
        return min(self.shared_bytes, STATIC_SHARED_BYTES)


FRAGMENTS = frozenset({DType.F16, DType.BF16})  # what matrix units multiply since compute capability 8.0

# A GPU of which only its API is known: the least shared memory that one promises, and what every GPU of ten years has.
ANY_GPU = Gpu(name="gpu", max_threads=256, shared_bytes=32 << 10, subgroup=1, units=16, fma_gflops=2e3, memory_gbs=100.0)
# Rates: NVIDIA's A100 (SXM, 80 GB) and H100 (SXM) data sheets.
SM_80 = Gpu(
    name="sm_80",
    max_threads=1024,
    shared_bytes=MULTIPROCESSORS["sm_80"].block_shared_bytes,
    subgroup=32,
    units=108,
    fma_gflops=19.5e3,
    memory_gbs=2039.0,
    fragment_gflops=312e3,
    halves=FRAGMENTS,
    multiprocessor=MULTIPROCESSORS["sm_80"],
)
SM_90 = Gpu(
    name="sm_90",
    max_threads=1024,
    shared_bytes=MULTIPROCESSORS["sm_90"].block_shared_bytes,
    subgroup=32,
    units=132,
    fma_gflops=66.9e3,
    memory_gbs=3350.0,
    fragment_gflops=989e3,
    halves=FRAGMENTS,
    multiprocessor=MULTIPROCESSORS["sm_90"],
)
SM_90A = replace(SM_90, warpgroups=True)


def _matrix_units(*rows: tuple[tuple[str, ...], float]) -> tuple[MatrixUnit, ...]:
    return tuple(MatrixUnit(MATRIX_SHAPES[name], gflops) for names, gflops in rows for name in names)


_MFMA = ("mfma_f32_32x32x8f16", "mfma_f32_16x16x16f16", "mfma_f32_32x32x8bf16_1k", "mfma_f32_16x16x16bf16_1k")
_MFMA_F32 = ("mfma_f32_32x32x2f32", "mfma_f32_16x16x4f32")
_MFMA_XF32 = ("mfma_f32_32x32x4_xf32", "mfma_f32_16x16x8_xf32")
_WMMA = ("wmma_f32_16x16x16_f16_w32", "wmma_f32_16x16x16_bf16_w32")
# Rates: AMD's data sheets of Instinct MI210 and MI300X and of Radeon RX 7900 XTX. Those of fused multiply-adds are without what
# issues two of them at a time. A unit is what has the shared memory of a block: a compute unit, of RDNA a pair of them.
GFX90A = Gpu(
    name="gfx90a",
    max_threads=1024,
    shared_bytes=MULTIPROCESSORS["gfx90a"].block_shared_bytes,
    subgroup=64,
    units=104,
    fma_gflops=22.6e3,
    memory_gbs=1638.0,
    halves=FRAGMENTS,
    multiprocessor=MULTIPROCESSORS["gfx90a"],
    matrix_units=_matrix_units((_MFMA, 181e3), (_MFMA_F32, 45.3e3)),
)
GFX942 = replace(
    GFX90A,
    name="gfx942",
    units=304,
    fma_gflops=81.7e3,
    memory_gbs=5300.0,
    multiprocessor=MULTIPROCESSORS["gfx942"],
    matrix_units=_matrix_units((_MFMA, 1307.4e3), (_MFMA_F32, 163.4e3), (_MFMA_XF32, 653.7e3)),
)
GFX1100 = replace(
    GFX90A,
    name="gfx1100",
    subgroup=32,
    units=48,
    fma_gflops=30.7e3,
    memory_gbs=960.0,
    multiprocessor=MULTIPROCESSORS["gfx1100"],
    matrix_units=_matrix_units((_WMMA, 122.8e3)),
)
