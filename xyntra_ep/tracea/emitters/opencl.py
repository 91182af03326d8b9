"""The dialect of OpenCL C 1.2. Half floats are loaded and stored by functions that every device has; copies are synchronous."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.emitters.gpu_c import Dialect, GpuPrinter
from xyntra_ep.tracea.runtime.kernel_source import Definitions
from xyntra_ep.tracea.semantic_ir.nodes import Elem, Kernel, Space

OPENCL = Dialect(
    long="long",
    long_suffix="l",
    kernel="__kernel __attribute__((reqd_work_group_size({threads}, 1, 1))) void {name}({arguments})",
    function="static inline",
    spaces={Space.GLOBAL: "__global", Space.SHARED: "__local", Space.PRIVATE: "__private"},
    shared="__local {type} {name}[{count}] __attribute__((aligned({alignment})));",
    block="(int)get_group_id(0)",
    thread="(int)get_local_id(0)",
    barrier="barrier(CLK_LOCAL_MEM_FENCE);",
    bits={Elem.F32: "as_float({v})", Elem.I32: "as_int({v})"},
    nan="NAN",
    infinity="INFINITY",
    math="{name}",
    load={DType.F16: "vload{a}_half{n}(0, (const {space} half *)({p}))"},
    store={DType.F16: "vstore{a}_half{n}_rte({v}, 0, ({space} half *)({p}));"},
    functions={
        "xm_log_1": "return log(x);",
        "xm_exp_nonpositive_1": "return exp2(x * 0x1.715476p+0f);",
        **{f"xm_{name}_1": "return exp2(x);" for name in ("exp2", "exp2_nonpositive", "exp2_weight", "exp2_weight_bf16")},
    },
    helpers={
        "xy_round_f16": "static inline float xy_round_f16(float v) { unsigned short h; "
        "vstore_half_rte(v, 0, (__private half *)&h); return vload_half(0, (__private half *)&h); }",
    },
    packets={DType.F32: "float{n}", DType.I32: "int{n}", DType.I64: "long{n}", DType.BF16: "ushort{n}", DType.F16: "ushort{n}"},
    part="{v}.s{i:x}",
    packet="({type})({parts})",
    go="go",
    not_go="unused",
)


def emit(kernel: Kernel) -> Definitions:
    """The OpenCL program of ``kernel``."""
    return GpuPrinter(OPENCL).kernel(kernel)
