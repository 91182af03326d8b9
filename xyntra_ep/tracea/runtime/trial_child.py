"""Tries a device, as a program of its own that imports nothing of ours: a wrong kernel may end the process, or hang.

trial_child.py LIBRARY FOLDER [NUMBER...]

FOLDER/errands.json lists what there is to do. {"inputs": shapes, "outputs": bytes, "timed": runs}: run the island of
FOLDER/n.plan; input i is read from FOLDER/n.in.i, output i written to FOLDER/n.out.i. {"device": identity, "bytes": size,
"timed": copies}: copy so much there and back. Prints, after a mark, what it begins and how it ended; of what is timed the
medians, in nanoseconds.
"""

from __future__ import annotations

import ctypes
import json
import statistics
import sys
from collections.abc import Mapping
from typing import Any

MARK = "xyntra-trial "
ERRANDS = "errands.json"
_WHY_BYTES = 4096
_Errand = Mapping[str, Any]


def main(library: str, folder: str, *numbers: str) -> None:
    opened = ctypes.CDLL(library)
    with open(f"{folder}/{ERRANDS}", encoding="utf-8") as file:
        errands = json.load(file)
    for number in map(int, numbers):
        _say({"trying": number})
        errand = errands[number]
        _say({"tried": number, **(_copy(opened, errand) if "bytes" in errand else _run(opened, f"{folder}/{number}", errand))})


def _run(library: ctypes.CDLL, name: str, errand: _Errand) -> dict[str, object]:
    run, shapes, sizes = library.xyntra_run_island, errand["inputs"], errand["outputs"]
    run.argtypes = [
        ctypes.c_char_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p,
        ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint64,
    ]  # fmt: skip
    inputs = [ctypes.create_string_buffer(_read(f"{name}.in.{i}")) for i in range(len(shapes))]
    outputs = [ctypes.create_string_buffer(b"\xff" * size, size) for size in sizes]
    dims = [extent for shape in shapes for extent in shape]
    why = ctypes.create_string_buffer(_WHY_BYTES)
    all_ns, kernels_ns = ((ctypes.c_int64 * errand["timed"])() for _ in range(2))
    done = run(
        f"{name}.plan".encode(), 0, _addresses(inputs), (ctypes.c_uint32 * len(shapes))(*map(len, shapes)),
        (ctypes.c_int64 * len(dims))(*dims), len(shapes), _addresses(outputs), len(outputs),
        all_ns, kernels_ns, errand["timed"], why, len(why),
    )  # fmt: skip
    for i, output in enumerate(outputs):
        with open(f"{name}.out.{i}", "wb") as target:
            target.write(output.raw)
    return _ended(done, why, all_ns=all_ns, kernels_ns=kernels_ns)


def _copy(library: ctypes.CDLL, errand: _Errand) -> dict[str, object]:
    copy = library.xyntra_time_copies
    copy.argtypes = [
        ctypes.c_char_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint64,
    ]  # fmt: skip
    why = ctypes.create_string_buffer(_WHY_BYTES)
    there_ns, back_ns = ((ctypes.c_int64 * errand["timed"])() for _ in range(2))
    done = copy(errand["device"].encode(), errand["bytes"], there_ns, back_ns, errand["timed"], why, len(why))
    return _ended(done, why, there_ns=there_ns, back_ns=back_ns)


def _ended(done: int, why: ctypes.Array[ctypes.c_char], **times: ctypes.Array[ctypes.c_int64]) -> dict[str, object]:
    """The problem, empty where there is none, and medians."""
    if done != 1:
        return {"problem": why.value.decode(errors="replace") or "it fails without a reason"}
    return {"problem": "", **{name: statistics.median(ns) for name, ns in times.items() if len(ns)}}


def _addresses(buffers: list[ctypes.Array[ctypes.c_char]]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(buffers))(*(ctypes.addressof(buffer) for buffer in buffers))


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _say(fact: dict[str, object]) -> None:
    print(MARK + json.dumps(fact), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
