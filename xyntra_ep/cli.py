"""The `xyntra` command. Plain text for people, --json for programs; needs no more than the package itself."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from xyntra_ep.errors import ConfigError, XyntraError

FAILED, MISUSED, OUR_FAULT = 1, 2, 3
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 all is well, 1 something is missing, drifts or is damaged, 2 the question was wrong, 3 a fault of ours."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    try:
        return int(chosen.command(chosen))
    except ConfigError as error:
        print(f"xyntra: {error}", file=sys.stderr)
        return MISUSED
    except XyntraError as error:
        print(f"xyntra: {error}", file=sys.stderr)
        return FAILED
    except BrokenPipeError:  # `xyntra ... | head`
        sys.stderr.close()
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="xyntra", description="Ask XyntraEP what it does and why.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, text: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.add_argument("--json", action="store_true", help="print JSON")
        added.set_defaults(command=run)
        return added

    doctor = command("doctor", "what this machine can do, and what is missing", _doctor)
    doctor.add_argument("--measure", action="store_true", help="measure its ceilings, try kernels on its GPUs, and keep that")
    doctor.add_argument("--architecture", metavar="GPU", help="tell what kernels reach on this one, as in h200 or sm_90")
    explain = command("explain", "which node of a model runs where and why", _explain)
    explain.add_argument("model", type=Path)
    explain.add_argument("--node", help="only why this node runs where it does")
    _options(explain, "as in a session; `-o claim=all` shows what could be fused")
    fuse = command("fuse", "write the fused graph: standard ONNX with a function for each kernel, DOT, JSON or text", _fuse)
    fuse.add_argument("model", type=Path)
    fuse.add_argument("-o", "--output", type=Path, help="the file to write; pictures go to the terminal without")
    fuse.add_argument("--format", choices=("onnx", "dot", "json", "text"), help="onnx with -o, text without")
    compare = command("compare", "where outputs drift from ONNX Runtime's CPU provider", _compare)
    compare.add_argument("model", type=Path)
    compare.add_argument("--nodes", action="store_true", help="compare intermediate tensors too (needs onnx)")
    compare.add_argument("--seed", type=int, default=0, help="of the random feeds")
    compare.add_argument("--dim", action="append", default=[], metavar="NAME=SIZE", help="size of a symbolic dimension")
    _options(compare, "claim=all unless given")
    cache = command("cache", "look after compiled kernels and plans", _cache)
    cache.add_argument("action", choices=("ls", "verify", "prune"))
    cache.add_argument("--dir", type=Path, help="the cache directory (default: as sessions find it)")
    cache.add_argument("--max-size", type=_size, metavar="SIZE", help="prune: keep at most, as in 500M or 2G")
    cache.add_argument("--max-age", type=_age, metavar="AGE", help="prune: unused for longer, as in 30d or 12h")
    cache.add_argument("--repair", action="store_true", help="verify: remove what is damaged")
    return parser


def _options(parser: argparse.ArgumentParser, note: str) -> None:
    text = f"a provider option; {note}"
    parser.add_argument("-o", "--option", action="append", default=[], metavar="NAME=VALUE", help=text)


def _pairs(given: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for text in given:
        name, found, value = text.partition("=")
        if not found or not name:
            raise ConfigError(f"{text!r} is not NAME=VALUE", where="xyntra")
        pairs[name] = value
    return pairs


def _size(text: str) -> int:
    number, unit = text[:-1], text[-1:].lower()
    if unit.isdigit():
        number, unit = text, ""
    try:
        return int(float(number) * _UNITS[unit])
    except (ValueError, KeyError):
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write it as 500M or 2G") from None


def _age(text: str) -> float:
    try:
        return float(text[:-1]) * _SECONDS[text[-1:].lower()]
    except (ValueError, KeyError):
        raise argparse.ArgumentTypeError(f"{text!r} is no age; write it as 30d or 12h") from None


def _print(value: object, as_json: Any, chosen: argparse.Namespace) -> None:
    print(json.dumps(as_json, indent=1, default=_plain) if chosen.json else value)


def _plain(value: object) -> object:
    """What json does not know: records by field, sets sorted, paths as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, frozenset | set):
        return sorted(value)
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


def _doctor(chosen: argparse.Namespace) -> int:
    from xyntra_ep.diagnostics.machine import doctor

    checkup = doctor(measure=chosen.measure, architecture=chosen.architecture)
    _print(checkup, checkup, chosen)
    return 0 if checkup.ok else FAILED


