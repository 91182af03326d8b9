"""Native code on foreign bytes, with libFuzzer (docs/soundness.md).

    python -m tests.fuzzers --seconds 60             each program of native/fuzz/, a minute
    python -m tests.fuzzers --only fuzz_plan --seconds 600

Seeds are made anew: plans that the planner makes of small models, and the programs of sizes within them. What is found along the
way stays in build/fuzz/corpus; an input that fails is named, lies in build/fuzz/found and is tried first from then on.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort

from tests.native.plans.manifest_builder import ARENA, CONSTANT, INIT, LITERAL, POOL, Alternative, Island, Kernel, Plan, Tensor
from tests.sanitized import build
from xyntra_ep.provider import registration
from xyntra_ep.tracea.planning.compiled_model import CompiledModel, CompiledTarget, DeclaredTensor, write_compiled_model
from xyntra_ep.tracea.planning.manifest_reader import read_manifest
from xyntra_zoo import model_path, zoo

ROOT = Path(__file__).resolve().parent.parent
MODELS = ("bert-base-tiny", "mobilenetv2-tiny", "vit-tiny16-tiny")
# Small plans say as much, and many more of them are tried in a second.
GRAPHS = (
    "(float[N, 4] x) => (float[N, 4] y) { y = Relu(x) }",
    "(float[N, S, 8] x) => (float[N, 8] y) { z = Softmax<axis = -1>(x) y = ReduceMean<axes = [1], keepdims = 0>(z) }",
    "(float[N, S] x, float[M, S] w) => (float[Q, S] y) { z = Concat<axis = 0>(x, w) y = Tanh(z) }",
    "(float[A, B] x, int64[2] shape) => (float[C, D] y) { z = Exp(x) y = Reshape(z, shape) }",
    "(float[N, 8] x) => (float[N, 8] y) <float[8, 8] w = {WEIGHT}> { z = MatMul(x, w) y = Relu(z) }",
)
MOST_BYTES = 64 << 10
CHECKSUM_BYTES = 16
_COMPILERS = ("clang++", *(f"clang++-{version}" for version in range(24, 15, -1)))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzers")
    parser.add_argument("--seconds", type=int, default=60, help="for each program")
    parser.add_argument("--only", help="the program to run")
    known = parser.parse_args(arguments)
    clang = next((path for name in _COMPILERS if (path := shutil.which(name))), None)
    if clang is None:
        print("nothing was tested: no clang++ on this machine, which libFuzzer comes with")
        return 1
    folder = ROOT / "build" / "fuzz"
    build(folder, clang, "address,undefined", "-DXYNTRA_BUILD_FUZZ=ON", target="fuzzers")
    programs = sorted(source.stem for source in (ROOT / "native" / "fuzz").glob("*.cc"))
    seeds = make_seeds()
    failed = [name for name in programs if known.only in (None, name) and _run(folder, name, seeds.get(name, ()), known.seconds)]
    print(f"fuzzed for {known.seconds} s each; failed: {', '.join(failed) or 'none'}")
    return int(bool(failed))


def _run(folder: Path, program: str, seeds: Sequence[bytes], seconds: int) -> int:
    corpus, found = folder / "corpus" / program, folder / "found" / program
    for place in (corpus, found):
        place.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        (corpus / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    known = sorted(map(str, found.iterdir()))
    command = [str(folder / program), f"-artifact_prefix={found}/", "-timeout=10", "-rss_limit_mb=4096"]
    environment = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
    if known and (status := subprocess.run([*command, *known], env=environment).returncode):
        return status
    last = [f"-max_total_time={seconds}", f"-max_len={MOST_BYTES}", "-print_final_stats=1", "-verbosity=1", str(corpus)]
    with tempfile.TemporaryFile("w+") as log:
        status = subprocess.run([*command, *last], env=environment, stderr=log).returncode
        log.seek(0)
        lines = log.read().splitlines()
    print(f"== {program}, {len(seeds)} seeds", *(lines if status else _summary(lines)), sep="\n", flush=True)
    return status


def _summary(lines: Sequence[str]) -> Iterator[str]:
    yield from (line for line in lines if line.startswith(("Done ", "stat::number_of_executed", "stat::peak")))
    yield from [line for line in lines if " cov: " in line][-1:]


def make_seeds() -> dict[str, list[bytes]]:
    """By program."""
    plans = [data for data in (*_plans(), _by_hand()) if len(data) <= MOST_BYTES]
    return {
        "fuzz_plan": [bytes((1, 2, 3, 4, 5, 6, 7, 0)) + data[:-CHECKSUM_BYTES] for data in plans],
        "fuzz_sizes": list(itertools.chain.from_iterable(map(_sizes, plans))),
        "fuzz_compiled": [made for data in plans if len(made := _compiled(data)) <= MOST_BYTES],
        "fuzz_onnx": [file for data in plans[:4] for file in _files(data)],
        "fuzz_operations": [*_operations()],
        "fuzz_exports": [b"\x04\x20abcd{}", b'\x00\x00"\\\n\x1f\xff'],
    }


def _operations() -> Iterator[bytes]:
    """Calls that make sense, as native/fuzz/fuzz_operations.cc reads them: a product, a convolution, attention."""

    def tensor(place: int, *shape: int, strides: tuple[int, ...] = ()) -> bytes:
        return bytes((3 if strides else 0, *shape, *(strides or (0,) * len(shape)), place))

    one_thread, with_third = bytes(2), b"\x01"
    for a in (tensor(1, 3, 4), tensor(1, 3, 4, strides=(1, 3))):
        yield bytes((0, 0)) + a + tensor(2, 4, 5) + tensor(3, 5) + tensor(4, 3, 5) + with_third + one_thread
    stride, padding, dilation, groups = (1, 1), (1, 1, 1, 1), (1, 1), 1
    convolution = tensor(1, 1, 2, 5, 5) + tensor(2, 4, 2, 3, 3) + tensor(3, 4) + tensor(4, 1, 4, 5, 5)
    yield b"\x01" + convolution + with_third + one_thread + bytes((*stride, *padding, *dilation, groups))
    heads = b"".join(tensor(place, 1, 2, 3, 8) for place in (1, 2, 3, 4))
    for causal in (0, 1):
        yield b"\x02" + heads + with_third + one_thread + bytes((causal, 0))


def _compiled(plan: bytes) -> bytes:
    """A compiled model of a plan, without its checksum."""
    model = CompiledModel(
        release="0.1.0",
        targets=(
            CompiledTarget(isa="amx", features=("amx_tile", "avx512f"), plan=plan),
            CompiledTarget(isa="scalar", features=(), plan=plan),
        ),
        tensors=(
            DeclaredTensor(name="x", elem_type=1, is_constant=False, shape=(None, 4)),
            DeclaredTensor(name="w", elem_type=1, is_constant=True, shape=(4, 4)),
            DeclaredTensor(name="n", elem_type=7, is_constant=False, shape=None),
        ),
        islands=((0, 1, 2), (2,)),
        kernels={bytes(range(16)): b"ELF"},
    )
    return write_compiled_model(model, lambda data: b"")


def _files(plan: bytes) -> Iterator[bytes]:
    """Files of compiled models, with constants in each form."""
    for raw in (True, False):
        weight = onnx.numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
        if not raw:
            weight = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, (4, 4), [1.0] * 16)
        count = onnx.helper.make_tensor("n", onnx.TensorProto.INT64, (2,), [1, -1])
        node = onnx.helper.make_node("EPContext", ["x", "w", "n"], ["y"], domain="com.microsoft", source="XyntraEP")
        node.attribute.append(onnx.helper.make_attribute("ep_cache_context", _compiled(plan)[: 1 << 10]))
        node.attribute.append(onnx.helper.make_attribute("partition_name", "0/0"))
        x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 4]) for name in "xy")
        yield onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [y], [weight, count])).SerializeToString()


def _by_hand() -> bytes:
    """A plan with what small models seldom have: offsets, literals, INIT temporaries, elements, guards, checks, a loop."""
    a = Alternative()
    rows, columns, wanted = a.dim(0, 0), a.const(4), a.element(1, 0)
    a.guards.append(a.op("lt", rows, a.const(100)))
    a.checks.append((a.op("le", wanted, rows), "more than there are"))
    a.output_dims(a.op("select", a.op("lt", wanted, a.const(0)), a.op("add", wanted, rows), wanted), columns)
    offset, sixteen = a.op("mul", a.op("sub", rows, a.const(1)), a.const(16)), a.const(16)
    weight, aside = a.buffer(POOL, size=a.const(64)), a.buffer(INIT, size=a.const(32))
    a.step(0, [(a.buffer(CONSTANT, 0), sixteen), (aside, sixteen)], [columns], init=True)
    a.step(1, [aside, (a.buffer(LITERAL, data=bytes(32)), sixteen), (weight, a.const(48))], [columns], init=True)
    first, second = (a.buffer(ARENA, size=a.op("mul", rows, a.const(size)), first=0, last=1) for size in (16, 24))
    a.step(0, [(a.input(0), offset), (first, offset), second], [rows, columns], units=rows)
    a.step(1, [(first, a.const(4)), (weight, sixteen), (a.output(0), a.const(0))], [rows], units=rows, cost=a.const(10**6))
    image, x, y = a.buffer(ARENA, size=a.const(16), first=2, last=3), a.input(0), a.output(0)
    a.step(0, [x, image], [columns])
    a.step(0, [image, y], [columns])
    a.loop(2, 3, rows, {x: sixteen, y: sixteen})
    a.waves.append((0, 1))
    inputs = [Tensor("x", 1, 2), Tensor("n", 7, 1)]
    kernels = [Kernel(f"{name}.so", name, bytes(16)) for name in ("f", "g")]
    return Plan("", "/", kernels=kernels, islands=[Island("i", [0], inputs, [Tensor("y", 1, 2)], [a], ["w"])]).bytes()


def _plans() -> Iterator[bytes]:
    with tempfile.TemporaryDirectory(prefix="xyntra-seeds-") as cache:
        registration.register()
        options = {"cache_dir": cache, "claim": "all"}
        weight = ", ".join(str(i) for i in range(64))
        header = '<ir_version: 8, opset_import: ["" : 17]> g '
        small = [onnx.parser.parse_model(header + graph.replace("WEIGHT", weight)).SerializeToString() for graph in GRAPHS]
        for model in (*small, *(str(model_path(zoo[name])) for name in MODELS)):
            ort.InferenceSession(model, providers=[("XyntraEP", options), "CPUExecutionProvider"])
        for path in sorted(Path(cache, "plans").iterdir()):
            yield path.read_bytes()


def _sizes(plan: bytes) -> Iterator[bytes]:
    """The programs of sizes in a plan, as they stand in it, each with a few elements."""
    for island in read_manifest(plan).islands:
        for alternative in island.alternatives:
            symbols = b"".join(struct.pack("<BII", *symbol) for symbol in alternative.symbols)
            sizes = b"".join(struct.pack("<Bqqq", *row) for row in alternative.sizes)
            counts = [struct.pack("<I", len(rows)) for rows in (alternative.symbols, alternative.sizes)]
            elements = struct.pack("<4q", 1, 7, -1, (1 << 63) - 1)
            yield bytes((len(elements),)) + elements + counts[0] + symbols + counts[1] + sizes


if __name__ == "__main__":
    sys.exit(main())
