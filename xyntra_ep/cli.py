"""The `xyntra` command. Plain text for people, --json for programs; needs no more than the package itself."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from xyntra_ep import __version__, compress_command
from xyntra_ep.arguments import (
    MISUSED,
    Parser,
    add_dims,
    add_feeds,
    add_options,
    age_s,
    given_feeds,
    given_sizes,
    pairs,
    size_bytes,
)
from xyntra_ep.errors import ConfigError, XyntraError
from xyntra_ep.options import INSTRUCTION_SETS, Claim, InstructionSets
from xyntra_ep.shown import fields_of, progress_line, show
from xyntra_ep.wording import asked_in_a_shell, counted

FAILED, OUR_FAULT, NOTHING_COMPARED, NOTHING_PROVEN = 1, 3, 4, 5
_NO_CACHE = "there is no cache yet, the first session makes it"
_OF_ACTION = {"max_size": "prune", "max_age": "prune", "zoo": "prune", "repair": "verify"}  # options of `cache`


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 all is well, 1 something is missing, drifts or is damaged, 2 the question was wrong, 3 a fault of ours,
    4 XyntraEP computed nothing that could be compared, 5 no output had values that could have been wrong."""
    chosen = _read(sys.argv[1:] if arguments is None else arguments)
    try:
        with asked_in_a_shell(), _compilers_shown():
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


@contextmanager
def _compilers_shown() -> Iterator[None]:
    """On a terminal, how far they are: a line that is gone when they are done, or stopped."""
    if not sys.stderr.isatty():
        yield
        return
    from xyntra_ep.tracea.runtime import progress

    shown = ""

    def show(done: int, total: int) -> None:
        nonlocal shown
        line = f"compiling kernels: {done} of {total}" if done < total else ""
        if line != shown:
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        shown = line

    try:
        with progress.heard_by(show):
            yield
    finally:
        show(0, 0)


def _read(words: Sequence[str]) -> argparse.Namespace:
    """The command line; what does not exist is answered with the nearest that does."""
    parser, commands = _parser()
    chosen, rest = parser.parse_known_args(words)
    if rest:
        commands.get(words[0], parser).refuse(rest)
    if chosen.command is None:
        parser.print_help()
        parser.exit(MISUSED)
    return chosen


_EXAMPLES = {
    "doctor": "xyntra doctor --measure",
    "explain": "xyntra explain model.onnx --node /layer.0/MatMul --option claim=all",
    "fuse": "xyntra fuse model.onnx -o fused.onnx",
    "compare": "xyntra compare model.onnx --dim batch=4 --option precision=bf16",
    "compress": "xyntra compress model.onnx -o small.onnx --error 1e-2",
    "compile": "xyntra compile model.onnx -o compiled.onnx --isa avx2,avx512,amx",
    "web": "xyntra web model.onnx -o site --dim batch=1",
    "trace": "xyntra trace model.onnx -o trace.json --runs 20 --dim batch=4",
    "top": "xyntra top -- python serve.py",
    "tune": "xyntra tune model.onnx --time 120 --dim batch=8",
    "cache": "xyntra cache prune --max-size 2G --max-age 30d",
    "check-gradients": "xyntra check-gradients mymodels:small_bert",
}


