"""Kernels for processors as one module of WebAssembly, with its vectors of 128 bits."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from xyntra_ep.errors import UnsupportedError, XyntraError
from xyntra_ep.tracea.runtime.compilers import Compiler, Family, survey
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.runtime.process import run_all
from xyntra_ep.tracea.runtime.translation_unit import merged

REMEDY = "install clang and lld, or `pip install xyntra-ep[cc]`"
# What kernels may call: JavaScript has it (`xyntra-wasm.js`).
IMPORTED = (
    "powf", "fmodf", "expf", "expm1f", "logf", "log1pf", "log2f", "exp2f", "sinf", "cosf", "tanf", "asinf", "acosf", "atanf",
    "sinhf", "coshf", "tanhf", "asinhf", "acoshf", "atanhf", "cbrtf", "roundf",
    "sched_yield",
)  # fmt: skip
_COMMON = (
    "-x", "c", "-std=gnu11", "-O2", "-fvisibility=hidden", "-fno-math-errno", "-ffp-contract=fast", "-msimd128", "-mbulk-memory",
)  # fmt: skip
_TARGET = {
    Family.CLANG: ("--target=wasm32",),
    Family.ZIG: ("-target", "wasm32-freestanding", "-fno-sanitize=undefined", "-g0"),
}
_STACK_BYTES = 1 << 20
_TIMEOUT_S = 600.0
_PROBE = "typedef float v __attribute__((vector_size(16)));\nvoid probe(v *p) { *p += *p; }\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class WasmCompiler:
    """A C compiler that makes modules for WebAssembly."""

    compiler: Compiler

    def module(self, sources: Sequence[KernelSource]) -> bytes:
        """All kernels in one module, exported by their symbols. Raises XyntraError where they do not compile."""
        distinct = list({source.symbol: source for source in sources}.values())
        return self._made(merged(distinct), [source.symbol for source in distinct])

    def _made(self, text: str, symbols: Sequence[str]) -> bytes:
        compiler = self.compiler
        exports = [f"-Wl,--export={symbol}" for symbol in symbols]
        with tempfile.TemporaryDirectory(prefix="xyntra-wasm-") as place:
            folder = Path(place)
            (folder / "kernels.c").write_text(text, encoding="utf-8")
            (folder / "imported.txt").write_text("\n".join(IMPORTED), encoding="utf-8")
            argv = [
                *compiler.command, *_TARGET[compiler.family], *_COMMON, "-o", "kernels.wasm", "kernels.c", "-nostdlib",
                "-Wl,--no-entry", "-Wl,--export=__heap_base", "-Wl,--allow-undefined-file=imported.txt", "-Wl,--strip-all",
                f"-Wl,-z,stack-size={_STACK_BYTES}", *exports,
            ]  # fmt: skip
            [outcome] = run_all([argv], folder=folder, parallel=1, timeout_s=_TIMEOUT_S)
            made = folder / "kernels.wasm"
            if outcome.problem or not made.exists():
                raise XyntraError(f"{compiler.name} {outcome.problem}{_complaint(outcome.log)}", where="WebAssembly")
            return made.read_bytes()


def _complaint(log: str) -> str:
    found = re.search(r"^.*error.*$", log, re.MULTILINE)
    return f": {found[0].strip()[:200]}" if found else ""


def find_wasm_compiler() -> WasmCompiler:
    """The first compiler here that makes WebAssembly. Raises UnsupportedError, with what was met, where none does."""
    met = []
    for candidate in survey():
        found = candidate.compiler
        if found is None or found.family not in _TARGET:
            continue
        compiler = WasmCompiler(compiler=found)
        try:
            compiler._made(_PROBE, ["probe"])
        except XyntraError as error:
            met.append(error.what)
            continue
        return compiler
    raise UnsupportedError(f"no compiler for WebAssembly{f' ({met[0]})' if met else ''}", hint=REMEDY)
