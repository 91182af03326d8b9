"""Processors that models are compiled for without being here: an instruction set by its name."""

from __future__ import annotations

import platform

from xyntra_ep.errors import ConfigError
from xyntra_ep.options import NATIVE
from xyntra_ep.tracea.doctor.profile import Machine, capabilities, needed_features
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, Capabilities

_AVX2 = frozenset(needed_features(AVX2))
_AVX512 = frozenset(needed_features(AVX512)) | {"avx512_vnni"}
# Servers since Haswell and Zen; since Cascade Lake; Zen 4 and 5; since Sapphire Rapids.
_FEATURES = {
    "scalar": frozenset[str](),
    "avx2": _AVX2,
    "avx512": _AVX512,
    "avx512_bf16": _AVX512 | {"avx512_bf16", "avx512vbmi"},
    "amx": _AVX512 | {"avx512_bf16", "avx512vbmi", "amx_tile", "amx_bf16", "amx_int8"},
}
_VENDORS = {"avx512_bf16": "AuthenticAMD", "amx": "GenuineIntel"}
# Of the smallest of such machines: a kernel's tiles must fit wherever it runs.
_L2_BYTES = {"scalar": 256 << 10, "avx2": 512 << 10, "avx512": 1 << 20, "avx512_bf16": 1 << 20, "amx": 2 << 20}
_CORES = 4
BEST_FIRST = ("amx", "avx512_bf16", "avx512", "avx2")  # of those worth having kernels for
BASE_OF = {"amx": "avx512", "avx512_bf16": "avx512"}  # many of whose kernels are the same


def vendor_of(name: str) -> str:
    """Whose processors ``name`` means; nothing: anybody's."""
    return _VENDORS.get(name, "")


def target_capabilities(name: str) -> Capabilities | None:
    """Of the processors that ``name`` (an instruction set of the option compile_for) stands for; None for the one at hand. Raises
    ConfigError for one that no compiler here makes code for."""
    if name == NATIVE:
        return None
    architecture = platform.machine()
    if architecture != "x86_64":
        hint = f"compile_for={NATIVE} compiles for this machine"
        raise ConfigError(f"compile_for={name!r} is for x86-64, this machine is {architecture}", where="XyntraEP", hint=hint)
    machine = Machine(
        model=name,
        vendor=_VENDORS.get(name, ""),
        features=_FEATURES[name],
        architecture=architecture,
        cores=_CORES,
        l1d_bytes=32 << 10,
        l2_bytes=_L2_BYTES[name],
        l3_bytes=16 << 20,
        tiles_granted=name == "amx",
    )
    return capabilities(machine)
