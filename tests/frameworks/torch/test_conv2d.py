"""TraceaConv2d and patch_conv2d beside PyTorch's, and models exported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.native, pytest.mark.slow]

MAX_ERROR = 1e-5
_KINDS: list[dict[str, Any]] = [
    {"kernel_size": 3, "padding": 1},
    {"kernel_size": (2, 3), "stride": 2, "bias": False},
    {"kernel_size": 3, "padding": "same", "dilation": 2},
    {"kernel_size": 3, "padding": 1, "groups": 2, "padding_mode": "reflect"},
]


@pytest.mark.parametrize("kind", _KINDS, ids=str)
def test_the_module_computes_what_conv2d_does(kind: dict[str, Any]) -> None:
    import torch

    from xyntra_ep.frameworks.torch.check.measures import error, loss
    from xyntra_ep.tracea import TraceaConv2d

    torch.manual_seed(0)
    theirs, ours = torch.nn.Conv2d(4, 6, **kind), TraceaConv2d(4, 6, **kind)
    assert ours.load_state_dict(theirs.state_dict()) and ours.state_dict().keys() == theirs.state_dict().keys()
    for shape in ((2, 4, 9, 8), (1, 4, 12, 15), (4, 7, 7)):
        x = torch.randn(shape)
        assert error(ours(x), theirs(x)) <= MAX_ERROR
    assert (ours.counts.ours, ours.counts.theirs) == (3, {})
    loss(ours(x)).backward()
    loss(theirs(x)).backward()
    for mine, wanted in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert mine.grad is not None and wanted.grad is not None
        assert error(mine.grad, wanted.grad) <= MAX_ERROR


def test_a_patch_counts_and_is_undone() -> None:
    import torch

    from xyntra_ep.frameworks.torch.check.measures import error
    from xyntra_ep.tracea import patch_conv2d

    before = torch.nn.functional.conv2d
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Conv2d(4, 2, 1))
    x = torch.randn(2, 3, 8, 8)
    wanted = model(x)
    with patch_conv2d() as patch:
        assert torch.nn.functional.conv2d is not before
        assert error(model(x), wanted) <= MAX_ERROR
        assert torch.equal(model.double()(x.double()), model(x.double()))
    assert torch.nn.functional.conv2d is before
    assert patch.counts.ours == 2
    assert patch.explain().splitlines() == ["2 convolutions by Tracea, 4 by PyTorch", "  4: dtype float64"]
    again = patch_conv2d()
    again.undo()
    again.undo()
    assert torch.nn.functional.conv2d is before


def test_a_mistake_is_pytorchs_own() -> None:
    import torch

    from xyntra_ep.tracea import patch_conv2d

    with patch_conv2d(), pytest.raises(RuntimeError):
        torch.nn.Conv2d(3, 4, 3)(torch.randn(1, 5, 8, 8))


@pytest.mark.filterwarnings("ignore")  # of the exporters
def test_exported_models_are_sessions(tmp_path: Path) -> None:
    import torch

    import xyntra_ep
    from xyntra_ep.errors import ConfigError
    from xyntra_ep.frameworks.torch.check.measures import error

    pytest.importorskip("onnxscript")
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)).eval()
    x = torch.randn(3, 8)
    session = xyntra_ep.from_torch(model, (x,), options={"claim": "all"})
    assert error(session(x)[0], model(x)) <= MAX_ERROR
    with pytest.raises(ConfigError, match="2 tensors for 1 inputs"):
        session(x, x)
    torch.jit.trace(model, x).save(str(tmp_path / "model.pt"))
    session = xyntra_ep.from_torchscript(tmp_path / "model.pt", (x,))
    assert error(session(x)[0], model(x)) <= MAX_ERROR
    (tmp_path / "other.pt").write_bytes(b"no model")
    for name, said in (("none.pt", "is no file"), ("other.pt", "is no TorchScript")):
        with pytest.raises(ConfigError, match=said):
            xyntra_ep.from_torchscript(tmp_path / name, (x,))
