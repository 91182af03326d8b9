"""What tuning has found, kept on disk: one file for each class of machine, in the cache root or where somebody exports it to.

    tuning_cache-<digest of the class>.json
    {"format": 1,
     "machine": {"name": "x86_64|AMD EPYC|avx512", "l1d": 32768, "l2": 1048576, "l3": 33554432},
     "results": {"<digest of what follows>": {
         "op": "Gemm f32[128,768] f32[768,768]! f32[128,768] product=f32",   "!": known when the session is created
         "compiler": "gcc 12.2.0 -mavx512f ...", "release": "0.1.0", "threads": 2, "device": "",
         "variant": "gemm.packed_b", "config": {"rows": 8, "columns": 48}, "ns": 1.0,      the best; absent where none was better
         "default": {"variant": ..., "config": ..., "ns": ...},                            than what is chosen without tuning
         "trials": [{"variant": ..., "config": ..., "ratio": 1.02}, {..., "problem": "computes something else"}]}},
     "islands": {"<digest>": {"what": "12 nodes: Conv, Clip", "ratio": 0.77, "low": 0.75, "high": 0.79}}}

A trial's ``ratio`` is its time over the default's, both measured in turn. An island's is the time of the whole model without it
over the time with it, from ``low`` to ``high`` with 95 % confidence: all below 1, ONNX Runtime is faster, and the island is
declined. A file is trusted as all that decides what is
executed (`trusted_file.py`), and nothing of it is executed: names are looked up among variants, numbers in their search spaces.
One that is damaged, or of a later format, counts as empty, with a reason that sessions tell once; the next tuning replaces it.
`interface/tuning/keep.py` writes it.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea.core_ir.ops import CoreOp, Operand, contiguous_strides
from xyntra_ep.trusted_file import read_trusted

FORMAT = 1
PREFIX = "tuning_cache"
_MOST_BYTES = 64 << 20
_SIZE = re.compile(r"(?<=[\[,@])\d+")
Config = Mapping[str, int]


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
        text = "\0".join(map(str, (self.name, self.l1d, self.l2, self.l3)))
        return f"{PREFIX}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a result answers: an op (`signature`), by a compiler, on so many threads. ``release``: of the kernels."""

    op: str
    compiler: str
    release: str
    threads: int = 1
    device: str = ""

    @property
    def key(self) -> str:
        text = "\0".join(map(str, (self.op, self.compiler, self.release, self.threads, self.device)))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


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
    """``best``: None where nothing beat ``default``, what is chosen without tuning."""

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
    confidence. ``what``: for people."""

    what: str
    ratio: float
    low: float
    high: float

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
    def load(cls, folder: Path, machine: MachineClass) -> TuningCache:
        """What the file of ``machine`` in ``folder`` holds; nothing where there is none, or none that can be used."""
        path = folder / machine.file
        try:
            data = json.loads(read_trusted(path, most_bytes=_MOST_BYTES))
            return cls(machine, results=_results(data, machine), islands=_islands(data))
        except FileNotFoundError:
            return cls(machine)
        except (OSError, ValueError, RecursionError) as error:  # JSON that is none is a ValueError
            return cls(machine, problem=f"tuning results are not used: {path.name} {_why(error)}")

    def find(self, question: Question) -> TuningResult | None:
        return self.results.get(question.key) if self.results else None

    def like(self, question: Question, most: int) -> list[Choice]:
        """What is best for ops that differ in nothing but their sizes, the nearest first; each choice once."""
        form, sizes = _form(question.op)
        near: list[tuple[float, Choice]] = []
        for result in self.results.values():
            other, theirs = _form(result.question.op)
            if result.best is not None and other == form and result.question.key != question.key:
                near.append((sum(abs(math.log2((a + 1) / (b + 1))) for a, b in zip(sizes, theirs, strict=True)), result.best))
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
        """The file."""
        machine = {name: getattr(self.machine, name) for name in _MACHINE}
        islands = {key: asdict(verdict) for key, verdict in self.islands.items()}
        results = {key: _row(result) for key, result in self.results.items()}
        document = {"format": FORMAT, "machine": machine, "results": results, "islands": islands}
        return json.dumps(document, indent=1, sort_keys=True).encode()


def read_export(path: Path) -> TuningCache:
    """A file that somebody exported, with the class of machines it is of. Raises ConfigError for what is none."""
    try:
        return parsed(json.loads(read_trusted(path, most_bytes=_MOST_BYTES)))
    except (OSError, ValueError, RecursionError) as error:
        hint = "give what `xyntra tune --export` has written"
        raise ConfigError(f"holds no tuning results ({_why(error)})", where=str(path), hint=hint) from None


def parsed(data: Any) -> TuningCache:
    """A file's content, of whatever machine. Raises ValueError, with what to say behind the file's name."""
    try:
        machine = MachineClass(**{name: kind(data["machine"][name]) for name, kind in _MACHINE.items()})
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("is damaged") from None
    return TuningCache(machine, results=_results(data, machine), islands=_islands(data))


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


def _form(op: str) -> tuple[str, list[int]]:
    """A signature without its sizes, and these."""
    return _SIZE.sub("#", op), [int(size) for size in _SIZE.findall(op)]


def _row(result: TuningResult) -> Mapping[str, Any]:
    q, best = result.question, result.best
    row: dict[str, Any] = {"op": q.op, "compiler": q.compiler, "release": q.release, "threads": q.threads, "device": q.device}
    if best is not None:
        row |= _choice(best)
    row["default"] = _choice(result.default)
    row["trials"] = [
        {"variant": t.variant, "config": dict(t.config), **({"problem": t.problem} if t.ratio is None else {"ratio": t.ratio})}
        for t in result.trials
    ]
    return row


def _choice(choice: Choice) -> dict[str, Any]:
    return {"variant": choice.variant, "config": dict(choice.config), "ns": choice.ns}


def _results(data: Any, machine: MachineClass) -> dict[str, TuningResult]:
    """Raises ValueError, with what to say behind the file's name."""
    if not isinstance(data, dict) or not isinstance(data.get("results"), dict):
        raise ValueError("is damaged")
    if data.get("format") != FORMAT:
        raise ValueError(f"has format {data.get('format')!r}, and this release knows {FORMAT}")
    if data.get("machine") != {name: getattr(machine, name) for name in _MACHINE}:
        raise ValueError("is of another machine")
    try:
        found = [_result(row) for row in data["results"].values()]
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError):
        raise ValueError("is damaged") from None
    return {result.question.key: result for result in found}


