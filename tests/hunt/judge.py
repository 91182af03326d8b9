"""One case through both providers, and what differs.

Bounds of numbers: those of tests/tolerances.py (what sums in another order and our functions of a few ulp make), times
``SEVERAL_NODES``, since a case is a chain and every node may spend its share, of the largest result, or of ``SMALLEST_SCALE``
where all results are less (feeds are of order one: what cancels to nearly nothing keeps their rounding errors). Beyond that an
element is excused only where ONNX Runtime's own result moves as far under noise in the last place (noise.py). On special values
each element stands for itself: NaN and infinities must be where ONNX Runtime has them, finite elements within ``RELATIVE``.

Errors: only whether there is one counts, not its words. An error of ONNX Runtime counts when it comes with its optimisers
switched off, too: they reuse buffers by the names of sizes, drop nodes that would fail, and then ORT differs from itself. The
same holds for numbers, of each output by itself, and for errors of ours.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

from tests.hunt.case import Array, Case, Class, Finding, Run, sizes_of
from tests.hunt.generation.single import ancestors, session_options
from tests.hunt.named import refused_on_purpose
from tests.hunt.noise import spread
from tests.tolerances import TOLERANCES
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.errors import XyntraError

SEVERAL_NODES = 8.0
SMALLEST_SCALE = 1e-2
RELATIVE = {"float32": 1e-3, "float16": 2e-2, "float64": 1e-3}
_ALLOWED = {t.name: t.max_err * SEVERAL_NODES for t in TOLERANCES}
Outcome = Sequence[Array] | str  # results, or the message of an error


@dataclass(slots=True, kw_only=True)
class Verdict:
    """``refused``: ONNX Runtime makes no session of the model, so there is nothing to compare. ``mistake``: the hunter's own."""

    findings: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    refused: bool = False
    mistake: str = ""


def attempt(session: ort.InferenceSession, run: Run) -> Outcome:
    """Results, or the error's message."""
    try:
        if not run.bound:
            return [np.asarray(x) for x in session.run(None, dict(run.feeds))]
        binding = session.io_binding()
        for name, value in run.feeds.items():
            binding.bind_cpu_input(name, np.require(value, requirements="C"))  # ascontiguousarray would make a scalar [1]
        for output in session.get_outputs():
            binding.bind_output(output.name)
        session.run_with_iobinding(binding)
        return [np.asarray(x) for x in binding.copy_outputs_to_cpu()]
    except Exception as error:  # ONNX Runtime's errors have no base class of their own
        return str(error) or type(error).__name__


def seen(session: ort.InferenceSession) -> tuple[bool, tuple[str, ...]]:
    """Whether something of the model is ours, and what faults planning met; what is no session of ours stands in for one."""
    try:
        told = explain(session)
    except XyntraError:
        return True, ()
    return bool(told.claimed), told.faults


