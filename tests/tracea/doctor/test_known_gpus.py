"""Known GPUs: which row a device gets, and that the rows agree with themselves."""

from __future__ import annotations

import pytest

from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea.doctor.known_gpus import KNOWN_GPUS, KnownGpu, known_gpu_for, known_gpu_named
from xyntra_ep.tracea.semantic_ir.gpu.multiprocessor import MULTIPROCESSORS


@pytest.mark.parametrize(
    ("architecture", "name", "known"),
    [
        ("sm_80", "NVIDIA A100-SXM4-80GB", "A100"),
        ("sm_80", "NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("sm_80", "NVIDIA A30", "A100"),  # not here: the first of its architecture
        ("sm_90", "NVIDIA H100 80GB HBM3", "H100"),
        ("sm_90", "NVIDIA H100 PCIe", "H100 PCIe"),
        ("sm_90", "NVIDIA H200", "H200"),
        ("sm_86", "NVIDIA GeForce RTX 3070 Laptop GPU", "RTX 3070"),
        ("sm_87", "Orin", "RTX 3090"),  # an architecture that is not here: the newest before it
        ("sm_89", "NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("sm_120", "NVIDIA GeForce RTX 5090", "H100"),
        ("gfx90a", "AMD Instinct MI210", "MI210"),
        ("gfx90a", "AMD Instinct MI250X", "MI250X"),
        ("gfx942", "AMD Instinct MI300X OAM", "MI300X"),
        ("gfx1100", "Radeon RX 7900 XTX", "RX 7900 XTX"),
    ],
)
def test_a_device_gets_the_row_of_its_name(architecture: str, name: str, known: str) -> None:
    assert known_gpu_for(architecture, name).name == known


@pytest.mark.parametrize("row", KNOWN_GPUS, ids=lambda row: row.name)
def test_rows_agree_with_themselves(row: KnownGpu) -> None:
    gpu = row.gpu
    assert row.source and gpu.multiprocessor == MULTIPROCESSORS[row.architecture]
    # Multiprocessors of 64 cores on compute capability 8.0 and on CDNA, else of 128, at clocks that are built.
    clock_ghz = gpu.fma_gflops / (2 * gpu.units * (64 if row.architecture == "sm_80" or gpu.subgroup == 64 else 128))
    assert 1.4 <= clock_ghz <= 2.6
    assert bool(gpu.fragment_gflops) != bool(gpu.matrix_units)
    halves = [unit.gflops for unit in gpu.matrix_units if unit.shape.dtype.bytes == 2] or [gpu.fragment_gflops]
    assert all(2 <= rate / gpu.fma_gflops <= 16.1 for rate in halves)
    assert all(unit.shape.lanes == gpu.subgroup for unit in gpu.matrix_units)
    assert known_gpu_named(row.name.upper()) is row


def test_a_name_that_is_not_known_is_answered_with_a_near_one() -> None:
    with pytest.raises(ConfigError, match=r"architecture: no GPU 'rtx 4900' is known. did you mean 'rtx 4090'\?"):
        known_gpu_named("rtx 4900")
    with pytest.raises(ConfigError, match=r"no GPU 'Voodoo' is known. there are a100, .*sm_80, sm_90, sm_86, sm_89"):
        known_gpu_named("Voodoo")
