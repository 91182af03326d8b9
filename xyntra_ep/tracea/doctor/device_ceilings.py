"""Kernels that measure the ceilings of a device, one thing each: copy, read from the cache, multiply and add, multiply by matrix
units.

They are semantic IR like all kernels; the caller times them (a Protocol, because the doctor does not import the runtime).
Operands of products are not zeros: a GPU that multiplies zeros draws less power and runs at a higher clock than with real data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from xyntra_ep.tracea.core_ir.dims import symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.gpu.fragment_nodes import depth_of
from xyntra_ep.tracea.semantic_ir.nodes import Const, Convert, Fma, Kernel, Rvalue, Var, f32, i32

THREADS = 256
PACKET = 4  # f32, 16 bytes
_PACKETS = 4  # of a thread, whose loads do not wait for each other
CHUNK = THREADS * PACKET * _PACKETS  # elements that a block moves
_CHAINS = 8  # of fused multiply-adds: more than the latency of one
_UNROLLED = 8
_ROWS, _COLUMNS = 4, 4  # fragments of a warp: 64 x 32 sums
_RUNS = 10
_LAUNCH_NS = 2_000_000  # long enough for what a launch costs not to count
_MOST_TURNS = 1 << 20
_COPIED_BYTES, _COPIED_BYTES_CPU = 512 << 20, 64 << 20
TURNS = symbol("turns")
# Bits of numbers from 1 to 2, with either sign, of 16 bits two at a time: which bits vary, and the exponent.
_WORDS = {DType.BF16: (0x807F807F, 0x3F803F80), DType.F16: (0x83FF83FF, 0x3C003C00), DType.F32: (0x807FE000, 0x3F800000)}
_SCATTER = 0x9E3779B1  # Knuth's multiplicative hash: 2^32 over the golden ratio


class TimeKernel(Protocol):
    """Nanoseconds of each of ``runs`` launches of ``units`` blocks, by the device's clock; buffers begin as zeros."""

    def __call__(
        self, kernel: Kernel, *, units: int, buffer_bytes: Sequence[int], params: Sequence[int], runs: int
    ) -> list[int]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCeilings:
    """10^9 bytes and operations per second. ``copy_gbs`` counts bytes read and bytes written; ``cache_gbs`` reads what the cache
    that all multiprocessors share holds, 0 where its size is not known; what matrix units make is 0 without them."""

    copy_gbs: float
    cache_gbs: float
    fp32_gflops: float
    fp16_gflops: float
    bf16_gflops: float
    tf32_gflops: float


def measure(gpu: Gpu, time_kernel: TimeKernel, *, memory_bytes: int, cache_bytes: int) -> DeviceCeilings:
    """About a second of the device's time. ``memory_bytes`` is all its memory, ``cache_bytes`` the cache that all share."""
    blocks = 8 * gpu.units  # as many threads as a multiprocessor holds
    warps = THREADS // 32
    return DeviceCeilings(
        copy_gbs=_copy(gpu, time_kernel, memory_bytes),
        cache_gbs=_cached(time_kernel, blocks, cache_bytes) if cache_bytes else 0.0,
        fp32_gflops=_rate(time_kernel, multiply_add(), blocks, blocks * THREADS * _CHAINS * _UNROLLED * 2),
        fp16_gflops=_dots(gpu, time_kernel, DType.F16, 2 * gpu.units, warps),
        bf16_gflops=_dots(gpu, time_kernel, DType.BF16, 2 * gpu.units, warps),
        tf32_gflops=_dots(gpu, time_kernel, DType.F32, 2 * gpu.units, warps),
    )


def copy() -> Kernel:
    """y = x, a chunk of neighbours for each block."""
    b = GpuBuilder("xy_ceiling_copy", THREADS)
    x, y = b.buffer("x", DType.F32), b.buffer("y", DType.F32, writable=True)
    places = _places(b, b.block)
    packets = [b.load_packet("v", x, at, PACKET) for at in places]
    for at, packet in zip(places, packets, strict=True):
        b.store_packet(y, at, packet)
    return b.finish()[0]


