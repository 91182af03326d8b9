"""Faults put into XyntraEP on purpose, in the child that hunts: the hunter must find them.

Child(preload="tests.hunt.processes.planted:wrong_tanh")
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.op_spec import Lowered
from xyntra_ep.fusion.tensor import Tensor
from xyntra_ep.fusion.trace import OPS, Context
from xyntra_ep.provider import planner
from xyntra_ep.tracea.core_ir import expr as E

Lower = Callable[[Context, Node, list[Tensor | None]], Lowered]


def _replace(name: str, change: Callable[[Lower], Lower]) -> None:
    """Another lowering for an operator."""
    row = OPS[name]
    OPS._load()[name] = replace(row, lower=change(row.lower))


def wrong_tanh() -> None:
    """Off by a quarter."""

    def change(lower: Lower) -> Lower:
        def wrong(c: Context, node: Node, inputs: list[Tensor | None]) -> Lowered:
            right = lower(c, node, inputs)
            assert isinstance(right, Tensor)
            return c.map([right], lambda v: E.call("add", v, E.const(0.25)), right.dtype)

        return wrong

    _replace("Tanh", change)


def raising_tanh() -> None:
    """As a mistake of ours that nobody expected."""

    def fail(c: Context, node: Node, inputs: list[Tensor | None]) -> Lowered:
        raise KeyError("tanh")

    _replace("Tanh", lambda _: fail)


def invalid_plan() -> None:
    """As a plan that is written wrongly: native code refuses it, and the model is lost."""
    names = vars(planner)
    write = names["write_plan"]

    def cut(*arguments: Any, **named: Any) -> bytes:
        plan: bytes = write(*arguments, **named)
        return plan[:-9]

    names["write_plan"] = cut


def crashing_tanh() -> None:
    """As an access beyond all memory."""

    def crash(c: Context, node: Node, inputs: list[Tensor | None]) -> Lowered:
        os.kill(os.getpid(), signal.SIGSEGV)
        raise AssertionError

    _replace("Tanh", lambda _: crash)


def hanging_tanh() -> None:
    """As a lock that nobody gives back."""

    def hang(c: Context, node: Node, inputs: list[Tensor | None]) -> Lowered:
        time.sleep(600)
        raise AssertionError

    _replace("Tanh", lambda _: hang)
