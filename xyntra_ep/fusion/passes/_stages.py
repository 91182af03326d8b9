"""Reductions of several row nodes, as the stages of one."""

from __future__ import annotations

from collections.abc import Mapping

from xyntra_ep.fusion.scheduling.compose import Composer, axes
from xyntra_ep.fusion.tensor import RowNode
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import Stage

_ACC = {DType.F32: E.acc, DType.I64: E.acc_int, DType.BOOL: E.acc_bool}


class Stages:
    """``found``: in an order in which each reads only earlier ones."""

    def __init__(self) -> None:
        self.found: list[Stage] = []
        self._numbers: dict[int, dict[int, int]] = {}  # of each node: its stages, as they are numbered here

    def result(self, node: RowNode, result: Expr, composer: Composer) -> Expr:
        """``result``, an output's expression of ``node``, whose stages are taken in; what the node reads is put together by
        ``composer``, and what stages it depends on come first by that."""
        everywhere = axes(len(node.outer) + len(node.inner))
        numbers = self._numbers.get(id(node))
        if numbers is None:
            numbers = self._numbers[id(node)] = {}
            for j, stage in enumerate(node.stages):
                body = composer.body(_renumbered(stage.body, numbers), node.inputs, everywhere)
                numbers[j] = len(self.found)
                self.found.append(Stage(kind=stage.kind, body=body, dtype=stage.dtype))
        return composer.body(_renumbered(result, numbers), node.inputs, everywhere)


def _renumbered(body: Expr, numbers: Mapping[int, int]) -> Expr:
    return E.rewrite(body, lambda e: _ACC[e.dtype](numbers[e.attr]) if e.kind == "acc" else None)
