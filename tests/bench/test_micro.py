"""The chains: every point is a model that runs, with outputs that are alive at a typical scale."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from xyntra_bench.accuracy import is_alive
from xyntra_bench.chains import CHAINS, Chain
from xyntra_bench.errors import BenchError
from xyntra_bench.feeds import synthetic_feeds
from xyntra_bench.micro import micro_cases, point_name


@pytest.mark.parametrize("chain", [pytest.param(chain, id=chain.name) for chain in CHAINS])
def test_the_smallest_point_runs_and_is_alive(chain: Chain) -> None:
    model, shapes = chain.model(min(chain.points(), key=lambda axes: math.prod(axes.values())))
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (out,) = session.run(None, synthetic_feeds(session.get_inputs(), shapes, seed=0))
    assert is_alive(out) and np.abs(out).max() < 100
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    assert all(isinstance(value.shape[0], str) for value in session.get_inputs()), "the first dim stays dynamic"


def test_the_sizes_of_a_free_point_are_dynamic_and_its_model_runs() -> None:
    for chain in (chain for chain in CHAINS if "free" in chain.axes):
        free = [axes for axes in chain.points() if axes["free"]]
        assert free, f"{chain.name} has no point of dynamic sizes"
        model, shapes = chain.model(min(free, key=lambda axes: math.prod(axes.values())))
        session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        (x,) = session.get_inputs()
        assert all(isinstance(size, str) for size in x.shape[2:]) and isinstance(x.shape[1], int)
        (out,) = session.run(None, synthetic_feeds([x], shapes, seed=0))
        assert is_alive(out)


def test_names_are_distinct_and_say_the_shape() -> None:
    names = [point_name(chain, axes) for chain in CHAINS for axes in chain.points()]
    assert len(set(names)) == len(names) and "conv/c64-n64-k3-stride1-size56" in names


def test_a_pattern_chooses_chains_or_points(tmp_path: Path) -> None:
    (case, again) = micro_cases("gemv/m1-k768-n768", (1, 2), tmp_path)
    assert (case.model, case.family, case.shapes["x"]) == ("gemv/m1-k768-n768", "micro", (1, 768))
    assert (again.threads, again.file) == (2, case.file) and Path(case.file).is_file()
    conv, depthwise = (next(chain for chain in CHAINS if chain.name == name) for name in ("conv", "depthwise"))
    assert len(micro_cases("conv", (1,), tmp_path)) == len(conv.shapes)
    assert len(micro_cases("*-size14", (1,), tmp_path)) == sum(shape[-1] == 14 for shape in (*conv.shapes, *depthwise.shapes))
    with pytest.raises(BenchError, match=r"'cnv': no chain of that name\. there are linear, linear_gelu"):
        micro_cases("cnv", (1,), tmp_path)
