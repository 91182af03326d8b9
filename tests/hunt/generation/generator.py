"""(seed, number) -> case: a few operators or a longer chain, which of its values are outputs, and what the runs feed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import onnx

from tests.hunt.case import Array, Case, Run, Settings
from tests.hunt.generation.builder import MOST_ELEMENTS, WORLDS, Builder, Extent, Input, Rejected
from tests.hunt.generation.feeds import Kind, Rng
from tests.hunt.recipes import RECIPES, Recipe
from xyntra_custom_ops import CustomOp
from xyntra_ep.registry import Registry

OPSETS = (*range(7, 27), 13, 13, 17, 17, 18, 18, 18, 20, 20, 21, 22, 23, 23)  # the newest that ORT 1.25 to 1.31 loads is 26
PERTURBED_RUNS, SPECIAL_RUNS = 6, 2
TRIES = 12
FAR = 5000


@cache
def function_bodies() -> tuple[onnx.FunctionProto, ...]:
    """Of the operators of domain ai.xyntra."""
    return tuple(row.function.to_function_proto() for row in Registry[CustomOp]("xyntra_custom_ops", "CUSTOM_OPS"))


@cache
def _offered(opset: int) -> tuple[tuple[Recipe, ...], Array]:
    rows = tuple(row for row in RECIPES if row.since <= opset <= row.until)
    weights = np.asarray([row.weight for row in rows])
    return rows, weights / weights.sum()


def generate(seed: int, number: int, only: Sequence[str] = ()) -> Case | None:
    """The case of these two numbers; None where nothing came of them. ``only``: names of recipes to draw from."""
    rng = np.random.default_rng((seed, number))
    opset = int(rng.choice(OPSETS))
    b = Builder(rng=rng, opset=opset, contrary=float(rng.choice([0.0, 0.02, 0.15])), dynamic=float(rng.choice([0.3, 0.8, 1.0])))
    rows, weights = _offered(opset)
    if only:
        rows = tuple(row for row in rows if row.name in only)
        weights = np.full(len(rows), 1 / max(1, len(rows)))
    wanted = int(rng.choice([1, 2, 3, 5, 8], p=[0.35, 0.2, 0.2, 0.15, 0.1]))
    made = 0
    for _ in range(TRIES + 2 * wanted):
        if made >= wanted or not rows:
            break
        made += _grow(b, rows[int(rng.choice(len(rows), p=weights))])
    if not b.nodes:
        return None
    model = b.model(_outputs(b))
    settings = Settings(claim="all" if b.chance(0.9) else "profitable", fp32_strict=b.chance(0.1), two_threads=b.chance(0.3))
    return Case(model=model.SerializeToString(), runs=runs_of(b), settings=settings, name=f"seed {seed} number {number}")


def _grow(b: Builder, recipe: Recipe) -> bool:
    """One recipe more; what a recipe that failed has left is taken away."""
    if recipe.name.startswith("ai.xyntra"):
        b.functions = b.runner.functions = function_bodies()
    mark = b.mark()
    try:
        recipe.build(b)
    except Rejected:
        b.back_to(mark)
        return False
    return True


def _outputs(b: Builder) -> list[str]:
    """What nobody reads, and now and then what somebody does."""
    read = {name for node in b.nodes for name in node.input}
    made = [name for node in b.nodes for name in node.output if name]
    loose = [name for name in made if name not in read]
    kept = [name for name in loose if b.chance(0.9)] or loose[-1:]
    return [*kept, *(name for name in made if name in read and b.chance(0.15))]


# -- runs


def runs_of(b: Builder) -> list[Run]:
    """What the model that has grown is fed; each size is at least what ``b.least`` says."""
    sizes = [{symbol: extent[w] for symbol, extent in b.symbols.items()} for w in range(WORLDS)]
    runs = [Run(feeds=_feeds(b, sizes[w], w), kind=f"sizes {w}") for w in (0, *range(WORLDS))]
    fed_floats = any(i.dtype.kind in "fiu" for i in b.inputs)
    for n in range(SPECIAL_RUNS if fed_floats else 0):
        runs.append(Run(feeds=_feeds(b, sizes[n % 2], n % 2, special=True), kind="special values", special=True))
    for _ in range(PERTURBED_RUNS if b.symbols else 0):
        w = int(b.rng.integers(WORLDS))
        changed, what = _perturbed(b, sizes[w])
        runs.append(Run(feeds=_feeds(b, changed, w), kind=what))
    if any(i.fill.kind is Kind.INDEX for i in b.inputs):
        runs.append(Run(feeds=_feeds(b, sizes[0], 0, odd_indices=True), kind="odd integers"))
    return [replace(run, bound=b.chance(0.08)) for run in runs if _affordable(run)]


def _affordable(run: Run) -> bool:
    return sum(int(np.size(a)) for a in run.feeds.values()) <= 8 * MOST_ELEMENTS


def _perturbed(b: Builder, sizes: dict[str, int]) -> tuple[dict[str, int], str]:
    """One size is another one: of one axis of one input, or of all that had the same."""
    used = [s for i in b.inputs for s in i.sizes if isinstance(s, str)]
    if not used:
        return sizes, "again"
    symbol = used[int(b.rng.integers(len(used)))]
    n = sizes[symbol]
    new = int(b.rng.choice([0, 1, max(0, n - 1), n + 1, 2 * n, 3, 16, 33]))
    extent: Extent = b.symbols[symbol]
    if b.chance(0.06):  # so far from what fits that a read beyond a tensor leaves the process's memory
        return sizes | {symbol: FAR}, f"{symbol} is {FAR} and not {n}"
    if b.chance(0.4):
        new = max(new, b.least[symbol])
        return sizes | {symbol: new}, f"{symbol} is {new} and not {n}"
    alike = {s: max(new, b.least[s]) for s in sizes if b.symbols[s] == extent}
    return sizes | alike, f"all like {symbol} are {new} and not {n}"


def _feeds(
    b: Builder, sizes: dict[str, int], world: int, *, special: bool = False, odd_indices: bool = False
) -> dict[str, Array]:
    return {i.name: _content(b.rng, i, sizes, world, special, odd_indices) for i in b.inputs}


def _content(rng: Rng, i: Input, sizes: dict[str, int], world: int, special: bool, odd_indices: bool) -> Array:
    shape = tuple(sizes[s] if isinstance(s, str) else s for s in i.sizes)
    is_index = i.fill.kind is Kind.INDEX
    if (special and not is_index) or (odd_indices and is_index and rng.random() < 0.7):
        return i.fill.draw_special(rng, shape, i.dtype)
    if i.given and i.given[world].shape == shape:
        return i.given[world]
    return i.fill.draw(rng, shape, i.dtype)
