from __future__ import annotations

import numpy as np
import pytest

from xyntra_bench.accuracy import MAX_FLOAT_RATIO, compare, compare_quantised, float_error
from xyntra_bench.results import Accuracy, Check, FloatError

ALIVE = np.array([1.0, -2.0, 0.5], np.float32)
ZEROS = np.zeros(3, np.float32)


def check(ours: np.ndarray, reference: np.ndarray, max_err: float = 1e-3) -> Check:
    return compare(["y"], [ours], [reference], max_err)


def test_the_error_is_relative_to_the_largest_value() -> None:
    result = check(ALIVE + np.float32(0.001), ALIVE)
    assert result.state is Accuracy.OK and result.output == "y"
    assert result.error == pytest.approx(0.0005, rel=1e-3)
    assert check(ALIVE + np.float32(0.01), ALIVE).state is Accuracy.INACCURATE


@pytest.mark.parametrize(
    "dead",
    [
        ZEROS,
        np.full(3, 7.0, np.float32),
        np.array([1e-4, -1e-4, 0], np.float32),
        np.array([1, np.nan, 2], np.float32),
        np.zeros(0, np.float32),
    ],
    ids=["zeros", "constant", "faint", "nan", "empty"],
)
def test_a_dead_reference_proves_nothing(dead: np.ndarray) -> None:
    assert check(dead.copy(), dead).state is Accuracy.DEAD_REFERENCE


def test_a_single_value_is_not_a_constant() -> None:
    assert check(np.array([3.0]), np.array([3.0])).state is Accuracy.OK


def test_dead_outputs_are_named_and_must_still_agree() -> None:
    good = compare(["a", "b"], [ALIVE, ZEROS], [ALIVE, ZEROS], 1e-3)
    assert good.state is Accuracy.OK and good.dead_outputs == ("b",)
    bad = compare(["a", "b"], [ALIVE, ALIVE], [ALIVE, ZEROS], 1e-3)
    assert bad.state is Accuracy.INACCURATE and bad.output == "b"


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_result_that_is_not_finite_is_inaccurate(wrong: float) -> None:
    ours = ALIVE.copy()
    ours[1] = wrong
    result = check(ours, ALIVE)
    assert result.state is Accuracy.INACCURATE and result.error is None


def test_the_worst_output_decides() -> None:
    near, far = ALIVE + np.float32(1e-4), ALIVE + np.float32(1e-3)
    result = compare(["a", "b", "c"], [near, far, ALIVE], [ALIVE] * 3, 1e-2)
    assert result.output == "b"


def test_shapes_types_and_counts_must_match() -> None:
    assert check(ALIVE[None], ALIVE).state is Accuracy.MISMATCH
    assert check(ALIVE.astype(np.float64), ALIVE).state is Accuracy.MISMATCH
    assert compare(["y"], [], [ALIVE], 1e-3).state is Accuracy.MISMATCH


def test_integers_must_be_equal() -> None:
    ids = np.array([1, 2, 3])
    assert check(ids.copy(), ids).state is Accuracy.OK
    assert check(ids + 1, ids).state is Accuracy.MISMATCH
    assert check(np.zeros(3, np.int64), np.zeros(3, np.int64)).state is Accuracy.DEAD_REFERENCE


NOISE = np.random.default_rng(0).standard_normal((3, 400)).astype(np.float32)
EXACT = np.linspace(-1, 1, 400, dtype=np.float32)
REFERENCE = EXACT + np.float32(0.01) * NOISE[0]  # as far from the float model as quantising put it


def quantised(ours: np.ndarray, max_err: float = 0.1, reference: np.ndarray = REFERENCE) -> Check:
    return compare_quantised(["y"], [ours], [reference], [EXACT], max_err)


def test_quantised_outputs_may_round_otherwise_and_not_be_farther_from_the_float_model() -> None:
    other = quantised(EXACT + np.float32(0.01) * NOISE[1])
    assert other.state is Accuracy.OK and other.float_ratio == pytest.approx(1, abs=0.15)
    assert other.error is not None and other.error > 0.01, "and compare would have refused it"
    worse = quantised(EXACT + np.float32(0.014) * NOISE[1])
    assert worse.state is Accuracy.INACCURATE and worse.error is not None and worse.error < worse.max_err
    assert worse.float_ratio is not None and MAX_FLOAT_RATIO < worse.float_ratio < 1.6


def test_quantised_outputs_beyond_the_bound_must_be_nearer_to_the_float_model() -> None:
    saturated = EXACT + np.float32(0.1) * NOISE[0]
    near, far = EXACT + np.float32(0.01) * NOISE[1], EXACT + np.float32(0.11) * NOISE[1]
    assert quantised(near, 0.05, saturated).state is Accuracy.OK, "the reference is wrong, and not we"
    refused = quantised(far, 0.05, saturated)
    assert refused.state is Accuracy.INACCURATE and 1 < (refused.float_ratio or 0) < MAX_FLOAT_RATIO
    assert quantised(far, 1.0, saturated).state is Accuracy.OK


def test_other_shapes_and_what_is_not_finite_are_wrong_in_quantised_models_too() -> None:
    assert quantised(REFERENCE[None]).state is Accuracy.MISMATCH
    assert quantised(REFERENCE * np.float32(np.nan)).state is Accuracy.INACCURATE
    dead = compare_quantised(["a", "b"], [ALIVE, ALIVE], [ALIVE, ZEROS], [ALIVE, ZEROS], 1e-3)
    assert dead.state is Accuracy.INACCURATE and dead.output == "b"


def test_the_error_against_the_float_model_is_the_worst_outputs() -> None:
    found = float_error("m", ["x", "y"], [EXACT * np.float32(1.01), EXACT * np.float32(1.1)], [EXACT, EXACT])
    assert found is not None and (found.model, found.output, found.positions) == ("m", "y", None)
    assert found.error == pytest.approx(0.1, rel=1e-3) and found.rms == pytest.approx(0.1, rel=1e-3)
    assert float_error("m", ["x"], [ZEROS], [ZEROS]) is None


def test_tokens_are_compared_by_their_largest_logit() -> None:
    exact = np.eye(4, dtype=np.float32)[None]
    ours = exact.copy()
    ours[0, 2, 1] = 2
    assert float_error("m", ["logits"], [ours], [exact]) == FloatError(
        model="m", error=2, rms=1, output="logits", positions=4, same_largest=3
    )
    classes = float_error("m", ["logits"], [ours[0]], [exact[0]])
    assert classes is not None and classes.positions is None, "one decision for an image, which says little"