def _parser() -> tuple[Parser, Mapping[str, Parser]]:
    """Of the command line, and of each command."""
    parser = Parser(prog="xyntra", description="Ask XyntraEP what it does and why.", epilog="example: xyntra explain model.onnx")
    parser.add_argument("--version", action="version", version=f"xyntra {__version__}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(metavar="COMMAND")

    def command(name: str, text: str, run: Callable[[argparse.Namespace], int]) -> Parser:
        added = commands.add_parser(name, help=text, description=text, epilog=f"example: {_EXAMPLES[name]}")
        added.add_argument("--json", action="store_true", help="print JSON")
        added.set_defaults(command=run)
        return added

    doctor = command("doctor", "what this machine can do, and what is missing", _doctor)
    doctor.add_argument("--measure", action="store_true", help="measure its ceilings, try kernels on its GPUs, and keep that")
    doctor.add_argument("--architecture", metavar="GPU", help="tell what kernels reach on this one, as in h200 or sm_90")
    explain = command("explain", "which node of a model runs where and why", _explain)
    explain.add_argument("model", type=Path)
    explain.add_argument("--node", help="only why this node runs where it does, or with --passes what they did to it")
    explain.add_argument("--passes", action="store_true", help="what each pass of fusion did to the nodes of each island")
    explain.add_argument("--tiles", type=Path, metavar="FILE", help="draw which tiles of attention are computed (HTML)")
    add_dims(explain, "fixed in the session that is made for the question")
    add_options(explain, "as in a session; `-O claim=all` shows what could be fused")
    fuse = command("fuse", "write the fused graph: ONNX with a function for each kernel, Triton, DOT, JSON or text", _fuse)
    fuse.add_argument("model", type=Path)
    fuse.add_argument("-o", "--output", type=Path, help="the file to write: .onnx, .py (Triton), .dot, .json or .txt")
    forms = ("onnx", "triton", "dot", "json", "text")
    fuse.add_argument("--format", "--emit", choices=forms, help="of what is printed without -o (text)")
    add_options(fuse, "min_island and fp32_strict say what is fused")
    compare = command("compare", "where outputs drift from ONNX Runtime's CPU provider", _compare)
    compare.add_argument("model", type=Path)
    compare.add_argument("--nodes", action="store_true", help="compare intermediate tensors too (needs onnx)")
    compare.add_argument("--seed", type=int, default=0, help="of the feeds that are made up")
    add_feeds(compare)
    add_dims(compare, "of the inputs that are made up")
    compare.add_argument("--fix", action="store_true", help="fix the sizes that are given in the session, as `explain` does")
    compare.add_argument("--claim", choices=[c.value for c in Claim], help="all: also what would lose to ONNX Runtime")
    add_options(compare, "as in a session")
    compile_ = command("compile", "write a model that needs neither Python nor a compiler where it runs", _compile)
    compile_.add_argument("model", type=Path)
    compile_.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the model to write")
    isas = f"instruction sets to compile for, of {', '.join(INSTRUCTION_SETS)} (what servers and laptops have)"
    compile_.add_argument("--isa", default="", metavar="NAME,...", help=isas)
    compile_.add_argument("--precision", help="as the provider option")
    where = compile_.add_mutually_exclusive_group()
    where.add_argument("--embed", action="store_true", help="kernels are in the model (so it is)")
    where.add_argument("--external", action="store_true", help="kernels are in a file beside the model")
    compile_.add_argument("--digest", type=Path, metavar="FILE", help="write SHA-256 digests for the option compiled_digest")
    compile_.add_argument("--force", action="store_true", help="write over a file that is there")
    add_options(compile_, "as in a session")
    compress_command.add_arguments(command("compress", compress_command.TEXT, compress_command.run))
    web = command("web", "write a folder with a page that runs a model in browsers, on their GPUs or by WebAssembly", _web)
    web.add_argument("model", type=Path)
    web.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="the folder to write")
    web.add_argument("--page", default="model", metavar="NAME", help="the page: model, digits, or a folder with one (model)")
    add_dims(web, "fixed in the plan")
    add_options(web, "as in a session")
    tune = command("tune", "find the fastest kernels for a model on this machine, and keep them for sessions", _tune)
    tune.add_argument("model", type=Path, nargs="?")
    tune.add_argument("--time", type=age_s, default=120.0, metavar="TIME", help="to spend at most, as in 120s or 5m (120s)")
    tune.add_argument("--trials", type=int, metavar="N", help="at most so many for a kernel")
    tune.add_argument("--threads", type=int, default=0, metavar="N", help="of the session (as ONNX Runtime chooses)")
    tune.add_argument("--precision", help="as the provider option")
    add_feeds(tune)
    add_dims(tune, "usual in sessions")
    tune.add_argument("--export", type=Path, metavar="FILE", help="write what is known of this machine to a file")
    tune.add_argument(
        "--import", dest="source", type=Path, metavar="FILE", help="take over what a machine like this one exported"
    )
    tune.add_argument("--heroes", type=Path, metavar="FILE", help="tune shapes that matter, for --time each; for developers")
    add_options(tune, "as in a session")
    trace = command("trace", "a timeline of some runs, for Perfetto: ONNX Runtime's nodes, islands and their kernels", _trace)
    trace.add_argument("model", type=Path)
    trace.add_argument("-o", "--output", type=Path, default=Path("trace.json"), help="the file to write (trace.json)")
    trace.add_argument("--runs", type=int, default=10, metavar="N", help="how many, after one that is not counted (10)")
    trace.add_argument("--threads", type=int, default=0, metavar="N", help="of the session (as ONNX Runtime chooses)")
    trace.add_argument("--seed", type=int, default=0, help="of the feeds that are made up")
    add_feeds(trace)
    add_dims(trace, "of the inputs that are made up")
    add_options(trace, "as in a session")
    top = command("top", "watch a process that traces (XYNTRA_TRACE=live), or a command that is started for it", _top)
    top.add_argument("target", nargs="*", metavar="PID | -- COMMAND", help="none: the one process that traces")
    top.add_argument("--interval", type=age_s, default=1.0, metavar="TIME", help="between two looks, as in 1s (1s)")
    top.add_argument("--count", type=int, metavar="N", help="look so many times (until the process ends)")
    top.add_argument("--record", type=Path, metavar="FILE", help="write what was seen, the newest of it, as `trace` does")
    cache = command("cache", "look after compiled kernels and plans, and the models that the zoo has built", _cache)
    cache.add_argument("action", choices=("ls", "verify", "prune"))
    cache.add_argument("--dir", type=Path, help="the cache directory (default: as sessions find it)")
    cache.add_argument("--max-size", type=size_bytes, metavar="SIZE", help="prune: keep at most, as in 500M or 2G")
    cache.add_argument("--max-age", type=age_s, metavar="AGE", help="prune: unused for longer, as in 30d or 12h")
    cache.add_argument("--zoo", action="store_true", help="prune: remove the models of the zoo, which are built when asked for")
    cache.add_argument("--repair", action="store_true", help="verify: remove what is damaged")
    gradients = command("check-gradients", "whether gradients are PyTorch's: of operations, or of a model", _check_gradients)
    gradients.add_argument(
        "model", nargs="?", default="", metavar="MODULE:CALLABLE", help="returns (torch module, example inputs); none: operations"
    )
    gradients.add_argument("--operation", action="append", default=[], metavar="NAME", help="of tracea.ops (all); repeat")
    gradients.add_argument(
        "--function",
        action="append",
        metavar="NAME",
        help="of PyTorch's, compiled, which our rules make kernels of, or all; repeat",
    )
    gradients.add_argument("--train", action="store_true", help="the model in training mode")
    gradients.add_argument("--seed", type=int, default=0, help="of random tensors")
    add_options(gradients, "for the model, as in torch.compile(options=...)")
    return parser, commands.choices


