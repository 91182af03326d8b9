"""The dialect of Metal's shading language: C++14 with address spaces. Apple GPUs run 32 threads in step, so they exchange values.

Arguments are the buffers of a kernel, then one buffer with all sizes: a kernel may have 31 of them. bfloat16 moves by bits, as
the language has a type of it from version 3.1 on only. Copies are synchronous. Without fast mathematics exp2 is right to 4 units
in the last place (Metal Shading Language Specification, "Numerical Compliance"): it stands where no more is asked for.
"""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.emitters.gpu_c import Dialect, GpuPrinter
from xyntra_ep.tracea.runtime.kernel_source import Definitions
from xyntra_ep.tracea.semantic_ir.gpu.matrix_dot import SIMDGROUP_SHAPES, MatrixShape
from xyntra_ep.tracea.semantic_ir.nodes import Elem, Kernel, Space

_SIZES, _BLOCK, _THREAD = "xy_sizes", "xy_block", "xy_thread"


def _matrix_dot(shape: MatrixShape) -> str:
    """A matrix is an object whose elements a lane sees its own of."""
    element, kind = ("unsigned short", "half") if shape.dtype is DType.F16 else ("float", "float")
    taken = "as_type<half>({}[{}])" if shape.dtype is DType.F16 else "{}[{}]"
    put = [f"{m}.thread_elements()[{i}] = {taken.format(p, i)};" for m, p in (("x", "a"), ("y", "b")) for i in range(2)]
    sums = [f"z.thread_elements()[{i}] = c[{i}];" for i in range(2)]
    back = [f"c[{i}] = z.thread_elements()[{i}];" for i in range(2)]
    head = f"static inline void xy_{shape.name}(thread float *c, thread const {element} *a, thread const {element} *b)"
    body = (f"simdgroup_{kind}8x8 x, y; simdgroup_float8x8 z;", *put, *sums, "simdgroup_multiply_accumulate(z, x, y, z);", *back)
    return f"{head} {{ {' '.join(body)} }}"


METAL = Dialect(
    prelude="#include <metal_stdlib>\nusing namespace metal;\n",
    names={"thread": "thread_number"},
    long="long",
    long_suffix="l",
    kernel="[[max_total_threads_per_threadgroup({threads})]] kernel void {name}({arguments})",
    buffer="{argument} [[buffer({index})]]",
    sizes=f"constant int *{_SIZES} [[buffer({{index}})]]",
    size=f"{_SIZES}[{{index}}]",
    positions=(f"uint {_BLOCK} [[threadgroup_position_in_grid]]", f"uint {_THREAD} [[thread_position_in_threadgroup]]"),
    function="static inline",
    spaces={Space.GLOBAL: "device", Space.SHARED: "threadgroup", Space.PRIVATE: "thread"},
    shared="alignas({alignment}) threadgroup {type} {name}[{count}];",
    block=f"(int){_BLOCK}",
    thread=f"(int){_THREAD}",
    barrier="threadgroup_barrier(mem_flags::mem_threadgroup);",
    bits={Elem.F32: "as_type<float>({v})", Elem.I32: "as_type<int>({v})"},
    nan="NAN",
    infinity="INFINITY",
    math="{name}",
    widen={DType.F16: "((float)as_type<half>({v}))"},
    narrow={DType.F16: "as_type<unsigned short>((half)({v}))"},
    functions={"xm_exp2_weight_bf16_1": "return exp2(x);"},
    helpers={
        "xy_round_f16": "static inline float xy_round_f16(float v) { return (float)(half)v; }",
        **{f"xy_{shape.name}(": _matrix_dot(shape) for shape in SIMDGROUP_SHAPES.values()},
        # Registers hold 32 bits; a 64-bit value goes in two.
        "xy_exchange(": "static inline int xy_exchange(int v, ushort mask) { return simd_shuffle_xor(v, mask); }\n"
        "static inline float xy_exchange(float v, ushort mask) { return simd_shuffle_xor(v, mask); }\n"
        "static inline long xy_exchange(long v, ushort mask) { return as_type<long>(simd_shuffle_xor(as_type<int2>(v), mask)); }",
    },
    packets={
        d: f"xy_{d}x{{n}}" for d in (DType.F32, DType.BF16, DType.F16, DType.I32, DType.I64, DType.I8, DType.U8, DType.BOOL)
    },
    packet_helper="struct alignas({bytes}) {type} {{ {element} e[{n}]; }};",
    part="{v}.e[{i}]",
    packet="{type}{{{{{parts}}}}}",
    matrix_dots={shape.name: f"xy_{shape.name}({{c}}, {{a}}, {{b}});" for shape in SIMDGROUP_SHAPES.values()},
    subgroup_xor="xy_exchange({v}, {mask})",
)


def emit(kernel: Kernel) -> Definitions:
    """The Metal program of ``kernel``."""
    return GpuPrinter(METAL).kernel(kernel)
