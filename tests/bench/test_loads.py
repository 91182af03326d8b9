from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from xyntra_bench.loads import LEAST_BURST, LOGITS, MOST_BURST, TOKENS, Loop, OneAtATime, Streams, forced_logits
from xyntra_bench.sessions import Session


def running(run: Callable[[], object]) -> Session:
    """A session that does this and nothing else."""
    return type("Running", (), {"run": lambda self, feeds: run()})()  # type: ignore[no-any-return]  # of a type made here


def test_one_at_a_time_runs_once_on_the_calling_thread() -> None:
    seen: list[int] = []
    assert OneAtATime().sample(running(lambda: seen.append(threading.get_ident())), {}).ns > 0
    assert seen == [threading.get_ident()]


def test_streams_call_at_the_same_time() -> None:
    """Each of two calls waits for the other: one after the other they would wait for ever."""
    together = threading.Barrier(2, timeout=60)
    here = threading.get_ident()
    calls: list[int] = []

    def run() -> None:
        if (caller := threading.get_ident()) != here:  # the first run says how many make a burst
            together.wait()
            calls.append(caller)

    assert Streams(2).sample(running(run), {}).ns > 0
    counts = [calls.count(thread) for thread in set(calls)]
    assert len(counts) == 2 and counts[0] == counts[1] and LEAST_BURST <= counts[0] <= MOST_BURST


def test_what_a_stream_throws_is_thrown() -> None:
    def run() -> None:
        raise ValueError("in a stream")

    try:
        Streams(2).sample(running(run), {})
    except ValueError as error:
        assert str(error) == "in a stream"
    else:
        raise AssertionError("nothing was thrown")


class Counting:
    """A model of three words that always finds the next number likeliest, and whose past is the numbers it was fed."""

    def __init__(self) -> None:
        self.fed: list[dict[str, Any]] = []

    def outputs(self, feeds: Any, names: Any) -> list[Any]:
        self.fed.append(dict(feeds))
        tokens, past = feeds[TOKENS], feeds["past_key_0"]
        logits = np.eye(3)[(tokens + 1) % 3]
        return [{LOGITS: logits, "present_key_0": np.concatenate([past, tokens], axis=1)}[name] for name in names]


PROMPT = {TOKENS: np.array([[0, 1], [2, 0]]), "past_key_0": np.zeros((2, 0), np.int64)}


def test_a_loop_feeds_back_the_likeliest_token_and_a_growing_past() -> None:
    session = Counting()
    sample = Loop(["present_key_0", LOGITS], 4).sample(session, PROMPT)  # type: ignore[arg-type]  # as much of one as it needs
    assert len(sample.steps_ns) == 4 and sample.ns >= sum(sample.steps_ns) > 0
    assert [fed[TOKENS].tolist() for fed in session.fed] == [[[0, 1], [2, 0]], [[2], [1]], [[0], [2]], [[1], [0]]]
    assert [fed["past_key_0"].shape for fed in session.fed] == [(2, 0), (2, 2), (2, 3), (2, 4)]
    assert session.fed[-1]["past_key_0"].tolist() == [[0, 1, 2, 0], [2, 0, 1, 2]]


def test_forced_tokens_are_the_same_for_all_and_the_past_grows() -> None:
    session = Counting()
    made = dict(zip([LOGITS, "present_key_0"], session.outputs(PROMPT, [LOGITS, "present_key_0"]), strict=True))
    found = forced_logits(session, PROMPT, made, 2)  # type: ignore[arg-type]  # as much of one as it needs
    assert list(found) == ["logits after 1 tokens", "logits after 2 tokens"]
    assert [fed[TOKENS].tolist() for fed in session.fed[1:]] == [[[1], [1]], [[0], [0]]]
    assert session.fed[-1]["past_key_0"].shape == (2, 3)
