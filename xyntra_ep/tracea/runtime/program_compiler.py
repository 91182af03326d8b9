"""A compiler that is a library: NVRTC, and those whose functions are called as its are."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import ClassVar

from xyntra_ep.errors import CompileError


class ProgramCompiler:
    """The library. ``prefix``: of its functions; ``code``: the one that gives what was made. ``version``: (major, minor), as it
    says."""

    name: ClassVar[str]
    prefix: ClassVar[str]
    code: ClassVar[str]

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._function("GetErrorString").restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.call("Version", ctypes.byref(major), ctypes.byref(minor))
        self.version = (major.value, minor.value)

    def compiled(self, name: str, text: str, file: str, options: Sequence[str]) -> tuple[bytes, str]:
        """The code of ``text``, and the log; ``file`` is how messages call it. Raises CompileError with the log."""
        program = ctypes.c_void_p()
        self.call("CreateProgram", ctypes.byref(program), text.encode(), file.encode(), 0, None, None)
        try:
            array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            status = self._function("CompileProgram")(program, len(options), array)
            log = self._bytes("GetProgramLog", program).rstrip(b"\0").decode(errors="replace")
            if status != 0:
                why = f"{self.name}: {self._reason(status)} with {options[0]}"
                raise CompileError(why, where=name, source=text, log=log)
            return self._bytes(self.code, program), log
        finally:
            self.call("DestroyProgram", ctypes.byref(program))

    def call(self, name: str, *args: object) -> None:
        """Raises CompileError for what it refuses."""
        status = self._function(name)(*args)
        if status != 0:
            raise CompileError(f"{self.prefix}{name}: {self._reason(status)}", where=self.name)

    def _function(self, name: str) -> ctypes._FuncPointer:
        found: ctypes._FuncPointer = getattr(self._library, f"{self.prefix}{name}")
        return found

    def _bytes(self, getter: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self.call(f"{getter}Size", program, ctypes.byref(size))
        found = ctypes.create_string_buffer(size.value)
        self.call(getter, program, found)
        return found.raw

    def _reason(self, status: int) -> str:
        return bytes(self._function("GetErrorString")(status)).decode()
