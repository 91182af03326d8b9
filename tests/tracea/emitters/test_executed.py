"""What may be executed here: asked of the doctor's profile in one place, and read from the instructions that were made."""

from __future__ import annotations

import platform
import shutil

import pytest

from tests.support.emulated import EMULATORS
from tests.support.machine import AVX_VNNI, BF16_PAIRS, BF16_TILES, INT8_TILES, runnable, widest
from tests.support.printed import source_of
from tests.support.run_program import carry_out
from tests.support.simulated import lacking_even_so, simulated
from tests.support.work import Buffer, Output, Step, Work
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.doctor.profile import this_machine
from xyntra_ep.tracea.planning.plan import BufferKind
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities, Isa
from xyntra_ep.tracea.semantic_ir.matrix_nodes import TileZero
from xyntra_ep.tracea.semantic_ir.nodes import index

pytestmark = [pytest.mark.compiler("cc"), pytest.mark.skipif(platform.machine() != "x86_64", reason="XYNTRA_ISA is about x86")]

# Text that no `emit` would make for a machine without the instruction set named before it.
WIDE = {
    Isa.AVX512: '__attribute__((target("avx512f")))',
    Isa.AVX2: '__attribute__((target("avx2")))',
}


def doubling(target: str, lanes: int) -> KernelSource:
    """x + x of one vector, whatever the machine is said to be."""
    text = (
        f"typedef float v __attribute__((vector_size({4 * lanes}), aligned(4), may_alias));\n"
        f'__attribute__((visibility("default"))) {target} void f(void *const *b, const long *p, long begin, long end)\n'
        "{ (void)p; (void)begin; (void)end; *(v *)b[0] = *(const v *)b[0] + *(const v *)b[0]; }\n"
    )
    return KernelSource.of_text("f", text)


def run(source: KernelSource, caps: Capabilities) -> bytes:
    work = Work(
        buffers=[Buffer(kind=BufferKind.OUTPUT, size_bytes=64, data=bytes(64))],
        run=[Step(label="a step", kernel=0, buffers=[(0, 0)], ranges=[(0, 1)])],
        outputs=[Output(buffer=0, shape=(16,), dtype=DType.F32)],
    )
    [[result]] = carry_out([work], [source], caps)
    return result.tobytes()


@pytest.mark.parametrize(
    ("isa", "caps", "lack"),
    [
        ("avx2", BF16_TILES, "avx512"),
        ("avx2", INT8_TILES, "avx512"),
        ("avx2", AVX_VNNI, "AVX_VNNI|avx2"),
        ("avx2", AVX512, "avx512"),
        ("avx2", BF16_PAIRS, "avx512"),
        ("scalar", AVX512, "avx512"),
        ("scalar", AVX2, "avx2"),
    ],
)
def test_what_the_machine_lacks_is_not_executed(isa: str, caps: Capabilities, lack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XYNTRA_ISA", isa)
    with pytest.raises(pytest.skip.Exception, match=rf"^this machine does not have ({lack})$"):
        run(doubling(WIDE.get(caps.isa, ""), 16), caps)
    assert widest().lanes <= {"avx512": 16, "avx2": 8, "scalar": 1}[isa]


def test_what_can_be_simulated_is_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles become functions, and the rest of the kernel stays what it is."""
    monkeypatch.setenv("XYNTRA_ISA", "avx512")
    kernel = KernelBuilder("f")
    out = kernel.buffer("out", DType.F32, writable=True)
    with kernel.tiles([(index(1), index(64))]):
        kernel.emit(TileZero(0))
        kernel.tile_store(0, out, 0, 16)
    source = source_of(kernel.finish()[0], BF16_TILES)
    assert "tilezero" in source.text and "%%tmm" not in simulated(source).text
    if lacking_even_so(this_machine(), BF16_TILES):
        pytest.skip("the machine has no AVX-512")
    assert run(source, BF16_TILES) == bytes(64)


def test_without_an_emulator_its_programs_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    named = f"nor {EMULATORS[Isa.NEON].compiler} and {EMULATORS[Isa.NEON].program} to emulate it"
    with pytest.raises(pytest.skip.Exception, match=f"^this machine does not have neon, {named}$"):
        run(doubling("", 4), NEON)


@pytest.mark.skipif(shutil.which("objdump") is None, reason="no objdump here")
@pytest.mark.parametrize(("isa", "widened"), [("avx2", Isa.AVX512), ("scalar", Isa.AVX2)])
def test_wider_code_than_was_declared_is_noticed(isa: str, widened: Isa, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were it executed here, a larger machine would give the right numbers and a smaller one die."""
    monkeypatch.setenv("XYNTRA_ISA", isa)
    [caps] = runnable({"avx2": AVX2, "scalar": SCALAR}[isa])
    with pytest.raises(AssertionError, match=rf"f, made for {isa}, has what this machine lacks: .*%[yz]mm"):
        run(doubling(WIDE[widened], {Isa.AVX512: 16, Isa.AVX2: 8}[widened]), caps)
    assert run(doubling("", caps.lanes), caps) == bytes(64)
