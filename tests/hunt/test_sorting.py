"""Each class of findings, from sessions that are played."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.hunt.case import Array, Case, Class, Run, Settings
from tests.hunt.judge import Judge
from tests.support.models.model_text import parse

X = np.arange(3, dtype=np.float32)
Behaviour = Callable[[Array, int], Array]  # of a run: what it is fed, and how many runs the session has had


class Played:
    """As much of a session as the judge asks for."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour, self.count = behaviour, 0

    def run(self, names: None, feeds: dict[str, Array]) -> list[Array]:
        self.count += 1
        return [self.behaviour(feeds["x"], self.count)]


def _right(x: Array, n: int) -> Array:
    return x + np.float32(1)


def _fails(x: Array, n: int) -> Array:
    raise RuntimeError("no")


def _judged(
    ours: Behaviour | None,
    theirs: Behaviour,
    *,
    plain: Behaviour | None = None,
    two: tuple[Behaviour, Behaviour] | None = None,
    special: bool = False,
) -> Sequence[Class]:
    """``ours`` None: no session. ``plain``: ONNX Runtime without its optimisers. ``two``: both with two threads."""
    model = parse("(float[N] x) => (float[N] y) { one = Constant <value = float[1] {1}> () y = Add(x, one) }")
    runs = [Run(feeds={"x": X}, kind="", special=special), Run(feeds={"x": X + 1}, kind="", special=special)]
    judge = Judge(Case(model=model.SerializeToString(), runs=runs, settings=Settings(two_threads=two is not None)))

    def session(providers: Sequence[object], *, threads: int = 1, optimise: bool = True, model: bytes = b"") -> Played:
        if two is not None and threads == 2:
            return Played(two[len(providers) % 2])
        if len(providers) == 2:
            if ours is None:
                raise RuntimeError("no session")
            return Played(ours)
        return Played(theirs if optimise or plain is None else plain)

    judge._session = session  # type: ignore[method-assign]  # what it makes is played
    return [finding.kind for finding in judge.judge().findings]


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        (lambda x, n: x, _right, Class.WRONG),
        (lambda x, n: _right(x, n)[:2], _right, Class.SHAPE),
        (lambda x, n: _right(x, n).astype(np.float64), _right, Class.SHAPE),
        (_right, _fails, Class.MISSING_ERROR),
        (_fails, _right, Class.EXTRA_ERROR),
        (None, _right, Class.SESSION),
    ],
)
def test_sorted(ours: Behaviour | None, theirs: Behaviour, kind: Class) -> None:
    assert set(_judged(ours, theirs)) == {kind}


def test_nothing_to_find() -> None:
    assert _judged(_right, _right) == [] and _judged(_fails, _fails) == []


def test_special_values_are_a_class_of_their_own() -> None:
    assert set(_judged(lambda x, n: x, _right, special=True)) == {Class.SPECIAL}


def test_another_result_after_others_is_unrepeatable() -> None:
    """By a bit of the last place, which no tolerance would see."""
    assert Class.UNREPEATABLE in _judged(
        lambda x, n: np.nextafter(_right(x, n), np.float32(9)) if n == 3 else _right(x, n), _right
    )


def test_what_onnx_runtime_does_not_agree_on_with_itself_is_no_finding() -> None:
    assert _judged(_right, _fails, plain=_right) == []
    assert _judged(_right, lambda x, n: x, plain=_right) == []
    assert _judged(_fails, _right, plain=_fails) == []


def test_another_result_with_two_threads_is_unrepeatable_unless_onnx_runtime_has_one_too() -> None:
    def nearly(x: Array, n: int) -> Array:
        return np.nextafter(_right(x, n), np.float32(9))

    assert set(_judged(_right, _right, two=(nearly, _right))) == {Class.UNREPEATABLE}
    assert _judged(_right, _right, two=(nearly, nearly)) == []


def test_each_output_stands_for_itself() -> None:
    """One agrees with ONNX Runtime as it optimises, the other without."""
    model = parse("(float[N] x) => (float[N] y, float[N] z) { y = Tanh(x) z = Tan(x) }")
    judge = Judge(Case(model=model.SerializeToString(), runs=[], settings=Settings()))
    run, one, two = Run(feeds={"x": X}, kind=""), X, X + 1
    assert judge._nearer(run, [one, two], [one, one], [two, two])[0] is one
    assert judge._difference(run, [one, two], judge._nearer(run, [one, two], [one, one], [two, two])) is None
    assert judge._difference(run, [one, two], judge._nearer(run, [one, two], [one, one], [one, one])) is not None


def test_what_no_node_of_ours_has_a_part_in_is_not_ours() -> None:
    text = "(float[N] x, string[N] s) => (float[N] y, string[N] z) { y = Tanh(x) z = Identity(s) }"
    judge = Judge(Case(model=parse(text).SerializeToString(), runs=[], settings=Settings()))
    assert judge._computes(0) and not judge._computes(1)
