"""Metal for machines without an Apple GPU: the text of kernels is compiled behind shim.h and runs on the host. ``FakeMetal`` puts
a driver in Metal's place that does so (driver.cc), so that all of ours is real: sessions, plans, native code.
"""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import ClassVar

import pytest

from tests.support.metal.compile import precompiled
from xyntra_ep.tracea.runtime.metal import devices

TIMEOUT, PAGE_FAULT, ACCESS_REVOKED, OUT_OF_MEMORY = 2, 3, 4, 8  # MTLCommandBufferError
needs_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="driver.cc sends messages by assembly for x86-64 alone")
_HERE = Path(__file__).resolve().parent
_OBJC, _METAL = "/usr/lib/libobjc.A.dylib", "/System/Library/Frameworks/Metal.framework/Metal"


@cache
def _driver(folder: Path) -> tuple[ctypes.CDLL, str]:
    """Loaded under the names of Apple's libraries, so that who opens these later gets it; and what to preload elsewhere."""
    objc, framework = folder / "objc.so", folder / "metal.so"
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["g++", *flags, f"-Wl,-soname,{_OBJC}", "-o", str(objc), str(_HERE / "driver.cc"), "-ldl"], check=True)
    link = [f"-Wl,-soname,{_METAL}", "-Wl,--no-as-needed"]
    subprocess.run(["g++", *flags, *link, "-o", str(framework), str(objc)], check=True)
    driver = ctypes.CDLL(str(objc))
    ctypes.CDLL(str(framework))
    (folder / "headers").mkdir()
    precompiled(folder / "headers")
    for count in (driver.fake_metal_living, driver.fake_metal_sent):
        count.argtypes, count.restype = [ctypes.c_char_p], ctypes.c_long
    return driver, f"{objc}:{framework}"


class FakeMetal:
    """In place of the real one for as long as ``monkeypatch`` lasts. ``folder`` must outlive the process's sessions; the first
    one's counts, because a process has one driver."""

    _home: ClassVar[Path | None] = None

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        folder = FakeMetal._home = FakeMetal._home or folder
        self._driver, preloaded = _driver(folder)
        self._monkeypatch = monkeypatch
        path = ":".join(filter(None, [os.environ.get("LD_PRELOAD", ""), preloaded]))
        monkeypatch.setenv("LD_PRELOAD", path)  # of the processes that list devices and compile
        monkeypatch.setenv("XYNTRA_TRIALS", "0")  # its kernels are slow to compile
        monkeypatch.setenv("FAKE_METAL_FOLDER", str(folder))
        monkeypatch.setenv("FAKE_METAL_COMPILE", f"{sys.executable} {_HERE / 'compile.py'}")
        monkeypatch.setenv("FAKE_METAL_HEADERS", str(folder / "headers"))
        devices.survey.cache_clear()

    def living(self, kind: str) -> int:
        """How many objects of a class there are."""
        return int(self._driver.fake_metal_living(kind.encode()))

    def fail(self, message: str, *, sent_from_now: int = 1, code: int | None = None) -> None:
        """Let one such message answer nil, or a command buffer end with ``code``."""
        number = int(self._driver.fake_metal_sent(message.encode())) + sent_from_now
        self._monkeypatch.setenv("FAKE_METAL_FAIL", f"{message}:{number}" + ("" if code is None else f"={code}"))

    def reset(self) -> None:
        """What lasted is over."""
        self._monkeypatch.delenv("FAKE_METAL_FAIL", raising=False)
        self._driver.fake_metal_reset()

    def set(self, **facts: int) -> None:
        """Found from now on: ``devices``, ``family`` (of Apple's), ``width`` (threads in step), ``threads`` (of a kernel)."""
        for name, value in facts.items():
            self._monkeypatch.setenv(f"FAKE_METAL_{name.upper()}", str(value))
        devices.survey.cache_clear()
