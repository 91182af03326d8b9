"""Gradients of single operations: forward by the operation's kernel, backward by a graph of ATen's that is compiled as others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from xyntra_ep.frameworks.torch.backend import decompositions
from xyntra_ep.frameworks.torch.compiled_graph import CompiledGraph
from xyntra_ep.frameworks.torch.record import Direction
from xyntra_ep.provider.opened_graph import checked

Compute = Callable[..., torch.Tensor]
_graphs: dict[tuple[Any, ...], CompiledGraph] = {}
_lock = threading.Lock()


def differentiable(
    compute: Compute, reference: Callable[[Any], Compute], key: tuple[Any, ...], operands: Sequence[torch.Tensor | None]
) -> torch.Tensor:
    """``compute`` of the operands, with the gradient of what ``reference`` gives for `torch`: the same in ATen's operators."""
    return _Differentiable.apply(compute, reference, key, *operands)


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, compute: Compute, reference: Any, key: tuple[Any, ...], *operands: torch.Tensor | None) -> torch.Tensor:
        ctx.reference, ctx.key = reference, key
        ctx.there = [operand is not None for operand in operands]
        ctx.save_for_backward(*(operand for operand in operands if operand is not None))
        return compute(*operands)

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]  # torch has no types
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        operands = ctx.saved_tensors
        needs = ctx.needs_input_grad[3:]
        wanted = tuple(i for i, needed in enumerate(n for n, there in zip(needs, ctx.there, strict=True) if there) if needed)
        sizes = tuple((tuple(t.shape), t.dtype) for t in operands)
        key = (ctx.key, tuple(ctx.there), wanted, sizes)
        with _lock:
            graph = _graphs.get(key)
            if graph is None:
                graph = _graphs[key] = _backward_graph(ctx.reference(torch), ctx.there, wanted, grad, operands)
        found = iter(graph([grad, *operands]))
        places = iter(range(len(operands)))
        results = [next(found) if there and next(places) in wanted else None for there in ctx.there]
        return (None, None, None, *results)


def _backward_graph(
    reference: Compute, there: Sequence[bool], wanted: Sequence[int], grad: torch.Tensor, operands: Sequence[torch.Tensor]
) -> CompiledGraph:
    def gradients(grad: torch.Tensor, *operands: torch.Tensor) -> tuple[torch.Tensor, ...]:
        with torch.enable_grad():
            leaves = [t.detach().requires_grad_(i in wanted) for i, t in enumerate(operands)]
            rest = iter(leaves)
            result = reference(*(next(rest) if is_there else None for is_there in there))
            return torch.autograd.grad(result, [leaves[i] for i in wanted], grad)  # type: ignore[no-any-return]  # no types

    module = make_fx(gradients, decomposition_table=decompositions(), tracing_mode="fake")(grad, *operands)
    return CompiledGraph(module, Direction.BACKWARD, checked({"claim": "all"}), ())
