"""What the C functions of single operations run: `python -m xyntra_ep.diagnostics.compiled.operations [--output FOLDER]`.

Each is a compiled model of symbolic sizes. `native/capi/operations.cc` knows them by their names and feeds them in this order.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from xyntra_ep.diagnostics.compiled.compile_model import CompiledFile, compile_model
from xyntra_ep.tracea.prebuilt.library import FOLDER

ISAS = ("avx512", "avx2")
_HEADER = '<ir_version: 10, opset_import: ["": 23]>'
_HEAD_SIZES = (64, 128)  # most models': a kernel that keeps no scores is made for one


def _graphs() -> Mapping[str, str]:
    """By name; ONNX's text of graphs."""
    graphs = {
        "gemm": "(float[B,M,K] a, float[B,K,N] b) => (float[B,M,N] y) { y = MatMul(a, b) }",
        "gemm_bias": "(float[B,M,K] a, float[B,K,N] b, float[N] c) => (float[B,M,N] y) { p = MatMul(a, b) y = Add(p, c) }",
        "gemm_nt": "(float[B,M,K] a, float[B,N,K] b) => (float[B,M,N] y) { t = Transpose<perm=[0,2,1]>(b) y = MatMul(a, t) }",
        "gemm_nt_bias": """(float[B,M,K] a, float[B,N,K] b, float[N] c) => (float[B,M,N] y)
            { t = Transpose<perm=[0,2,1]>(b) p = MatMul(a, t) y = Add(p, c) }""",
        "attention": """(float[B,1,S,D] q, float[B,1,T,D] k, float[B,1,T,E] v, float[1] scale) => (float[B,1,S,E] y)
            { r = Mul(q, scale) t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(r, t) p = Softmax<axis=-1>(s) y = MatMul(p, v) }""",
        "attention_masked": """(float[B,1,S,D] q, float[B,1,T,D] k, float[B,1,T,E] v, float[1] scale, float[S,T] mask)
            => (float[B,1,S,E] y)
            { r = Mul(q, scale) t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(r, t) m = Add(s, mask) p = Softmax<axis=-1>(m)
              y = MatMul(p, v) }""",
    }
    for size in _HEAD_SIZES:
        inputs = f"float[B,1,S,{size}] q, float[B,1,T,{size}] k, float[B,1,T,{size}] v, float[1] scale"
        for name, is_causal in ((f"attention_{size}", 0), (f"attention_{size}_causal", 1)):
            nodes = f"r = Mul(q, scale) y = Attention<scale=1.0, is_causal={is_causal}>(r, k, v)"
            graphs[name] = f"({inputs}) => (float[B,1,S,{size}] y) {{ {nodes} }}"
    return graphs


def compile_operations(folder: Path, isas: Sequence[str] = ISAS) -> list[CompiledFile]:
    """Write `<name>.onnx` of each to ``folder``. Raises XyntraError where one cannot be compiled, all of it."""
    import onnx

    folder.mkdir(parents=True, exist_ok=True)
    made: list[CompiledFile] = []
    with tempfile.TemporaryDirectory(prefix="xyntra-operations-") as place:
        for name, graph in _graphs().items():
            given = Path(place) / "given.onnx"
            onnx.save(onnx.parser.parse_model(f"{_HEADER} {name} {graph}"), given)
            found = compile_model(given, folder / f"{name}.onnx", isas=isas, options={"claim": "all"}, force=True)
            assert found.claimed == found.nodes, f"{name}: {found}"
            made.append(found)
    return made


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m xyntra_ep.diagnostics.compiled.operations", description=__doc__)
    parser.add_argument("--output", type=Path, default=FOLDER)
    for made in compile_operations(parser.parse_args(arguments).output):
        sys.stdout.write(f"{made}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
