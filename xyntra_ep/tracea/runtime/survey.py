"""The result of a search for devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class Surveyed(Protocol):
    """``problem``: why the device cannot be used, empty when it can."""

    @property
    def problem(self) -> str: ...


D = TypeVar("D", bound=Surveyed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey(Generic[D]):
    """``missing``: what prevents any use of the devices, with ``remedy``; empty when one works. ``lasting``: whether the next
    process would find the same; not where nobody answered."""

    devices: tuple[D, ...] = ()
    missing: str = ""
    remedy: str = ""
    lasting: bool = True

    @property
    def working(self) -> tuple[D, ...]:
        return tuple(d for d in self.devices if not d.problem)
