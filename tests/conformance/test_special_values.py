"""NaN, infinities, denormals and the ends of integers: every operator alone gives what ONNX Runtime's CPU provider gives."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnxruntime as ort
import pytest

from tests.conformance.node_cases import session_options
from tests.conformance.special_cases import CONTRIB, Array, SpecialCase, special_cases
from tests.support.ort_version import newer_ort
from tests.support.sessions import planned
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.fusion.trace import OPS

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc"), newer_ort]
SHARDS = 8
RELATIVE = {"float32": 8e-6, "float16": 4e-3}  # a few ulp of functions that both approximate
# These move elements, or their inputs are no values: nothing of them depends on what an element is.
INDIFFERENT = """
    CastLike Concat ConstantOfShape CumProd DepthToSpace Dropout Expand EyeLike Flatten Gather GatherElements GatherND OneHot Pad
    Range Reshape ReverseSequence Shape Size Slice SpaceToDepth Split Squeeze TensorScatter Tile Transpose Trilu Unsqueeze
    And Or Xor Not
"""
# Made of what is asked: products, sums and functions of others; or the CPU provider has no kernel for it.
OF_OTHERS = """
    GroupNormalization RotaryEmbedding SwiGLU Upsample GroupQueryAttention EmbedLayerNormalization GlobalLpPool
    SimplifiedLayerNormalization SkipSimplifiedLayerNormalization FusedConv nchwc.Conv nchwc.MaxPool nchwc.AveragePool
    nchwc.GlobalMaxPool nchwc.GlobalAveragePool nchwc.ReorderInput nchwc.ReorderOutput
    QLinearConcat com.microsoft.QLinearConv QAttention QEmbedLayerNormalization GatherBlockQuantized
"""


def _claimed(case: SpecialCase, strict: bool) -> list[Array]:
    session = planned(case.model(), {"fp32_strict": str(int(strict))})
    assert explain(session).claimed, [row.reason for graph in explain(session).graphs for row in graph.declined]
    return [np.asarray(y) for y in session.run(None, dict(case.inputs))]


def _by_ort(case: SpecialCase) -> list[Array] | None:
    """None where the CPU provider has no such kernel."""
    try:
        session = ort.InferenceSession(case.model().SerializeToString(), session_options(), providers=["CPUExecutionProvider"])
    except Exception:  # ONNX Runtime's errors have no base class of their own
        return None
    return [np.asarray(y) for y in session.run(None, dict(case.inputs))]


def difference(got: Array, want: Array, absolute: float) -> Array:
    """Where two results are not the same: in class, or by more than a few ulp."""
    assert got.shape == want.shape and got.dtype == want.dtype
    if want.dtype.kind != "f":
        return np.asarray(got != want)
    a, b = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    with np.errstate(all="ignore"):
        allowed = RELATIVE[want.dtype.name] * np.abs(b) + absolute + np.finfo(want.dtype).tiny
        far: Array = finite & (np.abs(a - b) > allowed)
        other: Array = ~finite & ~((np.isnan(a) & np.isnan(b)) | (a == b))
    return far | other


def _wrong(cases: Mapping[str, SpecialCase]) -> list[str]:
    """What differs. ``fp32_strict`` changes nothing of most, which have no more exact form (asked of some)."""
    found = []
    for number, (name, case) in enumerate(cases.items()):
        want = _by_ort(case)
        modes = (True,) if case.only_strict else (False, True) if number % 4 == 0 else (False,)
        for strict in () if want is None else modes:
            for i, (mine, theirs) in enumerate(zip(_claimed(case, strict), want or [], strict=True)):
                differs = difference(mine, theirs, case.absolute)
                if differs.any():
                    at = tuple(np.argwhere(differs)[0])
                    found.append(f"{name}, output {i}, strict {strict}: {differs.sum()} differ, {mine[at]} for {theirs[at]}")
    return found


def _shard(cases: Mapping[str, SpecialCase], shard: int) -> Mapping[str, SpecialCase]:
    return dict(list(cases.items())[shard::SHARDS])


@pytest.mark.parametrize("shard", range(SHARDS))
def test_alone(shard: int) -> None:
    assert not (wrong := _wrong(_shard(special_cases(), shard))), "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_alone_in_half_precision(shard: int) -> None:
    assert not (wrong := _wrong(_shard(special_cases(np.float16), shard))), "\n".join(wrong)


def test_every_operator_is_there() -> None:
    """Of those that compute: a new one has its special values asked for, too."""
    asked = {f"{case.domain}.{case.op}" if case.domain else case.op for case in special_cases().values()}
    missing = [spec.name for spec in OPS if spec.name not in asked and not spec.name.startswith("ai.xyntra.")]
    known = (INDIFFERENT + OF_OTHERS).split()
    missing = [name for name in missing if name not in known and name.removeprefix(f"{CONTRIB}.") not in known]
    assert not missing


def test_the_measure_sees_a_difference() -> None:
    some = np.array([1.0, np.inf, np.nan, 0.0, 1e-40], np.float32)
    for i, value in ((0, 1.001), (1, -np.inf), (1, 3e38), (2, 0.0), (3, np.nan), (4, 1e-3)):
        other = some.copy()
        other[i] = value
        assert list(np.flatnonzero(difference(other, some, 0.0))) == [i]
    assert not difference(some, some.copy(), 0.0).any()