def _islands(data: Any) -> dict[str, Verdict]:
    """Raises as `_results`, which comes first."""
    try:
        return {_text(key): _verdict(row) for key, row in data["islands"].items()}
    except (KeyError, TypeError, AttributeError):
        raise ValueError("is damaged") from None


def _verdict(row: Any) -> Verdict:
    ratio, low, high = (_number(row[name]) for name in ("ratio", "low", "high"))
    return Verdict(what=_text(row["what"]), ratio=ratio, low=low, high=high)


def island_key(ops: Sequence[str], question: Question) -> str:
    """Of an island whose ops have these signatures; ``question``: of any of them, for what else decides."""
    rest = (question.compiler, question.release, question.threads, question.device)
    return hashlib.sha256("\0".join(map(str, (*ops, *rest))).encode()).hexdigest()[:32]


def _result(row: Any) -> TuningResult:
    question = Question(
        op=_text(row["op"]), compiler=_text(row["compiler"]), release=_text(row["release"]),
        threads=_whole(row["threads"]), device=_text(row["device"]),
    )  # fmt: skip
    return TuningResult(
        question=question,
        default=_chosen(row["default"]),
        best=_chosen(row) if "variant" in row else None,
        trials=tuple(_trial(trial) for trial in _list(row["trials"])),
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
