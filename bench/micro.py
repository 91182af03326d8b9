"""Cases from the chains: each point is written as a file of its own and measured like any model."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import Path

from xyntra_bench.chains import CHAINS, Axes, Chain
from xyntra_bench.errors import BenchError
from xyntra_bench.plan import Budget, Case

FAMILY = "micro"
BUDGET = Budget(rounds=5, warmups=1, min_iterations=25, runs_per_iteration=2, min_time_s=1.0, max_time_s=12.0, may_cut=True)
QUICK_BUDGET = Budget(
    rounds=4, warmups=1, min_iterations=12, runs_per_iteration=2, min_time_s=0.0, max_time_s=6.0, may_cut=True, until_sure=False
)


# Against the provider as users have it, and with everything claimed: the first must not lose, the second shows where
# declining saved it.
CONTENDERS = ("XyntraEP", "XyntraEP:claim=all")


def micro_cases(pattern: str, threads: Sequence[int], folder: Path) -> tuple[Case, ...]:
    """The points whose name matches, as in `conv*` or `*/m1-*`; their models are written to `folder`."""
    points = [(chain, axes) for chain in CHAINS for axes in chain.points()]
    wanted = [(chain, axes) for chain, axes in points if matches(point_name(chain, axes), pattern)]
    if not wanted:
        raise BenchError(f"'{pattern}': no chain of that name. there are {', '.join(chain.name for chain in CHAINS)}")
    return tuple(case for chain, axes in wanted for case in _cases(chain, axes, threads, folder))


def point_name(chain: Chain, axes: Axes) -> str:
    """
    >>> point_name(CHAINS[0], {"m": 4, "k": 768, "n": 768})
    'linear/m4-k768-n768'
    """
    return f"{chain.name}/{'-'.join(f'{axis}{size}' for axis, size in axes.items())}"


def matches(name: str, pattern: str) -> bool:
    return fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(name.partition("/")[0], pattern)


def _cases(chain: Chain, axes: Axes, threads: Sequence[int], folder: Path) -> list[Case]:
    model, shapes = chain.model(axes)
    name = point_name(chain, axes)
    file = folder / f"{name.replace('/', '-')}.onnx"
    file.write_bytes(model.SerializeToString())
    return [Case(model=name, family=FAMILY, threads=count, file=str(file), shapes=shapes) for count in threads]
