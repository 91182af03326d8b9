"""Runs functions of written modules in Triton's interpreter: a process of its own, since Triton asks for it when it is imported.

    python child.py jobs.pickle results.pickle

A job: (path of the module, name of the function, arguments, weights by name), or the name of a launch in `launches.py`.
bfloat16 is carried as uint16.
"""

from __future__ import annotations

import importlib.util
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

BF16 = "bf16"


def tensor(array: Any, dtype: str) -> torch.Tensor:
    made = torch.from_numpy(np.array(array))
    return made.view(torch.bfloat16) if dtype == BF16 else made


def array(result: torch.Tensor) -> Any:
    return (result.view(torch.uint16) if result.dtype is torch.bfloat16 else result).numpy()


def run(job: Any) -> Any:
    if isinstance(job, str):
        sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
        from tests.frameworks.triton.launches import LAUNCHES

        return [array(result) for result in LAUNCHES[job](lambda kernel: kernel)]
    path, function, arguments, weights = job
    spec = importlib.util.spec_from_file_location("written", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    given = [tensor(*argument) for argument in arguments]
    results = getattr(module, function)(*given, weights={name: tensor(*weight) for name, weight in weights.items()})
    return [array(result) for result in results]


def main(jobs: str, results: str) -> None:
    found: list[Any] = []
    with np.errstate(all="ignore"):
        for job in pickle.loads(Path(jobs).read_bytes()):
            try:
                found.append(run(job))
            except Exception as error:  # told to the test
                found.append(f"{type(error).__name__}: {error}"[:2000])
    Path(results).write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
