from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from xyntra_bench.contenders import Contender
from xyntra_bench.plan import QUICK, Budget, Case, Plan, Target
from xyntra_zoo import zoo

FAST = dataclasses.replace(QUICK, rounds=2, min_iterations=8, min_time_s=0.0, max_iterations=8, max_time_s=600.0)


@pytest.fixture(autouse=True, scope="session")
def zoo_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("zoo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XYNTRA_ZOO_DIR", str(path))
        yield path


@pytest.fixture
def fast() -> Budget:
    return FAST


@pytest.fixture
def case() -> Case:
    model = zoo["bert-base-tiny"]
    return Case(model=model.name, family=model.family.value, seq=16, seed=model.seed, max_err=model.max_err)


@pytest.fixture
def plan(case: Case) -> Plan:
    cpu = Contender(provider="CPUExecutionProvider")
    return Plan(target=Target.ZOO, cases=(case,), contenders=(cpu,), budget=FAST, quick=True)
