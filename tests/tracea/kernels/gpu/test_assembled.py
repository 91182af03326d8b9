"""What the assembler reports of every variant with the configuration that is chosen for it, and of whole search spaces."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from tests.support.gpu.assembled import assembled
from tests.support.gpu.run import plan_for
from xyntra_ep.tracea.doctor.variants import AnyVariant, gpu_variants
from xyntra_ep.tracea.interface.devices import known_target
from xyntra_ep.tracea.interface.trials import Trial, trials
from xyntra_ep.tracea.kernels.variant import BuildContext, Config
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import SM_90A

pytestmark = pytest.mark.compiler("nvrtc")
OTHERS = {"gemm.matrix", "gemm.matrix_or_gemv"}  # by matrix units that NVIDIA's GPUs have not
EVERY = sorted({variant.name for variants in gpu_variants().values() for variant in variants} - OTHERS)
REGISTERS = 65536  # of a multiprocessor


def trials_of(name: str) -> list[Trial]:
    """One for each precision: more samples are the same kernels with other sizes."""
    found = [trial for trial in trials(known_target("h100")) if trial.variant.name == name]
    return list({trial.sample.product: trial for trial in reversed(found)}.values())


def flaws_of(trial: Trial, variant: AnyVariant) -> list[str]:
    flaws = []
    for source in plan_for(trial.program, SM_90A, [variant]).kernels:
        made = assembled(source.symbol, source.text, SM_90A.target)
        flaws += [f"{source.symbol}: {flaw}" for flaw in made.flaws]
        if source.threads * made.report.registers > REGISTERS:
            flaws.append(f"{source.symbol}: {made.report.registers} registers for {source.threads} threads")
    return flaws


@pytest.mark.parametrize("name", EVERY)
def test_what_is_chosen_keeps_its_values_in_registers(name: str) -> None:
    found = trials_of(name)
    assert found and not [flaw for trial in found for flaw in flaws_of(trial, trial.variant)]


def configs(trial: Trial) -> list[Config]:
    context = BuildContext(caps=SCALAR, program=trial.program, gpu=SM_90A)
    axes = trial.variant.space(trial.program.ops[0], context)
    return [dict(zip([a.name for a in axes], values, strict=True)) for values in product(*(a.values for a in axes))]


def with_config(variant: AnyVariant, config: Config) -> AnyVariant:
    return replace(variant, default=lambda op, context: config)


@pytest.mark.slow
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("name", EVERY)
def test_every_configuration_keeps_its_values_in_registers(name: str) -> None:
    flaws: dict[str, list[str]] = {}
    for trial in trials_of(name):
        for config in configs(trial):
            if found := flaws_of(trial, with_config(trial.variant, config)):
                flaws[f"{trial.sample.product} {config}"] = found
    assert not flaws
