"""torch.compile with our backend beside eager, inductor, and ONNX Runtime with the exported model."""

from __future__ import annotations

from xyntra_bench.plan import Scenario, Target
from xyntra_bench.results import Run
from xyntra_bench.show import claimed, milliseconds
from xyntra_bench.torch_compile.beside import Pair, pairs_of, told
from xyntra_reports._markdown import bounds, cases_of, disclosure, plain, provenance, speed_up, table
from xyntra_reports.registry import Report

HEADER = (
    "module", "shape", "threads", "contender", "p50 ms", "beside", "its p50 ms", "its time / ours [95 %]", "n", "verdict",
    "max error", "calls",
)  # fmt: skip
NOTE = (
    "Modules of transformers and torchvision with random weights, without gradients; eager PyTorch, torch.compile with its "
    "default options, and ONNX Runtime with what `torch.onnx` exports. n is the number of paired iterations of all sessions in "
    "one process, after the compilations. Max error is max\\|a-b\\| / max\\|b\\| against eager. Calls are those of PyTorch's "
    "operators that XyntraEP carries out, of all that there are after decomposition. xyntra and ONNX Runtime keep weights as "
    "constants, as `inductor:freezing=1` does.\n"
)


def render(run: Run, source: str) -> str:
    cases = cases_of(run, Scenario.SINGLE_STREAM)
    rows = [_row(pair) for pair in pairs_of(run)]
    failed = [
        [case.model, case.shape, str(case.threads), *["-"] * 6, str(case.status), "-", "-"] for case in cases if case.failure
    ]
    lines = "\n".join(f"- {plain(line)}" for line in told(run))
    about = f"Bounds of the error: {bounds(cases)}. {disclosure(run, Scenario.SINGLE_STREAM)}"
    return "\n\n".join([table(HEADER, rows + failed, left=4), lines, about, provenance(run, source)]) + "\n"


def _row(pair: Pair) -> list[str]:
    case, m = pair.case, pair.m
    by_label = {one.label: one for one in case.measurements}
    ours, theirs = (one.latency.p50_ns if one and one.latency else None for one in (m, by_label.get(pair.other)))
    return [
        case.model,
        case.shape,
        str(m.threads),
        m.label,
        milliseconds(ours),
        pair.other,
        milliseconds(theirs),
        speed_up(pair.ratio),
        str(pair.ratio.pairs) if pair.ratio else "-",
        str(pair.verdict) if not m.lacking else plain(m.lacking),
        f"{m.check.error:.1e}" if m.check and m.check.error is not None else "-",
        claimed(m) or "-",
    ]


REPORTS = [
    Report(
        name="torch",
        title="torch.compile",
        target=Target.TORCH,
        render=render,
        note=NOTE,
        nothing="Not measured yet.\n",
        by_isa=True,
    )
]
