"""`bench device`: measures each point in a child process and stores it at once."""

from __future__ import annotations

import dataclasses
import fnmatch
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from xyntra_bench.codec import decode, encode
from xyntra_bench.device_ceilings import measure_device_ceilings
from xyntra_bench.device_points import POINTS, TINY_POINTS, Point
from xyntra_bench.device_results import DeviceRun, PointResult, load_device_run
from xyntra_bench.device_worker import DeviceJob
from xyntra_bench.environment import Environment
from xyntra_bench.errors import BenchError
from xyntra_bench.resume import command_differences, environment_differences
from xyntra_bench.run import ChildFailed, child_environment, in_child
from xyntra_bench.store import dump, now, write_atomically
from xyntra_bench.trials import make_trials

WORKER = ("-m", "xyntra_bench.device_worker")
LIMIT_S = 180.0
ABSENT = "cannot be had"  # what XyntraEP says of a backend that the machine does not have


def points_like(pattern: str, *, tiny: bool) -> tuple[Point, ...]:
    all_points = TINY_POINTS if tiny else POINTS
    wanted = tuple(p for p in all_points if fnmatch.fnmatch(p.name, pattern) or p.name.partition("-")[0] == pattern)
    if not wanted:
        raise BenchError(f"'{pattern}': no point of that name. there are {', '.join(point.name for point in all_points)}")
    return wanted


class DeviceStore:
    """A run being written. What was measured is on disk when it is given."""

    def __init__(self, path: Path, run: DeviceRun) -> None:
        self.path = path
        self.run = run
        self._keep()

    @classmethod
    def resumed(cls, path: Path, environment: Environment, command: str) -> DeviceStore:
        """To go on with a run that was interrupted, of the same command on the same machine."""
        run = load_device_run(path)
        if different := (*command_differences(run.command, command), *environment_differences(run.environment, environment)):
            raise BenchError(f"{path}: cannot be resumed: {'; '.join(different)}. start again without --resume")
        return cls(path, dataclasses.replace(run, finished=""))

    def measure(self, points: tuple[Point, ...], backend: str, warn: Callable[[str], None]) -> Iterator[PointResult]:
        """The device's ceilings, then each point, unless the run has them. A point that failed is there: that is its result.
        Without ceilings, which a driver may refuse, points have no roof, and `warn` is told; without a device there are none."""
        if problem := make_trials((backend,), child_environment()):
            warn(problem)
        if not self.run.device_ceilings:
            ceilings, problem = measure_device_ceilings(backend, child_environment())
            if ABSENT in problem:
                raise BenchError(problem)
            if problem:
                warn(problem)
            self._keep(device_ceilings=ceilings)
        done = {result.name for result in self.run.points}
        for point in points:
            if point.name not in done:
                result = measured(point, backend)
                self._keep(points=(*self.run.points, result))
                yield result
        self._keep(finished=now())

    def _keep(self, **more: Any) -> None:
        self.run = dataclasses.replace(self.run, **more)
        write_atomically(self.path, dump(self.run))


def measured(point: Point, backend: str) -> PointResult:
    with tempfile.TemporaryDirectory(prefix="xyntra-bench-") as folder:
        job = DeviceJob(point=point.name, backend=backend, folder=folder)
        try:
            return decode(PointResult, in_child(WORKER, encode(job), Path(folder), LIMIT_S))
        except ChildFailed as failure:
            return PointResult(
                name=point.name,
                precision=point.precision,
                flops=point.flops,
                bytes=point.bytes,
                ns=0,
                runs=0,
                variants=(),
                error=None,
                max_err=point.max_err,
                library="",
                library_ns=None,
                failure=f"{failure.status}: {failure.text.splitlines()[0]}",
            )
