from __future__ import annotations

from pathlib import Path

import pytest

from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea.interface import Context
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512


def test_a_precision_of_a_later_release_falls_to_fp32_and_says_so(tmp_path: Path) -> None:
    plan = Context(cache_dir=tmp_path, caps=AVX512).plan_kernel("gemm", m=128, n=768, k=768, precision="BF16")
    assert plan.precision == "fp32" and plan.backend == "cpu" and plan.variant.startswith("gemm.")
    assert ("precision bf16", "precision bf16 is not in this release; fp32 is used") in plan.rejected
    text = str(plan)
    assert text.startswith("gemm m=128 n=768 k=768: gemm.") and "not precision bf16" in text


@pytest.mark.parametrize(
    ("op", "sizes"),
    [
        ("gemm", {"m": 1, "n": 768, "k": 3072}),
        ("conv", {"n": 1, "c": 64, "h": 56, "w": 56, "m": 64, "k": 3, "pad": 1}),
        ("softmax", {"rows": 128, "columns": 128}),
        ("add", {"n": 1000}),
    ],
)
def test_each_op_has_an_answer(op: str, sizes: dict[str, int], tmp_path: Path) -> None:
    for caps in (AVX512, AVX2):
        plan = Context(cache_dir=tmp_path, caps=caps).plan_kernel(op, precision="fp32", **sizes)
        assert plan.cost_ns > 0 and plan.rejected == tuple(plan.rejected)
        assert Context(cache_dir=tmp_path, caps=caps).plan_kernel(op, precision="fp32", **sizes) == plan, (
            "the answer is not stable"
        )


@pytest.mark.parametrize(
    ("op", "given", "message"),
    [
        ("gem", {}, "plan_kernel: no op 'gem'. did you mean 'gemm'?"),
        ("zzz", {}, "plan_kernel: no op 'zzz'. there are gemm, conv, attention, softmax, add"),
        ("gemm", {"precision": "fp99"}, "plan_kernel: no precision 'fp99'. there are fp32"),
        ("add", {"m": 1}, "plan_kernel('add'): got an unexpected keyword argument 'm'. it takes n"),
        ("gemm", {"m": 1, "n": 2}, "plan_kernel('gemm'): missing 1 required positional argument: 'k'. it takes m, n, k"),
    ],
)
def test_a_wrong_question_is_answered_with_what_there_is(op: str, given: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        Context(cache_dir=tmp_path, caps=AVX512).plan_kernel(op, **given)  # type: ignore[arg-type]  # that is the point
    assert str(caught.value) == message
