"""Text for a GPU to a shared object for driver.cc: compile.py SOURCE OUTPUT [hip]. Of CUDA, what is PTX is replaced by what it
does; of HIP, attributes are taken away, and functions of matrix units written by the tables that describe these."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xyntra_ep.tracea.semantic_ir.gpu.lane_map import LaneMap

_KERNEL = re.compile(r"__launch_bounds__\((\d+)(?:, 1)?\) (?:__cluster_dims__\((\d+), 1, 1\) )?(\w+)\(")
_GIVEN = re.compile(r"extern __shared__ __align__\(1024\) unsigned char (\w+)\[\];")
_PTX = re.compile(r'asm volatile\("cp\.async\.(?:commit_group|wait_group \d+);" ::: "memory"\);')
_COPY = re.compile(r"(static [^\n]*\bvoid xy_copy_(\d+)\(void \*to, const void \*from, int valid\)) \{[^\n]*\}")
_COPIED = r"\1 { memcpy(to, from, (size_t)valid); memset((char *)to + valid, 0, (size_t)(\2 - valid)); }"
_LOAD = re.compile(r"(static [^\n]*\bvoid xy_load_fragments(_transposed)?\([^\n]*?\)) \{[^\n]*\}")
_DOT = re.compile(
    r"(static [^\n]*\bvoid xy_fragment_dot_\w+\([^\n]*?\)) "
    r'\{ asm\("mma\.sync\.aligned\.m16n8k(8|16)\.row\.col\.f32\.(tf32|bf16|f16)\.\3\.f32 [^\n]*\}'
)
_DOTTED = r"\1 { fragment_dot<\2>(\3_of, {&c0, &c1, &c2, &c3}, {a0, a1, a2, a3, b0, b1}); }"
_ROUND = re.compile(r"(static [^\n]*\bfloat xy_round_tf32\(float x\)) \{[^\n]*cvt\.rna\.tf32\.f32 [^\n]*\}")
_EXP2 = re.compile(r"(static [^\n]*\bfloat xy_exp2\(float x\)) \{[^\n]*\}")
_PAIR = re.compile(r"(static [^\n]*\bint xy_pair_(bf16|f16)\(float low, float high\)) \{[^\n]*\}")
_CONVERT = re.compile(r"(static [^\n]*\b(?:float|short) xy_(widen_f16|narrow_b?f16)\([^\n ]+(?: \w+)* (\w)\)) \{[^\n]*\}")
# Warpgroups: functions, with the PTX that they must have for what they do. What is written otherwise is left, and refused.
_SHARED = r'"r"\(\(unsigned\)__cvta_generic_to_shared\(at\)\)'
_FUNCTIONS = {
    (
        "xy_mbarrier_init",
        r'"mbarrier\.init\.shared::cta\.b64 \[%0\], %1;" :: AT, "r"\(arrivals\)',
    ): "init_mbarrier(at, arrivals);",
    (
        "xy_mbarriers_ready",
        r'"fence\.mbarrier_init\.release\.cluster; fence\.proxy\.async\.shared::cta;"',
    ): "warpgroups.ready = true;",
    ("xy_expect", r'"mbarrier\.arrive\.expect_tx\.shared::cta\.b64 _, \[%0\], %1;" :: AT, "r"\(bytes\)'): "arrive(at, bytes);",
    (
        "xy_arrive_at",
        r'"\{ \.reg \.b32 there; mapa\.shared::cluster\.u32 there, %0, %1; '
        r'mbarrier\.arrive\.shared::cluster\.b64 _, \[there\]; \}" :: AT, "r"\(block\)',
    ): "arrive(of_block((char *)at, (unsigned)block), 0);",
    (
        "xy_meet_cluster",
        r'"barrier\.cluster\.arrive\.release\.aligned; barrier\.cluster\.wait\.acquire\.aligned;"',
    ): "meet_cluster();",
    ("xy_arrive", r'"mbarrier\.arrive\.shared::cta\.b64 _, \[%0\];" :: AT'): "arrive(at, 0);",
    (
        "xy_passed",
        r'"[^"]*mbarrier\.try_wait\.parity\.shared::cta\.b64 p, \[%1\], %2; selp\.b32 %0, 1, 0, p; \}" '
        r': "=r"\(passed\) : AT, "r"\(parity\)',
    ): "return passed(at, parity);",
}
_COPY_TENSOR = re.compile(
    r"(static [^\n]*\bvoid xy_copy_tensor_\d(_everywhere)?\([^\n]*?\)) \{ asm volatile\("
    r'"cp\.async\.bulk\.tensor\.(\d)d\.shared::cluster\.global\.mbarrier::complete_tx::bytes(\.multicast::cluster)? '
    r'\[%0\], \[%1, \{([%\d, ]+)\}\], \[%2\](, %\d)?;"'
    r'[^\n]*?"l"\(&map\), [^\n]*\}'
)
_PRODUCT = re.compile(
    r"(static [^\n]*\bvoid xy_dot_\w+\([^\n]*?\)) \{ asm volatile\([^\n]*"
    r"setp\.(eq|ne)\.u32 p, 0, 0; wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k16\.f32\.(bf16|f16)\.\4 "
    r"\{[%\d, ]+\}, (?:%\d+|\{%\d+, %\d+, %\d+, %\d+\}), %\d+, p, 1, 1, (?:(\d), )?(\d); \}"
    r'" : "([+=])f"[^\n]* : (?:"l"\(a\)|("r"\(a0\), "r"\(a1\), "r"\(a2\), "r"\(a3\))), "l"\(b\)\); \}'
)
_COMPLETE = re.compile(
    r"(static [^\n]*\bvoid xy_products_complete_\w+\([^\n]*?\)) "
    r'\{ asm volatile\("wgmma\.wait_group\.sync\.aligned (\d+);"[^\n]*\}'
)
_WARPGROUP = {
    r'asm volatile\("wgmma\.commit_group\.sync\.aligned;" ::: "memory"\);': "commit_products();",
    r'asm volatile\("wgmma\.wait_group\.sync\.aligned (\d+);" ::: "memory"\);': r"wait_products(\1);",
    r'asm volatile\("(?:wgmma\.fence|setmaxnreg\.(?:inc|dec))\.sync\.aligned[^"]*;"(?: ::: "memory")?\);': "",
}


def _copied_tensor(found: re.Match[str]) -> str:
    axes, everywhere = int(found[3]), found[2] is not None
    assert found[5] == ", ".join(f"%{i + 3}" for i in range(axes)), "coordinates in another order"
    assert (found[4] is not None) == (found[6] == f", %{axes + 3}") == everywhere, "to several blocks or to one"
    return f"{found[1]} {{ copy_tensor(to, map, at, {{{', '.join(f'x{i}' for i in range(axes))}}}, {str(everywhere).lower()}); }}"


def _begun(found: re.Match[str]) -> str:
    """``setp.ne`` of 0 and 0: what was in the sums does not count, and they are outputs alone."""
    sums = ", ".join(f"&c{i}" for i in range(int(found[3]) // 2))
    fresh, in_registers = found[2] == "ne", found[8] is not None
    assert fresh == (found[7] == "="), "sums that are read, or are not"
    assert in_registers == (found[5] is None), "a is turned round in shared memory alone"
    a, own = ("0", "{a0, a1, a2, a3}, ") if in_registers else ("a", "")
    product = f"{a}, b, {found[5] or 0}, {found[6]}, {str(fresh).lower()}, {found[4]}_of, {{{sums}}}"
    return f"{found[1]} {{ begin_product({own}{{{product}}}); }}"


def _with_warpgroups(text: str) -> str:
    for (name, written), what in _FUNCTIONS.items():
        body = written.replace("AT", _SHARED)
        text = re.sub(rf"(static [^\n]*\b{name}\([^\n]*?\)) \{{ [^\n]*?asm volatile\({body}[^\n]*\}}", rf"\1 {{ {what} }}", text)
    text = _COMPLETE.sub(r"\1 { wait_products(\2); }", _PRODUCT.sub(_begun, _COPY_TENSOR.sub(_copied_tensor, text)))
    for pattern, what in _WARPGROUP.items():
        text = re.sub(pattern, what, text)
    return text


def _loaded(found: re.Match[str]) -> str:
    turned = "true" if found[2] else "false"
    return f"{found[1]} {{ load_fragments({turned}, {{&a, &b, &c, &d}}, from); }}"


# HIP
_WORDS = {
    r"__attribute__\(\(device\)\) ": "",
    r"__attribute__\(\(always_inline\)\) ": "",
    r"extern __attribute__\(\(shared\)\) __attribute__\(\(aligned\(1024\)\)\) unsigned char (\w+)\[\];": (
        r"unsigned char *const \1 = given_shared();"
    ),
    r"__attribute__\(\(shared\)\) ": "static ",
    r"__builtin_amdgcn_workgroup_id_x\(\)": "blockIdx.x",
    r"__builtin_amdgcn_workitem_id_x\(\)": "threadIdx.x",
    r"__builtin_amdgcn_fence\(__ATOMIC_\w+, \"workgroup\"\);": "",
    r"__builtin_amdgcn_s_barrier\(\)": "__syncthreads()",
    r"__builtin_amdgcn_exp2f\(": "approximate_exp2(",
    r"__builtin_amdgcn_ds_bpermute\(": "exchange_by_address(",
    r"extern \"C\" float __ocml_(\w+)_f32\(float\);": r"static float __ocml_\1_f32(float a) { return \1f(a); }",
    r"extern \"C\" float __ocml_(\w+)_f32\(float, float\);": r"static float __ocml_\1_f32(float a, float b) { return \1f(a, b); }",  # noqa: E501
    r"(void xy_take\(void \*to, const void \*from\)) \{.*?\n\}": r"\1 { memcpy(to, from, bytes); }",
}
_HIP_KERNEL = re.compile(
    r"__attribute__\(\(global\)\) __attribute__\(\(amdgpu_flat_work_group_size\((\d+), \1\)\)\) void (\w+)\("
)
_MATRIX = re.compile(r"(void xy_(\w+)\(float \*c, const void \*a, const void \*b\)) \{.*__builtin_amdgcn_\2\(.*\}")


def _multiplied(found: re.Match[str]) -> str:
    """By the shape's lane maps: where each element of a row of a and of a column of b is, as lane and number."""
    from xyntra_ep.tracea.semantic_ir.gpu.matrix_dot import MATRIX_SHAPES

    shape = MATRIX_SHAPES[found[2]]
    lanes, a, b, c = shape.lanes, shape.held(shape.a), shape.held(shape.b), shape.held(shape.c)

    def where(part: LaneMap, held: int, row: str, column: str, columns: int) -> str:
        places = {}
        for element in range(held):
            for lane in range(lanes):
                place = shape.place(part, lane, element)
                places[place[row] * columns + place[column]] = lane * held + element
        return ", ".join(str(places[i]) for i in range(len(places)))

    own = ", ".join(
        str(place["m"] * shape.n + place["n"])
        for lane in range(lanes)
        for place in (shape.place(shape.c, lane, i) for i in range(c))
    )
    value = {"f16": "widen_f16", "bf16": "widen_bf16", "f32": "tf32_bits" if shape.rounded else "whole_f32"}[shape.dtype]
    return (
        f"{found[1]} {{ static const int of_a[] = {{{where(shape.a, a, 'm', 'k', shape.k)}}}, "
        f"of_b[] = {{{where(shape.b, b, 'n', 'k', shape.k)}}}, of_c[] = {{{own}}}; "
        f"matrix_dot<{lanes}, {a}, {b}, {c}, {shape.n}, {shape.k}>({value}, c, a, b, of_a, of_b, of_c); }}"
    )


