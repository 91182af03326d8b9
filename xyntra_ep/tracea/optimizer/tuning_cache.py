"""What tuning has found, kept on disk for each class of machines: choices, which sessions read, and trials, which searches do.

    tuning_cache-<digest of the class>.json
    {"format": 1,
     "machine": {"name": "x86_64|AMD EPYC|avx512", "l1d": 32768, "l2": 1048576, "l3": 33554432},
     "results": {"<digest of what follows>": {
         "op": "Gemm f32[128,768] f32[768,768]! f32[128,768] product=f32",   "!": known when the session is created
         "compiler": "gcc 12.2.0 -mavx512f ...", "release": "0.1.0", "threads": 2, "device": "",
         "sizes": {"seq": 128},                                                  what its symbols were; absent where it has none
         "variant": "gemm.packed_b", "config": {"rows": 8, "columns": 48}, "ns": 1.0,      the best; absent where none was better
         "default": {"variant": ..., "config": ..., "ns": ...}}},                          than what is chosen without tuning
     "islands": {"<digest>": {"what": "12 nodes: Conv, Clip", "ratio": 0.77, "low": 0.75, "high": 0.79,
         "form": "<digest without sizes>", "sizes": {"seq": 128}}}}
    tuning_trials-<digest of the class>.json
    {"format": 1, "machine": ..., "trials": {"<digest>": [
         {"variant": ..., "config": ..., "ratio": 1.02}, {..., "problem": "computes something else"}]}}

An exported file has all of it in one. A trial's ``ratio`` is its time over the default's, both measured in turn. An island's is
the time of the whole model without it over the time with it, from ``low`` to ``high`` with 95 % confidence: all below 1, ONNX
Runtime is faster, and the island is declined. What was measured at some sizes counts for sessions that expect such sizes
(`expects`): a kernel that is best for 4096 rows is a slow one for 128.

A file is trusted as all that decides what is executed (`trusted_file.py`), and nothing of it is executed: names are looked up
among variants, numbers in their search spaces. One that is damaged, or of a later format, counts as empty, with a reason that
sessions tell once; the next tuning replaces it. `interface/tuning/keep.py` writes it.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea.core_ir.dims import Assumed, symbols_of
from xyntra_ep.tracea.core_ir.ops import CoreOp, Operand, Range, contiguous_strides
from xyntra_ep.trusted_file import read_trusted

FORMAT = 1
PREFIX, TRIALS_PREFIX = "tuning_cache", "tuning_trials"
_MOST_BYTES = 64 << 20
_SIZE = re.compile(r"(?<=[\[,@])\d+")
_NOTHING: Mapping[str, Range] = {}
Config = Mapping[str, int]
Expected = Mapping[str, Range]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineClass:
    """Machines on which the same kernels are best: their name (architecture, model, instruction set) and their caches, in bytes.
    Of a device: its identity."""

    name: str
    l1d: int = 0
    l2: int = 0
    l3: int = 0

    @property
    def file(self) -> str:
        return f"{PREFIX}-{self._digest}.json"

    @property
    def trials_file(self) -> str:
        return f"{TRIALS_PREFIX}-{self._digest}.json"

    @property
    def _digest(self) -> str:
        text = "\0".join(map(str, (self.name, self.l1d, self.l2, self.l3)))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a result answers: an op (`signature`), by a compiler, on so many threads. ``release``: of the kernels; ``sizes``: what
    the op's symbols are, those of which something is known."""

    op: str
    compiler: str
    release: str
    threads: int = 1
    device: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return _digest(*self._form, *(f"{name}={size}" for name, size in sorted(self.sizes.items())))

    @property
    def form(self) -> str:
        """The same at all sizes."""
        return _digest(*self._form)

    @property
    def _form(self) -> tuple[str, ...]:
        return self.op, self.compiler, self.release, str(self.threads), self.device

    def differs_in_sizes(self, other: Question) -> bool:
        """In nothing else."""
        return self._form == other._form


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A variant with a configuration, and what it took; 0: nobody measured it."""

    variant: str
    config: Config
    ns: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """``ratio``: its time over the default's; None where ``problem`` says why it cannot be used."""

    variant: str
    config: Config
    ratio: float | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningResult:
    """``best``: None where nothing beat ``default``, what is chosen without tuning. ``trials``: none where they were not asked
    for."""

    question: Question
    default: Choice
    best: Choice | None = None
    trials: tuple[TrialResult, ...] = ()

    @property
    def ratio(self) -> float:
        """The default's time over the best's."""
        return self.default.ns / self.best.ns if self.best is not None and self.best.ns else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """On an island, by the whole model: the time without it over the time with it, the median and where that lies with 95 %
    confidence. ``what``: for people; ``form``: the island's at all sizes, `Question.form`; ``sizes``: what its symbols were."""

    what: str
    ratio: float
    low: float
    high: float
    form: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def loses(self) -> bool:
        return self.high < 1.0

    @property
    def wins(self) -> bool:
        return self.low > 1.0


