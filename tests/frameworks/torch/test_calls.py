"""Each row: forward, backward and inference of a call, compiled, against eager PyTorch in float64."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.native, pytest.mark.slow]

MAX_ERROR = 2e-5  # of float32 sums of few elements, and functions of 2 units in the last place


def _names() -> list[str]:
    try:
        from xyntra_ep.frameworks.torch.check.calls import CALLS
    except ModuleNotFoundError:
        return ["all"]  # for the reason of the skip
    return [call.name for call in CALLS]


@pytest.mark.parametrize("name", _names())
def test_call(name: str) -> None:
    import torch

    from tests.frameworks.torch.compare import fresh
    from xyntra_ep.frameworks.torch import explain
    from xyntra_ep.frameworks.torch.check.calls import CALLS
    from xyntra_ep.frameworks.torch.check.measures import error, loss
    from xyntra_ep.frameworks.torch.record import RECORDS

    [call] = [call for call in CALLS if call.name == name]
    with fresh():
        compiled = torch.compile(call.function, backend="xyntra", fullgraph=True)
        ours = [torch.randn(shape, requires_grad=True) for shape in call.shapes]
        exact = [t.detach().double().requires_grad_() for t in ours]
        result, wanted = compiled(*ours), call.function(*exact)
        assert result.shape == wanted.shape and result.dtype is torch.float32
        assert error(result, wanted) <= MAX_ERROR
        loss(result).backward()
        loss(wanted).backward()
        for mine, theirs in zip(ours, exact, strict=True):
            assert (mine.grad is None) == (theirs.grad is None)
            if theirs.grad is not None:
                assert mine.grad is not None
                assert error(mine.grad, theirs.grad, 1e-3) <= MAX_ERROR, f"gradient of {tuple(mine.shape)}\n{explain()}"
        with torch.no_grad():
            assert error(compiled(*ours), wanted) <= MAX_ERROR
        left = {(c.target, c.reason) for record in RECORDS.all() for c in record.calls if c.island is None}
        unexpected = {row for row in left if row[0] not in call.left and row[1] != "it would only move elements"}
        assert not unexpected, explain()
