"""Trials are made once for all contenders."""

from __future__ import annotations

import pytest

from xyntra_bench import trials
from xyntra_bench.run import child_environment
from xyntra_bench.trials import make_trials


@pytest.mark.native
def test_they_are_made_in_a_process_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert make_trials((), {}) == ""
    environment = {**child_environment(), "CUDA_VISIBLE_DEVICES": "", "XYNTRA_CUDA_DEVICES": "0"}
    assert make_trials(("cuda", "cpu"), environment) == "", "where there is no device, its session says so"
    assert make_trials(("vulkan",), environment).startswith("trials on vulkan: cannot be made: xyntra_ep.errors.ConfigError: ")
    monkeypatch.setattr(trials, "LIMIT_S", 0.01)
    assert make_trials(("cuda",), environment) == "trials on cuda: not made within 0 s"
