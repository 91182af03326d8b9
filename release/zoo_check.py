"""The zoo's tiny models with the installed package, against ONNX Runtime's CPU provider: python zoo_check.py [NAME]...

Its graphs are not optimised: what an operator means is asked, not what its fastest kernel makes of it.
For where the test suite is not: a wheel in a fresh environment, another processor under an emulator.
"""

from __future__ import annotations

import platform
import sys
import time

import numpy as np
import onnxruntime as ort

import xyntra_ep
from xyntra_ep.diagnostics.explain import Explanation
from xyntra_zoo import ZooModel, model_path, zoo


def compared(model: ZooModel) -> tuple[float, Explanation]:
    """The largest relative error of all outputs, and what XyntraEP did."""
    feeds = model.feeds(2, max(model.seqs, default=1), 7)
    path = str(model_path(model))
    ours = ort.InferenceSession(path, providers=[("XyntraEP", {"claim": "all"}), "CPUExecutionProvider"])
    plain = ort.SessionOptions()
    plain.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    theirs = ort.InferenceSession(path, plain, providers=["CPUExecutionProvider"])
    worst = 0.0
    for mine, wanted in zip(ours.run(None, feeds), theirs.run(None, feeds), strict=True):
        worst = max(worst, float(np.abs(mine - wanted).max() / np.abs(wanted).max()))
    return worst, xyntra_ep.explain(ours)


def main(names: list[str]) -> int:
    models = [zoo[name] for name in names] or [model for model in zoo if model.tiny]
    failed = 0
    for model in models:
        began = time.monotonic()
        error, told = compared(model)
        ok = error <= model.max_err and told.claimed > 0 and not told.faults
        failed += not ok
        took = time.monotonic() - began
        counts = f"{told.claimed} of {told.total} nodes, {took:.0f} s"
        print(f"{'ok' if ok else 'FAILED'} {model.name}: error {error:.1e} of {model.max_err:.0e}, {counts}", flush=True)
    verdict = f"{len(models) - failed} passed, {failed} failed"
    print(f"{verdict}: onnxruntime {ort.__version__} on {platform.system()} {platform.machine()}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
