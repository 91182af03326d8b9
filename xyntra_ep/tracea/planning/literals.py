"""Kernels of a plan for the sizes that it gives them: parameters that are plain numbers in a step become literals of its kernel.

    step 0: kernel a, params (768, n)             kernel a with literals (768, None)
    step 1: kernel a, params (3072, n)            kernel a with literals (3072, None)

What is called with other numbers is a kernel of its own, so that it can be exchanged by itself.
"""

from __future__ import annotations

from dataclasses import replace

from xyntra_ep.tracea.planning.plan import PlannedProgram, PlanStep
from xyntra_ep.tracea.runtime.kernel_source import KernelSource


def with_literals(planned: PlannedProgram) -> PlannedProgram:
    """Of run steps: init steps are over before another kernel could serve them."""
    numbers: dict[KernelSource, int] = {}

    def step_with(step: PlanStep, literals: tuple[int | None, ...]) -> PlanStep:
        has_any = any(literal is not None for literal in literals)
        source = replace(planned.kernels[step.kernel], literals=literals if has_any else ())
        return replace(step, kernel=numbers.setdefault(source, len(numbers)))

    init = tuple(step_with(step, ()) for step in planned.init)
    run = tuple(step_with(step, tuple(int(p) if isinstance(p, int) else None for p in step.params)) for step in planned.run)
    return replace(planned, kernels=tuple(numbers), init=init, run=run)
