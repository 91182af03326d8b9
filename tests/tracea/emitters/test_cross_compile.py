"""Every CPU variant's text through a real compiler for every instruction set, also those that this machine does not have.

Kernels are C without headers, so clang needs no more than a target's name. What they compute is checked elsewhere, for NEON in
test_neon.py; this is what machines have that nobody at hand has.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.machine import AVX_VNNI, BF16_PAIRS, BF16_TILES, INT8_TILES, VBMI, VNNI
from tests.support.printed import c_text
from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.elementwise import here, permuted, pointwise, rows
from tests.support.programs.recurrences import CELLS, recurrence
from tests.tracea.kernels import attention_programs, block_programs, conv_programs, gemm_programs, low_rank_programs
from tests.tracea.kernels.attention_programs import AttentionCase
from tests.tracea.kernels.block_programs import BlockCase
from tests.tracea.kernels.conv_programs import ConvCase
from tests.tracea.kernels.cpu.rows.window_programs import windows
from tests.tracea.kernels.gemm_programs import GemmCase
from tests.tracea.kernels.low_rank_programs import LowRankCase
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import acc, call, const
from xyntra_ep.tracea.core_ir.ops import Attention, Conv, Product, Program, ReduceKind, Scan, Stage, TopK, ValueKind
from xyntra_ep.tracea.doctor.variants import cpu_variants
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant
from xyntra_ep.tracea.planning.builder import moves_numbers
from xyntra_ep.tracea.runtime.compilers import Compiler, Family, survey, target_flags
from xyntra_ep.tracea.runtime.process import run_all
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities, Isa
from xyntra_ep.tracea.semantic_ir.lifted_constants import lifted

pytestmark = pytest.mark.compiler("cc")

MACHINES = {
    "avx512": AVX512,
    "avx512-pairs": BF16_PAIRS,
    "avx512-tiles": BF16_TILES,
    "avx512-vbmi": VBMI,
    "avx512-vnni": VNNI,
    "avx512-int8-tiles": INT8_TILES,
    "avx2": AVX2,
    "avx-vnni": AVX_VNNI,
    "neon": NEON,
    "scalar": SCALAR,
}
X86, ARM = "x86_64-linux-gnu", "aarch64-linux-gnu"
LIMIT_S = 300.0


def programs() -> Iterator[Program]:
    """One op each; between them every variant finds one that it admits. Sizes are ragged, so that rests of tiles are there."""
    for product in Product:
        if product in (Product.I32, Product.INT8):
            continue
        yield gemm_programs.build(GemmCase(m=9, k=21, n=53, epilogue="gelu", product=product))[0]
        yield gemm_programs.build(GemmCase(m=9, k=20, n=53, constant_b=False, transpose="b", product=product))[0]
    yield from _of_bytes()
    yield gemm_programs.build(GemmCase(m=2, k=20, n=53, constant_b=False, symbolic="k"))[0]
    yield gemm_programs.build(GemmCase(m=9, k=20, n=53, epilogue="bias", filled=((64, 64),)))[0]
    for constant in (True, False):
        yield low_rank_programs.build(LowRankCase(m=9, k=21, n=53, rank=5, constant=constant, epilogue="bias"))[0]
    for bits, zeros in ((4, None), (4, DType.U8), (8, DType.F16)):
        yield block_programs.build(BlockCase(m=9, k=77, n=53, bits=bits, zeros=zeros, epilogue="gelu"))[0]
    yield block_programs.build(BlockCase(m=40, k=77, n=53, zeros=DType.U8, product=Product.INT8))[0]
    yield block_programs.build(BlockCase(m=9, k=40, n=5, constant=False))[0]
    yield gemm_programs.build(GemmCase(m=9, k=20, n=53, dtypes=(DType.F16, DType.BF16, DType.BF16), epilogue="residual"))[0]
    yield gemm_programs.build(GemmCase(m=3, k=4, n=5, dtypes=(DType.I32, DType.I32, DType.I64), constant_b=False))[0]
    for product in (Product.F32, Product.BF16):
        for case in (
            AttentionCase(s=19, t=23, masks=("bias", "causal"), d=32, e=32),
            AttentionCase(s=1, t=40, masks=("bool",), d=32, e=32),
            AttentionCase(s=5, t=23, dtype=DType.F16),
            AttentionCase(s=70, t=700, masks=("window",), window=64, d=32, e=32),
            AttentionCase(s=70, t=700, masks=("blocks",), window=64, d=32, e=32),
        ):
            yield _asked(attention_programs.build(case)[0], product)
        for conv in (
            ConvCase(x=(1, 32, 13, 11), w=(40, 32, 3, 3), pads=(1,) * 4, tail=("bias", "residual", "relu")),
            ConvCase(x=(1, 3, 23, 21), w=(24, 3, 7, 7), strides=(2, 2), pads=(3,) * 4, channels_last=False),
            ConvCase(x=(1, 40, 13, 11), w=(40, 1, 3, 3), pads=(1,) * 4, group=40),
            ConvCase(x=(1, 32, 13, 11), w=(64, 8, 3, 3), pads=(1,) * 4, group=4),
            ConvCase(x=(1, 32, 13, 11), w=(32, 4, 3, 3), pads=(1,) * 4, group=8),
            ConvCase(x=(1, 5, 9), w=(7, 5, 3), symbolic="n"),
            ConvCase(x=(1, 32, 7, 9), w=(20, 32, 3, 3), pads=(1,) * 4, dtype=DType.BF16),
            ConvCase(x=(1, 19, 7, 9), w=(19, 1, 3, 3), group=19, dtype=DType.F16),
        ):
            yield _asked(conv_programs.conv_program(conv)[0], product)
    yield from _row_programs()


def _of_bytes() -> Iterator[Program]:
    bytes_ = (DType.U8, DType.I8, DType.F32)
    gemm = GemmCase(m=9, k=21, n=53, epilogue="gelu_of_int", dtypes=bytes_, product=Product.I32)
    yield gemm_programs.build(gemm)[0]
    yield gemm_programs.build(replace(gemm, k=20, constant_b=False, transpose="b"))[0]
    for x, w, group in (
        ((1, 32, 13, 11), (40, 32, 3, 3), 1),
        ((1, 3, 13, 11), (40, 3, 3, 3), 1),
        ((1, 40, 13, 11), (40, 1, 3, 3), 40),
    ):
        conv = ConvCase(x=x, w=w, pads=(1,) * 4, group=group, tail=("requantised",), dtype=DType.U8, w_dtype=DType.I8)
        yield conv_programs.conv_program(replace(conv, product=Product.I32))[0]


def _asked(program: Program, product: Product) -> Program:
    """``program``, its matrix product asked for in ``product``."""
    [op] = program.ops
    assert isinstance(op, (Attention, Conv))
    program.ops[0] = replace(op, product=product)
    return program


def _row_programs() -> Iterator[Program]:
    for dtype in (DType.F32, DType.F16, DType.BF16, DType.I64, DType.U8, DType.BOOL):
        p = ProgramBuilder()
        x = p.input("m", "n", dtype=dtype)
        body = call("erf", call("tanh", here(x, 0))) if dtype.is_float else call("to_i", here(x, 0))
        yield pointwise(x.shape, [x], body, p, DType.F32 if dtype.is_float else DType.I64)
    p = ProgramBuilder()
    x = p.input("m", "n")
    level, ends = call("quantise", here(x, 0), const(0.5), const(3.0), const(0.0), const(255.0)), (const(-128.0), const(127.0))
    table = call("to_i", call("quantise", call("tanh", level), const(0.01), const(0.0), *ends))
    yield pointwise(x.shape, [x], table, p, DType.I8)
    p = ProgramBuilder()
    turned = permuted(p.input("m", "n"), (1, 0))
    yield pointwise(turned.shape, [turned], here(turned, 0), p, DType.F32)
    p = ProgramBuilder()
    pixels = permuted(p.input(3, "n"), (1, 0))
    yield pointwise(pixels.shape, [pixels], here(pixels, 0), p, DType.BF16)
    p = ProgramBuilder()
    x = p.input("m", "n")
    shifted = call("exp", call("sub", here(x, 0), acc(0)))
    softmax = [Stage(kind=ReduceKind.MAX, body=here(x, 0)), Stage(kind=ReduceKind.SUM, body=shifted)]
    yield rows(x.shape[:1], x.shape[1:], [x], softmax, [(call("div", shifted, acc(1)), False)], p)
    p = ProgramBuilder()
    x = p.input("m", "n", dtype=DType.F16)
    yield rows(x.shape[:1], x.shape[1:], [x], softmax, [(call("div", shifted, acc(1)), False)], p)
    p = ProgramBuilder()
    x = permuted(p.input("m", "n"), (1, 0))
    yield rows(x.shape[:1], x.shape[1:], [x], [Stage(kind=ReduceKind.SUM, body=here(x, 0))], [(acc(0), True)], p)
    p = ProgramBuilder()
    x = p.input("m", "n")
    out = p.value(ValueKind.OUTPUT, *x.shape)
    p.op(
        Scan(inputs=(x,), body=call("mul", here(x, 0), const(0.5)), kind=ReduceKind.SUM, exclusive=True, reverse=True, output=out)
    )
    yield p.program
    p = ProgramBuilder()
    x = p.input("m", "n")
    values, indices = p.value(ValueKind.OUTPUT, x.shape[0], 5), p.value(ValueKind.OUTPUT, x.shape[0], 5, dtype=DType.I64)
    p.op(TopK(inputs=(x,), k=5, largest=True, values=values, indices=indices))
    yield p.program
    yield windows((1, 2, "h", "w"), (3, 3), stride=2, pad=1)
    yield windows((1, 2, 13, 21), (2, 2), kind=ReduceKind.SUM, mean=True, dtype=DType.BF16)
    for cell in CELLS:
        yield recurrence(cell, 21, reverse=(False, True), lengths=True)
        yield recurrence(cell, 21, reverse=(False, True), lengths=True, of_bytes=True)


def admitted(caps: Capabilities) -> Iterator[tuple[Variant[Any], Program, BuildContext]]:
    for program in programs():
        [op] = program.ops
        constants = frozenset(i for i, v in enumerate(program.values) if v.kind is ValueKind.CONST)
        context = BuildContext(caps=caps, program=program, constants=constants)
        for variant in cpu_variants()[type(op)]:
            if variant.admits(op, context) is None:
                yield variant, program, context


@cache
def texts(caps: Capabilities) -> dict[str, str]:
    """Distinct kernels by a name for their file."""
    found: dict[str, str] = {}
    for variant, program, context in admitted(caps):
        [op] = program.ops
        for call_ in variant.build(op, variant.default(op, context), context):
            kernel = lifted(call_.kernel, caps)[0] if moves_numbers(op) else call_.kernel
            found.setdefault(c_text(kernel, caps), f"{variant.name.replace('.', '_')}_{len(found)}.c")
    return {name: text for text, name in found.items()}


def command(caps: Capabilities) -> tuple[str, ...]:
    """A compiler for ``caps``' architecture, or the test is skipped."""
    target = ARM if caps.isa is Isa.NEON else X86
    native = platform.machine().replace("arm64", "aarch64").replace("AMD64", "x86_64") == target.split("-")[0]
    usable: list[Compiler] = [c.compiler for c in survey() if c.compiler is not None]
    for compiler in usable:
        if compiler.family is Family.CLANG:
            return (*compiler.command, f"--target={target}")
        if compiler.family is Family.ZIG:
            return (*compiler.command, "-target", target)
    if not native or not usable:
        pytest.skip(f"no clang and no ziglang here to compile for {target}")
    return usable[0].command


@pytest.mark.parametrize("machine", MACHINES)
def test_every_kernel_compiles(machine: str, tmp_path: Path) -> None:
    caps = MACHINES[machine]
    # What an instruction set lacks shows at any level of optimisation.
    flags = target_flags(caps.isa, bf16=caps.avx512_bf16_convert, vnni=caps.vnni)
    argv = [*command(caps), "-x", "c", "-std=gnu11", "-O0", "-w", "-c", *flags]
    known = set(texts(AVX512).values()) if caps.isa is Isa.AVX512 and caps is not AVX512 else set()
    files = {name: text for name, text in texts(caps).items() if text not in known}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    [outcome] = run_all([[*argv, *files]], folder=tmp_path, parallel=1, timeout_s=LIMIT_S)
    assert not outcome.problem, f"{outcome.problem}\n{outcome.log}"
    assert len(list(tmp_path.glob("*.o"))) == len(files)


def test_every_variant_has_a_program() -> None:
    """A new variant brings a program here, if none of those there is for it."""
    met = {variant.name for caps in MACHINES.values() for variant, _, _ in admitted(caps)}
    assert met == {variant.name for variants in cpu_variants().values() for variant in variants}
