"""What dialects of C++ for GPUs have in common: their types, packets as structs, and half floats by functions of their own."""

from __future__ import annotations

from typing import Any

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.emitters.gpu_c import Dialect
from xyntra_ep.tracea.semantic_ir.nodes import Space

_PACKED = (DType.F32, DType.BF16, DType.F16, DType.I32, DType.I64, DType.I8, DType.U8, DType.BOOL)


def cpp_dialect(*, kernel: str, function: str, shared: str, aligned: str, helpers: dict[str, str], **words: Any) -> Dialect:
    """``kernel`` and ``shared`` begin declarations, ``aligned`` says how a type or an array of {alignment} does."""
    wide, narrow = words["widen"][DType.F16], words["narrow"][DType.F16]
    rounded = f"{function} float xy_round_f16(float v) {{ return {wide.format(v=narrow.format(v='v'))}; }}"
    packet = aligned.format(alignment="{bytes}")
    return Dialect(
        long="long long",
        long_suffix="ll",
        kernel=f'extern "C" {kernel} {{name}}({{arguments}})',
        function=function,
        spaces={Space.GLOBAL: "", Space.SHARED: "", Space.PRIVATE: ""},
        shared=f"{shared} {aligned} {{type}} {{name}}[{{count}}];",
        given=f"extern {shared} {aligned} unsigned char {{name}}[];",
        packets={d: f"xy_{d}x{{n}}" for d in _PACKED},
        packet_helper=f"struct {packet} {{type}} {{{{ {{element}} e[{{n}}]; }}}};",
        part="{v}.e[{i}]",
        packet="{type}{{{{{parts}}}}}",
        helpers={"xy_round_f16": rounded, **helpers},
        **words,
    )
