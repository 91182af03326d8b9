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
from tests.support.models.graph_from_model import interpret_model
from tests.support.ort_version import is_older_ort
from tests.tolerances import difference
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.errors import UnsupportedError

INTERPRETED_SHARDS, QUICK_SHARDS, FULL_SHARDS = 8, 8, 40
Outcome = tuple[bool, Sequence[Array], str]  # (is a node ours, results, why not)


def compare(names: Sequence[str], check: Callable[[NodeCase], Outcome]) -> int:
    """How many cases have a node of ours (tests/floors.toml has how many there must be); fail with a list of all that differ."""
    wrong: list[str] = []
    claimed_cases = 0
    declined: Counter[str] = Counter()
    for name in names:
        case = node_cases()[name]
        wanted = run_cpu(case)
        if wanted is None:
            continue
        claimed, results, reason = check(case)
        claimed_cases += claimed
        if not claimed:
            declined[f"{case.model.graph.node[0].op_type if case.model.graph.node else ''}: {reason}"] += 1
            continue
        texts = differences(results, wanted)
        if any(texts) and is_older_ort() and not any(differences(results, case.expected)):
            continue  # a mistake of that runtime: ours is what ONNX expects
        wrong += [f"{name}, output {i}: {text}" for i, text in enumerate(texts) if text]
    print(*(f"{count:4} {reason}" for reason, count in declined.most_common()), sep="\n")  # shown with a failure, or by -rP
    assert not wrong, "\n".join(wrong)
    return claimed_cases


def differences(results: Sequence[Array], wanted: Sequence[Array]) -> list[str]:
    """Per output; empty text for equal ones."""
    return [difference(np.asarray(a), np.asarray(b)) for a, b in zip(results, wanted, strict=True)]


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


Record = Callable[[str, object], None]


@pytest.mark.parametrize("shard", range(INTERPRETED_SHARDS))
def test_meaning(shard: int, record_property: Record) -> None:
    claimed = compare(list(node_cases())[shard::INTERPRETED_SHARDS], _interpret)
    record_property("counted interpreted", (shard, INTERPRETED_SHARDS, claimed))


@pytest.mark.native
@pytest.mark.compiler("cc")
@pytest.mark.parametrize("shard", range(QUICK_SHARDS))
def test_each_operator(shard: int, record_property: Record) -> None:
    claimed = compare(first_of_each_operator()[shard::QUICK_SHARDS], _run)
    record_property("counted quick", (shard, QUICK_SHARDS, claimed))


@pytest.mark.slow
@pytest.mark.native
@pytest.mark.compiler("cc")
@pytest.mark.parametrize("shard", range(FULL_SHARDS))
def test_every_case(shard: int, record_property: Record) -> None:
    claimed = compare(list(node_cases())[shard::FULL_SHARDS], _run)
    record_property("counted full", (shard, FULL_SHARDS, claimed))