@dataclass(slots=True)
class TuningCache:
    """The results for one class of machines, and verdicts on islands. ``problem``: why the file that is there is not used."""

    machine: MachineClass
    results: dict[str, TuningResult] = field(default_factory=dict)
    islands: dict[str, Verdict] = field(default_factory=dict)
    problem: str = ""

    @classmethod
    def load(cls, folder: Path, machine: MachineClass, *, trials: bool = False) -> TuningCache:
        """What the files of ``machine`` in ``folder`` hold; nothing where there is none, or none that can be used. ``trials``:
        with these, of which there may be thousands."""
        data, problem = _read(folder / machine.file, machine)
        if data is None:
            return cls(machine, problem=problem)
        further, _ = _read(folder / machine.trials_file, machine) if trials else (None, "")
        try:
            return _cache({**data, "trials": further.get("trials") if further is not None else {}}, machine)
        except ValueError as error:
            return cls(machine, problem=_unused(machine.file, error))

    def find(self, question: Question, expected: Expected = _NOTHING) -> TuningResult | None:
        """The result at the sizes of ``question``, or that at the nearest to them which a session expects."""
        exact = self.results.get(question.key) if self.results else None
        if exact is not None or not question.sizes:
            return exact
        alike = ((r.question.sizes, r) for r in self.results.values() if r.question.differs_in_sizes(question))
        return _nearest(alike, question, expected)

    def verdict(self, question: Question, expected: Expected = _NOTHING) -> Verdict | None:
        """On an island (`island_question`), as `find`."""
        exact = self.islands.get(question.key) if self.islands else None
        if exact is not None or not question.sizes:
            return exact
        form = question.form
        return _nearest(((v.sizes, v) for v in self.islands.values() if v.form == form), question, expected)

    def like(self, question: Question, most: int) -> list[Choice]:
        """What is best for ops that differ in nothing but their sizes, the nearest first; each choice once."""
        form, sizes = _form(question)
        near: list[tuple[float, Choice]] = []
        for result in self.results.values():
            other, theirs = _form(result.question)
            if result.best is not None and other == form and result.question.key != question.key:
                near.append((_doublings(sizes, theirs), result.best))
        near.sort(key=lambda row: row[0])
        distinct = {(choice.variant, tuple(sorted(choice.config.items()))): choice for _, choice in reversed(near)}
        return sorted(distinct.values(), key=lambda choice: [c for _, c in near].index(choice))[:most]

    def add(self, result: TuningResult) -> None:
        """In place of what there is for the same question; its trials are added to those."""
        before = self.results.get(result.question.key)
        self.results[result.question.key] = result if before is None else _merged(before, result)

    def take_in(self, other: TuningCache) -> None:
        """What another one has; where both have something, this one's counts, with the trials of both."""
        self.islands = other.islands | self.islands
        for key, result in other.results.items():
            self.results[key] = _merged(result, self.results[key]) if key in self.results else result

    def choices(self) -> Mapping[str, object]:
        """All that decides about plans."""
        best = {key: (r.best.variant, dict(r.best.config)) for key, r in self.results.items() if r.best is not None}
        return best | {f"island {key}": (v.loses, v.wins) for key, v in self.islands.items()}

    def data(self) -> bytes:
        """The file of choices."""
        return self._file(results=self._results, islands=self._verdicts)

    def trials_data(self) -> bytes:
        """The file of trials."""
        return self._file(trials=self._trials)

    def exported(self) -> bytes:
        """All in one."""
        return self._file(results=self._results, islands=self._verdicts, trials=self._trials)

    @property
    def _results(self) -> Mapping[str, Any]:
        return {key: _row(result) for key, result in self.results.items()}

    @property
    def _verdicts(self) -> Mapping[str, Any]:
        return {key: asdict(verdict) for key, verdict in self.islands.items()}

    @property
    def _trials(self) -> Mapping[str, Any]:
        return {key: [_trial_row(trial) for trial in result.trials] for key, result in self.results.items() if result.trials}

    def _file(self, **content: Mapping[str, Any]) -> bytes:
        machine = {name: getattr(self.machine, name) for name in _MACHINE}
        return json.dumps({"format": FORMAT, "machine": machine, **content}, indent=1, sort_keys=True).encode()


