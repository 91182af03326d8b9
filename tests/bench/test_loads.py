from __future__ import annotations

import threading

from bench.loads import LEAST_BURST, MOST_BURST, load_of


def test_one_at_a_time_runs_once_on_the_calling_thread() -> None:
    seen: list[int] = []
    assert load_of(0).sample(lambda: seen.append(threading.get_ident())).ns > 0
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

    assert load_of(2).sample(run).ns > 0
    counts = [calls.count(thread) for thread in set(calls)]
    assert len(counts) == 2 and counts[0] == counts[1] and LEAST_BURST <= counts[0] <= MOST_BURST


def test_what_a_stream_throws_is_thrown() -> None:
    def run() -> None:
        raise ValueError("in a stream")

    try:
        load_of(2).sample(run)
    except ValueError as error:
        assert str(error) == "in a stream"
    else:
        raise AssertionError("nothing was thrown")
