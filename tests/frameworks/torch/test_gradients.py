"""Each differentiable operation of tracea.ops: gradcheck in float64 on the interpreter, and float32 kernels against eager PyTorch
and against finite differences of themselves."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.native, pytest.mark.slow]


def _names() -> list[str]:
    try:
        from xyntra_ep.frameworks.torch.check.operations import CASES
    except ModuleNotFoundError:
        return ["all"]  # for the reason of the skip
    return [case.name for case in CASES]


@pytest.mark.parametrize("name", _names())
def test_gradients(name: str) -> None:
    import torch

    from xyntra_ep.frameworks.torch import check_gradients
    from xyntra_ep.frameworks.torch.check.measures import error
    from xyntra_ep.frameworks.torch.check.operations import MAX_ERROR, cases_of

    report = check_gradients(operations=[name])
    assert report.ok, str(report)
    [case] = cases_of([name])
    assert [row.tensor for row in report.rows] == [*case.operands]
    assert all(row.gradcheck and row.differences is not None for row in report.rows)
    operands = [torch.randn(shape) for shape in case.operands.values()]
    assert error(case.ours(*operands), case.theirs(*(t.double() for t in operands))) <= MAX_ERROR


def test_out_and_gradients_exclude_each_other() -> None:
    import torch

    from xyntra_ep.tracea import ops

    x = torch.randn(3, 4, requires_grad=True)
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        ops.gelu(x, out=torch.empty(3, 4))


def test_tensors_are_read_and_written_in_place() -> None:
    import torch

    from xyntra_ep.tracea import ops

    x, out = torch.randn(3, 4).to(torch.bfloat16), torch.empty(3, 4, dtype=torch.bfloat16)
    assert ops.gelu(x, out=out) is out
    assert (out.float() - torch.nn.functional.gelu(x).float()).abs().max() <= 2e-2
    turned = torch.randn(4, 3).t()
    assert torch.allclose(ops.softmax(turned), turned.softmax(-1), atol=1e-6)
    with pytest.raises(RuntimeError, match="must have one type"):
        ops.matmul(torch.randn(2, 2), torch.randn(2, 2).half())
