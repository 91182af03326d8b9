"""Where XyntraEP's results differ from those of ONNX Runtime's CPU provider, and from which node on.

print(compare("model.onnx"))                   # seeded random feeds; or compare(path, feeds={...})
print(compare("model.onnx", options={"claim": "all"}))     # also of what loses to ONNX Runtime
print(compare("model.onnx", nodes=True))       # every intermediate tensor too (needs the onnx package)

Of a quantised model it also says how far both are from the definition, and what quantising costs (needs the onnx package too).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xyntra_ep import options as options_module
from xyntra_ep.diagnostics.distance.drift import Drift, drift, labels, numbers
from xyntra_ep.diagnostics.distance.node_outputs import with_all_outputs
from xyntra_ep.diagnostics.distance.quantisation import Separated, Shares, separated
from xyntra_ep.diagnostics.distance.unrounded import QUANTISING, quantises
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.diagnostics.feeds import Feeds, outputs_of, read_feeds, told
from xyntra_ep.diagnostics.sessions import open_session, said_by
from xyntra_ep.diagnostics.sizes import Array, Sizes
from xyntra_ep.errors import ConfigError, XyntraError
from xyntra_ep.options import Claim, Precision
from xyntra_ep.wording import counted, wording

if TYPE_CHECKING:
    from onnx import ModelProto

# What sessions are held to by the precision that they ask for, as `bench` does (bench/contenders.py).
MAX_DRIFT: Mapping[Precision, float] = {
    Precision.FP32: 2e-5,
    Precision.TF32: 5e-3,
    Precision.FP16: 5e-3,
    Precision.BF16: 2e-2,
    Precision.INT8W: 5e-2,
}
_REFERENCE = "ONNX Runtime's CPU provider does not run it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Outputs, and with ``nodes=True`` the intermediate tensors in the order of the graph. XyntraEP computed ``claimed`` of
    ``total`` nodes; where that is none, ONNX Runtime was compared with itself. Intermediate tensors are those of another
    session, in which it computed ``nodes_claimed`` of ``nodes_total``.
    """

    outputs: tuple[Drift, ...]
    tensors: tuple[Drift, ...]
    max_drift: float
    claimed: int
    total: int
    sizes: Sizes
    fixed: bool = False  # whether the session had the given ones fixed
    scalars: Mapping[str, object] = field(default_factory=dict)  # inputs of one value that was made up
    skipped: tuple[str, ...] = ()  # outputs that have no numbers
    hint: str = ""  # where nothing was claimed, or nothing is proven
    nodes_claimed: int = 0
    nodes_total: int = 0
    bodies: Mapping[str, int] = field(
        default_factory=dict
    )  # with ``nodes``: by operator, nodes in bodies, whose tensors are not seen
    quantised: Separated | None = None  # whose the error is, of a model that quantises

    @property
    def drifts(self) -> bool:
        return any(self._drifts(d) for d in self.outputs)

    def _drifts(self, d: Drift) -> bool:
        shares = self._shares(d)
        return d.relative > self.max_drift and (shares is None or shares.xyntra > shares.bound(self.max_drift))

    def _shares(self, d: Drift) -> Shares | None:
        return None if self.quantised is None else self.quantised.tensors.get(d.name)

    @property
    def proves(self) -> bool:
        """Whether a wrong result would have been seen in some output."""
        return any(d.alive for d in self.outputs)

    @property
    def ok(self) -> bool:
        """XyntraEP computed something, an output shows it, and none drifts."""
        return self.claimed > 0 and self.proves and not self.drifts

    @property
    def first(self) -> Drift | None:
        """The first tensor of the graph that drifts too far: where to look."""
        return next((d for d in self.tensors if self._drifts(d)), None)

    def __str__(self) -> str:
        lines = [f"XyntraEP computed {self.claimed} of {self.total} nodes"]
        if not self.claimed:
            lines = [f"WARNING: {lines[0]}: ONNX Runtime is compared with itself. {self.hint}"]
        if sizes := str(self.sizes):
            lines.append(f"sizes: {sizes}{'; those that are given are fixed in the session' if self.fixed else ''}")
        if self.scalars:
            lines.append(f"values: {told(self.scalars)} (made up)")
        lines.append(f"{'tensor':<40} {'max |a-b| / max |b|':>20} {'max |a-b|':>12} {'max |b|':>12}")
        for d in self.outputs:
            verdict = "DRIFT" if self._drifts(d) else "ok"
            numbers = f"{d.name:<40} {d.relative:>20.3g} {d.absolute:>12.3g} {_figure(d.largest):>12}"
            lines.append(f"{numbers}  {verdict}  {d.note}".rstrip())
        lines += [f"{name:<40} not compared: it has no numbers" for name in self.skipped]
        if self.quantised is not None:
            lines += self._quantised_text(self.quantised)
        if self.claimed and not self.proves and not self.drifts:
            lines.append(f"WARNING: nothing is proven: no output has values that could be wrong. {self.hint}")
        if self.nodes_total:
            lines += self._nodes_text()
        return "\n".join(lines)

    def _quantised_text(self, quantised: Separated) -> list[str]:
        if not quantised.tensors:
            return [f"quantised, but how far both are from the definition is not known: {quantised.unknown}"]
        what = "rms(a - b) / rms(b), from what the operators define; what rounding to levels costs"
        lines = [f"quantised: {what}", f"{'':<40} {'XyntraEP':>20} {'ONNX Runtime':>12} {'rounding':>12}"]
        for d in self.outputs:
            if (shares := self._shares(d)) is not None:
                lines.append(f"{d.name:<40} {shares.xyntra:>20.3g} {shares.ort:>12.3g} {_figure(shares.quantisation):>12}")
                if shares.ort_deviates(self.max_drift):
                    lines[-1] += "  ONNX Runtime deviates from the definition here"
        return [*lines, *([f"what rounding costs is not known: {quantised.unknown}"] if quantised.unknown else [])]

    def _nodes_text(self) -> list[str]:
        computed = f"XyntraEP computed {self.nodes_claimed} of {self.nodes_total} nodes"
        lines = [f"intermediate tensors are of a session that has all of them as outputs, where {computed}"]
        if not self.nodes_claimed:
            lines = [f"WARNING: {lines[0]}: ONNX Runtime is compared with itself"]
        if self.bodies:
            inside = counted(sum(self.bodies.values()), "node")
            lines.append(f"{inside} in bodies of {', '.join(self.bodies)} cannot be compared one by one")
        if self.tensors:
            first = self.first
            lines.append(
                f"first drift above {self.max_drift:g}: {first.name} ({first.op_type}), {first.relative:.3g}"
                if first is not None
                else f"none of {len(self.tensors)} intermediate tensors drifts further than rounding"
                if self.quantised is not None
                else f"none of {len(self.tensors)} intermediate tensors drifts above {self.max_drift:g}"
            )
            worst = sorted(self.tensors, key=lambda d: -d.relative)[:5]
            lines += [f"  {d.relative:>10.3g}  {d.op_type} {d.name}{self._shares_text(d)}" for d in worst]
        return lines

    def _shares_text(self, d: Drift) -> str:
        s = self._shares(d)
        told = "" if s is None else f"XyntraEP {s.xyntra:.3g}, ONNX Runtime {s.ort:.3g}, rounding {_figure(s.quantisation)}"
        return f"  ({told})" if told else ""


