"""The option first_run: a session that begins with prebuilt kernels, and goes on with others that are compiled meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.options import FirstRun, Options, Tune
from xyntra_ep.provider import registration
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.islands import CompileResult
from xyntra_ep.tracea.runtime.background import compile_beside

_WARNING = 2  # of ONNX Runtime's levels


def begins_prebuilt(options: Options) -> bool:
    """Whether a session does, where there are such kernels."""
    return options.first_run is FirstRun.PREBUILT and not _why_not(options)


def _why_not(options: Options) -> str:
    """What else is asked for that cannot be had together with it."""
    if options.deterministic:
        return "deterministic=1 wants the same kernels in each run"
    return "tune=session measures kernels that are compiled" if options.tune is Tune.SESSION else ""


def unlike_asked(options: Options, context: Context) -> str:
    """Why the session has waited for compilers though it should not; nothing where it was not asked, or there is none."""
    if options.first_run is not FirstRun.PREBUILT or context.prebuilt is not None:
        return ""
    why = _why_not(options) or (
        "kernels for devices are compiled" if context.device is not None else "nothing suitable is prebuilt"
    )
    return f"all kernels are compiled first, whatever first_run says: {why}"


def go_on(result: CompileResult, context: Context, digest: str) -> None:
    """Have those kernels compiled that runs of the graph are to go on with."""
    if result.successors and context.successors is not None:
        compile_beside(context.successors, result.successors, digest, _say)


def _say(reasons: Sequence[str]) -> None:
    """An island of which one cannot be compiled stays as it is, and nobody would know."""
    count = f"{len(reasons)} kernel{'s' * (len(reasons) > 1)}"
    registration.say(
        _WARNING,
        f"XyntraEP: {count} for the model's sizes cannot be compiled, so prebuilt ones stay in their place: {reasons[0]}",
    )
