"""What counts as a difference, and what does not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.hunt.case import Array, Case, Class, Finding, Run, Settings
from tests.hunt.judge import Judge, Verdict, bitwise, differing, has_special_weights, message, no_number, overflows
from tests.hunt.named import REFUSED, refused_on_purpose
from tests.hunt.noise import spread
from tests.hunt.report import Report, key_of, shape_of
from tests.support.models.model_text import parse


def f32(values: Sequence[float]) -> Array:
    return np.asarray(values, np.float32)


def i64(values: Sequence[int]) -> Array:
    return np.asarray(values, np.int64)


@pytest.mark.parametrize(
    ("got", "want", "special", "count"),
    [
        (f32([1, 2]), f32([1, 2.00001]), False, 0),
        (f32([1, 2]), f32([1, 2.01]), False, 1),
        (f32([1, np.nan]), f32([1, np.nan]), True, 0),
        (f32([1, np.nan]), f32([np.nan, 1]), True, 2),
        (f32([np.inf]), f32([-np.inf]), True, 1),
        (f32([1e-9, 1e30]), f32([1e-9, 1e30]), True, 0),
        (f32([1.5, 1e30]), f32([1.0, 1e30]), True, 1),  # each element for itself
        (i64([1, 2]), i64([1, 3]), False, 1),
        (np.zeros((0, 2), np.float32), np.zeros((0, 2), np.float32), False, 0),
    ],
)
def test_differing(got: Array, want: Array, special: bool, count: int) -> None:
    assert differing(got, want, special=special, moved=None).sum() == count


def test_noise_excuses_what_it_moves_and_nothing_else() -> None:
    """The largest of two that are nearly equal is anybody's guess; that of two that are not is not."""
    model = parse("(float[N] x) => (int64[1] y) { e = Exp(x) y = ArgMax <axis = 0, keepdims = 1> (e) }")
    want = [i64([0])]
    close = spread(model, {"x": f32([1.0000001, 1, 0])}, want)
    clear = spread(model, {"x": f32([1, 0.9, 0])}, want)
    assert close is not None and close[0][0] > 0
    assert clear is not None and clear[0][0] == 0
    assert not differing(i64([1]), want[0], special=False, moved=close[0]).any()
    assert differing(i64([1]), want[0], special=False, moved=clear[0]).all()


def test_noise_is_before_what_takes_many_steps() -> None:
    """Scale and bias are one value, and cancel: what is left are the last bits of the steps between."""
    model = parse(
        "(float16[1,2,2] x, float16[2] s) => (float16[1,2,2] y) { y = GroupNormalization<num_groups = 2>(x, s, s) }", 22
    )
    x = np.asarray([[[-99, 99], [-99, 99]]], np.float16)
    moved = spread(model, {"x": x, "s": np.asarray([1, 1], np.float16)}, [np.asarray([[[0, 2], [0, 2]]], np.float16)])
    assert moved is not None and moved[0][0, 0, 0] > 4e-3


@pytest.mark.parametrize("opset", [13, 22, 25])
def test_noise_in_models_of_any_opset(opset: int) -> None:
    model = parse("(float[N] x) => (float[N] y) { y = Tan(x) }", opset)
    moved = spread(model, {"x": f32([1.5707, 0.1])}, [f32([10381.3, 0.1003])])
    assert moved is not None and moved[0][0] > 10 and moved[0][1] < 0.1


def test_operators_that_only_move_are_not_excused() -> None:
    model = parse("(float[N] x) => (float[N] y) { y = Round(x) }")
    moved = spread(model, {"x": f32([0.5, 1.5])}, [f32([0, 2])])
    assert moved is not None and not moved[0].any()


def test_bitwise() -> None:
    nan = f32([np.nan])
    assert bitwise([nan], [nan]) and not bitwise([f32([0.0])], [f32([-0.0])])
    assert bitwise("one", "another") and not bitwise("one", [nan])


def test_integers_that_overflow() -> None:
    assert overflows(i64([5]), i64([2**63 - 1])) and not overflows(i64([5]), i64([6]))


@pytest.mark.parametrize(("value", "special"), [(0.5, False), (np.nan, True), (-np.inf, True)])
def test_weights_that_are_no_numbers_are_special(value: float, special: bool) -> None:
    """ONNX Runtime's result has no NaN where the state that meets it is 0."""
    assert has_special_weights(parse("(float[1] x) => (float[1] y) { y = Add(x, w) }", w=f32([value]))) is special


def test_what_special_weights_excuse() -> None:
    assert no_number(f32([1, np.nan]), f32([1, 2])) and no_number(f32([2, np.inf]), f32([2, 3]))
    assert not no_number(f32([5, np.nan]), f32([1, 2])) and not no_number(i64([1]), i64([2]))


