"""The learned cost model: trees by hand, what it looks at, and the weights that come with the package."""

from __future__ import annotations

import json

import numpy as np
import pytest

from xyntra_ep.tracea.interface.tuning.shapes import SHAPES
from xyntra_ep.tracea.optimizer.cost_model import CostModel, MachineFacts, OpFacts, Option, Tree, Vocabulary, features, learned
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512

GEMM = OpFacts(
    op="Gemm f32[100,768] f32[768,96]! f32[100,96]", flops=2 * 100 * 768 * 96, bytes=4 * (100 * 768 + 768 * 96 + 100 * 96)
)
CONV = OpFacts(
    op="Conv f32[1,8,30,20]@4800,1,160,8 f32[16,8,3,3]! f32[1,16,30,20]@9600,1,320,16 (1, 1)", flops=10**6, bytes=10**5
)
KNOWN = Vocabulary(variants=("a", "b"), axes=("rows", "vectors"))
MACHINE = MachineFacts.of(AVX2)
STUMP = Tree.of([[0, 0.5, 1, 2], [-1.0], [2, 3.0, 3, 4], [5.0], [7.0]])


def option(estimate_ns: float, variant: str = "a", **config: int) -> Option:
    return Option(variant=variant, config=config, estimate_ns=estimate_ns)


def test_a_tree_goes_left_where_a_feature_is_at_most_the_threshold() -> None:
    rows = np.array([[0.5, 0, 0], [0.6, 0, 3.0], [0.6, 0, 3.1], [0.0, 0, 9.0]])
    assert STUMP(rows).tolist() == [-1.0, 5.0, 7.0, -1.0]


def test_a_model_is_what_was_stored() -> None:
    model = CostModel(known=KNOWN, trees=(STUMP,), better_for=frozenset({"Gemm"}))
    again = CostModel.of(json.loads(json.dumps(model.data())))
    assert (again.known, again.better_for) == (KNOWN, model.better_for)
    options = [option(100.0 * n, rows=n) for n in (1, 2, 4)]
    assert again.predict(GEMM, MACHINE, options).tolist() == model.predict(GEMM, MACHINE, options).tolist()
    with pytest.raises(ValueError, match="format 9"):
        CostModel.of({**model.data(), "format": 9})


def test_without_trees_the_estimates_rank() -> None:
    model = CostModel(known=KNOWN, trees=(), better_for=frozenset())
    assert model.ranked(GEMM, MACHINE, [option(300), option(100), option(200), option(100)]) == [1, 3, 2, 0]


def test_trees_correct_the_estimates() -> None:
    """The first feature is the estimate above the least: the first two are taken for 1/e as long, the last for e^3 times."""
    tree = Tree.of([[0, 0.5, 1, 2], [-1.0], [3.0]])
    model = CostModel(known=KNOWN, trees=(tree, tree), better_for=frozenset())
    got = model.predict(GEMM, MACHINE, [option(100), option(110), option(200)])
    assert got - got[0] == pytest.approx([0, np.log(1.1), np.log(2) + 4])


def test_what_is_not_known_is_not_looked_at() -> None:
    ours, others = (
        features(GEMM, MACHINE, [option(10, variant, rows=4, **more)], KNOWN) for variant, more in (("a", {}), ("c", {"x": 3}))
    )
    unlike = np.flatnonzero(ours[0] != others[0])
    assert len(unlike) == 1 and ours[0][unlike[0]] == 1.0, "that it is variant a"


def test_waste_is_of_whole_steps() -> None:
    """100 rows in steps of 6 are 102; 96 columns in steps of 4 vectors of 8 are 96."""
    [row] = features(GEMM, MACHINE, [option(10, rows=6, vectors=4)], KNOWN)
    waste = row[4 : 4 + 6].reshape(2, 3)  # behind the estimate, the sum of axes, and two axes
    assert waste[0].tolist() == pytest.approx([0.0 if 1 % 6 == 0 else np.log2(6), np.log2(1.02), 0.0])
    assert waste[1].tolist() == pytest.approx([np.log2(32), np.log2(128 / 100), 0.0])
    wide = features(GEMM, MachineFacts.of(AVX512), [option(10, vectors=4)], KNOWN)[0]
    assert wide[4 + 5] == pytest.approx(np.log2(128 / 96)), "4 vectors of 16"


def test_images_have_their_channels_last() -> None:
    assert (CONV.kind, CONV.output) == ("Conv", (1, 30, 20, 16)) and (GEMM.kind, GEMM.output) == ("Gemm", (100, 96))


def test_the_weights_are_of_kernels_that_there_are() -> None:
    from xyntra_ep.tracea.doctor.variants import cpu_variants

    model = learned()
    assert {v.name for of_op in cpu_variants().values() for v in of_op} >= set(model.known.variants)
    assert model.better_for <= {shape.problem().facts.kind for shape in SHAPES}
    width = features(GEMM, MACHINE, [option(1.0)], model.known).shape[1]
    for tree in model.trees:
        assert tree.feature.max() < width and len(tree.feature) > 1
        inner = tree.feature >= 0
        assert (tree.left[inner] > np.flatnonzero(inner)).all() and (tree.right[inner] < len(tree.feature)).all(), "it ends"