class Judge:
    """``announce`` is told what comes next, so that a crash or a hang has a place."""

    def __init__(self, case: Case, announce: Callable[[str], None] = lambda _: None) -> None:
        self.case = case
        self.announce = announce
        self.verdict = Verdict()
        self._plain: ort.InferenceSession | None = None
        self._claimed = True  # something of the model is ours

    @cached_property
    def _has_special_weights(self) -> bool:
        return has_special_weights(self.case.proto())

    def judge(self) -> Verdict:
        v = self.verdict
        self.announce("ORT session")
        try:
            theirs = self._session(["CPUExecutionProvider"])
        except Exception:
            v.refused = True
            return v
        self.announce("session")
        try:
            ours = self._session([("XyntraEP", self.case.settings.provider_options()), "CPUExecutionProvider"])
        except Exception as error:
            v.findings.append(Finding(kind=Class.SESSION, text=message(str(error))))
            return v
        v.counts["sessions"] += 1
        self._claimed, faults = seen(ours)
        v.findings += [Finding(kind=Class.FAULT, text=message(fault)) for fault in faults]
        done: list[Outcome] = []
        for number, run in enumerate(self.case.runs):
            self.announce(f"ORT run {number}")
            want = attempt(theirs, run)
            self.announce(f"run {number}")
            got = attempt(ours, run)
            done.append(got)
            v.counts["runs"] += 1
            if isinstance(want, str):
                v.counts["runs that ORT refuses"] += 1
            if (found := self._compare(run, got, want)) is not None:
                v.findings.append(Finding(kind=found[0], text=f"{found[1]}; {sizes_of(run.feeds)}", runs=(number,)))
        self._repeat(ours, done)
        if self.case.settings.two_threads and self._claimed:
            self._threads(done)
        return v

    def _session(
        self, providers: Sequence[object], *, threads: int = 1, optimise: bool = True, model: bytes = b""
    ) -> ort.InferenceSession:
        options = session_options(threads=threads, optimise=optimise)
        return ort.InferenceSession(model or self.case.model, options, providers=list(providers), enable_fallback=0)

    def _unoptimised(self, run: Run) -> Outcome:
        """ONNX Runtime node by node as the model is written."""
        if self._plain is None:
            self._plain = self._session(["CPUExecutionProvider"], optimise=False)
        return attempt(self._plain, run)

    # -- one run

    def _compare(self, run: Run, got: Outcome, want: Outcome) -> tuple[Class, str] | None:
        first = self._difference(run, got, want)
        if first is None:
            return None
        self.announce("ORT again")
        if not self._claimed:  # what ONNX Runtime leaves unwritten is none of ours
            self.verdict.counts["ORT differs from itself"] += 1
            return None
        again = self._unoptimised(run)
        nearest = self._nearer(run, got, want, again)
        if isinstance(again, str) != isinstance(want, str) or self._difference(run, got, nearest) is None:
            self.verdict.counts["ORT differs from itself"] += 1
            return None
        kind, text = first
        if kind is Class.EXTRA_ERROR and refused_on_purpose(text):
            self.verdict.counts["refused by us on purpose"] += 1
            return None
        if kind in (Class.WRONG, Class.SPECIAL) and not isinstance(want, str) and not isinstance(got, str):
            moved = spread(self.case.proto(), run.feeds, list(want))
            if moved is not None and all(self._same(run, a, b, m) is None for a, b, m in zip(got, want, moved, strict=True)):
                self.verdict.counts["excused by noise"] += 1
                return None
        return kind, text

    def _nearer(self, run: Run, got: Outcome, want: Outcome, again: Outcome) -> Outcome:
        """Of each output what agrees with ``got``: ONNX Runtime's, optimised or not, since an optimisation may change one output
        and not another; and ``got`` itself where nothing that it is made of is ours."""
        if isinstance(got, str) or isinstance(want, str) or isinstance(again, str):
            return again
        nearest = list(want)
        for k, (a, optimised, plain) in enumerate(zip(got, want, again, strict=True)):
            if self._difference(run, [a], [plain]) is None:
                nearest[k] = plain
            elif self._difference(run, [a], [optimised]) is not None and not self._computes(k):
                nearest[k] = a
        return nearest

    def _computes(self, k: int) -> bool:
        """Whether something that output ``k`` is made of is ours."""
        model = self.case.proto()
        output = model.graph.output[k]
        nodes = ancestors(model, [output.name])
        del model.graph.output[:], model.graph.node[:]
        model.graph.output.append(output)
        model.graph.node.extend(nodes)
        settings = {**self.case.settings.provider_options(), "claim": "all"}
        return seen(self._session([("XyntraEP", settings), "CPUExecutionProvider"], model=model.SerializeToString()))[0]

    def _difference(self, run: Run, got: Outcome, want: Outcome) -> tuple[Class, str] | None:
        if isinstance(want, str):
            return None if isinstance(got, str) else (Class.MISSING_ERROR, f"no error, ORT: {message(want)}")
        if isinstance(got, str):
            return Class.EXTRA_ERROR, f"{message(got)}, ORT: {said(want)}"
        for k, (a, b) in enumerate(zip(got, want, strict=True)):
            if a.shape != b.shape or a.dtype != b.dtype:
                return Class.SHAPE, f"output {k}: {a.dtype}{list(a.shape)}, ORT: {b.dtype}{list(b.shape)}"
        for k, (a, b) in enumerate(zip(got, want, strict=True)):
            if (text := self._same(run, a, b, None)) is not None:
                special = run.special or overflows(a, b) or (self._has_special_weights and no_number(a, b))
                return Class.SPECIAL if special else Class.WRONG, f"output {k}: {text}"
        return None

    @staticmethod
    def _same(run: Run, got: Array, want: Array, moved: Array | None) -> str | None:
        """None where ``got`` is as good as ``want``."""
        wrong = differing(got, want, special=run.special, moved=moved)
        if not wrong.any():
            return None
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        return f"{int(wrong.sum())} of {want.size} differ, at {list(at)} {got[at]} and not {want[at]}"

    # -- the same twice

    def _repeat(self, ours: ort.InferenceSession, done: Sequence[Outcome]) -> None:
        """The first runs again, after all the others."""
        for number in range(min(3, len(done))):
            self.announce(f"run {number} again")
            again = attempt(ours, self.case.runs[number])
            if not bitwise(again, done[number]) and not self._is_unwritten(self.case.runs[number]) and self._repeats(number):
                chain = (*range(len(done)), number)
                self.verdict.findings.append(
                    Finding(kind=Class.UNREPEATABLE, text=f"run {number} again: {apart(again, done[number])}", runs=chain)
                )

    def _is_unwritten(self, run: Run) -> bool:
        """Whether we would refuse ``run`` on purpose if all nodes were ours: ONNX Runtime, which has kept them, leaves elements
        unwritten there, and what it finds in them may be the same twice by chance."""
        self.announce("all nodes ours")
        settings = {**self.case.settings.provider_options(), "claim": "all"}
        outcome = attempt(self._session([("XyntraEP", settings), "CPUExecutionProvider"]), run)
        if not (isinstance(outcome, str) and refused_on_purpose(outcome)):
            return False
        self.verdict.counts["refused by us on purpose"] += 1
        return True

    def _repeats(self, number: int) -> bool:
        """Whether ONNX Runtime gives the same twice: nodes of ours that it has kept may leave memory as it was."""
        self.announce(f"ORT run {number} again")
        theirs = self._session(["CPUExecutionProvider"])
        outcomes = [attempt(theirs, run) for run in (*self.case.runs, self.case.runs[number])]
        if bitwise(outcomes[number], outcomes[-1]):
            return True
        self.verdict.counts["ORT differs from itself"] += 1
        return False

    def _threads(self, done: Sequence[Outcome]) -> None:
        self.announce("session with two threads")
        providers = [("XyntraEP", self.case.settings.provider_options()), "CPUExecutionProvider"]
        two = self._session(providers, threads=2)
        for number, run in enumerate(self.case.runs):
            self.announce(f"run {number} with two threads")
            got = attempt(two, run)
            if not bitwise(got, done[number]) and not self._is_unwritten(run) and self._same_with_two(run):
                text = f"two threads: {apart(got, done[number])}; {sizes_of(run.feeds)}"
                self.verdict.findings.append(Finding(kind=Class.UNREPEATABLE, text=text, runs=(number,)))

    def _same_with_two(self, run: Run) -> bool:
        """Whether ONNX Runtime gives the same with one thread and with two: it runs the nodes that we decline."""
        self.announce("ORT with two threads")
        one, two = (attempt(self._session(["CPUExecutionProvider"], threads=n), run) for n in (1, 2))
        if bitwise(one, two):
            return True
        self.verdict.counts["ORT differs from itself"] += 1
        return False


