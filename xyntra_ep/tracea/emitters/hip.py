"""The HIP dialect for AMD's GPUs: C++ for Clang or hipRTC, without headers: what these define is written out."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.emitters.gpu_c import GpuPrinter
from xyntra_ep.tracea.emitters.gpu_cpp import cpp_dialect
from xyntra_ep.tracea.emitters.hip_helpers import ATTRIBUTE, DEVICE, HELPERS
from xyntra_ep.tracea.runtime.kernel_source import Definitions
from xyntra_ep.tracea.semantic_ir.gpu.matrix_dot import MATRIX_SHAPES
from xyntra_ep.tracea.semantic_ir.nodes import LIBM, Elem, Kernel

_EXP2 = "return __builtin_amdgcn_exp2f({});"  # off by 1 unit in the last place, what is subnormal is 0
_LIBRARY = "__ocml_{name}_f32"  # a function of AMD's device libraries
_TAKES = dict.fromkeys((*sorted(LIBM), "sqrt", "floor", "ceil", "rint", "fabs"), "float")
_TAKES |= dict.fromkeys(("pow", "fmod"), "float, float")
_FUNCTIONS = {
    (name := _LIBRARY.format(name=function)): f'extern "C" {ATTRIBUTE.format("device")} float {name}({takes});'
    for function, takes in _TAKES.items()
}
HIP = cpp_dialect(
    kernel=f"{ATTRIBUTE.format('global')} {ATTRIBUTE.format('amdgpu_flat_work_group_size({threads}, {threads})')} void",
    function=DEVICE,
    shared=ATTRIBUTE.format("shared"),
    aligned=ATTRIBUTE.format("aligned({alignment})"),
    block="(int)__builtin_amdgcn_workgroup_id_x()",
    thread="(int)__builtin_amdgcn_workitem_id_x()",
    barrier="xy_barrier();",
    bits={Elem.F32: "__builtin_bit_cast(float, {v})", Elem.I32: "__builtin_bit_cast(int, {v})"},
    nan='__builtin_nanf("")',
    infinity="__builtin_inff()",
    math=_LIBRARY,
    widen={DType.F16: "(float)__builtin_bit_cast(_Float16, {v})"},
    narrow={DType.F16: "__builtin_bit_cast(unsigned short, (_Float16)({v}))"},
    functions={
        "xm_exp2_1": "return __builtin_exp2f(x);",
        "xm_log_1": "return __builtin_logf(x);",
        "xm_exp_nonpositive_1": _EXP2.format("x * 0x1.715476p+0f"),
        **{f"xm_exp2_{name}_1": _EXP2.format("x") for name in ("nonpositive", "weight", "weight_bf16")},
        "xm_larger_number": "return __builtin_fmaxf(x, y);",
    },
    helpers={**HELPERS, **_FUNCTIONS},
    types=frozenset(_FUNCTIONS),
    take_packet="xy_take<{bytes}>({target}, {source});",
    matrix_dots={name: f"xy_{name}({{c}}, {{a}}, {{b}});" for name in MATRIX_SHAPES},
    subgroup_xor="xy_exchange({v}, {mask})",
)


def emit(kernel: Kernel) -> Definitions:
    """The HIP translation unit of ``kernel``."""
    return GpuPrinter(HIP).kernel(kernel)
