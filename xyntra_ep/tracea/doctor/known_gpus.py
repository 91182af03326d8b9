"""Known GPUs, with the rates of their data sheets: for what a driver does not tell, and to plan for a GPU that is not there.

The decision chooses tiles by these rates as for any device; `xyntra doctor --architecture h200` shows them. Every number is from
a data sheet or the white paper of an architecture, at boost clocks and without sparsity; none was measured. The rate of 16-bit
products is that with sums in f32, which GeForce cards reach at half the rate of their largest figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from xyntra_ep.errors import ConfigError, did_you_mean
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import GFX90A, GFX942, GFX1100, SM_80, SM_90A, Gpu
from xyntra_ep.tracea.semantic_ir.gpu.multiprocessor import MULTIPROCESSORS


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownGpu:
    """``name``: words that the driver's name of the device has, in any order; ``source``: whose numbers these are."""

    name: str
    gpu: Gpu
    source: str

    @property
    def architecture(self) -> str:
        return self.gpu.name


def _card(architecture: str, units: int, fma_tflops: float, memory_gbs: float, fragments: float = 2.0) -> Gpu:
    """Without high-bandwidth memory: multiprocessors of 128 cores, matrix units that make ``fragments`` times what these do."""
    unit = MULTIPROCESSORS[architecture]
    return replace(
        SM_80,
        name=architecture,
        shared_bytes=unit.block_shared_bytes,
        units=units,
        fma_gflops=fma_tflops * 1e3,
        memory_gbs=memory_gbs,
        fragment_gflops=fragments * fma_tflops * 1e3,
        multiprocessor=unit,
    )


_A100 = "NVIDIA A100 Tensor Core GPU data sheet"
_H100 = "NVIDIA H100 Tensor Core GPU data sheet"
_GA102 = "NVIDIA Ampere GA102 GPU Architecture white paper"
_AD102 = "NVIDIA Ada GPU Architecture white paper"

# The first of an architecture stands for those of it that are not here.
KNOWN_GPUS: tuple[KnownGpu, ...] = (
    KnownGpu(name="A100", gpu=SM_80, source=_A100),
    KnownGpu(name="A100 40GB", gpu=replace(SM_80, memory_gbs=1555.0), source=_A100),
    KnownGpu(name="H100", gpu=SM_90A, source=_H100),
    KnownGpu(
        name="H100 PCIe",
        gpu=replace(SM_90A, units=114, fma_gflops=51.2e3, fragment_gflops=756e3, memory_gbs=2000.0),
        source=_H100,
    ),
    KnownGpu(name="H200", gpu=replace(SM_90A, memory_gbs=4800.0), source="NVIDIA H200 Tensor Core GPU data sheet"),
    KnownGpu(name="RTX 3090", gpu=_card("sm_86", units=82, fma_tflops=35.6, memory_gbs=936.0), source=_GA102),
    KnownGpu(name="RTX 3080", gpu=_card("sm_86", units=68, fma_tflops=29.8, memory_gbs=760.0), source=_GA102),
    KnownGpu(name="RTX 3070", gpu=_card("sm_86", units=46, fma_tflops=20.3, memory_gbs=448.0), source=_GA102),
    KnownGpu(name="RTX 4090", gpu=_card("sm_89", units=128, fma_tflops=82.6, memory_gbs=1008.0), source=_AD102),
    KnownGpu(name="RTX 4080", gpu=_card("sm_89", units=76, fma_tflops=48.7, memory_gbs=717.0), source=_AD102),
    KnownGpu(
        name="RTX 4070",
        gpu=_card("sm_89", units=46, fma_tflops=29.1, memory_gbs=504.0),
        source="GeForce RTX 4070 specifications",
    ),
    KnownGpu(
        name="A10", gpu=_card("sm_86", units=72, fma_tflops=31.2, memory_gbs=600.0, fragments=4.0), source="NVIDIA A10 data sheet"
    ),
    KnownGpu(
        name="L4", gpu=_card("sm_89", units=58, fma_tflops=30.3, memory_gbs=300.0, fragments=4.0), source="NVIDIA L4 data sheet"
    ),
    KnownGpu(
        name="L40S",
        gpu=_card("sm_89", units=142, fma_tflops=91.6, memory_gbs=864.0, fragments=3.95),
        source="NVIDIA L40S data sheet",
    ),
    KnownGpu(name="MI210", gpu=GFX90A, source="AMD Instinct MI210 data sheet"),
    KnownGpu(
        name="MI250X",  # one of its two halves, which are a device each
        gpu=replace(GFX90A, units=110, fma_gflops=23.9e3),
        source="AMD Instinct MI250X data sheet",
    ),
    KnownGpu(name="MI300X", gpu=GFX942, source="AMD Instinct MI300X data sheet"),
    KnownGpu(name="RX 7900 XTX", gpu=GFX1100, source="AMD Radeon RX 7900 XTX specifications"),
)
BY_NAME: Mapping[str, KnownGpu] = {gpu.name.lower(): gpu for gpu in KNOWN_GPUS}


def known_gpu_for(architecture: str, name: str) -> KnownGpu:
    """The row for a device as its driver describes it: of its architecture, with most words in its name. An architecture that no
    row has is taken for the newest before it.

    >>> known_gpu_for("sm_90", "NVIDIA H200").gpu.memory_gbs
    4800.0
    >>> known_gpu_for("sm_80", "NVIDIA A100-SXM4-80GB").name
    'A100'
    """
    family, number = _numbered(architecture)
    alike = [row for row in KNOWN_GPUS if _numbered(row.architecture)[0] == family]
    before = max(
        (known for _, known in (_numbered(row.architecture) for row in alike) if known <= number),
        default=_numbered(alike[0].architecture)[1],
    )
    rows = [row for row in alike if _numbered(row.architecture)[1] == before]
    words = set(name.lower().replace("-", " ").split())
    matching = [row for row in rows if words.issuperset(row.name.lower().split())]
    return max(matching, key=lambda row: len(row.name.split()), default=rows[0])


def known_gpu_named(name: str) -> KnownGpu:
    """A row by its name, or the first of an architecture. Raises ConfigError, with near names, for what is neither.

    >>> known_gpu_named("sm_90a").name, known_gpu_named("rtx 4090").architecture, known_gpu_named("gfx90a").name
    ('H100', 'sm_89', 'MI210')
    """
    asked = name.lower().replace("-", " ").strip()
    if asked in BY_NAME:
        return BY_NAME[asked]
    for row in KNOWN_GPUS:
        if row.architecture in (asked, asked.removesuffix("a")):
            return row
    known = [*BY_NAME, *dict.fromkeys(row.architecture for row in KNOWN_GPUS)]
    raise ConfigError(f"no GPU {name!r} is known", where="architecture", hint=did_you_mean(asked, known, cutoff=0.5))


def _numbered(architecture: str) -> tuple[str, int]:
    """Whose architectures are called so, and a number that is larger for a later one; some have letters among their digits.

    >>> _numbered("sm_90") < _numbered("sm_120"), _numbered("gfx90a") < _numbered("gfx942")
    (True, True)
    """
    family = architecture.rstrip("0123456789abcdef")
    return family, int(architecture.removeprefix(family), 16)
