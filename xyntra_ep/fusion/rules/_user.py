"""Rules of the user's: a TOML file of formulas, or a Python file with a list `RULES` of `Rule`.

[[rule]]
name = "mine.softplus"
pattern = "log(1 + exp(x))"
replacement = "softplus(x)"
keeps = ["zero", "nan"]              # default: all three; with fp32_strict, only rules that keep all are used
where = []                           # guards, as "nonzero(K)"
exact = false
tolerance = 2e-4                     # of numbers in the pattern; default 0

Each rule is tried on random numbers before it is used. A Python file is code: it runs in the process, so it is only ever read
where the option or `XYNTRA_RULES` names it, and nobody else may be able to write it.
"""

from __future__ import annotations

import tomllib
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from xyntra_ep.errors import ConfigError, did_you_mean
from xyntra_ep.fusion.egraph import Algebra, Rule
from xyntra_ep.fusion.egraph.rule import ALL_SPECIAL, Special
from xyntra_ep.fusion.egraph.soundness import disagreement
from xyntra_ep.fusion.rules._built_in import RULES, built_in
from xyntra_ep.trusted_file import Distrusted, read_trusted

_MOST_BYTES = 1 << 20
_TABLE = "rule"
_KEYS: Mapping[str, type | tuple[type, ...]] = {
    "name": str,
    "pattern": str,
    "replacement": str,
    "where": list,
    "keeps": list,
    "exact": bool,
    "tolerance": (int, float),
}
_NEEDED = ("name", "pattern", "replacement")


def algebra(path: Path | None, *, strict: bool) -> Algebra:
    """Our rules and those of the file at ``path``. Raises ConfigError with file, line and reason for a rule that is wrong."""
    if path is None:
        return built_in(strict)
    return Algebra([*RULES, *read(path)], strict=strict)


def read(path: Path) -> list[Rule]:
    """The rules of a file, each tried. Raises ConfigError."""
    hint = "correct it, or leave the option away"
    try:
        data = read_trusted(path, most_bytes=_MOST_BYTES)
        text = data.decode()
    except FileNotFoundError:
        raise ConfigError(f"no file {path}", where="rules", hint="create it, or leave the option away") from None
    except Distrusted as error:
        raise ConfigError(f"somebody else can have written it ({error})", where=str(path), hint="make it your own") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read ({error})", where=str(path), hint=hint) from None
    found = list(_of_python(path, text) if path.suffix == ".py" else _of_toml(path, text))
    for rule in found:
        wrong = disagreement(rule)
        if wrong:
            raise ConfigError(f"rule {rule.name} is not right: {wrong}", where=rule.source, hint=hint)
    return found


def _of_toml(path: Path, text: str) -> Iterator[Rule]:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:  # which says the line
        raise ConfigError(f"cannot be read ({error})", where=str(path), hint="correct it") from None
    for name in document:
        if name != _TABLE:
            raise ConfigError(f"{name!r} is nothing that a file of rules has", where=str(path), hint=f"write [[{_TABLE}]]")
    rows = document.get(_TABLE, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ConfigError(f"{_TABLE!r} is no list of tables", where=str(path), hint=f"write [[{_TABLE}]]")
    lines = [
        n for n, line in enumerate(text.splitlines(), start=1) if line.split("#")[0].replace(" ", "").strip() == f"[[{_TABLE}]]"
    ]
    for k, row in enumerate(rows):
        yield _row(f"{path}:{lines[k]}" if len(lines) == len(rows) else str(path), row)


def _row(source: str, row: Mapping[str, Any]) -> Rule:
    for key, value in row.items():
        if key not in _KEYS:
            raise ConfigError(f"no field {key!r}", where=source, hint=did_you_mean(key, list(_KEYS)))
        if not isinstance(value, _KEYS[key]) or (isinstance(value, bool) and key != "exact"):
            raise ConfigError(f"{key} = {value!r} is not valid", where=source, hint="docs/rules.md shows each field")
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            raise ConfigError(f"{key} = {value!r} is not valid", where=source, hint="it wants a list of texts")
    for key in _NEEDED:
        if not row.get(key):
            raise ConfigError(f"a rule without {key}", where=source, hint=f"it needs {', '.join(_NEEDED)}")
    kept = [str(kind) for kind in row.get("keeps", ALL_SPECIAL)]
    known = [str(kind) for kind in Special]
    for kind in kept:
        if kind not in known:
            raise ConfigError(f"keeps = {kind!r} is not valid", where=source, hint=f"there are {', '.join(known)}")
    tolerance = float(row.get("tolerance", 0.0))
    if not 0 <= tolerance <= 0.01:
        raise ConfigError(f"tolerance = {tolerance} is not valid", where=source, hint="it is from 0 to 0.01")
    return Rule(
        name=row["name"],
        pattern=row["pattern"],
        replacement=row["replacement"],
        where=tuple(row.get("where", ())),
        exact=row.get("exact", False),
        keeps=frozenset(map(Special, kept)),
        tolerance=tolerance,
        source=source,
    )


def _of_python(path: Path, text: str) -> Iterator[Rule]:
    """The list `RULES` of a file, which is run."""
    names: dict[str, Any] = {"__name__": "xyntra_rules", "__file__": str(path)}
    try:
        exec(compile(text, str(path), "exec"), names)  # the user named this file as code: see above
    except Exception as error:
        inside = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else inside[-1] if inside else None
        where = f"{path}:{line}" if line else str(path)
        raise ConfigError(f"{type(error).__name__}: {error}", where=where, hint="correct it") from None
    rules = names.get("RULES")
    if not isinstance(rules, list) or not all(isinstance(rule, Rule) for rule in rules):
        hint = "from xyntra_ep.fusion.rules import Rule"
        raise ConfigError("there is no list RULES of Rule", where=str(path), hint=hint)
    for rule in rules:
        yield Rule(**{field: getattr(rule, field) for field in Rule.__slots__ if field != "source"}, source=str(path))