def read_export(path: Path) -> TuningCache:
    """A file that somebody exported, with the class of machines it is of. Raises ConfigError for what is none."""
    try:
        return parsed(json.loads(read_trusted(path, most_bytes=_MOST_BYTES)))
    except (OSError, ValueError, RecursionError) as error:
        hint = "give what `xyntra tune --export` has written"
        raise ConfigError(f"holds no tuning results ({_why(error)})", where=str(path), hint=hint) from None


def parsed(data: Any) -> TuningCache:
    """The content of an exported file, of whatever machine. Raises ValueError, with what to say behind the file's name."""
    try:
        machine = MachineClass(**{name: kind(data["machine"][name]) for name, kind in _MACHINE.items()})
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("is damaged") from None
    _check(data, machine)
    return _cache(data, machine)


def _read(path: Path, machine: MachineClass) -> tuple[dict[str, Any] | None, str]:
    """A file of ``machine``, or None and what to say, nothing where there is none."""
    try:
        data = json.loads(read_trusted(path, most_bytes=_MOST_BYTES))
        _check(data, machine)
    except FileNotFoundError:
        return None, ""
    except (OSError, ValueError, RecursionError) as error:  # JSON that is none is a ValueError
        return None, _unused(path.name, error)
    return data, ""


def _unused(name: str, error: Exception) -> str:
    return f"tuning results are not used: {name} {_why(error)}"


def _check(data: Any, machine: MachineClass) -> None:
    """Whether it is a file of ``machine`` in this format. Raises ValueError, with what to say behind its name."""
    if not isinstance(data, dict) or "machine" not in data:
        raise ValueError("is damaged")
    if data.get("format") != FORMAT:
        raise ValueError(f"has format {data.get('format')!r}, and this release knows {FORMAT}")
    if data["machine"] != {name: getattr(machine, name) for name in _MACHINE}:
        raise ValueError("is of another machine")


def _cache(data: Mapping[str, Any], machine: MachineClass) -> TuningCache:
    """Raises ValueError for what is not as documented. Trials that are not are none: they decide nothing."""
    try:
        results = {result.question.key: result for result in map(_result, data["results"].values())}
        islands = {_text(key): _verdict(row) for key, row in data["islands"].items()}
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError):
        raise ValueError("is damaged") from None
    try:
        trials = {key: tuple(map(_trial, _list(rows))) for key, rows in data["trials"].items()}
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError):
        trials = {}
    for key in trials.keys() & results.keys():
        results[key] = replace(results[key], trials=trials[key])
    return TuningCache(machine, results=results, islands=islands)


_MACHINE: Mapping[str, Any] = {"name": str, "l1d": int, "l2": int, "l3": int}


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot be read ({error})"
    if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError, RecursionError)):
        return "is damaged"
    return str(error)


def _merged(old: TuningResult, new: TuningResult) -> TuningResult:
    """The new answer with the trials of both."""
    trials = {(t.variant, tuple(sorted(t.config.items()))): t for t in (*old.trials, *new.trials)}
    return replace(new, trials=tuple(trials.values()))


def signature(op: CoreOp, constants: frozenset[int]) -> str:
    """Kind, types, shapes and layouts of an op: what its best configuration depends on. ``constants``: values that are known when
    the session is created, marked with "!". Epilogues are left out on purpose."""
    operands = [*op.inputs[: max(2, op.reads_directly)], *op.written]
    return " ".join([type(op).__name__, *(_operand(o, constants) for o in operands), *map(str, op.tuned_by())])


def _operand(operand: Operand, constants: frozenset[int]) -> str:
    text = f"{operand.dtype}[{','.join(map(str, operand.shape))}]"
    if operand.strides != contiguous_strides(operand.shape):
        text += f"@{','.join(map(str, operand.strides))}"
    return text + ("!" if operand.value in constants else "")