def _doctor(chosen: argparse.Namespace) -> int:
    from xyntra_ep.diagnostics.machine import doctor

    checkup = doctor(measure=chosen.measure, architecture=chosen.architecture)
    show(checkup, checkup, chosen)
    return 0 if checkup.ok else FAILED


def _explain(chosen: argparse.Namespace) -> int:
    from xyntra_ep.diagnostics.explain import explain

    found = explain(chosen.model, options=pairs(chosen.option, "-O"), passes=chosen.passes, **given_sizes(chosen))
    if chosen.tiles is not None:
        from xyntra_ep.diagnostics.tile_map import tile_maps

        _write(chosen.tiles, tile_maps(found))
    if chosen.passes:
        show(found.passes(chosen.node), found.raw, chosen)
    elif chosen.node is not None:
        reason = found.reason(chosen.node)
        show(reason, {"node": chosen.node, "reason": reason}, chosen)
    else:
        show(found, found.raw, chosen)
    if not found.faults:
        return 0
    asked = f"please report it with what `xyntra explain {chosen.model} --json` prints"
    print(f"xyntra: a fault of XyntraEP, not of the model ({'; '.join(found.faults)}). {asked}", file=sys.stderr)
    return OUR_FAULT


def _fuse(chosen: argparse.Namespace) -> int:
    from xyntra_ep.diagnostics.fused.model import format_of, fuse, picture

    form = (chosen.format or "text") if chosen.output is None else format_of(chosen.output, chosen.format)
    options = pairs(chosen.option, "-O")
    if form == "onnx":
        if chosen.output is None:
            raise ConfigError("an ONNX model needs a file", where="fuse", hint="write it as -o fused.onnx")
        found = fuse(chosen.model, chosen.output, options=options)
        show(found, found, chosen)
        return 0
    drawn = picture(chosen.model, form, options=options, more={"triton": _triton_printer(chosen.model.name)})
    if chosen.output is None:
        print(drawn)
        return 0
    _write(chosen.output, drawn)
    return 0


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", where=str(path)) from error


def _triton_printer(title: str) -> Callable[[Any, Any], str]:
    """Prints the kernels of a graph's islands, and tells on stderr what is not among them."""
    from xyntra_ep.frameworks.triton.module import module_text

    def as_triton(graph: Any, partition: Any) -> str:
        left = [f"{graph.nodes[n].title} is in no island: {reason}" for n, reason in partition.declined.items()]
        module = module_text(title, [island.program for island in partition.islands], left)
        for line in map(str, module.refused):
            print(f"xyntra: {line}", file=sys.stderr)
        return module.text.rstrip()

    return as_triton


