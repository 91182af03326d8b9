"""Search spaces: the configurations a variant may be built with."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

Config = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSpace:
    """The product of ``axes`` without what ``forbids`` names a reason against.

    >>> def spills(config):
    ...     return "spills" if config["mr"] * config["nr"] > 128 else None
    >>> space = SearchSpace(axes={"mr": (4, 8), "nr": (16, 32)}, forbids=spills)
    >>> [tuple(config.values()) for config in space]
    [(4, 16), (4, 32), (8, 16)]
    """

    axes: Mapping[str, tuple[int, ...]]
    forbids: Callable[[Config], str | None] = lambda config: None

    def __iter__(self) -> Iterator[Config]:
        """All legal configurations, in the order of the axes' values."""
        for values in itertools.product(*self.axes.values()):
            config = dict(zip(self.axes, values, strict=True))
            if self.forbids(config) is None:
                yield config

    @property
    def size(self) -> int:
        """The number of configurations, legal or not."""
        return reduce(lambda n, values: n * len(values), self.axes.values(), 1)

    def problem(self, config: Config) -> str | None:
        """Why ``config`` is not in the space, None when it is."""
        if config.keys() != self.axes.keys():
            return f"has {sorted(config)}, not {sorted(self.axes)}"
        for name, values in self.axes.items():
            if config[name] not in values:
                return f"{name}={config[name]} is not one of {values}"
        return self.forbids(config)

    def neighbours(self, config: Config) -> Iterator[Config]:
        """Legal configurations one step along one axis away."""
        for name, values in self.axes.items():
            at = values.index(config[name])
            for near in (at - 1, at + 1):
                if 0 <= near < len(values):
                    moved = {**config, name: values[near]}
                    if self.forbids(moved) is None:
                        yield moved
