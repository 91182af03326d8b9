"""The smallest case that shows the same class of difference.

First each node alone, fed with what ONNX Runtime computes before it: most faults are one operator's. Where none shows it alone,
the graph is cut from both ends: later nodes are dropped, then inner tensors become inputs. Then attributes, sizes and values.
Every step is judged like any other case, in a child.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import onnx
from onnx import numpy_helper

from tests.hunt.case import Array, Case, Feeds, Finding, Settings
from tests.hunt.generation.single import ancestors, constants_of, make_model, symbols
from tests.hunt.processes.pool import Child
from tests.hunt.processes.worker import Check, Inside
from tests.hunt.report import ERRORS, shape_of

Shown = tuple[Case, Finding]


class Reducer:
    """``seconds`` and ``checks`` end it; what it has then is the result."""

    def __init__(self, child: Child, *, seconds: float = 60.0, checks: int = 120) -> None:
        self.child = child
        self.end = time.monotonic() + seconds
        self.left = checks

    def reduce(self, case: Case, finding: Finding, known: Callable[[Shown], bool] = lambda _: False) -> Shown:
        """``known`` tells whether somebody has that one already, as soon as its operators are clear."""
        best: Shown = (case, finding)
        steps = [
            self._runs,
            self._settings,
            self._nodes,
            self._free_sizes,
            self._attributes,
            self._operands,
            self._sizes,
            self._values,
        ]
        for step in steps:
            for candidate in step(best):
                best = candidate
            if step == self._nodes and known(best):
                break
        return best

    def _shows(self, case: Case, like: Finding) -> Shown | None:
        """The case with its finding of that class; of errors, the same one."""
        if self.left <= 0 or time.monotonic() > self.end:
            return None
        self.left -= 1
        verdict = self.child.ask(Check(case=case)).verdict
        words = shape_of(like.text) if like.kind in ERRORS else None
        alike = (f for f in verdict.findings if f.kind is like.kind and words in (None, shape_of(f.text)))
        found = next(alike, None)
        return None if found is None else (case, found)

    # -- steps: each yields better and better cases

    def _runs(self, best: Shown) -> Iterator[Shown]:
        """As few as show it."""
        case, finding = best
        if finding.runs:
            last = finding.runs[-1]
            for kept in ([last], [0, last], sorted(set(finding.runs))):
                shown = self._shows(replace(case, runs=[case.runs[i] for i in kept]), finding)
                if shown is not None:
                    yield shown
                    return
        elif len(case.runs) > 1:
            shown = self._shows(replace(case, runs=case.runs[:1]), finding)
            if shown is not None:
                yield shown

    def _settings(self, best: Shown) -> Iterator[Shown]:
        case, finding = best
        plain = replace(case, settings=Settings(), runs=[replace(run, bound=False) for run in case.runs])
        for candidate in (
            plain,
            replace(plain, settings=Settings(two_threads=case.settings.two_threads)),
            replace(plain, settings=case.settings),
        ):
            if (shown := self._shows(candidate, finding)) is not None:
                yield shown
                return

    def _nodes(self, best: Shown) -> Iterator[Shown]:
        case, finding = best
        model = case.proto()
        if len(model.graph.node) == 1:
            return
        inside = [self.child.ask(Inside(case=case, run=i)).value for i in range(len(case.runs))]
        if any(found is None for found in inside):
            return  # ONNX Runtime itself does not survive it
        values = [known for known, _ in inside]
        failing = inside[-1][1]
        order = sorted(range(len(model.graph.node)), key=lambda i: (i != failing, i))
        for number in order:
            node = model.graph.node[number]
            fed = [n for n in dict.fromkeys(node.input) if n and n not in constants_of(model)]
            single = _recut(case, [node], fed, [n for n in node.output if n], values)
            if single is not None and (shown := self._shows(single, finding)) is not None:
                yield shown
                return
        for node in model.graph.node:
            shown = self._try(case, ancestors(model, [n for n in node.output if n]), [i.name for i in model.graph.input],
                              [n for n in node.output if n], values, finding)  # fmt: skip
            if shown is not None:
                best = shown
                yield best
                break
        yield from self._cut_front(best, values)

    def _cut_front(self, best: Shown, values: Sequence[Feeds]) -> Iterator[Shown]:
        """Inner tensors become inputs, the late ones first."""
        case, finding = best
        for node in reversed(list(case.proto().graph.node)[:-1]):
            model = case.proto()
            inputs = [i.name for i in model.graph.input]
            outputs = [o.name for o in model.graph.output]
            made = [n for n in node.output if n and n not in outputs]
            if not made or node.output[0] not in {n for x in model.graph.node for n in x.output}:
                continue
            kept = ancestors(model, outputs, stop=set(made))
            shown = self._try(case, kept, [*inputs, *made], outputs, values, finding)
            if shown is not None:
                case, finding = shown
                yield shown

    def _try(
        self,
        case: Case,
        nodes: Sequence[onnx.NodeProto],
        inputs: Sequence[str],
        outputs: Sequence[str],
        values: Sequence[Feeds],
        like: Finding,
    ) -> Shown | None:
        recut = _recut(case, nodes, inputs, outputs, values)
        return None if recut is None else self._shows(recut, like)

    def _free_sizes(self, best: Shown) -> Iterator[Shown]:
        """Each size of an input its own symbol."""
        case, finding = best
        model = case.proto()
        for i in model.graph.input:
            for k, dim in enumerate(i.type.tensor_type.shape.dim):
                dim.dim_param = f"{i.name}_{k}"
        if (shown := self._shows(case.with_model(model), finding)) is not None:
            yield shown

    def _attributes(self, best: Shown) -> Iterator[Shown]:
        case, finding = best
        for number, node in enumerate(case.proto().graph.node):
            for attribute in list(node.attribute):
                model = case.proto()
                kept = [a for a in model.graph.node[number].attribute if a.name != attribute.name]
                del model.graph.node[number].attribute[:]
                model.graph.node[number].attribute.extend(kept)
                if (shown := self._shows(case.with_model(model), finding)) is not None:
                    case, finding = shown
                    yield shown

    def _operands(self, best: Shown) -> Iterator[Shown]:
        """Without optional inputs, and of several outputs one."""
        case, finding = best
        for number, node in enumerate(case.proto().graph.node):
            for place in reversed(range(1, len(node.input))):
                model = case.proto()
                inputs = list(model.graph.node[number].input)
                if place >= len(inputs) or not inputs[place]:
                    continue
                inputs = inputs[:place] if place == len(inputs) - 1 else [*inputs[:place], "", *inputs[place + 1 :]]
                del model.graph.node[number].input[:]
                model.graph.node[number].input.extend(inputs)
                if (shown := self._shows(_without_unread(case.with_model(model)), finding)) is not None:
                    case, finding = shown
                    yield shown
        outputs = list(case.proto().graph.output)
        for output in outputs if len(outputs) > 1 else []:
            model = case.proto()
            del model.graph.output[:]
            model.graph.output.append(output)
            if (shown := self._shows(case.with_model(model), finding)) is not None:
                yield shown
                return

    def _sizes(self, best: Shown) -> Iterator[Shown]:
        """All axes of one size become shorter together, then each input's alone."""
        case, finding = best
        extents = {n for a in _tensors(case).values() for n in a.shape if n > 1}
        for n in sorted(extents, reverse=True):
            for m in (m for m in (1, 2, n // 2) if m < n):
                if (shown := self._shows(_shorter(case, n, m), finding)) is not None:
                    case, finding = shown
                    yield shown
                    break
        for name, array in _tensors(case).items():
            for n in sorted({n for n in array.shape if n > 1}, reverse=True):
                if (shown := self._shows(_shorter(case, n, 1, only=name), finding)) is not None:
                    case, finding = shown
                    yield shown

    def _values(self, best: Shown) -> Iterator[Shown]:
        """Ones, small whole numbers, or what there is with fewer digits."""
        case, finding = best
        for simple in (np.ones_like, _counting, _rounded):
            if (shown := self._shows(_with_floats(case, simple), finding)) is not None:
                yield shown
                return


# -- cutting


def _recut(
    case: Case, nodes: Sequence[onnx.NodeProto], inputs: Sequence[str], outputs: Sequence[str], values: Sequence[Feeds]
) -> Case | None:
    """Some of the nodes, with these inputs (what they are fed is among ``values``, by run); None where a value is not known."""
    model = case.proto()
    constants = constants_of(model)
    read = {name for node in nodes for name in node.input}
    inputs = [n for n in inputs if n in read]
    if any(n not in known for n in inputs for known in values):
        return None
    declared = {n: (np.asarray(values[0][n]).dtype, symbols(n, np.ndim(values[0][n]))) for n in inputs}
    own = {n: a for n, a in constants.items() if n in read}
    recut = make_model(nodes, declared, outputs, own, model.opset_import, model.functions)
    runs = [replace(run, feeds={n: known[n] for n in inputs}) for run, known in zip(case.runs, values, strict=True)]
    return replace(case, model=recut.SerializeToString(), runs=runs)


def _without_unread(case: Case) -> Case:
    model = case.proto()
    read = {name for node in model.graph.node for name in node.input}
    for field in (model.graph.input, model.graph.initializer):
        kept = [x for x in field if x.name in read]
        del field[:]
        field.extend(kept)
    runs = [replace(run, feeds={n: a for n, a in run.feeds.items() if n in read}) for run in case.runs]
    return replace(case.with_model(model), runs=runs)


# -- sizes and values


def _tensors(case: Case) -> dict[str, Array]:
    """What is fed in the last run, and the constants."""
    return {**constants_of(case.proto()), **{n: np.asarray(a) for n, a in case.runs[-1].feeds.items()}}


def _with_values(case: Case, change: Callable[[str, Array], Array]) -> Case:
    model = case.proto()
    for k, initializer in enumerate(model.graph.initializer):
        changed = change(initializer.name, numpy_helper.to_array(initializer))
        model.graph.initializer[k].CopyFrom(
            numpy_helper.from_array(np.ascontiguousarray(changed).reshape(changed.shape), initializer.name)
        )
    runs = [replace(run, feeds={n: change(n, np.asarray(a)) for n, a in run.feeds.items()}) for run in case.runs]
    return replace(case.with_model(model), runs=runs)


def _shorter(case: Case, old: int, new: int, only: str | None = None) -> Case:
    """Axes of ``old`` elements keep the first ``new``; of one tensor only, or of all."""

    def cut(name: str, a: Array) -> Array:
        return a[tuple(slice(0, new if n == old else n) for n in a.shape)] if only in (None, name) else a

    return _with_values(case, cut)


def _with_floats(case: Case, simple: Callable[[Array], Array]) -> Case:
    return _with_values(case, lambda _, a: np.asarray(simple(a), a.dtype) if a.dtype.kind == "f" else a)


def _counting(a: Array) -> Array:
    return np.arange(1, a.size + 1).reshape(a.shape)


def _rounded(a: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.round(a, 1)
