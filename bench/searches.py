"""Searches compared, for `bench run tune`: how many trials does the Gaussian process need, and how many does chance, to find a
kernel that is nearly the best there is?

Every configuration of each kernel is measured once, as the tuner measures it. Both searches are then replayed on these times with
many seeds, so that they differ in nothing but what they ask for.
"""

from __future__ import annotations

import fnmatch
import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xyntra_bench.errors import BenchError
from xyntra_bench.search_results import KIND_GP, KIND_RANDOM, NEAR, KernelSearch

if TYPE_CHECKING:
    from xyntra_ep.tracea.optimizer.search import Search
    from xyntra_ep.tracea.optimizer.space import Point

ROUNDS = 5
BATCH = 4  # that a search asks for at once, as the tuner does
_COMPILED = 16  # configurations that are compiled and measured together
SEEDS = 9
LIMIT = 96  # trials of a replayed search
_BETWEEN_BYTES = 64 << 20  # that are read between two runs: nothing of the kernel is left in the caches


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPoint:
    """An op of `plan_kernel` with its sizes."""

    name: str
    op: str
    sizes: Mapping[str, int]


def _conv(c: int, h: int, m: int, k: int = 3, stride: int = 1, group: int = 1) -> KernelPoint:
    kind = "depthwise" if group > 1 else f"conv{k}x{k}"
    name = f"{kind}-{c}x{h}x{h}-{m}" + (f"-s{stride}" if stride > 1 else "")
    sizes = {"n": 1, "c": c, "h": h, "w": h, "m": m, "k": k, "stride": stride, "pad": k // 2, "group": group}
    return KernelPoint(name=name, op="conv", sizes=sizes)


def _gemm(m: int, n: int, k: int) -> KernelPoint:
    return KernelPoint(name=f"gemm-{m}x{n}x{k}", op="gemm", sizes={"m": m, "n": n, "k": k})


def _attention(s: int, heads: int) -> KernelPoint:
    return KernelPoint(
        name=f"attention-{heads}x{s}x64", op="attention", sizes={"batch": 1, "heads": heads, "s": s, "t": s, "d_head": 64}
    )


# Of the nets that people run: ResNet's blocks, MobileNet's, and transformers' products at some lengths.
KERNELS = (
    _gemm(1, 3072, 768), _gemm(16, 768, 768), _gemm(128, 768, 768), _gemm(128, 3072, 768), _gemm(197, 192, 768),
    _attention(128, 12), _attention(197, 3),
    _conv(3, 224, 64, k=7, stride=2), _conv(64, 56, 64, k=1), _conv(64, 56, 256, k=1), _conv(256, 56, 64, k=1),
    _conv(128, 28, 128), _conv(256, 14, 256), _conv(512, 7, 512), _conv(1024, 14, 256, k=1), _conv(96, 14, 576, k=1),
    _conv(960, 7, 160, k=1), _conv(32, 112, 32, group=32), _conv(144, 56, 144, group=144), _conv(576, 14, 576, group=576),
)  # fmt: skip


def kernels_like(pattern: str) -> tuple[KernelPoint, ...]:
    found = tuple(k for k in KERNELS if fnmatch.fnmatch(k.name, pattern))
    if not found:
        raise BenchError(f"'{pattern}': no kernel of that name. there are {', '.join(k.name for k in KERNELS)}")
    return found


def search_kernel(kernel: KernelPoint, *, seeds: int = SEEDS, rounds: int = ROUNDS) -> KernelSearch:
    """Measure all configurations of a kernel on one thread, and replay the searches. Raises BenchError where the machine has no
    choice for it."""
    from xyntra_ep.errors import XyntraError
    from xyntra_ep.provider import registration
    from xyntra_ep.tracea import Context, named_problem
    from xyntra_ep.tracea.interface.tuning.trial import Trial
    from xyntra_ep.tracea.runtime.hashing import hash128_of

    with tempfile.TemporaryDirectory(prefix="xyntra-searches-") as folder:
        context = Context(cache_dir=Path(folder), hash128=hash128_of(registration.library()))
        try:
            problem = replace(named_problem(kernel.op, **dict[str, Any](kernel.sizes)), between_bytes=_BETWEEN_BYTES)
            trial = Trial(problem, context, 1)
            candidates = [c for c in trial.candidates() if c.point != trial.default.point]
            ratios: dict[Any, float | None] = {_key(trial.default.point): 1.0}
            for i in range(0, len(candidates), _COMPILED):
                for measured in trial.measure(candidates[i : i + _COMPILED], rounds):
                    ratios[_key(measured.candidate.point)] = None if measured.problem else measured.ratio
        except XyntraError as error:
            raise BenchError(f"{kernel.name}: {error}") from error
        known = [ratio for ratio in ratios.values() if ratio is not None]
        best = min(known)
        chosen = next(c for c in (trial.default, *candidates) if ratios[_key(c.point)] == best)
        curves, needed = _replayed(trial.space, trial.default.point, ratios, best, seeds)
        return KernelSearch(
            name=kernel.name,
            points=len(ratios),
            failed=len(ratios) - len(known),
            default=f"{trial.default.variant.name} {_text(trial.default.config)}".strip(),
            best=f"{chosen.variant.name} {_text(chosen.config)}".strip(),
            default_ratio=1.0 / best,
            near=sum(ratio <= NEAR * best for ratio in known),
            curves=curves,
            needed=needed,
        )


def _replayed(
    space: Any, default: Point, ratios: Mapping[Any, float | None], best: float, seeds: int
) -> tuple[dict[str, tuple[float, ...]], dict[str, tuple[int, ...]]]:
    """By kind of search: the best so far over the best there is, the median over seeds, trial by trial; and of each seed how many
    trials it took to come within `NEAR` of the best, 0 where it did not."""
    from xyntra_ep.tracea.optimizer.search import GaussianProcess, Random

    kinds: Mapping[str, Callable[[int], Search]] = {
        KIND_GP: lambda seed: GaussianProcess(space, seeds=[default], seed=seed),
        KIND_RANDOM: lambda seed: Random(space, seeds=[default], seed=seed),
    }
    curves, needed = {}, {}
    for kind, make in kinds.items():
        trails = [_trail(make(seed), ratios, best) for seed in range(seeds)]
        length = min(map(len, trails))
        curves[kind] = tuple(round(statistics.median(t[i] for t in trails), 4) for i in range(length))
        needed[kind] = tuple(next((i for i, at in enumerate(t, start=1) if at <= NEAR), 0) for t in trails)
    return curves, needed


def _trail(search: Search, ratios: Mapping[Any, float | None], best: float) -> list[float]:
    """The best so far after each trial."""
    found: list[float] = []
    while len(found) < LIMIT and (points := search.ask(BATCH)):
        for point in points:
            ratio = ratios[_key(point)]
            search.tell(point, ratio)
            now = ratio / best if ratio is not None else found[-1] if found else 1e9
            found.append(min(now, found[-1]) if found else now)
    return found


def _key(point: Point) -> Any:
    return tuple(sorted(point.items()))


def _text(config: Mapping[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in config.items())
