"""The child process of one point on a device, so its error stays in it: `python -m xyntra_bench.device_worker JOB RESULT`."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from xyntra_bench.accuracy import relative_error
from xyntra_bench.codec import decode, encode
from xyntra_bench.device_points import POINTS, SAMPLED, TINY_POINTS, Array, Point, from_bits, to_bits
from xyntra_bench.device_results import PointResult
from xyntra_bench.known import give_known
from xyntra_bench.torch_timing import Stopwatch

WARM_UP, RUNS = 2, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceJob:
    point: str
    backend: str
    folder: str


def measure_point(point: Point, backend: str, folder: Path) -> PointResult:
    """Raises what the session raises."""
    import onnxruntime as ort

    from xyntra_ep import knobs
    from xyntra_ep.diagnostics.explain import explain
    from xyntra_ep.diagnostics.kernel_times import device_run_ns

    inputs = point.inputs()
    file = folder / f"{point.name}.onnx"
    file.write_bytes(point.model(inputs).SerializeToString())
    settings = ort.SessionOptions()
    settings.log_severity_level = 3
    options = {"backend": backend, "claim": "all", "cache_dir": str(folder)}
    give_known(folder)
    with knobs.scope(avoid=(*knobs.current().avoid, *point.avoided)):
        session = ort.InferenceSession(str(file), settings, providers=[("XyntraEP", options)], enable_fallback=0)
    feeds = {name: _value(ort, x, point.precision) for name, x in inputs.items() if name not in point.constant}

    def run() -> Any:
        return session.run_with_ort_values(["y"], feeds)[0]

    for _ in range(WARM_UP):
        result = run()
    ns = device_run_ns(session, run, runs=RUNS)
    assert ns is not None, "not on the device"
    [graph] = explain(session).graphs
    got = _first_rows(result, point)
    library, library_ns = _library(point, inputs)
    return PointResult(
        name=point.name,
        precision=point.precision,
        flops=point.flops,
        bytes=point.bytes,
        ns=ns,
        runs=RUNS,
        variants=tuple(kernel.variant for island in graph.islands for kernel in island.kernels if kernel.alternative == 0),
        error=relative_error(got, point.expected(inputs)),
        max_err=point.max_err,
        library=library,
        library_ns=library_ns,
        failure="",
    )


def _value(ort: Any, x: Array, precision: str) -> Any:
    stored = to_bits(x, precision)
    if precision == "bf16":
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(stored, 16)  # TensorProto.BFLOAT16
    return ort.OrtValue.ortvalue_from_numpy(stored)


def _first_rows(result: Any, point: Point) -> Array:
    """Of the output, read where it lies: numpy has no bfloat16."""
    import ctypes

    width = point.output[-1]
    count = min(SAMPLED, int(np.prod(point.output[:-1], dtype=np.int64))) * width
    item = {"fp32": ctypes.c_uint32, "fp16": ctypes.c_uint16, "bf16": ctypes.c_uint16}[point.precision]
    bits = np.ctypeslib.as_array(ctypes.cast(result.data_ptr(), ctypes.POINTER(item)), (count,)).copy()
    stored = bits.view({"fp32": np.float32, "fp16": np.float16, "bf16": np.uint16}[point.precision])
    return from_bits(stored, point.precision).reshape(-1, width)


def _library(point: Point, inputs: dict[str, Array]) -> tuple[str, float | None]:
    """PyTorch's name, and its nanoseconds for the same; nothing without it and without a GPU of its own."""
    try:
        import torch
    except ImportError:
        return "", None
    if not torch.cuda.is_available():
        return "", None
    torch.backends.cuda.matmul.allow_tf32 = False
    return f"torch {torch.__version__}", library_ns(torch, point, inputs, "cuda", Stopwatch.of(torch))


def library_ns(torch: Any, point: Point, inputs: dict[str, Array], device: str, watch: Stopwatch) -> float:
    """The median of runs in the rhythm of ours, which clocks and caches depend on: inputs come from the host, the operator is
    between two events, its output goes back."""
    dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[point.precision]
    there = {name: torch.from_numpy(x).to(device, dtype) for name, x in inputs.items()}
    brought = [(name, there[name].cpu()) for name in inputs if name not in point.constant]
    if device == "cuda":  # as a session's are: copies then wait for nobody
        brought = [(name, x.pin_memory()) for name, x in brought]
    work = point.library(torch, there)
    times: list[float] = []
    with torch.inference_mode():
        for _ in range(WARM_UP + RUNS):
            for name, x in brought:
                there[name].copy_(x, non_blocking=True)
            made, taken_ns = watch.time(work)
            made.cpu()
            times.append(taken_ns())
    return median(times[WARM_UP:])


def main(job_file: Path, result_file: Path) -> None:
    job = decode(DeviceJob, json.loads(job_file.read_text()))
    point = next(point for point in (*POINTS, *TINY_POINTS) if point.name == job.point)
    result_file.write_text(json.dumps(encode(measure_point(point, job.backend, Path(job.folder)))))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
