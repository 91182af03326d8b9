"""Runs plans on their device, as a program of its own that imports nothing of ours: a wrong kernel may end the process, or hang.

trial_child.py LIBRARY FOLDER [NUMBER...]

FOLDER/n.plan has one island; FOLDER/shapes.json says of each plan the shapes of its inputs and the bytes of its outputs. Input i
is read from FOLDER/n.in.i, output i written to FOLDER/n.out.i. Prints, after a mark, what it begins and how it ended.
"""

from __future__ import annotations

import ctypes
import json
import sys

MARK = "xyntra-trial "
SHAPES = "shapes.json"
_WHY_BYTES = 4096


def main(library: str, folder: str, *numbers: str) -> None:
    run = ctypes.CDLL(library).xyntra_run_island
    run.argtypes = [
        ctypes.c_char_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p,
        ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint64,
    ]  # fmt: skip
    with open(f"{folder}/{SHAPES}", encoding="utf-8") as file:
        plans = json.load(file)
    for number in map(int, numbers):
        _say({"trying": number})
        shapes, sizes = plans[number]["inputs"], plans[number]["outputs"]
        inputs = [ctypes.create_string_buffer(_read(f"{folder}/{number}.in.{i}")) for i in range(len(shapes))]
        outputs = [ctypes.create_string_buffer(b"\xff" * size, size) for size in sizes]
        dims = [extent for shape in shapes for extent in shape]
        why = ctypes.create_string_buffer(_WHY_BYTES)
        done = run(
            f"{folder}/{number}.plan".encode(), 0, _addresses(inputs), (ctypes.c_uint32 * len(shapes))(*map(len, shapes)),
            (ctypes.c_int64 * len(dims))(*dims), len(shapes), _addresses(outputs), len(outputs), why, len(why),
        )  # fmt: skip
        for i, output in enumerate(outputs):
            with open(f"{folder}/{number}.out.{i}", "wb") as target:
                target.write(output.raw)
        _say({"tried": number, "problem": "" if done == 1 else why.value.decode(errors="replace") or "it fails without a reason"})


def _addresses(buffers: list[ctypes.Array[ctypes.c_char]]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(buffers))(*(ctypes.addressof(buffer) for buffer in buffers))


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _say(fact: dict[str, object]) -> None:
    print(MARK + json.dumps(fact), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