def expected_sizes(ops: Iterable[CoreOp], assumed: Assumed) -> Expected:
    """What the symbols of ops may be, those of which something is known. ``assumed``: of their program."""
    names = set().union(*(symbols_of(size) for op in ops if not op.is_fixed for size in op.sizes()))
    return {name: Range(*(point[name] for point in assumed)) for name in sorted(names) if all(name in point for point in assumed)}


def usual_sizes(expected: Expected) -> Mapping[str, int]:
    """What a question is asked at."""
    return {name: sizes.usual for name, sizes in expected.items()}


def expects(expected: Expected, sizes: Mapping[str, int]) -> bool:
    """Whether what was measured at ``sizes`` counts: each is among those that are expected, or within twice of them.

    >>> expects({"seq": Range(16, 128, 512)}, {"seq": 1024}), expects({"seq": Range(128, 128, 128)}, {"seq": 4096})
    (True, False)
    """
    return expected.keys() == sizes.keys() and all(
        expected[name].small <= 2 * size and size <= 2 * expected[name].large for name, size in sizes.items()
    )


def _nearest(found: Iterable[tuple[Mapping[str, int], _T]], question: Question, expected: Expected) -> _T | None:
    """Of what was found at these sizes and counts, that at the nearest to those of ``question``."""
    near = [
        (_doublings([sizes[name] for name in expected], [question.sizes[name] for name in expected]), what)
        for sizes, what in found
        if expects(expected, sizes)
    ]
    return min(near, key=lambda row: row[0])[1] if near else None


def _doublings(sizes: Sequence[int], others: Sequence[int]) -> float:
    return sum(abs(math.log2((a + 1) / (b + 1))) for a, b in zip(sizes, others, strict=True))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _form(question: Question) -> tuple[str, list[int]]:
    """A signature without its sizes, and these."""
    names = sorted(question.sizes)
    sizes = [int(size) for size in _SIZE.findall(question.op)] + [question.sizes[name] for name in names]
    return " ".join((_SIZE.sub("#", question.op), *names)), sizes


def _row(result: TuningResult) -> Mapping[str, Any]:
    q, best = result.question, result.best
    row: dict[str, Any] = {"op": q.op, "compiler": q.compiler, "release": q.release, "threads": q.threads, "device": q.device}
    if q.sizes:
        row["sizes"] = dict(q.sizes)
    return row | (_choice(best) if best is not None else {}) | {"default": _choice(result.default)}


def _trial_row(trial: TrialResult) -> Mapping[str, Any]:
    outcome = {"problem": trial.problem} if trial.ratio is None else {"ratio": trial.ratio}
    return {"variant": trial.variant, "config": dict(trial.config), **outcome}


def _choice(choice: Choice) -> dict[str, Any]:
    return {"variant": choice.variant, "config": dict(choice.config), "ns": choice.ns}


def _verdict(row: Any) -> Verdict:
    ratio, low, high = (_number(row[name]) for name in ("ratio", "low", "high"))
    form, sizes = _text(row.get("form", "")), _config(row.get("sizes", {}))
    return Verdict(what=_text(row["what"]), ratio=ratio, low=low, high=high, form=form, sizes=sizes)


def island_question(ops: Sequence[str], question: Question) -> Question:
    """What a verdict on an island answers, whose ops have these signatures; ``question``: of any of them, for what else
    decides, at the sizes of all."""
    return replace(question, op="\0".join(ops))


def _result(row: Any) -> TuningResult:
    question = Question(
        op=_text(row["op"]), compiler=_text(row["compiler"]), release=_text(row["release"]),
        threads=_whole(row["threads"]), device=_text(row["device"]), sizes=_config(row.get("sizes", {})),
    )  # fmt: skip
    return TuningResult(
        question=question,
        default=_chosen(row["default"]),
        best=_chosen(row) if "variant" in row else None,
    )


def _chosen(row: Any) -> Choice:
    return Choice(variant=_text(row["variant"]), config=_config(row["config"]), ns=_number(row["ns"]))


def _trial(row: Any) -> TrialResult:
    ratio = _number(row["ratio"]) if "ratio" in row else None
    problem = "" if ratio is not None else _text(row["problem"])
    return TrialResult(variant=_text(row["variant"]), config=_config(row["config"]), ratio=ratio, problem=problem)


def _config(row: Any) -> Config:
    return {_text(name): _whole(value) for name, value in row.items()}


def _list(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) or value < 0:
        raise TypeError
    return float(value)
