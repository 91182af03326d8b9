"""Triton kernels in models that torch.compile captures: on the processor, beside the islands of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.frameworks.triton.interpreted import needs_triton
from xyntra_ep.errors import UnsupportedError

pytestmark = [*needs_triton, pytest.mark.native, pytest.mark.compiler("cc")]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    import torch

    from xyntra_ep.frameworks.torch import reset

    torch._dynamo.reset()
    reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield


@pytest.fixture
def ops() -> ModuleType:
    from tests.frameworks.triton import modules

    return modules


def compiled(model: Any, **more: Any) -> Any:
    import torch

    return torch.compile(model, backend="xyntra", fullgraph=True, **more)


def test_between_layers(ops: ModuleType) -> None:
    import torch

    from xyntra_ep.frameworks.torch.record import RECORDS

    model, x = ops.Mlp(ops.bias_gelu), torch.randn(5, 24)
    got = compiled(model)(x)
    model.activation = lambda x, bias: torch.nn.functional.gelu(x + bias)
    torch.testing.assert_close(got, model(x))
    [record] = RECORDS.all()
    calls = {call.target: call for call in record.calls}
    assert calls["aten.addmm.default"].island is not None
    launch = calls["triton_kernel_wrapper_functional"]
    assert (launch.island, launch.reason) == (None, "a Triton kernel, which is compiled by itself")


def test_nothing_but_a_launch(ops: ModuleType) -> None:
    import torch

    x, y = torch.randn(7, 30), torch.randn(7, 30)
    torch.testing.assert_close(compiled(ops.added)(x, y), x + y)


def test_what_a_kernel_only_reads_is_not_changed(ops: ModuleType) -> None:
    """A weight too, which is kept from run to run: PyTorch sees that the kernel does not store to it."""
    import torch

    model, x = ops.RmsNorm(48), torch.randn(9, 48)
    versions = model.weight._version, x._version
    run = compiled(model)
    for _ in range(2):
        torch.testing.assert_close(run(x), torch.nn.functional.rms_norm(x, (48,), model.weight, 1e-5))
    assert (model.weight._version, x._version) == versions


def test_what_a_kernel_stores_to_in_place(ops: ModuleType) -> None:
    import torch

    def doubled(x: torch.Tensor) -> torch.Tensor:
        ops.double_(x)
        return x.sum()

    x = torch.randn(50)
    wanted = x * 2
    total = compiled(doubled)(x)
    torch.testing.assert_close(x, wanted)
    torch.testing.assert_close(total, wanted.sum())


def test_sizes_that_change(ops: ModuleType) -> None:
    import torch

    from xyntra_ep.frameworks.torch.record import RECORDS

    run = compiled(lambda x, y: torch.relu(ops.added(x, y)), dynamic=True)
    for n in (100, 64, 333):
        x, y = torch.randn(n), torch.randn(n)
        torch.testing.assert_close(run(x, y), torch.relu(x + y))
    assert len(RECORDS.all()) == 1, "one graph serves all sizes"


def test_an_autotuned_kernel(ops: ModuleType) -> None:
    import torch

    x = torch.randn(90)
    torch.testing.assert_close(compiled(ops.softsign)(x), torch.nn.functional.softsign(x))


def test_what_is_not_read_is_refused_with_its_line(ops: ModuleType) -> None:
    import torch

    with pytest.raises(UnsupportedError, match=r"^kernels\.py:\d+: the function atomic_add"):
        compiled(ops.count)(torch.randn(40))


def test_no_driver_is_left_behind(ops: ModuleType) -> None:
    import torch
    import triton

    def found() -> str:
        try:
            return type(triton.runtime.driver.active).__name__
        except RuntimeError as error:
            return str(error)

    before = found()
    compiled(ops.added)(torch.randn(10), torch.randn(10))
    assert found() == before