def compare(
    model: str | Path,
    *,
    feeds: Mapping[str, Array | Path] | Path | None = None,
    options: Mapping[str, str] | None = None,
    nodes: bool = False,
    seed: int = 0,
    sizes: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    fix: bool = False,
    max_drift: float | None = None,
) -> Comparison:
    """Run ``model`` on both providers, with ``options`` as a session has them. Inputs that are not in ``feeds`` (arrays, or files
    as `read_feeds` takes them) are made up by ``seed``, with ``sizes`` for symbolic dimensions, ``shapes`` for whole inputs and
    plausible sizes for the others. ``fix``: the session with the provider has those that are given fixed, as that of `explain`
    has; else all sizes are open in it. Without ``max_drift``: the bound of the precision that is asked for. Raises ConfigError
    where the CPU provider does not run the model.

    ``nodes`` makes every tensor an output. That changes what can be fused, so it finds kernels that compute wrongly, not
    fusions that are wrong as such; the drift of the outputs is therefore measured on the model as it is.
    """
    asked = options_module.parse(options or {})
    reference = open_session(model)
    given = read_feeds(reference, feeds or {})
    known = Sizes.of(reference, sizes or {}, given, shapes)
    by_name, in_model = known.fixing(reference) if fix else ({}, {})
    if fix and not by_name and not in_model:
        raise ConfigError("nothing is fixed", where=wording().fix, hint=f"give {wording().some_size}")
    made = Feeds(session=reference, given=given, sizes=known, seed=seed)
    wanted = outputs_of(reference, made, _REFERENCE)
    opened = partial(open_session, options=options or {}, sizes=by_name, shapes=in_model)
    ours = opened(model)
    got = _run(ours, wanted, made.feeds)
    outputs = _drifts(got, wanted, {})
    quantising = _quantising(model)
    explained = explain(ours)
    compared = {d.name for d in outputs}
    hint = ""
    if not explained.claimed:
        force = f", {wording().claim_all} takes what it can" if asked.claim is not Claim.ALL else ""
        hint = f"`xyntra explain` says why{force}"
    elif not any(d.alive for d in outputs):
        hint = f"give {wording().own_feeds}"
    found = Comparison(
        outputs=outputs,
        tensors=(),
        max_drift=MAX_DRIFT[asked.precision] if max_drift is None else max_drift,
        claimed=explained.claimed,
        total=explained.total,
        sizes=known,
        fixed=fix,
        scalars=made.scalars,
        skipped=tuple(name for name in wanted if name not in compared),
        hint=hint,
        quantised=None if quantising is None else separated(quantising, made.feeds, got, wanted),
    )
    return _with_nodes(found, Path(model), made, opened) if nodes else found