def _explain(chosen: argparse.Namespace) -> int:
    from xyntra_ep.diagnostics.explain import explain

    found = explain(chosen.model, options=_pairs(chosen.option))
    if chosen.node is not None:
        reason = found.reason(chosen.node)
        _print(reason, {"node": chosen.node, "reason": reason}, chosen)
    else:
        _print(found, found.raw, chosen)
    if not found.faults:
        return 0
    asked = f"please report it with what `xyntra explain {chosen.model} --json` prints"
    print(f"xyntra: a fault of XyntraEP, not of the model ({'; '.join(found.faults)}). {asked}", file=sys.stderr)
    return OUR_FAULT


def _fuse(chosen: argparse.Namespace) -> int:
    from xyntra_ep.diagnostics.fused_model import fuse, picture

    form = chosen.format or ("text" if chosen.output is None else "onnx")
    if form == "onnx":
        if chosen.output is None:
            raise ConfigError("an ONNX model needs a file", where="xyntra fuse", hint="write it as -o fused.onnx")
        found = fuse(chosen.model, chosen.output)
        _print(found, found, chosen)
        return 0
    drawn = picture(chosen.model, form)
    if chosen.output is None:
        print(drawn)
        return 0
    try:
        chosen.output.write_text(drawn + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", where=str(chosen.output)) from error
    return 0


def _compare(chosen: argparse.Namespace) -> int:
    from xyntra_ep.diagnostics.compare import compare

    try:
        sizes = {name: int(value) for name, value in _pairs(chosen.dim).items()}
    except ValueError as error:
        raise ConfigError(str(error), where="xyntra compare --dim", hint="write it as NAME=SIZE") from None
    found = compare(chosen.model, options=_pairs(chosen.option), nodes=chosen.nodes, seed=chosen.seed, sizes=sizes)
    _print(found, found, chosen)
    return 0 if found.ok else FAILED


def _cache(chosen: argparse.Namespace) -> int:
    from xyntra_ep.provider import registration
    from xyntra_ep.tracea.runtime import maintenance
    from xyntra_ep.tracea.runtime.cache_root import open_root

    if chosen.dir is not None and not chosen.dir.is_dir():
        raise ConfigError("no such directory", where=str(chosen.dir))
    if chosen.action == "prune" and chosen.max_size is None and chosen.max_age is None:
        raise ConfigError("nothing says what to remove", where="xyntra cache prune", hint="give --max-size, --max-age or both")
    root = open_root(chosen.dir if chosen.dir is not None else registration.default_cache_dir())
    if root.reason:
        raise XyntraError(root.reason, where="xyntra cache")
    if chosen.action == "prune":
        removed = maintenance.prune(root, max_bytes=chosen.max_size, max_age_s=chosen.max_age)
        _print(f"removed {len(removed)} files, {_megabytes(removed)}", removed, chosen)
        return 0
    if chosen.action == "verify":
        return _verify(chosen, root)
    found = maintenance.entries(root)
    now = time.time()
    lines = [f"{e.size_bytes:>10}  {(now - e.used) / 86400:>6.1f} d  {e.kind:<8}  {e.path.name}" for e in found]
    _print("\n".join([*lines, f"{root.path}: {len(found)} files, {_megabytes(found)}"]), found, chosen)
    return 0


def _verify(chosen: argparse.Namespace, root: Any) -> int:
    from xyntra_ep.provider import registration
    from xyntra_ep.tracea.runtime import maintenance
    from xyntra_ep.tracea.runtime.hashing import hash128_of

    try:
        hash128 = hash128_of(registration.library())
    except XyntraError:
        hash128 = None
    bad = maintenance.damaged(root, hash128)
    lines = [f"{entry.path}: {why}" for entry, why in bad]
    if chosen.repair:
        for entry, _ in bad:
            maintenance.remove(entry)
    if hash128 is None:
        lines.append("plans were not checked: the plugin library cannot be opened")
    verdict = f"{len(bad)} damaged{', removed' if bad and chosen.repair else ''}"
    _print("\n".join([*lines, verdict]), [{"path": e.path, "problem": why} for e, why in bad], chosen)
    return FAILED if bad and not chosen.repair else 0


def _megabytes(found: Sequence[Any]) -> str:
    return f"{sum(e.size_bytes for e in found) / 1e6:.1f} MB"


if __name__ == "__main__":
    sys.exit(main())
