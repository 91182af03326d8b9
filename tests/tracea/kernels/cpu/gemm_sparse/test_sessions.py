"""Models with pruned weights, against ONNX Runtime's CPU provider."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.numpy_helper
import onnx.parser
import onnxruntime as ort
import pytest

import xyntra_ep
from xyntra_ep.tracea.core_ir.zeros import WIDTHS, beside, filled_of

pytestmark = pytest.mark.compiler("cc")

TEXT = """<ir_version: 10, opset_import: ["" : 18]> g (float[rows, 256] x) => (float[rows, 192] y) {
    q = MatMul(x, W) k = MatMul(x, V) p = Add(q, k) y = Gemm<transB = 1>(p, U) }"""


def model(share: float, block: int = 32) -> bytes:
    rng = np.random.default_rng(3)

    def weights(k: int, n: int) -> Any:
        kept = np.kron(rng.random((-(-k // block), -(-n // block))) < share, np.ones((block, block)))[:k, :n]
        return (rng.standard_normal((k, n)) * kept).astype(np.float32)

    made = onnx.parser.parse_model(TEXT)
    for name, (k, n) in {"W": (256, 192), "V": (256, 192), "U": (192, 192)}.items():
        made.graph.initializer.append(onnx.numpy_helper.from_array(weights(k, n), name))
    return bytes(made.SerializeToString())


def kernels(session: ort.InferenceSession) -> list[str]:
    return [kernel for kernel in ("gemm.block_sparse", "gemm.packed_b") if kernel in str(xyntra_ep.explain(session))]


def compared(data: bytes, **options: str) -> list[str]:
    """The kinds of kernels of a session that gives ONNX Runtime's numbers, also where x has an infinity."""
    ours = ort.InferenceSession(data, providers=[("XyntraEP", {"claim": "all", **options})])
    theirs = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
    feeds = {"x": np.random.default_rng(4).standard_normal((37, 256)).astype(np.float32)}
    [got], [want] = ours.run(None, feeds), theirs.run(None, feeds)
    np.testing.assert_allclose(got, want, atol=3e-6 * float(np.abs(want).max()))
    return kernels(ours)


def test_pruned_weights_go_by_lists() -> None:
    assert compared(model(0.15)) == ["gemm.block_sparse"]


@pytest.mark.parametrize(("share", "block", "strict"), [(1.0, 32, "0"), (0.5, 1, "0"), (0.15, 32, "1")])
def test_others_do_not(share: float, block: int, strict: str) -> None:
    assert compared(model(share, block), fp32_strict=strict) == ["gemm.packed_b"]


def test_a_plan_for_dense_weights_is_not_taken_for_pruned_ones() -> None:
    """The graph is the same, and small constants alone are part of a plan's name."""
    assert [compared(model(share)) for share in (1.0, 0.15, 1.0)] == [["gemm.packed_b"], ["gemm.block_sparse"], ["gemm.packed_b"]]


def test_what_is_left_is_counted_by_width() -> None:
    b = np.zeros((4, 100), np.float32)
    b[0, 99], b[1, :33] = np.nan, 1
    wanted = {4: 10 / 100, 16: 4 / 28, 32: 3 / 16, 64: 2 / 8}
    found = dict(filled_of(b))
    assert tuple(found) == WIDTHS
    assert {width: found[width] for width in wanted} == {width: int(np.ceil(256 * share)) for width, share in wanted.items()}


def test_matrices_side_by_side_count_by_their_columns() -> None:
    one, other = filled_of(np.zeros((4, 64), np.float32)), ()
    assert beside([(one, 64), (other, 64)])[0] == (4, 128)
    assert beside([(other, 64), (other, 64)]) == ()
