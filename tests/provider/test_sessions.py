"""Whole sessions with everything claimed, against ONNX Runtime's CPU provider: sizes that change from run to run, odd graphs, odd
sessions."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from tests.support.models.model_text import close, cpu, normal, parse
from tests.support.models.random_models import RandomModel, same_values
from tests.support.sessions import Planned, planned, watched_planner

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]

Array = NDArray[Any]
BLOCK = parse(
    """(float[B,S,8] x, float[B,S] mask) => (float[B,S,8] y, float[B,8] pooled)
    <int64[1] last = {-1}, int64[1] one = {1},
     float half = {0.5}, float unit = {1.0}, float root = {1.4142135}, float eps = {0.01}>
    {
      h = MatMul(x, w)
      e = Div(h, root) f = Erf(e) g = Add(f, unit) i = Mul(h, g) gelu = Mul(i, half)
      m = Unsqueeze(mask, last) masked = Mul(gelu, m) r = Add(masked, x)
      mean = ReduceMean(r, last) d = Sub(r, mean) sq = Mul(d, d) v = ReduceMean(sq, last) ve = Add(v, eps) sd = Sqrt(ve)
      y = Div(d, sd)
      pooled = ReduceMax<keepdims = 0>(y, one)
    }""",
    w=normal(8, 8),
)


@pytest.fixture
def plans() -> Iterator[Planned]:
    with watched_planner() as watched:
        yield watched


def run(session: ort.InferenceSession, feeds: Mapping[str, Array]) -> list[Array]:
    return [np.asarray(x) for x in session.run(None, dict(feeds))]


def agree(model: onnx.ModelProto, feeds: Mapping[str, Array], session: ort.InferenceSession, tolerance: float = 1e-5) -> None:
    close(run(session, feeds), cpu(model, feeds), tolerance)


class TestShapes:
    def test_fifty_shapes_and_one_plan(self, plans: Planned) -> None:
        session = planned(BLOCK)
        rng = np.random.default_rng(0)
        for _ in range(50):
            b, s = int(rng.integers(1, 5)), int(rng.integers(1, 40))
            agree(BLOCK, {"x": normal(b, s, 8), "mask": normal(b, s)}, session)
        assert plans.calls == 1
        assert plans.claimed(0) == len(BLOCK.graph.node)

    @pytest.mark.parametrize("lying", [True, False])
    def test_one_against_n_on_every_axis(self, lying: bool) -> None:
        names = ["N,M,K", "N,M,K"] if lying else ["?,?,?", "N,?,K"]
        model = parse(
            f"""(float[{names[0]}] x, float[{names[1]}] z) => (float[] y, float[] s)
            {{ a = Mul(x, z) y = Tanh(a) s = ReduceSum(a) }}"""
        )
        session = planned(model)
        for ones in itertools.product((0, 1), repeat=6):
            full = (2, 3, 4)
            a, b = ([1 if o else n for o, n in zip(part, full, strict=True)] for part in (ones[:3], ones[3:]))
            agree(model, {"x": normal(*a), "z": normal(*b, seed=1)}, session)

    def test_sizes_that_do_not_fit_fail_with_a_message(self) -> None:
        model = parse("(float[N] x, float[M] z) => (float[] y) { a = Mul(x, z) y = Tanh(a) }")
        with pytest.raises(Exception, match="incompatible sizes"):
            run(planned(model), {"x": normal(3), "z": normal(4)})

    def test_channels_that_do_not_fit_fail_with_a_message(self) -> None:
        """A kernel would read beyond its input."""
        model = parse("(float[N,C,H] x) => (float[] y) { y = Conv(x, w) }", w=normal(2, 3, 1))
        session = planned(model)
        agree(model, {"x": normal(2, 3, 4)}, session)
        with pytest.raises(Exception, match="channels differ"):
            run(session, {"x": normal(2, 1, 4)})

    def test_wrong_shapes_of_inner_values(self) -> None:
        model = parse(
            "(float[N,4] x) => (float[] y) { a = Exp(x) nz = NonZero(x) b = Cast<to = 1>(nz) c = Mul(b, b) y = Neg(c) }"
        )
        wrong = onnx.helper.make_tensor_value_info("b", onnx.TensorProto.FLOAT, [2, "N"])
        model.graph.value_info.append(wrong)
        agree(model, {"x": normal(3, 4)}, planned(model))

    @pytest.mark.parametrize(("b", "s"), [(0, 3), (3, 0), (0, 0)])
    def test_nothing(self, b: int, s: int) -> None:
        model = parse(
            """(float[B,S,4] x) => (float[] y, float[] t, float[] n)
            { y = Softmax<axis = -1>(x) t = Transpose<perm = [1, 0, 2]>(x) n = MatMul(x, w) }""",
            w=normal(4, 2),
        )
        agree(model, {"x": normal(b, s, 4)}, planned(model))

    def test_a_sum_over_nothing(self) -> None:
        """As ONNX defines it (the CPU provider gives a reduction over no elements the shape of its operand)."""
        model = parse(
            """(float[B,S] x) => (float[] y, float[] p) <int64[1] last = {-1}>
            { y = ReduceSum(x, last) p = ReduceProd(x, last) }"""
        )
        close(run(planned(model), {"x": normal(3, 0)}), [np.zeros((3, 1), np.float32), np.ones((3, 1), np.float32)])

    def test_results_that_are_sizes(self) -> None:
        model = parse(
            """(float[B,S,4] x) => (int64[3] s, int64 n, bool small, int64[1] half, float[] y)
            <int64 five = {5}, int64[1] two = {2}, int64[1] one = {1}>
            { s = Shape(x) n = Size(x) small = Less(n, five) b = Gather(s, one) half = Div(b, two) y = Exp(x) }"""
        )
        session = planned(model)
        for b, s in ((1, 1), (2, 7), (0, 3)):
            agree(model, {"x": normal(b, s, 4)}, session)


class TestGraphs:
    def test_inputs_and_constants_as_outputs(self) -> None:
        model = parse(
            """(float[N] x) => (float[N] x2, float[2] k, float[N] y) <float[2] c = {1., 2.}>
            { x2 = Identity(x) k = Identity(c) y = Exp(x) }"""
        )
        for level in (ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_ALL):
            agree(model, {"x": normal(5)}, planned(model, level=level))

    def test_an_input_that_is_an_output(self) -> None:
        model = parse("(float[N] x) => (float[N] x, float[N] y) { y = Exp(x) }")
        agree(model, {"x": normal(5)}, planned(model))

    def test_one_value_under_several_names(self) -> None:
        model = parse(
            "(float[N,M] x) => (float[] a, float[] b, float[] c) { e = Exp(x) a = Identity(e) b = Identity(e) c = Transpose(e) }"
        )
        for level in (ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_ALL):
            agree(model, {"x": normal(2, 3)}, planned(model, level=level))

    @pytest.mark.parametrize(
        "node", ["Relu(x)", "Transpose(x)", "Softmax(x)", "Shape(x)", "ReduceMean(x)", "Concat<axis = 0>(x, x)"]
    )
    def test_one_node(self, node: str) -> None:
        kind = "int64" if "Shape" in node else "float"
        model = parse(f"(float[N,M] x) => ({kind}[] y) {{ y = {node} }}")
        agree(model, {"x": normal(3, 5)}, planned(model))

    def test_after_a_declined_node(self, plans: Planned) -> None:
        model = parse("(float[N] x) => (float[] y) { r = Relu(x) z = NonZero(r) f = Cast<to = 1>(z) e = Exp(f) y = Neg(e) }")
        session = planned(model)
        for n in (1, 6):
            agree(model, {"x": normal(n)}, session)
        assert plans.reasons(0) == {"NonZero": "unsupported"}

    def test_branches(self) -> None:
        model = parse(
            """(bool[] c, float[N] x) => (float[] y)
            { z = Exp(x)
              y = If (c) <then_branch = t () => (float[] a) { p = Relu(z) q = Tanh(x) a = Add(p, q) },
                          else_branch = e () => (float[] b) { r = Neg(z) b = Sigmoid(r) }> }"""
        )
        session = planned(model)
        for c, n in itertools.product((True, False), (1, 4)):
            agree(model, {"c": np.asarray(c), "x": normal(n)}, session)

    def test_a_loop_whose_state_grows(self) -> None:
        """The body declares [1]; nobody checks it, and the second round brings more."""
        model = parse(
            """(float[1] x) => (float[] y) <int64 n = {3}, bool go = {1}>
            { y = Loop (n, go, x) <body = b (int64 i, bool c, float[1] s) => (bool d, float[] t)
              { d = Identity(c) u = Tanh(s) v = Neg(s) t = Concat<axis = 0>(u, v) }> }"""
        )
        agree(model, {"x": normal(1)}, planned(model))

    def test_quantised_models_are_claimed(self, plans: Planned) -> None:
        model = parse(
            """(float[4,8] x) => (float[4,8] y) <float s = {0.1}, uint8 z = {128}>
            { q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) m = Sigmoid(d)
              q2 = QuantizeLinear(m, s, z) y = DequantizeLinear(q2, s, z) }"""
        )
        agree(model, {"x": normal(4, 8)}, planned(model, level=ort.GraphOptimizationLevel.ORT_DISABLE_ALL), 0.2)
        assert plans.reasons(0) == {} and plans.claimed(0) == 5


class TestSessions:
    @pytest.mark.parametrize("level", ["ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_ALL"])
    def test_optimization_levels(self, level: str) -> None:
        session = planned(BLOCK, level=getattr(ort.GraphOptimizationLevel, level))
        agree(BLOCK, {"x": normal(2, 5, 8), "mask": normal(2, 5)}, session)

    def test_io_binding(self) -> None:
        session = planned(BLOCK)
        feeds = {"x": normal(2, 5, 8), "mask": normal(2, 5)}
        binding = session.io_binding()
        for name, array in feeds.items():
            binding.bind_cpu_input(name, array)
        binding.bind_output("y")
        into = ort.OrtValue.ortvalue_from_numpy(np.zeros((2, 8), np.float32))
        binding.bind_ortvalue_output("pooled", into)
        session.run_with_iobinding(binding)
        y, pooled = cpu(BLOCK, feeds)
        close([binding.get_outputs()[0].numpy(), into.numpy()], [y, pooled])

    def test_threads_and_sessions(self) -> None:
        sessions = [planned(BLOCK, threads=t) for t in (1, 2)]
        shapes = [(1, 3), (4, 7), (2, 33), (3, 1)]
        feeds = [{"x": normal(b, s, 8), "mask": normal(b, s)} for b, s in shapes]
        want = [cpu(BLOCK, f) for f in feeds]
        problems: list[BaseException] = []

        def work(k: int) -> None:
            try:
                for i in range(12):
                    j = (k + i) % len(feeds)
                    close(run(sessions[k % 2], feeds[j]), want[j])
            except BaseException as error:
                problems.append(error)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not problems, problems[0]

    def test_the_second_session_needs_no_planner(self, plans: Planned) -> None:
        model = parse("(float[N] x) => (float[N] y) { a = Exp(x) b = Tanh(a) y = Neg(b) }")
        planned(model)
        agree(model, {"x": normal(4)}, planned(model))
        assert plans.calls == 1

    def test_profitable_leaves_small_things(self, plans: Planned) -> None:
        model = parse("(float[N] x) => (float[N] y) { y = Exp(x) }")
        agree(model, {"x": normal(4)}, planned(model, {"claim": "profitable"}))
        assert plans.claimed(0) == 0 and re.fullmatch(
            r"declined: est. .* us, ORT .* us at N=1 on one core, 0[.].*x over the sizes that are usual", plans.reasons(0)["Exp"]
        )

    def test_min_island(self, plans: Planned) -> None:
        model = parse("(float[N] x) => (float[N] y) { e = Exp(x) y = Neg(e) }")
        agree(model, {"x": normal(4)}, planned(model, {"min_island": "3"}))
        assert set(plans.reasons(0).values()) == {"island of 2 below min_island"}

    @pytest.mark.parametrize(
        ("name", "value", "said"),
        [
            ("clam", "all", "did you mean 'claim'"),
            ("claim", "most", "allowed: profitable, all"),
            ("backend", "vulkan", "is not valid"),
        ],
    )
    def test_wrong_options_fail_the_session(self, name: str, value: str, said: str) -> None:
        """Even when nothing of the graph could be ours."""
        model = parse("(float[N] x) => (int64[] y) { y = NonZero(x) }")
        with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument, match=said):
            planned(model, {name: value})


@pytest.mark.parametrize("seed", range(8))
def test_random_models(seed: int) -> None:
    """A few of tests/fusion/test_random_models.py with compiled kernels."""
    random = RandomModel(seed, n_nodes=10)
    session = planned(random.model)
    for number in range(4):
        feeds = random.feeds(number)
        want = _cpu_or_none(random.model, feeds)
        if want is not None:
            problem = same_values(run(session, feeds), want)
            assert not problem, f"{problem}, sizes {random.sizes(number)}\n{random.text()}"


def _cpu_or_none(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> Sequence[Array] | None:
    """None where names that lie make ONNX Runtime itself refuse."""
    try:
        return cpu(model, feeds)
    except ort.capi.onnxruntime_pybind11_state.Fail:
        return None
