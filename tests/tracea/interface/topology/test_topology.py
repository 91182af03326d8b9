"""Kinds of linear operations: the way that is chosen and why, what is left to tune, and results on arrays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.printed import c_text
from xyntra_ep.errors import ConfigError
from xyntra_ep.provider import registration
from xyntra_ep.tracea import Context, Dense, LowRank, OperatorTopology
from xyntra_ep.tracea.interface.topology.plan import TopologyPlan
from xyntra_ep.tracea.interface.tuning.problem import Problem
from xyntra_ep.tracea.interface.tuning.trial import Candidate, Trial
from xyntra_ep.tracea.runtime.hashing import hash128_of
from xyntra_ep.tracea.semantic_ir.capabilities import AVX512


def planned(context: Context, kind: Dense | LowRank) -> TopologyPlan:
    return context.plan_topology(OperatorTopology(kind=kind), m=128, n=768, k=768)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(cache_dir=tmp_path / "cache", hash128=hash128_of(registration.library()), caps=AVX512)


def test_few_columns_between_are_two_products(context: Context) -> None:
    plan = planned(context, LowRank(16))
    assert plan.chosen == "two products" and [d.chosen.name for d in plan.decisions] == ["gemm.packed_b"] * 2
    [(other, why)] = plan.rejected
    assert other == "one product with A B" and f"against {plan.cost_ns / 1000:.1f} us" in why
    assert plan.cost_ns == sum(d.cost_ns for d in plan.decisions) < plan.costs[other]
    assert str(plan).splitlines()[0].startswith("low-rank(16) m=128 n=768 k=768: two products, ")


def test_many_columns_between_are_one_product(context: Context) -> None:
    plan = planned(context, LowRank(700))
    assert plan.chosen == "one product with A B" and len(plan.problems) == 1
    given = context.plan_topology(OperatorTopology(kind=LowRank(700)), m=8, n=768, k=768, constant=False)
    assert given.chosen == "two products", "a run would have to make A B first"


def test_nothing_is_known_of_a_dense_matrix(context: Context) -> None:
    plan = planned(context, Dense())
    assert (plan.chosen, plan.rejected, len(plan.problems)) == ("one product", (), 1)


def candidates(problem: Problem, context: Context) -> list[Candidate]:
    return list(Trial(problem, context, 1).candidates())


def test_the_kind_narrows_the_search_before_it_starts(context: Context) -> None:
    """What it leaves out has the tiles of another one that it leaves in, with as many rows."""
    first, second = planned(context, LowRank(8)).problems
    wide, narrow = candidates(replace(first, covers={}), context), candidates(first, context)
    assert 0 < len(narrow) < len(wide) and len(candidates(second, context)) == len(
        candidates(replace(second, covers={}), context)
    )
    build = context.build_context(first.program, first.constants)

    def text(candidate: Candidate) -> str:
        """All but the loop over units, which may divide rows otherwise."""
        run = candidate.variant.build(first.op, candidate.config, build)[-1]
        return c_text(run.kernel, AVX512).rpartition("\nvoid xy_")[0]

    packed = [c for c in wide if c.variant.name == "gemm.packed_b"]
    left = {text(c) for c in narrow}
    gone = [c for c in packed if c not in narrow]
    assert gone and all(text(c) in left for c in gone)
    assert set(map(str, narrow)) <= set(map(str, wide))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda c: LowRank(0), "OperatorTopology: LowRank(0) is none. it wants an integer of at least 1"),
        (
            lambda c: c.plan_topology(OperatorTopology(kind=Dense()), m=0, n=1, k=1),
            "OperatorTopology: m=0 is no size. it wants an integer of at least 1",
        ),
    ],
)
def test_wrong_questions(make: object, message: str, context: Context) -> None:
    assert callable(make)
    with pytest.raises(ConfigError) as refused:
        make(context)
    assert str(refused.value) == message


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.compiler("cc")
@pytest.mark.parametrize("rank", [3, 40], ids=["two", "one"])
def test_launched_on_arrays(rank: int) -> None:
    x, a, b, w = arrays((2, 5, 24), (24, rank), (rank, 19), (24, 19))
    op = OperatorTopology(kind=LowRank(rank))
    context = Context()
    want = x.astype(np.float64) @ a @ b
    np.testing.assert_allclose(context.launch(op, x, a, b), want, atol=2e-5 * np.abs(want).max())
    out = np.empty((2, 5, 19), np.float32)
    assert context.launch(op, x, a, b, w, out=out) is out
    np.testing.assert_allclose(out, want + x @ w, atol=2e-5 * np.abs(want).max())
    np.testing.assert_allclose(context.launch(OperatorTopology(kind=Dense()), x, w), x @ w, atol=1e-4)
    assert context.launch(op, np.empty((0, 24), np.float32), a, b).shape == (0, 19)


def test_operands_that_do_not_fit() -> None:
    x, a, b = arrays((5, 24), (24, 3), (3, 19))
    launch = Context().launch
    with pytest.raises(ValueError, match=r"launch\(low-rank\(4\)\): x \(5, 24\), A \(24, 3\) and B \(3, 19\) do not fit"):
        launch(OperatorTopology(kind=LowRank(4)), x, a, b)
    with pytest.raises(ValueError, match=r"W \(3, 19\) does not fit x \(5, 24\)"):
        launch(OperatorTopology(kind=LowRank(3)), x, a, b, b)
    with pytest.raises(ValueError, match=r"launch\(low-rank\(3\)\): wants x, A, B and perhaps W, got 2 operands"):
        launch(OperatorTopology(kind=LowRank(3)), x, a)
    with pytest.raises(ValueError, match=r"launch\(dense\): wants x and W, got 3 operands"):
        launch(OperatorTopology(kind=Dense()), x, a, b)
