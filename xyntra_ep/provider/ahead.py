"""Plans and kernels of a graph for several instruction sets, which ONNX Runtime keeps in a model (`ep.context_enable`).

The nodes of ONNX's that an island takes must be the same on every machine, because the model has one node in their place. So the
instruction set at hand, or else the first, decides what pays; what another cannot compute is given back by all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from xyntra_ep.errors import CompileError, UnsupportedError
from xyntra_ep.fusion.egraph import Algebra
from xyntra_ep.fusion.graph import Graph, GraphValue, NodeId
from xyntra_ep.fusion.reason import Reason
from xyntra_ep.options import NATIVE, Claim, Options
from xyntra_ep.provider.placement import Placement
from xyntra_ep.provider.plan_report import log_line, report
from xyntra_ep.provider.planner import Planner, planner_of
from xyntra_ep.tracea.doctor.policy import Policy
from xyntra_ep.tracea.doctor.profile import lacking, needed_features
from xyntra_ep.tracea.doctor.targets import target_capabilities
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.islands import CompileResult, write_plan
from xyntra_ep.tracea.interface.tuning.model import request_at_hand
from xyntra_ep.tracea.planning.compiled_model import CompiledModel, CompiledTarget, DeclaredTensor, write_compiled_model
from xyntra_ep.tracea.planning.manifest import LogLevel
from xyntra_ep.tracea.runtime.kernel_files import Hash128
from xyntra_ep.trusted_file import read_trusted

_ROUNDS = 8  # of giving back what one instruction set cannot compute


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A compiled model, and what it says of itself: `explain`'s report of the instruction set that decided."""

    data: bytes
    model: CompiledModel
    report: str


_heard: list[list[Made]] = []


@contextmanager
def collected() -> Iterator[list[Made]]:
    """What is compiled ahead of time meanwhile, one for each graph."""
    made: list[Made] = []
    _heard.append(made)
    try:
        yield made
    finally:
        _heard.remove(made)


def compile_ahead(graph: Graph, digest: str, options: Options, rules: Algebra, hash128: Hash128) -> bytes:
    """The compiled model of ``graph`` for the option compile_for; a plan that claims nothing where nothing can be had. Raises
    ConfigError for an instruction set that no compiler here makes code for."""
    contexts = _contexts(options, hash128)
    works = _agreed(graph, options, rules, contexts)
    first = works[0]
    level, line = log_line(first.work)
    told = json.dumps(report(first.work, first.result))
    if not first.work.members:
        return write_plan(digest, first.result, first.work.context, log_level=level, log_line=line, report=told)
    order = sorted(works, key=lambda work: len(work.features), reverse=True)
    targets, kernels = [], {}
    for one in order:
        plan = write_plan(
            digest,
            one.result,
            one.work.context,
            bundled=True,
            log_level=min(level, LogLevel.INFO),
            log_line=line,
            report=json.dumps(report(one.work, one.result)),
            depends=one.work.depended(hash128, small=True),
        )
        targets.append(CompiledTarget(isa=one.isa, features=one.features, plan=plan))
        kernels.update(_files(one, hash128))
    from xyntra_ep import __version__

    read = _read_by(works)
    positions = {name: i for i, name in enumerate(dict.fromkeys(name for island in read for name in island))}
    model = CompiledModel(
        release=__version__,
        targets=tuple(targets),
        tensors=tuple(_declaration(graph, graph.values[name]) for name in positions),
        islands=tuple(tuple(positions[name] for name in island) for island in read),
        kernels=kernels,
    )
    data = write_compiled_model(model, hash128)
    for heard in _heard:
        heard.append(Made(data=data, model=model, report=told))
    return data


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """Of one instruction set."""

    isa: str
    features: tuple[str, ...]
    work: Planner
    result: CompileResult


def _contexts(options: Options, hash128: Hash128) -> list[tuple[str, Context]]:
    """Of each instruction set, each once; the one that decides comes first."""
    found: dict[tuple[str, ...], tuple[str, Context]] = {}
    policy = Policy.of(options)
    for isa in options.compile_for:
        caps = target_capabilities(isa)
        context = Context(
            cache_dir=options.cache_dir,
            dump_dir=options.dump_dir if isa == options.compile_for[0] else None,
            hash128=hash128,
            caps=caps,
            strict=options.fp32_strict,
            policy=policy if caps is None else replace(policy, asks_tuning=False),  # what was tuned is this machine's
        )
        named = isa if isa != NATIVE else f"{context.caps.isa}-{NATIVE}"
        found.setdefault(needed_features(context.caps), (named, context))
    here = next(iter(found.values()))[1].machine
    return sorted(found.values(), key=lambda pair: bool(lacking(here, pair[1].caps)))


def _agreed(graph: Graph, options: Options, rules: Algebra, contexts: Sequence[tuple[str, Context]]) -> list[_Work]:
    """The same islands on all of them."""
    declined: dict[NodeId, Reason] = {}
    for _ in range(_ROUNDS):
        works: list[_Work] = []
        for isa, context in contexts:
            asked = options if not works else replace(options, claim=Claim.ALL)
            work = planner_of(graph, asked, rules, context, Placement(), request_at_hand())
            work.given = declined
            result = work.run()
            works.append(_Work(isa=isa, features=needed_features(context.caps), work=work, result=result))
            if work.members != works[0].work.members:
                break
            declined = work.declined
        else:
            return works
        declined = works[-1].work.declined
    raise UnsupportedError("the instruction sets do not agree on what they can compute", hint="compile for each of them alone")


def _files(one: _Work, hash128: Hash128) -> dict[bytes, bytes]:
    """The kernels of a plan, by hash."""
    root: Path = one.work.context.root.path
    found: dict[bytes, bytes] = {}
    for kernel in one.result.kernels:
        if kernel.hash128 in found:  # many are in one file
            continue
        data = read_trusted(root / kernel.path)
        if hash128(data) != kernel.hash128:
            raise CompileError("the cache exchanged it meanwhile", where=kernel.symbol, source="", log="")
        found[kernel.hash128] = data
    return found


def _read_by(works: Sequence[_Work]) -> list[list[str]]:
    """What each island's node reads: what the kernels of any instruction set do, and what any plan depends on."""
    first = works[0].work
    decided = set().union(*(one.work.depends | one.work.small_constants for one in works))
    read: list[list[str]] = []
    for number, group in enumerate(first.members):
        names: dict[str, None] = {}
        for one in works:
            island = one.result.islands[number]
            assert island is not None
            names |= dict.fromkeys((*(tensor.name for tensor in island.inputs), *island.constants))
        given = (name for n in group for name in first.graph.nodes[n].inputs)
        names |= dict.fromkeys(name for name in given if name in decided)
        read.append(list(names))
    return read


def _declaration(graph: Graph, value: GraphValue) -> DeclaredTensor:
    """ONNX Runtime checks the sizes of what is fed to a model, so plans rely on those that the model fixes; of other tensors they
    read the sizes in each run."""
    shape: tuple[int | None, ...] | None = None
    if value.is_constant or (value.is_input and not graph.is_subgraph):
        shape = None if value.shape is None else tuple(size if isinstance(size, int) else None for size in value.shape)
    return DeclaredTensor(name=value.name, elem_type=value.elem_type, is_constant=value.is_constant, shape=shape)
