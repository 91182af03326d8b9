"""The nets: every one runs at every size, is claimed as it is, and is right; their points are measured dynamic and fixed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from xyntra_bench.accuracy import is_alive
from xyntra_bench.contenders import parse_contenders
from xyntra_bench.errors import BenchError
from xyntra_bench.nets import NETS, Net, Size, net_cases, point_name
from xyntra_bench.plan import Scenario
from xyntra_bench.setups import setups_of
from xyntra_ep import explain
from xyntra_ep.provider import registration

ALL = [pytest.param(net, id=net.name) for net in NETS]


def feeds(net: Net, size: Size) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    return {"x": np.random.default_rng(0).standard_normal(net.shape(size), dtype=np.float32)}


@pytest.mark.parametrize("net", ALL)
def test_its_sizes_are_dynamic_and_its_outputs_alive(net: Net) -> None:
    model = net.model()
    onnx.shape_inference.infer_shapes(onnx.load_from_string(model), check_type=True, strict_mode=True)
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    [x] = session.get_inputs()
    assert x.shape == list(net.dims) and isinstance(x.shape[0], str)
    (out,) = session.run(None, feeds(net, min(net.sizes)))
    assert is_alive(out) and out.ndim == net.rank


@pytest.mark.native
@pytest.mark.compiler("cc")
@pytest.mark.slow
@pytest.mark.parametrize("net", ALL)
def test_one_plan_is_right_at_every_size(net: Net) -> None:
    registration.register()
    model = net.model()
    ours = ort.InferenceSession(model, providers=["XyntraEP", "CPUExecutionProvider"])
    theirs = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    found = explain(ours)
    assert found.claimed > 0 and not found.faults
    others = {"recogniser": (32, 128), "speech": (77,), "transformer": (41,)}
    for size in (*net.sizes, others.get(net.name, (96, 128))):
        got, want = (session.run(None, feeds(net, size))[0] for session in (ours, theirs))
        assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max()


def test_points_are_measured_dynamic_and_fixed(tmp_path: Path) -> None:
    (case, again) = net_cases("unet/224x224", (1, 2), tmp_path)
    assert (case.model, case.shapes, case.scenario) == ("unet/224x224", {"x": (1, 3, 224, 224)}, Scenario.SPECIALISED)
    assert (again.threads, again.file) == (2, case.file) and Path(case.file).is_file()
    assert [setup.specialised for setup in setups_of(case, parse_contenders(["XyntraEP"]))] == [False, True, False, True]
    assert len(net_cases("*", (1,), tmp_path)) == sum(len(net.sizes) for net in NETS)
    names = [point_name(net, size) for net in NETS for size in net.sizes]
    assert len(set(names)) == len(names)
    with pytest.raises(BenchError, match=r"'resnet50': no net of that name. there are plain, unet, "):
        net_cases("resnet50", (1,), tmp_path)