def _of_hip(text: str) -> tuple[str, str]:
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    for pattern, what in _WORDS.items():
        text = re.sub(pattern, what, text, flags=re.DOTALL if "take" in pattern else 0)
    text = _MATRIX.sub(_multiplied, text)
    exported = "".join(f"XY_KERNEL({name}, {threads}, 1)\n" for threads, name in _HIP_KERNEL.findall(text))
    return _HIP_KERNEL.sub(r"void \2(", text), exported


def _of_cuda(text: str) -> tuple[str, str]:
    text = _COPY.sub(_COPIED, _PTX.sub("", text))
    text = _DOT.sub(_DOTTED, _LOAD.sub(_loaded, _GIVEN.sub(r"unsigned char *const \1 = given_shared();", text)))
    text = _CONVERT.sub(r"\1 { return \2(\3); }", text)
    text = _ROUND.sub(r"\1 { return round_tf32(x); }", text)
    text = _EXP2.sub(r"\1 { return approximate_exp2(x); }", text)
    text = _PAIR.sub(r"\1 { return pair_of(narrow_\2, low, high); }", text)
    text = _with_warpgroups(text)
    return text, "".join(f"XY_KERNEL({name}, {threads}, {cluster or 1})\n" for threads, cluster, name in _KERNEL.findall(text))


def main(source: str, output: str, language: str = "cuda") -> int:
    text, exported = (_of_hip if language == "hip" else _of_cuda)(Path(source).read_text(encoding="utf-8"))
    if "asm" in text or "__builtin_amdgcn" in text:
        print("instructions that compile.py does not know", file=sys.stderr)
        return 1
    made = Path(output).with_suffix(".cc")
    made.write_text(f'#include "{Path(__file__).parent / "block.h"}"\n{text}\n{exported}', encoding="utf-8")
    flags = ["-std=c++17", "-O1", "-w", "-ffp-contract=off", "-fno-strict-aliasing", "-shared", "-fPIC"]
    return subprocess.run(["g++", *flags, "-o", output, str(made)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
