"""What systems call libraries, and how they are made: of this one, or of the one that a compiler makes code for. native/system is
the native side of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """Of shared libraries. ``magics``: how such files begin. ``link``: flags for GCC's and Clang's drivers, with which a library
    has no start-up code where it may have none, links nothing that is not called, and lacks nothing that nobody provides."""

    suffix: str
    magics: tuple[bytes, ...]
    link: tuple[str, ...]


ELF = Format(suffix=".so", magics=(b"\x7fELF",), link=("-shared", "-nostartfiles", "-Wl,--as-needed,-z,defs", "-lm"))
MACH_O = Format(suffix=".dylib", magics=(b"\xcf\xfa\xed\xfe",), link=("-shared",))
PE = Format(suffix=".dll", magics=(b"MZ",), link=("-shared",))
_BY_SYSTEM = {"win": PE, "mingw": PE, "darwin": MACH_O, "macos": MACH_O}


def format_of(system: str = sys.platform) -> Format:
    """As Python, or as compilers in what they call targets, name it.

    >>> format_of("linux").suffix, format_of("win32").suffix, format_of("aarch64-macos").suffix
    ('.so', '.dll', '.dylib')
    """
    named = system.split("-", 1)[-1]
    return next((form for begin, form in _BY_SYSTEM.items() if named.startswith(begin)), ELF)


def made_for(command: Sequence[str]) -> Format:
    """Of what a compiler makes that is called so: for another system, where its command says one.

    >>> made_for(["zig", "cc", "-target", "x86_64-windows-gnu"]).suffix
    '.dll'
    """
    for name, value in zip(command, [*command[1:], ""], strict=True):
        if name in ("-target", "--target"):
            return format_of(value)
        if name.startswith("--target="):
            return format_of(name.partition("=")[2])
    return format_of()


def library_name(stem: str, system: str = sys.platform) -> str:
    """
    >>> library_name("xyntra_ep", "linux"), library_name("xyntra_ep", "win32")
    ('libxyntra_ep.so', 'libxyntra_ep.dll')
    """
    return f"lib{stem}{format_of(system).suffix}"