def _compare(chosen: argparse.Namespace) -> int:
    from xyntra_ep.diagnostics.compare import compare

    options = pairs(chosen.option, "-O") | ({"claim": chosen.claim} if chosen.claim else {})
    asked = {"nodes": chosen.nodes, "seed": chosen.seed, "fix": chosen.fix, **given_sizes(chosen)}
    found = compare(chosen.model, feeds=given_feeds(chosen, "compare"), options=options, **asked)
    show(found, {"ok": found.ok, **fields_of(found)}, chosen)
    if found.drifts:
        return FAILED
    if not found.claimed:
        return NOTHING_COMPARED
    return 0 if found.proves else NOTHING_PROVEN


def _check_gradients(chosen: argparse.Namespace) -> int:
    from xyntra_ep.frameworks import torch as frontend

    try:
        check = frontend.check_gradients
    except ImportError as error:
        raise ConfigError(str(error), where="check-gradients") from None
    functions = [] if chosen.function == ["all"] else chosen.function
    asked = {"operations": chosen.operation, "functions": functions, "train": chosen.train, "seed": chosen.seed}
    found = check(chosen.model, options=pairs(chosen.option, "-O"), **asked)
    rows = [{"ok": not row.wrong, **fields_of(row)} for row in found.rows]
    show(found, {"ok": found.ok, "rows": rows, "claimed": found.claimed, "calls": found.calls}, chosen)
    return 0 if found.ok else FAILED


def _compile(chosen: argparse.Namespace) -> int:
    from xyntra_ep.diagnostics.compiled.compile_model import compile_model

    options = pairs(chosen.option, "-O") | ({"precision": chosen.precision} if chosen.precision else {})
    try:
        isas = InstructionSets.parse(chosen.isa) if chosen.isa else ()
    except ValueError as error:
        raise ConfigError(f"--isa {chosen.isa!r} is not valid", where="compile", hint=f"it {error}") from None
    found = compile_model(
        chosen.model,
        chosen.output,
        isas=isas,
        options=options,
        embed=not chosen.external,
        digest=chosen.digest,
        force=chosen.force,
    )
    show(found, found, chosen)
    return 0


def _web(chosen: argparse.Namespace) -> int:
    from xyntra_ep.web.site import make_site

    found = make_site(chosen.model, chosen.output, page=chosen.page, options=pairs(chosen.option, "-O"), **given_sizes(chosen))
    show(found, {**fields_of(found), "sizes": found.sizes}, chosen)
    return 0


def _trace(chosen: argparse.Namespace) -> int:
    from xyntra_ep.diagnostics.trace.tracing import trace_model

    options, asked = pairs(chosen.option, "-O"), {"runs": chosen.runs, "threads": chosen.threads, "seed": chosen.seed}
    found = trace_model(
        chosen.model, chosen.output, feeds=given_feeds(chosen, "trace"), options=options, **asked, **given_sizes(chosen)
    )
    show(found, found, chosen)
    return 0


def _top(chosen: argparse.Namespace) -> int:
    from xyntra_ep.diagnostics.trace.top import top

    return top(chosen.target, interval_s=chosen.interval, count=chosen.count, record=chosen.record, as_json=chosen.json)


def _tune(chosen: argparse.Namespace) -> int:
    from xyntra_ep.diagnostics.tune import tune
    from xyntra_ep.diagnostics.tuning_tables import export_tuning, import_tuning, tune_heroes

    options = pairs(chosen.option, "-O") | ({"precision": chosen.precision} if chosen.precision else {})
    asked = [what for what in (chosen.model, chosen.export, chosen.source, chosen.heroes) if what is not None]
    if len(asked) != 1:
        raise ConfigError(
            "it wants one of a model, --export, --import and --heroes", where="tune", hint="example: xyntra tune model.onnx"
        )
    if chosen.export is not None:
        count = export_tuning(chosen.export, options)
        show(f"{counted(count, 'result')} written to {chosen.export}", {"results": count}, chosen)
        return 0
    if chosen.source is not None:
        taken = import_tuning(chosen.source, options)
        show(f"{counted(len(taken.results), 'result')} taken over", {"results": len(taken.results)}, chosen)
        return 0
    if chosen.heroes is not None:
        with progress_line() as tell:
            count = tune_heroes(
                chosen.heroes, seconds=chosen.time, hear=lambda name, m, done, total: tell(f"{name}: {done} of {total}")
            )
        show(f"{counted(count, 'result')} written to {chosen.heroes}", {"results": count}, chosen)
        return 0
    with progress_line() as tell:

        def hear(kernel: Any, measured: Any, done: int, total: int) -> None:
            now = f"{measured.ratio:.3f} of the default's time" if not measured.problem else measured.problem
            tell(f"tuning kernel {done + 1} of {total}: {kernel.label}, {measured.candidate.variant.name}, {now}")

        found = tune(
            chosen.model,
            seconds=chosen.time,
            trials=chosen.trials,
            threads=chosen.threads,
            feeds=given_feeds(chosen, "tune"),
            options=options,
            hear=hear,
            **given_sizes(chosen),
        )
    show(found, found, chosen)
    return 0


