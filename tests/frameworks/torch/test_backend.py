"""What torch.compile(backend="xyntra") promises beside right numbers: sizes, breaks, weights that change, options, reasons."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.native, pytest.mark.slow]

MAX_ERROR = 1e-5


def test_torch_knows_the_name() -> None:
    import torch

    assert "xyntra" in torch._dynamo.list_backends()


def test_sizes_that_change() -> None:
    import torch

    from tests.frameworks.torch.compare import fresh
    from xyntra_ep.frameworks.torch.check.measures import error, loss
    from xyntra_ep.frameworks.torch.record import RECORDS, Direction

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            batch, length, _ = x.shape
            y = self.inner(x).view(batch, length, 2, 4).transpose(1, 2)
            scores = (y @ y.transpose(2, 3)).softmax(-1)
            return (scores @ y).transpose(1, 2).reshape(batch * length, 8)

    with fresh():
        net = Net()
        compiled = torch.compile(net, backend="xyntra", dynamic=True)
        for batch, length in ((2, 5), (3, 7), (4, 9)):
            x = torch.randn(batch, length, 8, requires_grad=True)
            y = x.detach().requires_grad_()
            ours, theirs = compiled(x), net(y)
            assert error(ours, theirs) <= MAX_ERROR
            loss(ours).backward()
            loss(theirs).backward()
            assert x.grad is not None and y.grad is not None
            assert error(x.grad, y.grad) <= MAX_ERROR
        graphs = [record for record in RECORDS.all() if record.direction is Direction.FORWARD]
        assert len(graphs) == 1, "one graph serves all sizes"
        assert graphs[0].claimed == len(graphs[0].calls), str(graphs[0])


def test_a_graph_that_breaks_is_several() -> None:
    import torch

    from tests.frameworks.torch.compare import fresh
    from xyntra_ep.frameworks.torch.check.measures import error
    from xyntra_ep.frameworks.torch.record import RECORDS

    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.exp()
        torch._dynamo.graph_break()
        return y.tanh() * (2 if y.sum().item() > 0 else 3)

    with fresh():
        x = torch.randn(4, 5)
        assert error(torch.compile(function, backend="xyntra")(x), function(x)) <= MAX_ERROR
        assert len(RECORDS.all()) >= 2


def test_weights_that_change_are_seen() -> None:
    import torch

    from tests.frameworks.torch.compare import fresh
    from xyntra_ep.frameworks.torch.check.measures import error

    with fresh(), torch.no_grad():
        net = torch.nn.Sequential(torch.nn.Linear(40, 30), torch.nn.ReLU(), torch.nn.Linear(30, 3)).requires_grad_(False)
        compiled = torch.compile(net, backend="xyntra")
        x = torch.randn(2, 40)
        for step in range(6):  # more often than weights are packed anew
            assert error(compiled(x), net(x)) <= MAX_ERROR, step
            net[0].weight.mul_(1.5)
            net[2].bias.add_(1)
        net[0].weight.data = torch.randn(30, 40)
        assert error(compiled(x), net(x)) <= MAX_ERROR


def test_what_has_no_row_stays_with_pytorch_and_says_why() -> None:
    import torch

    from tests.frameworks.torch.compare import fresh
    from xyntra_ep.frameworks.torch import explain
    from xyntra_ep.frameworks.torch.check.measures import error

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.special.i0(x.exp()).tanh() + torch.linalg.det(x @ x.T)

    with fresh():
        x = torch.randn(4, 4)
        assert error(torch.compile(function, backend="xyntra")(x), function(x)) <= MAX_ERROR
        assert "PyTorch: aten._linalg_det.default x1: no row for it" in explain()
        assert "PyTorch: aten.i0" in explain() or "aten.special_i0" in explain()


def test_float64_stays_with_pytorch() -> None:
    import torch

    from tests.frameworks.torch.compare import fresh
    from xyntra_ep.frameworks.torch import explain

    with fresh():
        x = torch.randn(4, 4, dtype=torch.float64)
        assert torch.equal(torch.compile(torch.exp, backend="xyntra")(x), x.exp())
        assert "aten.exp.default x1: dtype" in explain()


def test_results_lie_in_memory_as_pytorch_says() -> None:
    import torch

    from tests.frameworks.torch.compare import fresh

    def function(x: torch.Tensor) -> torch.Tensor:
        return x.exp().permute(2, 0, 1)

    with fresh():
        x = torch.randn(3, 4, 5)
        assert torch.compile(function, backend="xyntra")(x).stride() == function(x).stride()


def test_precision_is_an_option() -> None:
    import torch

    from tests.frameworks.torch.compare import fresh
    from xyntra_ep.frameworks.torch.check.measures import error

    with fresh(), torch.no_grad():
        net = torch.nn.Linear(256, 64)
        x = torch.randn(8, 256)
        compiled = torch.compile(net, backend="xyntra", options={"precision": "bf16", "fp32_strict": True})
        assert error(compiled(x), net(x)) <= 2e-2


@pytest.mark.parametrize(
    ("mode", "options", "said"),
    [
        (None, {"precission": "bf16"}, "no option 'precission'. did you mean 'precision'?"),
        (None, {"precision": "bf17"}, "precision='bf17' is not valid. did you mean 'bf16'?"),
        (None, {"freeze": "maybe"}, "freeze='maybe' is not valid. allowed: True, False"),
        (None, {"backend": "cuda"}, "backend='cuda' needs an ONNX Runtime session. allowed: auto, cpu"),
        ("max-autotun", None, "no mode 'max-autotun'. did you mean 'max-autotune'?"),
    ],
)
def test_wrong_options_are_named(mode: str | None, options: dict[str, object] | None, said: str) -> None:
    from xyntra_ep.errors import ConfigError
    from xyntra_ep.frameworks.torch.backend import settings

    with pytest.raises(ConfigError) as raised:
        settings(mode, options)
    assert said in str(raised.value)
