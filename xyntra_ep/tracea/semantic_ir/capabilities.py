"""What a machine can do, as far as choosing and generating kernels needs to know. The doctor's profiler fills it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Isa(StrEnum):
    AVX512 = "avx512"
    AVX2 = "avx2"
    NEON = "neon"
    WASM = "wasm"
    SCALAR = "scalar"


class Prefetching(StrEnum):
    """How a processor reads memory fastest: by prefetches a little ahead in the order of use; by those far ahead, in several
    places at once; or by itself, and where there is work meanwhile by bursts of prefetches, each line asked for once."""

    BURST = "burst"
    NEAR = "near"
    FAR = "far"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """A CPU as kernels see it. ``lanes`` is the number of f32 in a vector register.

    ``halves``: its units are half as wide as a vector, as in Zen 4, so that its peak is that of vectors half as long.
    ``avx512_bf16``: pairs of bfloat16 multiply at twice the rate of f32 (vdpbf16ps; not so on Intel, where it is slower than
    f32 itself). ``avx512_bf16_convert``: the instructions exist, however slowly they multiply; they round to bfloat16 fast.
    ``amx_bf16``: matrix tiles of bfloat16 (tdpbf16ps), which the operating system grants. ``amx_int8``: those of bytes (tdpbusd).
    ``vnni``: a product of words of integers and its sum are one instruction (vpdpbusd, vpdpwssd): AVX512_VNNI on vectors of 16,
    AVX_VNNI where AVX2 is the widest set. ``avx512_vbmi``: a byte is looked up in a table of 128 by one instruction (vpermi2b).
    """

    isa: Isa
    lanes: int
    vector_registers: int
    halves: bool = False
    avx512_bf16: bool = False
    avx512_bf16_convert: bool = False
    amx_bf16: bool = False
    amx_int8: bool = False
    vnni: bool = False
    avx512_vbmi: bool = False
    l1d_bytes: int = 32 << 10
    l2_bytes: int = 1 << 20
    l3_bytes: int = 16 << 20
    fma_gflops: float = 100.0  # one core, fp32
    bf16_gflops: float = 0.0  # one core, bfloat16 products by the fastest instruction there is; 0 without one
    int8_gops: float = 0.0  # one core, products of bytes by matrix tiles; 0 without them
    dram_gbs: float = 20.0
    prefetching: Prefetching = Prefetching.NEAR
    cores: int = 1

    @property
    def unit_bits(self) -> int:
        """Of the units that multiply: 256 or 512; those of processors with less are taken for 256, too."""
        return 512 if self.lanes >= 16 and not self.halves else 256

    @property
    def clamped_bytes(self) -> bool:
        """Whether products of bytes are there (vpmaddubsw), with sums of two that are clamped to 16 bits, and no better ones."""
        return self.isa in (Isa.AVX2, Isa.AVX512) and not self.vnni

    @property
    def multiplies_nibbles(self) -> bool:
        """Whether integers of 4 bits times bytes are faster than products of floats: four of them and their sum are one
        instruction, or three (`ClampedQuadDot`)."""
        return self.vnni or self.clamped_bytes

    @property
    def has_bf16(self) -> bool:
        """Whether products in bfloat16 are faster than in f32."""
        return self.avx512_bf16 or self.amx_bf16


AVX512 = Capabilities(isa=Isa.AVX512, lanes=16, vector_registers=32)
AVX2 = Capabilities(isa=Isa.AVX2, lanes=8, vector_registers=16)
NEON = Capabilities(isa=Isa.NEON, lanes=4, vector_registers=32)
# Of WebAssembly with vectors of 128 bits, one thread in a browser: engines have 16 registers on x86, multiply and add apart.
WASM = Capabilities(isa=Isa.WASM, lanes=4, vector_registers=16, l2_bytes=512 << 10, fma_gflops=24.0, dram_gbs=10.0)
SCALAR = Capabilities(isa=Isa.SCALAR, lanes=1, vector_registers=16)
