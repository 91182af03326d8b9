"""Where XyntraEP's results differ from those of ONNX Runtime's CPU provider, and from which node on.

print(compare("model.onnx"))                   # seeded random feeds; or compare(path, feeds={...})
print(compare("model.onnx", nodes=True))       # every intermediate tensor too (needs the onnx package)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep import options as options_module
from xyntra_ep.diagnostics.sessions import open_session, said_by
from xyntra_ep.errors import ConfigError, UnsupportedError, XyntraError
from xyntra_ep.options import Precision

Array = NDArray[Any]
# What sessions are held to by the precision that they ask for, as `bench` does (bench/contenders.py).
MAX_DRIFT: Mapping[Precision, float] = {
    Precision.FP32: 2e-5,
    Precision.TF32: 5e-3,
    Precision.FP16: 5e-3,
    Precision.BF16: 2e-2,
    Precision.INT8W: 5e-2,
}
_DIM = 2  # for a dimension without a size
_NUMPY = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(int64)": np.int64,
    "tensor(int32)": np.int32, "tensor(int16)": np.int16, "tensor(int8)": np.int8, "tensor(uint64)": np.uint64,
    "tensor(uint32)": np.uint32, "tensor(uint16)": np.uint16, "tensor(uint8)": np.uint8, "tensor(bool)": np.bool_,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How far one tensor is from the CPU provider's. ``relative``: max |a - b| / max |b| over finite elements, inf when
    NaN or infinities are in other places (or integers differ at all)."""

    name: str
    op_type: str  # "" for outputs of the model
    relative: float
    absolute: float
    largest: float  # max |b|; near 0 says that the reference is dead and proves nothing

    @property
    def alive(self) -> bool:
        return self.largest >= 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Outputs, and with ``nodes=True`` the intermediate tensors in the order of the graph."""

    outputs: tuple[Drift, ...]
    tensors: tuple[Drift, ...]
    max_drift: float

    @property
    def ok(self) -> bool:
        return all(d.relative <= self.max_drift for d in self.outputs)

    @property
    def first(self) -> Drift | None:
        """The first tensor of the graph that drifts too far: where to look."""
        return next((d for d in self.tensors if d.relative > self.max_drift), None)

    def __str__(self) -> str:
        lines = [f"{'tensor':<40} {'max |a-b| / max |b|':>20} {'max |a-b|':>12} {'max |b|':>12}"]
        for d in self.outputs:
            verdict = "ok" if d.relative <= self.max_drift else "DRIFT"
            note = "" if d.alive else "  the reference is nearly zero: this proves nothing"
            lines.append(f"{d.name:<40} {d.relative:>20.3g} {d.absolute:>12.3g} {d.largest:>12.3g}  {verdict}{note}")
        if self.tensors:
            first = self.first
            lines.append(
                f"first drift above {self.max_drift:g}: {first.name} ({first.op_type}), {first.relative:.3g}"
                if first is not None
                else f"none of {len(self.tensors)} intermediate tensors drifts above {self.max_drift:g}"
            )
            worst = sorted(self.tensors, key=lambda d: -d.relative)[:5]
            lines += [f"  {d.relative:>10.3g}  {d.op_type} {d.name}" for d in worst]
        return "\n".join(lines)


def compare(
    model: str | Path,
    *,
    feeds: Mapping[str, Array] | None = None,
    options: Mapping[str, str] | None = None,
    nodes: bool = False,
    seed: int = 0,
    sizes: Mapping[str, int] | None = None,
    max_drift: float | None = None,
) -> Comparison:
    """Run ``model`` on both providers. Without ``feeds``: seeded random ones, with ``sizes`` for symbolic dimensions. Without
    ``max_drift``: the bound of the precision that is asked for. Raises ConfigError where the CPU provider does not run the model.

    ``nodes`` makes every tensor an output. That changes what can be fused, so it finds kernels that compute wrongly, not
    fusions that are wrong as such; the drift of the outputs is therefore measured on the model as it is.
    """
    chosen = {"claim": "all", **(options or {})}
    reference = open_session(model, None)
    given = dict(feeds) if feeds is not None else random_feeds(reference, seed, sizes or {})
    outputs = _drifts(reference, open_session(model, chosen), given, {})
    tensors: tuple[Drift, ...] = ()
    if nodes:
        opened, producers = _with_all_outputs(Path(model))
        everything = _drifts(open_session(opened, None), open_session(opened, chosen), given, producers)
        by_name = {d.name: d for d in everything}
        tensors = tuple(by_name[name] for name in producers if name in by_name)
    if max_drift is None:
        max_drift = MAX_DRIFT[options_module.parse(chosen).precision]
    return Comparison(outputs=outputs, tensors=tensors, max_drift=max_drift)


def random_feeds(session: Any, seed: int, sizes: Mapping[str, int]) -> dict[str, Array]:
    """Normal floats, small non-negative integers (they are often indices), true bools.

    Raises ConfigError for ``sizes`` of what is no dimension of the model, UnsupportedError for inputs that nothing can be made up
    for.
    """
    _check_sizes(sizes, _dimensions(session))
    if seed < 0:
        raise ConfigError(f"seed={seed} is none", where="compare", hint="it wants an integer of at least 0")
    rng = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    for entry in session.get_inputs():
        if entry.type not in _NUMPY:
            hint = "give feeds to xyntra_ep.diagnostics.compare"
            raise UnsupportedError(f"cannot make up a {entry.type}", where=f"input {entry.name!r}", hint=hint)
        shape = [d if isinstance(d, int) and d >= 0 else sizes.get(str(d), _DIM) for d in entry.shape]
        dtype = np.dtype(_NUMPY[entry.type])
        if dtype.kind == "f":
            feeds[entry.name] = rng.standard_normal(shape).astype(dtype)
        else:
            feeds[entry.name] = np.ones(shape, dtype) if dtype.kind == "b" else rng.integers(0, 2, shape).astype(dtype)
    return feeds


def _dimensions(session: Any) -> set[str]:
    """The symbolic ones of the inputs."""
    return {d for entry in session.get_inputs() for d in entry.shape if isinstance(d, str)}


def _check_sizes(sizes: Mapping[str, int], known: Collection[str]) -> None:
    for name, size in sizes.items():
        if name not in known:
            hint = f"there are {', '.join(sorted(known))}" if known else "there are none"
            raise ConfigError(f"the model's inputs have no dimension {name!r}", where="compare", hint=hint)
        if size < 0:
            raise ConfigError(f"{name}={size} is no size", where="compare", hint="it wants an integer of at least 0")


def drift(name: str, got: Array, wanted: Array, op_type: str = "") -> Drift:
    """See ``Drift``."""
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(b)
    largest = float(np.abs(b[finite]).max(initial=0.0))
    if a.shape != b.shape or not np.array_equal(np.where(finite, 0, b), np.where(finite & np.isfinite(a), 0, a), equal_nan=True):
        return Drift(name=name, op_type=op_type, relative=float("inf"), absolute=float("inf"), largest=largest)
    absolute = float(np.abs(a[finite] - b[finite]).max(initial=0.0))
    relative = absolute / largest if largest else (0.0 if absolute == 0 else float("inf"))
    if wanted.dtype.kind != "f" and absolute:
        relative = float("inf")
    return Drift(name=name, op_type=op_type, relative=relative, absolute=absolute, largest=largest)


def _drifts(reference: Any, ours: Any, feeds: Mapping[str, Array], producers: Mapping[str, str]) -> tuple[Drift, ...]:
    names = [o.name for o in reference.get_outputs()]
    try:
        wanted = reference.run(names, feeds)
    except Exception as error:  # ONNX Runtime's own classes have no common base of their own
        made_up = ", ".join(sorted(_dimensions(reference)))
        hint = f"sizes that are not given are {_DIM}: say --dim NAME=SIZE for {made_up}" if made_up else "give feeds of your own"
        raise ConfigError(said_by(error), where="ONNX Runtime's CPU provider does not run it", hint=hint) from error
    try:
        got = ours.run(names, feeds)
    except Exception as error:
        raise XyntraError(said_by(error), where="XyntraEP does not run what the CPU provider does") from error
    pairs = zip(names, got, wanted, strict=True)
    return tuple(
        drift(name, np.asarray(a), np.asarray(b), producers.get(name, ""))
        for name, a, b in pairs
        if isinstance(b, np.ndarray) and b.dtype.kind in "fiub"
    )


def _with_all_outputs(path: Path) -> tuple[bytes, dict[str, str]]:
    """The model with every typed intermediate tensor as an output, and who makes each, in the order of the graph."""
    try:
        import onnx
    except ImportError as error:
        raise ConfigError("comparing by node needs the onnx package", where="compare", hint="pip install onnx") from error
    model = onnx.shape_inference.infer_shapes(onnx.load(path))
    graph = model.graph
    typed = {v.name: v for v in graph.value_info}
    present = {o.name for o in graph.output}
    producers: dict[str, str] = {}
    for node in graph.node:
        for name in node.output:
            if name in typed and name not in present:
                graph.output.append(typed[name])
            if name in typed or name in present:
                producers[name] = node.op_type
    if model.ByteSize() >= 1 << 31:
        raise UnsupportedError("the model is too large to be changed in memory", where=str(path), hint="compare without nodes")
    return model.SerializeToString(), producers