def read(chunks: int) -> Kernel:
    """y [threads] = sums over x [chunks * CHUNK], of which each block reads another chunk in each iteration. ``chunks`` is a
    power of two; neighbours in time are far apart, so that no multiprocessor's own cache helps."""
    b = GpuBuilder("xy_ceiling_read", THREADS)
    x, y = b.buffer("x", DType.F32), b.buffer("y", DType.F32, writable=True)
    sums = [b.variable("sum", Const(f32(1), 0.0)) for _ in range(_PACKETS)]
    with b.loop("turn", 0, b.param(TURNS)) as turn:
        chunk = b.let("chunk", (b.block + turn * (chunks // 2 + 1)) & (chunks - 1))
        packets = [b.load_packet("v", x, at, PACKET) for at in _places(b, chunk)]
        for total, packet in zip(sums, packets, strict=True):
            b.assign(total, total + packet[0] + packet[1] + packet[2] + packet[3])
    _store_sum(b, y, sums)
    return b.finish()[0]


def multiply_add() -> Kernel:
    """y [threads] = sums of chains c = c a + d, whose a = 1 - 1 / 1024 the compiler is not told."""
    b = GpuBuilder("xy_ceiling_fma", THREADS)
    y, turns = b.buffer("y", DType.F32, writable=True), b.param(TURNS)
    a = b.let("a", Convert(f32(1), b.param(symbol("scale"))) * (1.0 / 1024))
    mine = b.let("mine", Convert(f32(1), b.thread) * (1.0 / 256))
    chains = [b.variable("c", mine + float(i)) for i in range(_CHAINS)]
    with b.loop("turn", 0, turns):
        for _ in range(_UNROLLED):
            for c in chains:
                b.assign(c, Fma(c, a, mine))
    _store_sum(b, y, chains)
    return b.finish()[0]


def fragment_dots(dtype: DType) -> Kernel:
    """y [threads] = sums of products of a warp's fragments, which stay in registers; of f32 as tf32."""
    b = GpuBuilder(f"xy_ceiling_dots_{dtype}", THREADS)
    y = b.buffer("y", DType.F32, writable=True)
    seed = b.let("seed", Convert(i32(1), b.thread + 1))
    rows = [[_word(b, seed, dtype, 6 * i + j) for j in range(4)] for i in range(_ROWS)]
    columns = [[_word(b, seed, dtype, 64 + 2 * i + j) for j in range(2)] for i in range(_COLUMNS)]
    sums = [[b.variable("sum", Const(f32(1), 0.0)) for _ in range(4)] for _ in range(_ROWS * _COLUMNS)]
    with b.loop("turn", 0, b.param(TURNS)):
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                b.fragment_dot(sums[i * _COLUMNS + j], row, column, dtype)
    _store_sum(b, y, [part for four in sums for part in four])
    return b.finish()[0]


def dot_flops(dtype: DType) -> int:
    """Of one product of fragments."""
    return 2 * 16 * 8 * depth_of(dtype)


def _places(b: GpuBuilder, chunk: Rvalue) -> list[Rvalue]:
    first = b.let("first", chunk * CHUNK + b.thread * PACKET)
    return [first + i * (THREADS * PACKET) for i in range(_PACKETS)]


def _word(b: GpuBuilder, seed: Rvalue, dtype: DType, number: int) -> Rvalue:
    varying, exponent = _WORDS[dtype]
    scattered = seed * _signed(_SCATTER * (2 * number + 1))
    return b.let("word", (scattered & _signed(varying)) | _signed(exponent))


def _signed(bits: int) -> Const:
    bits &= 0xFFFFFFFF
    return Const(i32(1), bits - (1 << 32) if bits >> 31 else bits)


def _store_sum(b: GpuBuilder, y: Var, parts: Sequence[Rvalue]) -> None:
    total = parts[0]
    for part in parts[1:]:
        total = b.let("total", total + part)
    b.store(y, b.block * THREADS + b.thread, total)


def _copy(gpu: Gpu, time_kernel: TimeKernel, memory_bytes: int) -> float:
    wanted = _COPIED_BYTES_CPU if gpu.is_cpu else _COPIED_BYTES
    units = max(1, min(wanted, memory_bytes // 8) // (CHUNK * 4))
    size = units * CHUNK * 4
    times = time_kernel(copy(), units=units, buffer_bytes=(size, size), params=(), runs=_RUNS)
    return 2 * size / max(min(times), 1)


def _cached(time_kernel: TimeKernel, blocks: int, cache_bytes: int) -> float:
    """The largest power of two of chunks that fills at most half of the cache."""
    chunks = 1 << max(1, (cache_bytes // 2 // (CHUNK * 4)).bit_length() - 1)
    return _rate(time_kernel, read(chunks), blocks, blocks * CHUNK * 4, more=(chunks * CHUNK * 4,))


def _dots(gpu: Gpu, time_kernel: TimeKernel, dtype: DType, blocks: int, warps: int) -> float:
    if not gpu.fragment_gflops:
        return 0.0
    return _rate(time_kernel, fragment_dots(dtype), blocks, blocks * warps * _ROWS * _COLUMNS * dot_flops(dtype))


def _rate(time_kernel: TimeKernel, kernel: Kernel, blocks: int, work: int, more: Sequence[int] = ()) -> float:
    """10^9 a second of a kernel that does ``work`` in each of its iterations, as many of them as a launch needs to be long."""
    sizes, scale = (*more, blocks * THREADS * 4), (1023,) if len(kernel.params) > 1 else ()

    def timed(turns: int, runs: int) -> int:
        return max(min(time_kernel(kernel, units=blocks, buffer_bytes=sizes, params=(turns, *scale), runs=runs)), 1)

    turns = 64
    while turns < _MOST_TURNS and (took := timed(turns, 1)) < _LAUNCH_NS:
        turns = min(_MOST_TURNS, turns * max(2, min(64, _LAUNCH_NS // took)))
    return work * turns / timed(turns, _RUNS)
