from __future__ import annotations

import numpy as np
import pytest

from xyntra_bench.accuracy import compare
from xyntra_bench.results import Accuracy, Check

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