def differing(got: Array, want: Array, *, special: bool, moved: Array | None) -> Array:
    """Which elements are not as good as ``want``; ``moved``: how far noise moves them."""
    if want.dtype.kind != "f":
        unsure = np.zeros(want.shape, bool) if moved is None else moved > 0
        return np.asarray((got != want) & ~unsure)
    a, b = np.asarray(got, np.float64), np.asarray(want, np.float64)
    finite = np.isfinite(b)
    with np.errstate(all="ignore"):
        if special:
            allowed = RELATIVE[want.dtype.name] * np.abs(b) + RELATIVE[want.dtype.name] * 1e-2
        else:
            scale = float(np.abs(b[finite]).max(initial=SMALLEST_SCALE))
            allowed = np.full(b.shape, _ALLOWED[want.dtype.name] * scale)
        if moved is not None:
            allowed = allowed + moved
        close = np.abs(a - b) <= allowed
    same = np.where(finite, close, (a == b) | (np.isnan(a) & np.isnan(b)) | (np.isinf(moved) if moved is not None else False))
    return np.asarray(~same)


def no_number(got: Array, want: Array) -> bool:
    """Whether one of two floats is NaN or infinity wherever they differ."""
    wrong = differing(got, want, special=False, moved=None)
    return want.dtype.kind == "f" and not (np.isfinite(got[wrong]) & np.isfinite(want[wrong])).any()


def has_special_weights(model: onnx.ModelProto) -> bool:
    """Whether a constant has NaN or infinity, as inputs may: ONNX Runtime's LSTM multiplies no state of 0 with it."""
    floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)
    weights = [numpy_helper.to_array(weight) for weight in model.graph.initializer if weight.data_type in floats]
    return not all(np.isfinite(weight).all() for weight in weights)


def overflows(got: Array, want: Array) -> bool:
    """Whether an integer that differs is too large for its type: nobody says what it is then."""
    if want.dtype.kind not in "iu" or want.dtype.itemsize < 4:
        return False
    return bool((np.abs(want[got != want].astype(np.float64)) >= 2.0 ** (8 * want.dtype.itemsize - 2)).all())


def bitwise(a: Outcome, b: Outcome) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) == isinstance(b, str)
    return all(x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


def apart(a: Outcome, b: Outcome) -> str:
    """How two outcomes that should be the same bits differ."""
    if isinstance(a, str) or isinstance(b, str):
        return f"{said(a)}, before: {said(b)}"
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        if x.shape != y.shape:
            return f"output {k}: {list(x.shape)}, before: {list(y.shape)}"
        if x.tobytes() != y.tobytes():
            places = np.argwhere(x != y)
            at = tuple(int(i) for i in places[0]) if len(places) else (0,) * x.ndim  # else a zero's sign, or a NaN's bits
            return f"output {k}: {x[at]}, before: {y[at]} at {list(at)}"
    return ""


def said(outcome: Outcome) -> str:
    """Short."""
    if isinstance(outcome, str):
        return message(outcome)
    return ", ".join(f"{a.dtype}{list(a.shape)}" + (f" {a.reshape(-1)[:3].tolist()}" if a.size else "") for a in outcome)


def message(text: str) -> str:
    """An error's own words, without where in ONNX Runtime it was said."""
    line = " ".join(text.split())
    line = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", line)
    line = re.sub(r"Non-zero status code returned while running (\w+) node\. Name:'.*?' Status Message: ", r"\1: ", line)
    line = re.sub(r"/\S+?:\d+ [^ ].*?(?=\w+ was false|\w[\w .]*!?$)", "", line) if len(line) > 200 else line
    return line[:160]