def test_messages_are_folded_without_their_numbers() -> None:
    said = message("[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Non-zero status code returned while running Gather node. "
                   "Name:'' Status Message: idx=7 is beyond [-1,0]")  # fmt: skip
    assert said == "Gather: idx=7 is beyond [-1,0]"
    assert shape_of(f"{said}; x[3]") == shape_of("Gather: idx=12 is beyond [-5,4]; x[9, 9]")
    assert shape_of(said) != shape_of(said.replace("Gather", "Slice"))


def test_our_messages_are_folded_without_inputs_and_outputs() -> None:
    long = "Error in execution: XyntraEP_17_0: XyntraEP: Einsum: sizes differ (x3 [1,2], x4 []), ORT: float32[1] [1.0]; x3[1]"
    short = "XyntraEP_5_0: XyntraEP: Einsum: sizes differ (x4 [7]), ORT: float32[]; x4[7]"
    assert shape_of(long) == shape_of(short) == "XyntraEP: Einsum: sizes differ"


def _report(kind: Class, found: int, runs: int) -> Report:
    model = parse("(float[N] x) => (float[N] y) { y = Relu(x) }")
    report, case = Report(), Case(model=model.SerializeToString(), runs=[])
    verdict = Verdict(findings=[Finding(kind=kind, text="said")] * found)
    verdict.counts["runs"] = runs
    report.add(case, verdict)
    assert found == 0 or key_of(case, verdict.findings[0]) in report.distinct
    return report


@pytest.mark.parametrize(
    ("kind", "found", "beyond"),
    [
        *((kind, 1, True) for kind in (Class.WRONG, Class.CRASH, Class.HANG, Class.UNREPEATABLE, Class.SHAPE, Class.FAULT)),
        *((kind, found, found > 2) for kind in (Class.MISSING_ERROR, Class.EXTRA_ERROR, Class.SESSION) for found in (2, 3)),
        (Class.SPECIAL, 9, False), (Class.WRONG, 0, False),
    ],
)  # fmt: skip
def test_bounds(kind: Class, found: int, beyond: bool) -> None:
    """Of 2000 runs two may have an error too many or too few; of the worse classes none."""
    assert bool(_report(kind, found, 2000).beyond()) is beyond


def test_a_mistake_of_the_hunter_is_no_success() -> None:
    report = Report()
    report.add(None, Verdict(refused=True, mistake="Traceback"))
    assert report.beyond()


def test_what_is_refused_on_purpose_is_told_apart() -> None:
    assert refused_on_purpose("XyntraEP_1_0: XyntraEP: Concat#0: shapes differ (x2 [0,1,1], x1 [1,1,1])")
    assert not refused_on_purpose("XyntraEP_1_0: XyntraEP: Gather#0: indices element out of data bounds (x1 [3])")
    attention = "XyntraEP_1_0: XyntraEP: Attention#1: the mask does not broadcast: "
    assert refused_on_purpose(attention + "16 and 1 (x4 [1,1,1,2])")
    assert not refused_on_purpose(attention + "1 and 16 (x4 [1,1,1,2])") and not refused_on_purpose(
        attention + "2 and 16 (x4 [2])"
    )
    documented = (Path(__file__).resolve().parents[2] / "docs" / "hunting.md").read_text(encoding="utf-8")
    assert all(why in documented for why in REFUSED.values())


def test_elements_that_onnx_runtime_leaves_unwritten_are_no_fault_of_ours() -> None:
    """The Concat is left to ONNX Runtime; its output for an empty `x` that is one long along the axis is whatever lay there."""
    model = parse("(int64[A,B,C] x, int64[2,1,1] c) => (int64[D,E,F] y) { y = Concat <axis = 0> (c, x) }")
    feeds = {"c": np.ones((2, 1, 1), np.int64)}
    empty, whole = (Run(feeds={**feeds, "x": np.ones(shape, np.int64)}, kind="") for shape in ((1, 0, 1), (1, 1, 1)))
    judge = Judge(Case(model=model.SerializeToString(), runs=[empty], settings=Settings(claim="profitable")))
    judge._repeat(_Changing(), [[i64([1])]])
    assert judge.verdict.findings == [] and judge.verdict.counts["refused by us on purpose"] == 1
    judge = Judge(Case(model=model.SerializeToString(), runs=[whole], settings=Settings(claim="profitable")))
    judge._repeat(_Changing(), [[i64([1])]])
    assert [found.kind for found in judge.verdict.findings] == [Class.UNREPEATABLE]


class _Changing:
    """A session that gives 2 where it gave 1."""

    def run(self, names: None, feeds: object) -> list[Array]:
        return [i64([2])]
