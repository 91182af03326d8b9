"""Kinds of linear operations: what is known of a matrix, and in which ways the operation can therefore be computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xyntra_ep.errors import ConfigError

WHERE = "OperatorTopology"


@dataclass(frozen=True, slots=True)
class Dense:
    """y = x W, with a W of which nothing is known."""

    def __str__(self) -> str:
        return "dense"


@dataclass(frozen=True, slots=True)
class LowRank:
    """W is A B, of factors with ``rank`` columns and rows."""

    rank: int

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise ConfigError(f"LowRank({self.rank!r}) is none", where=WHERE, hint="it wants an integer of at least 1")

    def __str__(self) -> str:
        return f"low-rank({self.rank})"


Kind = Dense | LowRank


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTopology:
    """A linear operation y [m, n] = x [m, k] W [k, n]."""

    kind: Kind

    def ways(self, m: int, n: int, k: int) -> Mapping[str, Sequence[tuple[int, int, int]]]:
        """By a name for people the products (rows, columns, depth) of each way to compute it."""
        if isinstance(self.kind, Dense):
            return {"one product": ((m, n, k),)}
        return {"two products": ((m, self.kind.rank, k), (m, n, self.kind.rank)), "one product with A B": ((m, n, k),)}
