"""Tries kernels, as a program of its own that imports nothing of ours: a wrong kernel may end the process, or hang.

trial_child.py LIBRARY FOLDER [NUMBER...]

FOLDER/jobs.json says on which "device" ("": the processor), how many "rounds" are made of all jobs, one after the other, and
lists the "jobs". {"data": n, "inputs": shapes, "constants": numbers, "outputs": bytes, "timed": runs, "threads": count,
"between_bytes": bytes}: run the island of FOLDER/number.plan; input i is read from FOLDER/n.in.i, constant i of the plan from
FOLDER/n.const.<numbers[i]>, output i is written to FOLDER/number.out.i; native/island_trial.h has the rest. {"bytes": size,
"timed": copies}: copy so much there and back. Prints, after a mark, what it begins and how it ended; of what is timed the medians
of a round, in nanoseconds.

The process ends after the first problem: an error that a kernel leaves in a context is reported by every later call. It is ended
by an alarm, which a hanging driver does not hold up, where the device is not open after "opening_s" seconds or a job takes
more than "limit_s"; after "budget_s" it begins no other job.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Mapping
from functools import cache
from typing import Any

MARK = "xyntra-trial "
JOBS = "jobs.json"
_WHY_BYTES = 4096
_SPARE_BYTES = 64  # kernels may read so far behind a tensor, as in native/memory_block.h
_ALIGNMENT = 64  # of tensors, as there: a load of 64 bytes across two lines takes twice as long
_LITTLE = {"bytes": 4, "timed": 0}
_Job = Mapping[str, Any]


def main(library: str, folder: str, *numbers: str) -> None:
    with open(f"{folder}/{JOBS}", encoding="utf-8") as file:
        given = json.load(file)
    device, limit_s = given["device"], given["limit_s"]
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    signal.setitimer(signal.ITIMER_REAL, given["opening_s"])
    opened = ctypes.CDLL(library)
    _tell("opened", device, _copy(opened, device, _LITTLE) if device else {"problem": ""})
    enough = time.monotonic() + given["budget_s"]
    for number in [int(number) for _ in range(given["rounds"]) for number in numbers]:
        job = given["jobs"][number]
        _say({"trying": number})
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        is_copy = "bytes" in job
        _tell("tried", number, _copy(opened, device, job) if is_copy else _run(opened, folder, number, job))
        if time.monotonic() > enough:
            break
    signal.setitimer(signal.ITIMER_REAL, limit_s)  # for the driver, to be unloaded


def _run(library: ctypes.CDLL, folder: str, number: int, job: _Job) -> dict[str, object]:
    run, shapes, sizes, data = library.xyntra_run_island, job["inputs"], job["outputs"], f"{folder}/{job['data']}"
    run.argtypes = [
        ctypes.c_char_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p,
        ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p,
        ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint64,
    ]  # fmt: skip
    inputs = [_buffer(f"{data}.in.{i}") for i in range(len(shapes))]
    constants = [_buffer(f"{data}.const.{i}") for i in job["constants"]]
    outputs = [_memory(b"\xff" * size, size) for size in sizes]
    dims = [extent for shape in shapes for extent in shape]
    why = ctypes.create_string_buffer(_WHY_BYTES)
    all_ns, kernels_ns = ((ctypes.c_int64 * job["timed"])() for _ in range(2))
    done = run(
        f"{folder}/{number}.plan".encode(), 0, _addresses(inputs), (ctypes.c_uint32 * len(shapes))(*map(len, shapes)),
        (ctypes.c_int64 * len(dims))(*dims), len(shapes), _addresses(constants),
        (ctypes.c_uint64 * len(constants))(*(len(constant) - _SPARE_BYTES for constant in constants)), len(constants),
        _addresses(outputs), len(outputs), job["threads"], job["between_bytes"], all_ns, kernels_ns, job["timed"], why, len(why),
    )  # fmt: skip
    for i, output in enumerate(outputs):
        with open(f"{folder}/{number}.out.{i}", "wb") as target:
            target.write(output.raw)
    return _ended(done, why, all_ns=all_ns, kernels_ns=kernels_ns)


def _copy(library: ctypes.CDLL, device: str, job: _Job) -> dict[str, object]:
    copy = library.xyntra_time_copies
    copy.argtypes = [
        ctypes.c_char_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint64,
    ]  # fmt: skip
    why = ctypes.create_string_buffer(_WHY_BYTES)
    there_ns, back_ns = ((ctypes.c_int64 * job["timed"])() for _ in range(2))
    done = copy(device.encode(), job["bytes"], there_ns, back_ns, job["timed"], why, len(why))
    return _ended(done, why, there_ns=there_ns, back_ns=back_ns)


def _ended(done: int, why: ctypes.Array[ctypes.c_char], **times: ctypes.Array[ctypes.c_int64]) -> dict[str, object]:
    """The problem, empty where there is none, and medians."""
    if done != 1:
        return {"problem": why.value.decode(errors="replace") or "it fails without a reason"}
    return {"problem": "", **{name: statistics.median(ns) for name, ns in times.items() if len(ns)}}


def _addresses(buffers: list[ctypes.Array[ctypes.c_char]]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(buffers))(*(ctypes.addressof(buffer) for buffer in buffers))


@cache
def _buffer(path: str) -> ctypes.Array[ctypes.c_char]:
    """Read once: the jobs of many kernels have the same data."""
    with open(path, "rb") as file:
        data = file.read()
    return _memory(data, len(data) + _SPARE_BYTES)


def _memory(data: bytes, size: int) -> ctypes.Array[ctypes.c_char]:
    block = bytearray(size + _ALIGNMENT)
    start = -ctypes.addressof(ctypes.c_char.from_buffer(block)) % _ALIGNMENT
    block[start : start + len(data)] = data
    return (ctypes.c_char * size).from_buffer(block, start)


def _tell(what: str, of: object, ended: Mapping[str, object]) -> None:
    """How it ended. After a problem the process ends, and leaves a driver that may be in trouble as it is."""
    _say({what: of, **ended})
    if ended["problem"]:
        os._exit(0)


def _say(fact: dict[str, object]) -> None:
    print(MARK + json.dumps(fact), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
