"""What was found: folded, counted, written down."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tests.hunt.case import Array, Case, Class, Finding
from tests.hunt.judge import Verdict

Key = tuple[Class, tuple[str, ...], str]
# Of how many runs one may show it. None: counted and shown; where fusion may change special values is said in docs/precision.md.
BOUNDS: Mapping[Class, float | None] = {
    Class.WRONG: 0.0, Class.SPECIAL: None, Class.SHAPE: 0.0, Class.MISSING_ERROR: 1e-3, Class.EXTRA_ERROR: 1e-3,
    Class.SESSION: 1e-3, Class.FAULT: 0.0, Class.CRASH: 0.0, Class.HANG: 0.0, Class.UNREPEATABLE: 0.0,
}  # fmt: skip
SEVERITY = (Class.CRASH, Class.HANG, Class.WRONG, Class.SHAPE, Class.UNREPEATABLE, Class.MISSING_ERROR, Class.EXTRA_ERROR,
            Class.SESSION, Class.FAULT, Class.SPECIAL)  # fmt: skip
ERRORS = (Class.MISSING_ERROR, Class.EXTRA_ERROR, Class.SESSION, Class.FAULT)
INLINE = 400  # elements of a feed that a script shows as text


def shape_of(text: str) -> str:
    """A message without its numbers and names, and without the sizes behind it; of ours, without the inputs of the island, which
    become fewer as a model does.

    >>> shape_of("output 0: 1 of 72 differ, at [0, 2] -1.9e-08 and not nan; x1[1, 5]")
    'output #: # of # differ, at [#] # and not nan'
    """
    head = text.split("; ")[0]
    head = re.sub(r"^Error in execution: |XyntraEP_\d+_\d+: ", "", head)
    if head.startswith("XyntraEP"):
        head = re.sub(r" \(\S+ \[[^()]*\)$", "", head.partition(", ORT: ")[0])
    head = re.sub(r"'[^']*'|\"[^\"]*\"", "'_'", head)
    head = re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "#", head)
    head = re.sub(r"([\[{(])#?(, ?#)*([\]})])", r"\1#\3", head)
    return head


@dataclass(slots=True, kw_only=True)
class Distinct:
    """One class of findings: the smallest case, and how many runs showed it."""

    case: Case
    finding: Finding
    count: int = 1
    reduced: bool = False


@dataclass(slots=True)
class Report:
    """Filled by several threads."""

    counts: Counter[str] = field(default_factory=Counter)
    by_class: Counter[Class] = field(default_factory=Counter)
    by_option: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    operators: Counter[str] = field(default_factory=Counter)
    mistakes: list[str] = field(default_factory=list)  # of the hunter
    distinct: dict[Key, Distinct] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, case: Case | None, verdict: Verdict) -> None:
        with self.lock:
            self.counts += verdict.counts
            self.counts["cases"] += 1
            if verdict.mistake:
                self.mistakes.append(verdict.mistake)
            if case is None or verdict.refused:
                self.counts["refused by ORT"] += 1
                return
            self.operators.update(case.operators())
            for option in case.settings.names():
                self.by_option[option] += verdict.counts
            for finding in verdict.findings:
                self.by_class[finding.kind] += 1
                for option in case.settings.names():
                    self.by_option[option][finding.kind.value] += 1
                self._fold(case, finding)

    def _fold(self, case: Case, finding: Finding) -> None:
        key = key_of(case, finding)
        had = self.distinct.setdefault(key, Distinct(case=case, finding=finding, count=0))
        had.count += 1
        if len(case.model) < len(had.case.model):
            had.case, had.finding = case, finding

    def replace(self, old: Key, case: Case, finding: Finding) -> None:
        """``old`` was reduced; it may turn out to be one that there is."""
        with self.lock:
            had = self.distinct.pop(old)
            key = key_of(case, finding)
            same = self.distinct.get(key)
            if same is not None and same.reduced:
                same.count += had.count
                return
            self.distinct[key] = Distinct(case=case, finding=finding, count=had.count, reduced=True)

    def knows(self, case: Case, finding: Finding) -> bool:
        with self.lock:
            had = self.distinct.get(key_of(case, finding))
            return had is not None and had.reduced

    def ordered(self) -> list[tuple[Key, Distinct]]:
        """The bad ones first, then those that many runs show."""
        return sorted(self.distinct.items(), key=lambda item: (SEVERITY.index(item[0][0]), -item[1].count, item[0][1:]))

    # -- verdict

    def beyond(self) -> list[str]:
        """Classes that are more frequent than they may be."""
        runs = self.counts["runs"]
        # One of those that may be there may be there in a short hunt, too.
        allowed = {kind: max(1.0, bound * runs) if bound else 0.0 for kind, bound in BOUNDS.items()}
        return [
            *(f"a mistake of the hunter's own: {text}" for text in self.mistakes[:5]),
            *(
                f"{kind.value}: {self.by_class[kind]} in {self.counts['runs']} runs, allowed are {allowed[kind]:g}"
                for kind, bound in BOUNDS.items()
                if bound is not None and self.by_class[kind] > allowed[kind]
            ),
        ]

    def table(self) -> str:
        sessions, runs, refused = (self.counts[name] for name in ("sessions", "runs", "runs that ORT refuses"))
        lines = [f"{sessions} sessions, {runs} runs, of which ORT refuses {refused}"]
        lines.append(f"{'class':42}{'runs':>8}{'distinct':>10}  bound")
        for kind, bound in BOUNDS.items():
            distinct = sum(key[0] is kind for key in self.distinct)
            shown = "none" if bound == 0 else "" if bound is None else f"{bound * 1000:g} in 1000"
            lines.append(f"{kind.value:42}{self.by_class[kind]:>8}{distinct:>10}  {shown}")
        for name in (
            "ORT differs from itself",
            "excused by noise",
            "ORT itself crashes or hangs",
            "refused by ORT",
            "refused by us on purpose",
        ):
            lines.append(f"({name}: {self.counts[name]})")
        return "\n".join(lines)

    def lines(self) -> list[str]:
        """One for each distinct finding."""
        return [
            f"{kind.value} x{d.count}: {', '.join(d.case.operators())}: {d.finding.text} ({d.case.name})"
            for (kind, _, _), d in self.ordered()
        ]

    def as_json(self, **more: Any) -> str:
        found = [
            {"class": key[0].value, "operators": d.case.operators(), "text": d.finding.text, "runs": d.count, "case": d.case.name}
            for key, d in self.ordered()
        ]
        content = {
            **more,
            "counts": self.counts,
            "by_class": {k.value: n for k, n in self.by_class.items()},
            "by_option": self.by_option,
            "operators": dict(sorted(self.operators.items())),
            "beyond": self.beyond(),
            "findings": found,
        }
        return json.dumps(content, indent=1)


def key_of(case: Case, finding: Finding) -> Key:
    """Errors by what is said, which names the operator; numbers by operators and by what stands in place of what."""
    return finding.kind, () if finding.kind in ERRORS else case.operators(), shape_of(finding.text)


# -- folders


def write(folder: Path, distinct: Distinct) -> None:
    """model.onnx and run.py, whose exit status is 0 when the fault is gone."""
    folder.mkdir(parents=True, exist_ok=True)
    case = distinct.case
    (folder / "model.onnx").write_bytes(case.model)
    arrays: dict[str, Array] = {}
    runs = []
    for number, run in enumerate(case.runs):
        parts = []
        for name, value in run.feeds.items():
            if np.size(value) > INLINE:
                arrays[f"{number}_{name}"] = np.asarray(value)
                parts.append(f"{name!r}: FED[{f'{number}_{name}'!r}]")
            else:
                parts.append(f"{name!r}: {literal(np.asarray(value))}")
        runs.append("    {" + ", ".join(parts) + "},")
    if arrays:
        np.savez(folder / "feeds.npz", **arrays)  # type: ignore[arg-type]  # no array is called allow_pickle
    text = "\n".join(f"#   {line}" for line in onnx.printer.to_text(case.proto()).splitlines()[:40])
    (folder / "run.py").write_text(
        _SCRIPT.format(
            said=f"{distinct.finding.kind.value}: {distinct.finding.text} ({case.name})".replace("\\", "/").replace('"', "'"),
            text=text,
            fed='FED = np.load(HERE / "feeds.npz")\n' if arrays else "",
            runs="\n".join(runs),
            options=case.settings.provider_options(),
        )
    )


def literal(a: Array) -> str:
    """As Python text, with what ``nan`` and ``inf`` mean there.

    >>> literal(np.float32([1, np.nan]))
    'array([1.0, nan], "float32")'
    """
    shape = f".reshape({a.shape})" if a.size == 0 else ""
    return f'array({a.tolist() if a.size else []}, "{a.dtype}"){shape}'


_SCRIPT = '''\
"""{said}"""
import os, pathlib, sys, tempfile
cache = tempfile.TemporaryDirectory()
os.environ["XYNTRA_CACHE_DIR"] = cache.name
import numpy as np, onnxruntime as ort, xyntra_ep
from numpy import array, inf, nan

{text}
HERE = pathlib.Path(__file__).parent
{fed}RUNS = [
{runs}
]
ort.set_default_logger_severity(4)
model = (HERE / "model.onnx").read_bytes()

def outcome(session, feeds):
    try:
        return session.run(None, feeds)
    except Exception as error:
        return f"an error: {{str(error)[:200]}}"

def same(a, b):
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) == isinstance(b, str)
    return all(
        x.shape == y.shape and x.dtype == y.dtype and np.allclose(x, y, rtol=1e-3, atol=1e-4, equal_nan=True)
        for x, y in zip(a, b)
    )

def session(providers, threads):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    return ort.InferenceSession(model, options, providers=providers)

theirs = session(["CPUExecutionProvider"], 1)
ours = [session([("XyntraEP", {options}), "CPUExecutionProvider"], threads) for threads in (1, 2)]
wrong = 0
for number, feeds in enumerate([*RUNS, RUNS[0]]):
    want = outcome(theirs, feeds)
    for s in ours:
        got = outcome(s, feeds)
        if not same(got, want):
            wrong += 1
            print("run", number, "ours:", got, "ORT:", want, sep="\\n")
sys.exit(bool(wrong))
'''
