"""What a compiler makes of the loops over k: sums stay in registers."""

from __future__ import annotations

import platform
import re
import shutil
from pathlib import Path

import pytest

from tests.support.instructions import built_alone, innermost_loops
from tests.support.run_program import plan_for
from tests.tracea.kernels.conv_programs import ConvCase, conv_program
from xyntra_ep.tracea.kernels.cpu.conv.nhwc_direct import VARIANTS
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2

pytestmark = [
    pytest.mark.compiler("cc"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="AVX2 is about x86"),
    pytest.mark.skipif(shutil.which("objdump") is None, reason="without objdump nothing is seen"),
]

_SUMS = 12  # of the largest tiles, which leave four registers


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize(
    ("channels", "side", "outputs"), [(256, 14, 512), (512, 14, 512), (384, 14, 512), (128, 28, 256), (512, 7, 1024)]
)
def test_no_sum_of_an_avx2_tile_lives_in_memory(channels: int, side: int, outputs: int, kernel: int, tmp_path: Path) -> None:
    """Depths that are one chain of additions, and those that are cut into several; panels that are fetched ahead or not."""
    pads = (kernel // 2,) * 4
    case = ConvCase(x=(1, channels, side, side), w=(outputs, channels, kernel, kernel), pads=pads, tail=("bias", "relu"))
    program, _, _ = conv_program(case)
    [text] = [k.text for k in plan_for(program, AVX2, VARIANTS).kernels if "tile0_" in k.text]
    library = built_alone(text, AVX2.isa, tmp_path)
    loops = [loop for loop in innermost_loops(library) if sum("vfmadd" in line for line in loop) >= _SUMS]
    assert loops
    for loop in loops:
        assert not [line for line in loop if re.search(r"ymm\d+,.*\(%r[sb]p\)", line)]
