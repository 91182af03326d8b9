"""The HIP dialect for AMD's GPUs: C++ for Clang or hipRTC, without headers: what these define is written out."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.emitters.gpu_c import GpuPrinter
from xyntra_ep.tracea.emitters.gpu_cpp import cpp_dialect
from xyntra_ep.tracea.runtime.kernel_source import Definitions
from xyntra_ep.tracea.semantic_ir.nodes import LIBM, Elem, Kernel

_ATTRIBUTE = "__attribute__(({}))"
_DEVICE = f"static {_ATTRIBUTE.format('device')} {_ATTRIBUTE.format('always_inline')} inline"
_EXP2 = "return __builtin_amdgcn_exp2f({});"  # off by 1 unit in the last place, what is subnormal is 0
_LIBRARY = "__ocml_{name}_f32"  # a function of AMD's device libraries
_ONE, _TWO = (*sorted(LIBM), "sqrt", "floor", "ceil", "rint", "fabs"), ("pow", "fmod")
_TAKES = {**dict.fromkeys(_ONE, "float"), **dict.fromkeys(_TWO, "float, float")}
_FUNCTIONS = {
    _LIBRARY.format(name=name): f'extern "C" {_ATTRIBUTE.format("device")} float {_LIBRARY.format(name=name)}({takes});'
    for name, takes in _TAKES.items()
}
_EXCHANGE = f"""template <class T> {_DEVICE} T xy_exchange(T value, int mask) {{
  struct words {{ int w[sizeof(T) / 4]; }} all = __builtin_bit_cast(words, value);
  const int from = ((int)__builtin_amdgcn_workitem_id_x() ^ mask) * 4;
  for (unsigned i = 0; i < sizeof(T) / 4; ++i) all.w[i] = __builtin_amdgcn_ds_bpermute(from, all.w[i]);
  return __builtin_bit_cast(T, all);
}}"""


HIP = cpp_dialect(
    kernel=f"{_ATTRIBUTE.format('global')} {_ATTRIBUTE.format('amdgpu_flat_work_group_size({threads}, {threads})')} void",
    function=_DEVICE,
    shared=_ATTRIBUTE.format("shared"),
    aligned=_ATTRIBUTE.format("aligned({alignment})"),
    block="(int)__builtin_amdgcn_workgroup_id_x()",
    thread="(int)__builtin_amdgcn_workitem_id_x()",
    barrier="xy_barrier();",
    bits={Elem.F32: "__builtin_bit_cast(float, {v})", Elem.I32: "__builtin_bit_cast(int, {v})"},
    nan='__builtin_nanf("")',
    infinity="__builtin_inff()",
    math=_LIBRARY,
    widen={DType.F16: "xy_widen_f16({v})"},
    narrow={DType.F16: "xy_narrow_f16({v})"},
    functions={
        "xm_exp2_1": "return __builtin_exp2f(x);",
        "xm_log_1": "return __builtin_logf(x);",
        "xm_exp_nonpositive_1": _EXP2.format("x * 0x1.715476p+0f"),
        **{f"xm_exp2_{name}_1": _EXP2.format("x") for name in ("nonpositive", "weight", "weight_bf16")},
        "xm_larger_number": "return __builtin_fmaxf(x, y);",
    },
    helpers={
        # The fences are for memory of the block; the instruction alone orders none.
        "xy_barrier(": f'{_DEVICE} void xy_barrier() {{ __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); '
        '__builtin_amdgcn_s_barrier(); __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); }',
        "xy_widen_f16": f"{_DEVICE} float xy_widen_f16(unsigned short h) {{ return (float)__builtin_bit_cast(_Float16, h); }}",
        "xy_narrow_f16": f"{_DEVICE} unsigned short xy_narrow_f16(float v) "
        "{ return __builtin_bit_cast(unsigned short, (_Float16)v); }",
        "xy_exchange(": _EXCHANGE,
        **_FUNCTIONS,
    },
    types=frozenset(_FUNCTIONS),
    subgroup_xor="xy_exchange({v}, {mask})",
)


def emit(kernel: Kernel) -> Definitions:
    """The HIP translation unit of ``kernel``."""
    return GpuPrinter(HIP).kernel(kernel)