def _quantising(path: str | Path) -> ModelProto | None:
    """The model where it quantises; None also without the onnx package, and of a model too large to be changed in memory."""
    try:
        import onnx
    except ImportError:
        return None
    if Path(path).suffix == ".ort":  # ONNX Runtime's own format
        return None
    model = onnx.load(path, load_external_data=False)
    if not quantises(model):
        return None
    onnx.load_external_data_for_model(model, str(Path(path).parent))
    return model if model.ByteSize() < 1 << 31 else None


def _with_nodes(found: Comparison, path: Path, made: Feeds, opened: Callable[[bytes], Any]) -> Comparison:
    """``opened``: a session with the provider, as the outputs' was."""
    all_of = with_all_outputs(path)
    session = opened(all_of.model)
    wanted = outputs_of(open_session(all_of.model), made, _REFERENCE)
    got = _run(session, wanted, made.feeds)
    by_name = {d.name: d for d in _drifts(got, wanted, all_of.producers)}
    quantised = found.quantised
    if quantised is not None:
        from onnx import ModelProto

        inside = separated(ModelProto.FromString(all_of.model), made.feeds, got, wanted)
        quantised = replace(quantised, tensors={**inside.tensors, **quantised.tensors})
        by_name = {name: d for name, d in by_name.items() if not _holds_levels(wanted[name], d.op_type)}
    explained = explain(session)
    return replace(
        found,
        tensors=tuple(by_name[name] for name in all_of.producers if name in by_name),
        nodes_claimed=explained.claimed,
        nodes_total=explained.total,
        bodies=all_of.bodies,
        quantised=quantised,
    )


def _holds_levels(value: Any, op_type: str) -> bool:
    """Whether these are bytes of a quantised model, or sums of them: what they stand for is a tensor as well."""
    is_integer = isinstance(value, np.ndarray) and value.dtype.kind in "iu"
    return is_integer and (value.dtype.itemsize == 1 or op_type in QUANTISING)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _run(ours: Any, wanted: Mapping[str, Any], feeds: Mapping[str, Array]) -> dict[str, Any]:
    try:
        return dict(zip(wanted, ours.run(list(wanted), feeds), strict=True))
    except Exception as error:  # ONNX Runtime's own classes have no common base of their own
        raise XyntraError(said_by(error), where="XyntraEP does not run what the CPU provider does") from error


def _drifts(got: Mapping[str, Any], wanted: Mapping[str, Any], producers: Mapping[str, str]) -> tuple[Drift, ...]:
    return tuple(_drift(name, got[name], b, producers.get(name, "")) for name, b in wanted.items() if numbers(b) is not None)


def _drift(name: str, got: Any, wanted: Any, op_type: str) -> Drift:
    a, b = numbers(got), numbers(wanted)
    assert b is not None
    if a is None or labels(got) != labels(wanted):  # other labels are as wrong as another shape
        a = np.empty((0, 0))
    return drift(name, a, b, op_type)