def _cache(chosen: argparse.Namespace) -> int:
    from xyntra_ep import knobs
    from xyntra_ep.provider import registration
    from xyntra_ep.tracea.runtime import maintenance
    from xyntra_ep.tracea.runtime.cache_root import is_absent, look_at

    for name, action in _OF_ACTION.items():
        value = getattr(chosen, name)
        if value is not None and value is not False and chosen.action != action:
            option = f"--{name.replace('_', '-')}"
            raise ConfigError(f"{option} says nothing there", where=f"cache {chosen.action}", hint=f"it is of `cache {action}`")
    if chosen.dir is not None and not chosen.dir.is_dir():
        raise ConfigError("no such directory", where=str(chosen.dir))
    limited = chosen.max_size is not None or chosen.max_age is not None
    if chosen.action == "prune" and not limited and not chosen.zoo:
        raise ConfigError("nothing says what to remove", where="cache prune", hint="give --max-size, --max-age or --zoo")
    asked = chosen.dir if chosen.dir is not None else registration.default_cache_dir()
    absent = is_absent(asked)
    if chosen.dir is not None and absent and any(chosen.dir.iterdir()):
        raise ConfigError("is no cache", where=str(chosen.dir), hint="a cache has a folder kernels/")
    root = look_at(asked)
    if root.reason:
        raise XyntraError(root.reason, where="cache")
    if root.read_only and (chosen.repair or limited):
        raise XyntraError("is read-only, so nothing can be removed", where=str(root.asked))
    if chosen.action == "prune":
        removed = maintenance.prune(root, max_bytes=chosen.max_size, max_age_s=chosen.max_age) if limited else []
        if chosen.zoo:
            removed += [model for model in maintenance.models(knobs.current().zoo_root) if maintenance.remove(model)]
        show(f"removed {counted(len(removed), 'file')}, {_megabytes(removed)}", removed, chosen)
        return 0
    if chosen.action == "verify":
        return _verify(chosen, root, absent)
    found = maintenance.entries(root)
    zoo = knobs.current().zoo_root
    models = maintenance.models(zoo) if chosen.dir is None else []
    total = _NO_CACHE if absent else _totals(found)
    lines = [*_listed(found), f"{root.asked}: {total}{', read-only' if root.read_only else ''}"]
    if models:
        lines += ["", *_listed(models), f"{zoo}: {_totals(models)}; `xyntra cache prune --zoo` removes them"]
    show("\n".join(lines), [*found, *models], chosen)
    return 0


def _listed(found: Sequence[Any]) -> list[str]:
    """A table with a heading; nothing of nothing."""
    if not found:
        return []
    now = time.time()
    rows = [f"{e.size_bytes:>12}  {(now - e.used) / 86400:>8.1f} d  {e.kind:<8}  {e.path.name}" for e in found]
    return [f"{'bytes':>12}  {'last used':>10}  {'kind':<8}  file", *rows]


def _totals(found: Sequence[Any]) -> str:
    """How many files there are and how large, of all and of each kind."""
    kinds = {e.kind: [x for x in found if x.kind is e.kind] for e in found}
    parts = [f"{counted(len(of), kind)} {_megabytes(of)}" for kind, of in sorted(kinds.items())]
    return f"{counted(len(found), 'file')}, {_megabytes(found)}" + (f" ({', '.join(parts)})" if parts else "")


def _verify(chosen: argparse.Namespace, root: Any, absent: bool) -> int:
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
    if absent:
        lines.append(f"{root.asked}: {_NO_CACHE}")
    elif hash128 is None:
        lines.append("plans were not checked: the plugin library cannot be opened")
    if root.read_only:
        lines.append(f"{root.asked}: read-only")
    verdict = f"{len(bad)} damaged{', removed' if bad and chosen.repair else ''}"
    show("\n".join([*lines, verdict]), [{"path": e.path, "problem": why} for e, why in bad], chosen)
    return FAILED if bad and not chosen.repair else 0


def _megabytes(found: Sequence[Any]) -> str:
    return f"{sum(e.size_bytes for e in found) / 1e6:.1f} MB"


if __name__ == "__main__":
    sys.exit(main())
