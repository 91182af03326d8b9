"""`xyntra compress`: constant matrices of a model become products of two, where that costs little and pays.

    found = compress("model.onnx", "small.onnx", error=1e-2)
    found.layers         each with its singular values, its rank, its errors, what it should gain, or why it stays as it is
    found.outputs        how far they are from the model's; found.times: both models in turn

Matrices are cut at the rank that keeps to the bound of the error, and only where the kernels that a session would choose are
estimated to be faster then. Nothing about that is exact: whoever uses the new model decides by the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xyntra_ep.diagnostics.compressed.factors import Spectrum
from xyntra_ep.diagnostics.distance.drift import Drift, drift, numbers
from xyntra_ep.diagnostics.feeds import Feeds, outputs_of, read_feeds
from xyntra_ep.diagnostics.sessions import check_file, open_session
from xyntra_ep.diagnostics.sizes import Array, Sizes
from xyntra_ep.diagnostics.tune import ModelTimes, compared
from xyntra_ep.diagnostics.tuning_tables import context_of
from xyntra_ep.errors import ConfigError, UnsupportedError, XyntraError
from xyntra_ep.options import parse
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.topology.kinds import LowRank, OperatorTopology
from xyntra_ep.wording import counted

ERROR = 1e-2  # of each matrix, where the rank is found by it
_WHERE = "compress"
_MOST_BYTES = 1 << 31  # of a protobuf file


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerReport:
    """A product of ``m`` rows with a matrix [k, n]. ``values``: of its singular values the first, the last that is kept and the
    first that is not; ``energy``: what those that are kept have of the sum of squares. ``weight_error`` and ``result_error``: the
    norm of what is lost over that of the whole, of the matrix and of the product with the feeds. ``why``: the reason where the
    matrix stays, empty where it does not."""

    name: str
    m: int
    k: int
    n: int
    rank: int
    values: tuple[float, ...] = ()
    energy: float = 1.0
    weight_error: float = 0.0
    result_error: float = 0.0
    before_ns: float = 0.0
    after_ns: float = 0.0
    why: str = ""

    def __str__(self) -> str:
        head = f"{self.name[-32:]:<32} {f'{self.m} x {self.k} x {self.n}':>20}"
        if self.why:
            return f"{head}  as it is: {self.why}"
        values = " .. ".join(f"{v:.3g}" for v in self.values[:2]) + "".join(f" | {v:.3g}" for v in self.values[2:])
        return (
            f"{head} {self.rank:>5} {self.energy:>9.4%} {self.weight_error:>9.2g} {self.result_error:>9.2g}"
            f" {self.before_ns / 1e3:>9.1f} {self.after_ns / 1e3:>9.1f}  {values}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """``path``: None where no matrix paid and nothing was written; ``skipped``: those whose matrix something else reads, too."""

    path: Path | None
    layers: tuple[LayerReport, ...]
    skipped: int
    outputs: tuple[Drift, ...] = ()
    before_bytes: int = 0
    after_bytes: int = 0
    times: ModelTimes | None = None
    sizes: str = ""

    @property
    def factored(self) -> tuple[LayerReport, ...]:
        return tuple(layer for layer in self.layers if not layer.why)

    def __str__(self) -> str:
        heads = f"{'rank':>5} {'energy':>9} {'matrix':>9} {'result':>9} {'us before':>9} {'us after':>9}  values kept | cut"
        lines = [f"{'product':<32} {'rows x k x n':>20} {heads}", *map(str, self.layers)]
        if self.skipped:
            lines.append(f"{counted(self.skipped, 'layer')} more: as it is, because something else reads its matrix, too")
        if self.path is None:
            return "\n".join([*lines, "nothing was written: no matrix would be faster as two within the error"])
        if self.sizes:
            lines.append(f"sizes: {self.sizes}")
        lines.append(f"{'output':<32} {'max |a-b| / max |b|':>20} {'max |b|':>10}")
        lines += [f"{d.name[-32:]:<32} {d.relative:>20.3g} {d.largest or 0.0:>10.3g}  {d.note}".rstrip() for d in self.outputs]
        megabytes = f"{self.before_bytes / 1e6:.2f} MB before, {self.after_bytes / 1e6:.2f} MB after"
        lines.append(f"{self.path}: {len(self.factored)} of {counted(len(self.layers), 'layer')}; {megabytes}")
        if self.times is not None:
            lines.append(f"in turn: {self.times}")
            if self.times.low <= 1.0:
                lines.append("WARNING: it is not surely faster on this machine")
        return "\n".join(lines)


def compress(
    model: str | Path,
    output: str | Path,
    *,
    rank: int | None = None,
    error: float | None = None,
    feeds: Mapping[str, Array | Path] | Path | None = None,
    sizes: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    seed: int = 0,
    options: Mapping[str, str] | None = None,
    force: bool = False,
    hear: Callable[[str], None] = lambda line: None,
) -> Compressed:
    """Write ``output``. ``rank``: of all matrices, which may then lose any part of themselves unless ``error`` is given; without
    it each has the least within ``error`` (of 1e-2). Inputs that ``feeds`` does not have are made up as by `compare`. ``hear`` is
    told how far it is. Raises ConfigError for what cannot be read, run, written or asked."""
    source, target = Path(model), Path(output)
    bound = _bound(rank, error)
    check_file(source)
    _check_target(source, target, force)
    original, before_bytes = _read(source)
    reference = open_session(source)
    given = read_feeds(reference, feeds or {})
    known = Sizes.of(reference, sizes or {}, given, shapes)
    made = Feeds(session=reference, given=given, sizes=known, seed=seed)
    wanted = outputs_of(reference, made, "the model")

    from xyntra_ep.diagnostics.compressed.layers import Rewriting, layers_of, matrix_of

    layers = list(layers_of(original))
    total = sum(node.op_type in ("MatMul", "Gemm") and node.input[1] in _matrices(original) for node in original.graph.node)
    acts = _activations(original, [layer.x for layer in layers], made.feeds)
    context = context_of(options or {})
    precision = str(parse(options or {}).precision)
    rewriting = Rewriting(original)
    reports: list[LayerReport] = []
    for number, layer in enumerate(layers):
        hear(f"matrix {number + 1} of {len(layers)}: {layer.name}")
        x = acts[layer.x].astype(np.float64).reshape(-1, layer.k)
        found, factors = _judged(layer.name, matrix_of(original, layer), x, rank, bound, context, precision)
        reports.append(found)
        if factors is not None:
            rewriting.factor(layer, *factors)
    told = tuple(reports)
    if not any(not report.why for report in told):
        return Compressed(path=None, layers=told, skipped=total - len(layers))
    rewriting.finish()
    _write(original, target)
    after = open_session(target)
    got = dict(zip(wanted, after.run(list(wanted), made.feeds), strict=True))
    hear("both models in turn")
    ours = [open_session(path, options or {}) for path in (source, target)]
    times = compared(*(lambda s=s: s.run(None, made.feeds) for s in ours))
    return Compressed(
        path=target,
        layers=told,
        skipped=total - len(layers),
        outputs=tuple(_drifts(got, wanted)),
        before_bytes=before_bytes,
        after_bytes=target.stat().st_size,
        times=times,
        sizes=str(known),
    )


def _bound(rank: int | None, error: float | None) -> float | None:
    if rank is not None and rank < 1:
        raise ConfigError(f"rank={rank} is none", where=_WHERE, hint="it wants an integer of at least 1, or auto")
    if error is not None and not 0.0 < error < 1.0:
        raise ConfigError(f"error={error} is none", where=_WHERE, hint="it wants a part of the whole, as in 1e-2")
    return ERROR if rank is None and error is None else error


def _check_target(source: Path, target: Path, force: bool) -> None:
    if target.is_dir():
        raise ConfigError("is a folder", where=str(target), hint=f"name a file, as in {target / 'compressed.onnx'}")
    if target.exists() and source.exists() and target.samefile(source):
        raise ConfigError("would overwrite the model it is made from", where=str(target), hint="write to another file")
    if target.exists() and not force:
        raise ConfigError("is there already", where=str(target), hint="give another name, or --force")
    if not target.parent.is_dir():
        raise ConfigError("no such folder", where=str(target.parent))


def _read(source: Path) -> tuple[Any, int]:
    """The model with all of its data, and how large its files are."""
    try:
        import onnx
        from onnx.external_data_helper import ExternalDataInfo
    except ImportError as error:
        raise ConfigError(f"needs the package onnx ({error})", where=_WHERE, hint="pip install onnx") from error
    from xyntra_ep.diagnostics.fused.graph import read_model

    outside = {ExternalDataInfo(t).location for t in read_model(source).graph.initializer if t.external_data}
    files = [source, *(source.parent / location for location in sorted(outside))]
    return onnx.load(source), sum(file.stat().st_size for file in files)


def _matrices(model: Any) -> set[str]:
    return {t.name for t in model.graph.initializer if len(t.dims) == 2}


def _activations(model: Any, names: Sequence[str], feeds: Mapping[str, Any]) -> dict[str, Array]:
    """What layers multiply, by a run in which that is an output."""
    import onnx

    given = {name: np.asarray(feeds[name]) for name in names if name in feeds}
    wanted = [name for name in dict.fromkeys(names) if name not in given]
    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    present = {o.name for o in watched.graph.output}
    watched.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted if name not in present)
    if watched.ByteSize() >= _MOST_BYTES:
        raise UnsupportedError("the model is too large to be changed in memory", where=_WHERE)
    session = open_session(watched.SerializeToString())
    return given | dict(zip(wanted, session.run(wanted, dict(feeds)), strict=True)) if wanted else given


def _judged(
    name: str, matrix: Array, x: Array, rank: int | None, bound: float | None, context: Context, precision: str
) -> tuple[LayerReport, tuple[Array, Array] | None]:
    """A layer, and the factors of its matrix where these are to stand in its place."""
    (m, k), n = x.shape, matrix.shape[1]

    def left(why: str, kept: int = 0) -> tuple[LayerReport, None]:
        return LayerReport(name=name, m=m, k=k, n=n, rank=kept, why=why), None

    if not np.isfinite(matrix).all():
        return left("it has NaN or infinities")
    if not m or min(k, n) < 2:
        return left("it has no rows with these feeds" if not m else "it is a vector")
    spectrum = Spectrum.of(matrix)
    kept = spectrum.least_rank(bound) if rank is None and bound is not None else min(rank or 1, min(k, n))
    lost = spectrum.error(kept)
    if bound is not None and lost > bound:
        return left(f"at rank {kept} it would lose {lost:.2g}", kept)
    plan = context.plan_topology(OperatorTopology(kind=LowRank(kept)), m=m, n=n, k=k, precision=precision)
    if plan.chosen != "two products":
        return left(f"rank {kept} is wanted, which would not be faster ({plan.rejected[0][1]})", kept)
    [before_ns] = [ns for way, ns in plan.costs.items() if way != plan.chosen]
    a, b = spectrum.factors(kept)
    whole = x @ matrix.astype(np.float64)
    size = float(np.linalg.norm(whole))
    report = LayerReport(
        name=name,
        m=m,
        k=k,
        n=n,
        rank=kept,
        values=tuple(float(spectrum.values[i]) for i in (0, kept - 1, kept) if i < len(spectrum.values)),
        energy=spectrum.energy(kept),
        weight_error=lost,
        result_error=float(np.linalg.norm((x @ a) @ b - whole)) / size if size else 0.0,
        before_ns=before_ns,
        after_ns=plan.cost_ns,
    )
    return report, (a, b)


def _write(model: Any, target: Path) -> None:
    import onnx

    from xyntra_ep.diagnostics.fused.graph import check_model

    try:
        onnx.save(model, target)
    except (OSError, ValueError) as error:  # protobuf's for more than 2 GB
        raise ConfigError(f"cannot be written: {error}", where=str(target)) from error
    try:
        check_model(target)
    except ConfigError as error:
        target.unlink()
        raise XyntraError(f"the new model would be wrong, nothing was written ({error.what})", where=str(target)) from error


def _drifts(got: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[Drift]:
    for name, right in wanted.items():
        ours, theirs = numbers(got[name]), numbers(right)
        if ours is not None and theirs is not None:
            yield drift(name, ours, theirs)
