"""A case is made of two numbers, and of nothing else."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort

from tests.hunt.case import Case
from tests.hunt.generation.builder import Builder
from tests.hunt.generation.generator import generate, runs_of
from tests.hunt.recipes._quantised import weights


def _cases(seed: int, numbers: range) -> list[Case]:
    ort.set_default_logger_severity(4)
    return [case for n in numbers if (case := generate(seed, n)) is not None]


def test_same_numbers_same_case() -> None:
    for first, second in zip(_cases(3, range(12)), _cases(3, range(12)), strict=True):
        assert first.model == second.model and first.settings == second.settings and first.name == second.name
        for a, b in zip(first.runs, second.runs, strict=True):
            assert (a.kind, a.special, a.bound) == (b.kind, b.special, b.bound)
            assert all(x.tobytes() == np.asarray(b.feeds[n]).tobytes() for n, x in a.feeds.items())


def test_others_are_others() -> None:
    models = [case.model for seed in (1, 2) for case in _cases(seed, range(6))]
    assert len(set(models)) == len(models)


def test_sizes_and_values_differ_from_run_to_run() -> None:
    """What the hunter is for: several sizes in one session, some that contradict others, and values that are not tame."""
    cases = _cases(5, range(60))  # of 4 ONNX Runtime dies: it divides by an empty sum of Einsum
    sizes = [len({tuple(np.shape(a) for a in run.feeds.values()) for run in case.runs}) for case in cases]
    assert sum(n > 3 for n in sizes) > len(cases) // 3
    assert any(0 in np.shape(a) for case in cases for run in case.runs for a in run.feeds.values())
    special = [run for case in cases for run in case.runs if run.special]
    floats = [a for run in special for a in run.feeds.values() if a.dtype.kind == "f" and a.size]
    assert any(np.isnan(a).any() for a in floats) and any(np.isinf(a).any() for a in floats)
    tame = [a for case in cases for run in case.runs if not run.special for a in run.feeds.values() if a.dtype.kind == "f"]
    assert all(np.isfinite(a).all() for a in tame)


def test_all_opsets_and_forms_are_drawn() -> None:
    cases = _cases(12, range(150))
    opsets = {o.version for case in cases for o in case.proto().opset_import if o.domain == ""}
    assert len(opsets) > 15
    assert any(len(case.proto().graph.output) > 1 for case in cases)
    assert any(run.bound for case in cases for run in case.runs)
    assert {case.settings.claim for case in cases} == {"all", "profitable"}
    assert any(case.settings.fp32_strict for case in cases) and any(case.settings.two_threads for case in cases)


def test_no_run_goes_below_the_least_size_of_an_input() -> None:
    """ONNX Runtime dies of some sizes; what dies of them says so."""
    extents = [(2, 1, 3), (16, 16, 16), (5, 4, 9)]
    seen = set()
    for seed in range(20):
        b = Builder(rng=np.random.default_rng(seed), opset=18)
        x = b.input(extents, least=[1, None, 4])
        b.one("Relu", [x])
        seen |= {np.shape(run.feeds[x.name]) for run in runs_of(b)}
    assert all(n >= 1 and c == 16 and w >= 4 for n, c, w in seen)
    assert {n for n, _, _ in seen} - {1, 2, 3} and {w for _, _, w in seen} - {4, 5, 9}, "sizes are changed all the same"


def test_no_run_has_quantised_weights_without_elements() -> None:
    """ONNX Runtime leaves sums of nothing unwritten, and a hunt finds what lay there."""
    sizes = set()
    for seed in range(40):
        b = Builder(rng=np.random.default_rng(seed), opset=18, contrary=0.0)
        w = weights(b, [(2, 2, 2), (3, 1, 4)])
        b.one("DequantizeLinear", [w, b.constant(np.float32(1))])
        if w.name in {i.name for i in b.inputs}:
            sizes |= {np.shape(run.feeds[w.name]) for run in runs_of(b)}
    assert len(sizes) > 3 and all(n and k for n, k in sizes)
