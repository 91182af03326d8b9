"""Tracea, the kernel compiler: from core-IR operations to compiled kernels for the machine at hand, and a plan that runs them.

Layers, from the top: `interface`, `planning`, `doctor` and `kernels`, `emitters`, `semantic_ir`, `core_ir`; `runtime` compiles.
Read first: `core_ir/ops/core_op.py`, then `interface/context.py`.

>>> import xyntra_ep.tracea as tracea
>>> tracea.Context().plan_kernel("gemm", m=128, n=768, k=768).op
'gemm'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xyntra_ep.frameworks import ops
    from xyntra_ep.frameworks.torch.conv2d import TraceaConv2d, patch_conv2d
    from xyntra_ep.tracea.doctor.policy import Policy
    from xyntra_ep.tracea.interface.context import Context
    from xyntra_ep.tracea.interface.topology.kinds import Dense, LowRank, OperatorTopology
    from xyntra_ep.tracea.interface.tuning.problem import Problem, named_problem
    from xyntra_ep.tracea.interface.tuning.tuner import AutoTuner, Budget, tune
    from xyntra_ep.tracea.optimizer.space import Categorical, Integer, Real, SearchSpace
    from xyntra_ep.tracea.optimizer.tuning_cache import TuningCache, TuningResult

__all__ = [
    "AutoTuner",
    "Budget",
    "Categorical",
    "Context",
    "Dense",
    "Integer",
    "LowRank",
    "OperatorTopology",
    "Policy",
    "Problem",
    "Real",
    "SearchSpace",
    "TraceaConv2d",
    "TuningCache",
    "TuningResult",
    "named_problem",
    "ops",
    "patch_conv2d",
    "tune",
]

_WHERE = {
    "doctor.policy": ("Policy",),
    "interface.context": ("Context",),
    "interface.topology.kinds": ("Dense", "LowRank", "OperatorTopology"),
    "interface.tuning.problem": ("Problem", "named_problem"),
    "interface.tuning.tuner": ("AutoTuner", "Budget", "tune"),
    "optimizer.space": ("Categorical", "Integer", "Real", "SearchSpace"),
    "optimizer.tuning_cache": ("TuningCache", "TuningResult"),
}


def __getattr__(name: str) -> Any:
    """Imported on first use: the layers below import this package while they are being imported themselves."""
    for module, names in _WHERE.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    if name == "ops":  # a way in from above: what calls it is no layer of ours
        return import_module("xyntra_ep.frameworks.ops")
    if name in ("TraceaConv2d", "patch_conv2d"):
        return getattr(import_module("xyntra_ep.frameworks.torch"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
