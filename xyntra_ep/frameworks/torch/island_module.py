"""An island as a module of a graph: takes tensors, gives new ones."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from xyntra_ep.provider.opened_graph import GraphIsland


class IslandModule(torch.nn.Module):
    """``dtypes``: of the outputs."""

    def __init__(self, island: GraphIsland, dtypes: Sequence[torch.dtype]) -> None:
        super().__init__()
        self._island = island
        self._opened = island.opened
        self._dtypes = tuple(dtypes)

    def forward(self, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
        tensors = [t if t.is_contiguous() else t.contiguous() for t in args]
        addresses = [t.data_ptr() for t in tensors]
        shapes = tuple(tuple(t.shape) for t in tensors)
        sizes = self._opened.output_shapes(addresses, shapes)
        results = tuple(torch.empty(size, dtype=dtype) for size, dtype in zip(sizes, self._dtypes, strict=True))
        self._opened.run(addresses, shapes, [t.data_ptr() for t in results], torch.get_num_threads())
        return results

    def extra_repr(self) -> str:
        return f"{len(self._island.nodes)} nodes: {', '.join(self._island.kernels)}"
