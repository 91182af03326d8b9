"""ONNX's node tests: what ONNX Runtime's CPU provider computes, XyntraEP computes too.

Twice: the operators' meaning through the interpreter, which needs no compiler and takes all cases, and generated code through
real sessions. The latter compiles a kernel or more per case, so all of them are a matter of many minutes (`-m slow`); the first
case of every operator is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import onnxruntime as ort
import pytest

from tests.conformance.node_cases import Array, NodeCase, first_of_each_operator, node_cases, run_cpu, session_options
from tests.support.graph_from_model import interpret_model
from tests.support.ort_version import is_older_ort
from tests.tolerances import difference
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.errors import UnsupportedError

INTERPRETED_SHARDS, QUICK_SHARDS, FULL_SHARDS = 8, 8, 40
# Floors under what is ours; a change that makes operators decline must not pass unseen.
MIN_INTERPRETED, MIN_QUICK, MIN_CLAIMED = 1800, 180, 1800

Outcome = tuple[bool, Sequence[Array], str]  # (is a node ours, results, why not)


class Tally:
    """What the shards of one kind found so far."""

    def __init__(self) -> None:
        self.shards = 0
        self.claimed = 0
        self.declined: Counter[str] = Counter()

    def run(self, names: Sequence[str], check: Callable[[NodeCase], Outcome]) -> None:
        """Fail with a list of all cases that differ."""
        wrong: list[str] = []
        for name in names:
            case = node_cases()[name]
            wanted = run_cpu(case)
            if wanted is None:
                continue
            claimed, results, reason = check(case)
            self.claimed += claimed
            if not claimed:
                self.declined[f"{case.model.graph.node[0].op_type if case.model.graph.node else ''}: {reason}"] += 1
                continue
            texts = differences(results, wanted)
            if any(texts) and is_older_ort() and not any(differences(results, case.expected)):
                continue  # a mistake of that runtime: ours is what ONNX expects
            wrong += [f"{name}, output {i}: {text}" for i, text in enumerate(texts) if text]
        self.shards += 1
        assert not wrong, "\n".join(wrong)

    def assert_claimed(self, shards: int, floor: int) -> None:
        if self.shards < shards:
            pytest.skip("not all shards ran in this process")
        reasons = "\n".join(f"{count:4} {reason}" for reason, count in self.declined.most_common())
        assert self.claimed >= floor, f"{self.claimed} cases have a node of ours, {floor} are wanted; declined:\n{reasons}"


def differences(results: Sequence[Array], wanted: Sequence[Array]) -> list[str]:
    """Per output; empty text for equal ones."""
    return [difference(np.asarray(a), np.asarray(b)) for a, b in zip(results, wanted, strict=True)]


INTERPRETED, QUICK, FULL = Tally(), Tally(), Tally()


def _interpret(case: NodeCase) -> Outcome:
    try:
        with np.errstate(all="ignore"):
            return True, interpret_model(case.model, case.feeds), ""
    except UnsupportedError as error:
        return False, [], error.what


def _run(case: NodeCase) -> Outcome:
    options = {"claim": "all", "log_level": "error"}
    session = ort.InferenceSession(
        case.model.SerializeToString(), session_options(), providers=[("XyntraEP", options), "CPUExecutionProvider"]
    )
    explained = explain(session)
    reasons = {row.reason for graph in explained.graphs for row in graph.declined}
    reasons |= {graph.failure for graph in explained.graphs if graph.failure}
    reason = "; ".join(sorted(reasons))
    return explained.claimed > 0, session.run(None, dict(case.feeds)), reason


@pytest.mark.parametrize("shard", range(INTERPRETED_SHARDS))
def test_meaning(shard: int) -> None:
    INTERPRETED.run(list(node_cases())[shard::INTERPRETED_SHARDS], _interpret)


def test_meaning_of_enough() -> None:
    INTERPRETED.assert_claimed(INTERPRETED_SHARDS, MIN_INTERPRETED)


@pytest.mark.native
@pytest.mark.compiler("cc")
@pytest.mark.parametrize("shard", range(QUICK_SHARDS))
def test_each_operator(shard: int) -> None:
    QUICK.run(first_of_each_operator()[shard::QUICK_SHARDS], _run)


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_each_operator_claims_enough() -> None:
    QUICK.assert_claimed(QUICK_SHARDS, MIN_QUICK)


@pytest.mark.slow
@pytest.mark.native
@pytest.mark.compiler("cc")
@pytest.mark.parametrize("shard", range(FULL_SHARDS))
def test_every_case(shard: int) -> None:
    FULL.run(list(node_cases())[shard::FULL_SHARDS], _run)


@pytest.mark.slow
@pytest.mark.native
@pytest.mark.compiler("cc")
def test_every_case_claims_enough() -> None:
    FULL.assert_claimed(FULL_SHARDS, MIN_CLAIMED)
