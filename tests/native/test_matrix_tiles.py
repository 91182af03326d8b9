"""The operating system's permission to use matrix tiles, which native code asks for when a kernel needs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.native.test_processes import run_python
from tests.support.machine import BF16_TILES, need

pytestmark = [pytest.mark.native, pytest.mark.compiler("gcc")]

KERNEL = r"""
tiles = '''
  __asm__(".pushsection .rodata; .globl xy_needs_tiles; xy_needs_tiles: .byte 1; .popsection");
  unsigned char shape[64] = {1}; shape[16] = 64; shape[48] = 1;
  __asm__ volatile("ldtilecfg %0; tilezero %%tmm0; tilerelease" :: "m"(shape));'''
"""
RUN = """
planner.kernels[0] = compile_kernel(folder, "relu", tiles + BODIES["relu"])
waiting = session(2)
"""


def test_a_process_of_its_own_may_use_tiles(tmp_path: Path) -> None:
    """On threads of ONNX Runtime's pool, those of an earlier session too."""
    need(BF16_TILES)
    done = run_python(tmp_path, KERNEL + RUN + "print('right', right(waiting) and right(session(2)))")
    assert "right True" in done.stdout, done.stderr


def test_a_refusal_leaves_the_nodes_to_others(tmp_path: Path) -> None:
    """Linux refuses when a thread's alternate signal stack is too small for the tiles."""
    need(BF16_TILES)
    small = """
import ctypes
stack = ctypes.create_string_buffer(8192)
class Stack(ctypes.Structure):
    _fields_ = [("sp", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]
assert ctypes.CDLL(None).sigaltstack(ctypes.byref(Stack(ctypes.addressof(stack), 0, 8192)), None) == 0
"""
    done = run_python(tmp_path, f"{KERNEL}{RUN}print('right', right(waiting))", before=small)
    assert "right True" in done.stdout, done.stderr
    assert "does not permit matrix tiles" in done.stderr
