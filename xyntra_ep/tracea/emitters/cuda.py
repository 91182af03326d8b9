"""The CUDA dialect: C++ without headers, for NVRTC. Compute capability 8.0 and later (asynchronous copies)."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.emitters.cuda_warpgroups import TENSOR_MAP, WARPGROUP_HELPERS, CudaPrinter
from xyntra_ep.tracea.emitters.gpu_cpp import cpp_dialect
from xyntra_ep.tracea.runtime.kernel_source import Definitions
from xyntra_ep.tracea.semantic_ir.gpu.fragment_nodes import DTYPES as FRAGMENT_TYPES
from xyntra_ep.tracea.semantic_ir.gpu.fragment_nodes import depth_of
from xyntra_ep.tracea.semantic_ir.gpu.nodes import COPY_BYTES
from xyntra_ep.tracea.semantic_ir.nodes import Elem, Kernel

_LOG2E = "0x1.715476p+0f"
_DEVICE = "static __device__ __forceinline__"


def _copy(size: int) -> str:
    """An asynchronous copy of ``size`` bytes, those from ``valid`` on 0. Only 16 at once may pass the first-level cache by."""
    cache = "cg" if size == 16 else "ca"
    return (
        f"{_DEVICE} void xy_copy_{size}(void *to, const void *from, int valid) "
        f'{{ asm volatile("cp.async.{cache}.shared.global [%0], [%1], {size}, %2;" '
        ':: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(valid) : "memory"); }'
    )


def _load_fragments(turned: str) -> str:
    trans = ".trans" if turned else ""
    return (
        f"{_DEVICE} void xy_load_fragments{turned}(int &a, int &b, int &c, int &d, const void *from) "
        f'{{ asm volatile("ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%0, %1, %2, %3}}, [%4];" '
        ': "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"((unsigned)__cvta_generic_to_shared(from)) : "memory"); }'
    )


def _fragment_dot(dtype: DType) -> str:
    depth, kind = depth_of(dtype), "tf32" if dtype is DType.F32 else dtype
    return (
        f"{_DEVICE} void xy_fragment_dot_{dtype}(float &c0, float &c1, float &c2, float &c3, "
        "int a0, int a1, int a2, int a3, int b0, int b1) "
        f'{{ asm("mma.sync.aligned.m16n8k{depth}.row.col.f32.{kind}.{kind}.f32 '
        '{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" '
        ': "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1)); }'
    )


def _pair(dtype: DType) -> str:
    """Two floats rounded to the nearest halves, the first one below."""
    return (
        f"{_DEVICE} int xy_pair_{dtype}(float low, float high) "
        f'{{ int both; asm("cvt.rn.{dtype}x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low)); return both; }}'
    )


CUDA = cpp_dialect(
    kernel="__global__ void __launch_bounds__({threads})",
    function=_DEVICE,
    shared="__shared__",
    aligned="__align__({alignment})",
    tensor="const __grid_constant__ xy_tensor_map {name}",
    block="(int)blockIdx.x",
    thread="(int)threadIdx.x",
    barrier="__syncthreads();",
    bits={Elem.F32: "__int_as_float({v})", Elem.I32: "__float_as_int({v})"},
    nan="__int_as_float(0x7fffffff)",
    infinity="__int_as_float(0x7f800000)",
    math="{name}f",
    widen={DType.F16: "xy_widen_f16({v})"},
    narrow={DType.F16: "xy_narrow_f16({v})", DType.BF16: "xy_narrow_bf16({v})"},
    functions={
        "xm_exp2_1": "return exp2f(x);",
        "xm_log_1": "return logf(x);",
        "xm_exp_nonpositive_1": f"return xy_exp2(x * {_LOG2E});",
        **{f"xm_exp2_{name}_1": "return xy_exp2(x);" for name in ("nonpositive", "weight", "weight_bf16")},
        "xm_round_tf32_1": "return xy_round_tf32(x);",
        "xm_larger_number": "return fmaxf(x, y);",
        **{f"xm_weight_pair_{dtype}": f"return xy_pair_{dtype}(low, high);" for dtype in (DType.F16, DType.BF16)},
    },
    helpers={
        "xy_exp2(": f"{_DEVICE} float xy_exp2(float x) "
        '{ float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }',
        "xy_round_tf32(": f"{_DEVICE} float xy_round_tf32(float x) "
        '{ int bits; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x)); return __int_as_float(bits); }',
        **{f"xy_pair_{dtype}(": _pair(dtype) for dtype in (DType.F16, DType.BF16)},
        "xy_widen_f16": f"{_DEVICE} float xy_widen_f16(unsigned short h) "
        '{ float v; asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(h)); return v; }',
        "xy_narrow_f16": f"{_DEVICE} unsigned short xy_narrow_f16(float v) "
        '{ unsigned short h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v)); return h; }',
        "xy_narrow_bf16": f"{_DEVICE} unsigned short xy_narrow_bf16(float v) "
        '{ unsigned short h; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(v)); return h; }',
        **{f"xy_copy_{n}": _copy(n) for n in COPY_BYTES},
        **{f"xy_load_fragments{turned}(": _load_fragments(turned) for turned in ("", "_transposed")},
        **{f"xy_fragment_dot_{dtype}(": _fragment_dot(dtype) for dtype in FRAGMENT_TYPES},
        **WARPGROUP_HELPERS,
    },
    types=frozenset({TENSOR_MAP}),
    copy="xy_copy_{bytes}({target}, {source}, {valid});",
    commit='asm volatile("cp.async.commit_group;" ::: "memory");',
    wait='asm volatile("cp.async.wait_group {pending};" ::: "memory");',
    load_fragments="xy_load_fragments{transposed}({variables}, {p});",
    fragment_dot="xy_fragment_dot_{dtype}({values});",
    subgroup_xor="__shfl_xor_sync(0xffffffffu, {v}, {mask})",
)


def emit(kernel: Kernel) -> Definitions:
    """The CUDA translation unit of ``kernel``."""
    return CudaPrinter(CUDA).kernel(kernel)
