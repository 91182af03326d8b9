"""Functions that kernels in HIP's C++ call: waiting, exchange between registers, and matrix units by Clang's builtins."""

from __future__ import annotations

from collections.abc import Mapping

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.gpu.matrix_dot import MATRIX_SHAPES, MatrixShape

ATTRIBUTE = "__attribute__(({}))"
DEVICE = f"static {ATTRIBUTE.format('device')} {ATTRIBUTE.format('always_inline')} inline"
_EXCHANGE = f"""template <class T> {DEVICE} T xy_exchange(T value, int mask) {{
  struct words {{ int w[sizeof(T) / 4]; }} all = __builtin_bit_cast(words, value);
  const int from = ((int)__builtin_amdgcn_workitem_id_x() ^ mask) * 4;
  for (unsigned i = 0; i < sizeof(T) / 4; ++i) all.w[i] = __builtin_amdgcn_ds_bpermute(from, all.w[i]);
  return __builtin_bit_cast(T, all);
}}"""
_ELEMENTS = {DType.F16: "_Float16", DType.BF16: "short", DType.F32: "float"}  # of operands of matrix units


def _type(name: str, element: str, count: int | str, alignment: int | str = 2) -> str:
    """So many neighbours of anything; one is no vector."""
    vector = "" if count == 1 else f"ext_vector_type({count}), "
    return f"typedef {element} {name} {ATTRIBUTE.format(f'{vector}aligned({alignment}), may_alias')};"


_TAKE = f"""template <int bytes> {DEVICE} void xy_take(void *to, const void *from) {{
  {_type("own", "int", "bytes / 4")} {_type("packet", "int", "bytes / 4", "bytes")} *(own *)to = *(const packet *)from;
}}"""


def _matrix_dot(shape: MatrixShape) -> str:
    part, sums = _type("part", _ELEMENTS[shape.dtype], shape.held(shape.a)), _type("sums", "float", shape.held(shape.c))
    more = ", 0, 0, 0" if shape.name.startswith("mfma") else ""
    product = f"__builtin_amdgcn_{shape.name}(*(const part *)a, *(const part *)b, *(sums *)c{more})"
    return f"{DEVICE} void xy_{shape.name}(float *c, const void *a, const void *b) {{ {part} {sums} *(sums *)c = {product}; }}"


HELPERS: Mapping[str, str] = {
    # The fences are for memory of the block; the instruction alone orders none.
    "xy_barrier(": f'{DEVICE} void xy_barrier() {{ __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); '
    '__builtin_amdgcn_s_barrier(); __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); }',
    "xy_exchange(": _EXCHANGE,
    "xy_take<": _TAKE,
    **{f"xy_{name}(": _matrix_dot(shape) for name, shape in MATRIX_SHAPES.items()},
}
