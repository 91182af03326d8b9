"""Models as PyTorch's two exporters write them: all nodes are ours, attention and normalisations are fused, numbers agree.

Every model is run by one session for all sizes, with one thread and with two, against ONNX Runtime's CPU provider.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.exports.cases import CASES, ExportCase
from tests.exports.record import record
from xyntra_ep.diagnostics.distance.drift import drift
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.diagnostics.sessions import open_session

pytestmark = [pytest.mark.torch, pytest.mark.native, pytest.mark.compiler("cc"), pytest.mark.slow]
MAX_ERROR = 3e-5  # fp32 of a whole network in another order of summation
ALIVE = 1e-3  # a reference that is zero everywhere agrees with anything that is
Exported = Callable[[ExportCase, str], tuple[Path, Any]]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """(file, configuration) of a case as an exporter writes it."""
    pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[torch]'")
    from tests.exports.exporting import Exporter, build, export

    folder = tmp_path_factory.mktemp("exports")

    def write(case: ExportCase, exporter: str) -> tuple[Path, Any]:
        model = build(case, case.small)  # anew for each exporter: tracing leaves tensors in some models' attributes
        path = folder / f"{case.name}.{exporter}.onnx"
        export(case, model, Exporter(exporter), path)
        return path, model.config

    return write


@pytest.mark.parametrize(("case", "exporter"), [pytest.param(c, e, id=f"{c.name}-{e}") for c in CASES for e in c.exporters])
def test_agrees_with_the_cpu_provider(case: ExportCase, exporter: str, exported: Exported) -> None:
    path, config = exported(case, exporter)
    reference = open_session(path, None, threads=1)
    names = [o.name for o in reference.get_outputs()]
    worst = 0.0
    for threads in (1, 2):
        session = open_session(path, {"claim": "all"}, threads=threads)
        for seed, sizes in enumerate(itertools.chain(case.sizes, case.sizes[:1])):
            feeds = case.feeds(config, sizes, np.random.default_rng(seed))
            wanted, got = reference.run(names, feeds), session.run(names, feeds)
            for name, a, b in zip(names, got, wanted, strict=True):
                assert np.abs(b).max() >= ALIVE and b.std() > 0, f"{name} is dead at {sizes}"
                error = drift(name, a, b).relative
                assert error <= MAX_ERROR, f"{name} is off by {error:.1e} at {sizes} with {threads} threads"
                worst = max(worst, error)
    row = record(f"{case.name} {exporter}", explain(session), worst)
    assert not row.declined
    assert row.islands == 1
    assert row.kernels["attention"] == case.attention
    assert row.kernels["rows"] >= case.norms
