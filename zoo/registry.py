"""One registry class: modules of a package that declare a list under a known name."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterator
from functools import cached_property
from typing import Generic, Protocol, TypeVar, cast

from xyntra_zoo.model import ZooModel


class Named(Protocol):
    @property
    def name(self) -> str: ...


Row = TypeVar("Row", bound=Named)


class RegistryError(LookupError):
    """A name nobody declared, or one declared twice. The text says where and what to do."""


class Registry(Generic[Row]):
    """The rows of every module of `package` that has a list called `attr`, read on first use.

    Modules are imported in sorted order, names that start with an underscore are skipped: a new row is a new
    file and nothing else. There are no decorators and no import side effects.

    >>> from xyntra_zoo import zoo
    >>> zoo["bert-base"].name
    'bert-base'
    """

    def __init__(self, package: str, attr: str) -> None:
        self._package = package
        self._attr = attr

    @cached_property
    def _rows(self) -> dict[str, Row]:
        rows: dict[str, Row] = {}
        declared_in: dict[str, str] = {}
        search = importlib.import_module(self._package).__path__
        for name in sorted(module.name for module in pkgutil.iter_modules(search)):
            if name.startswith("_"):
                continue
            module = importlib.import_module(f"{self._package}.{name}")
            for row in cast("list[Row]", getattr(module, self._attr, [])):
                if row.name in rows:
                    raise RegistryError(
                        f"'{row.name}' is declared twice: in {declared_in[row.name]} and in {module.__name__}. rename one of them"
                    )
                rows[row.name] = row
                declared_in[row.name] = module.__name__
        return rows

    def __getitem__(self, name: str) -> Row:
        try:
            return self._rows[name]
        except KeyError:
            near = difflib.get_close_matches(name, self._rows, n=3, cutoff=0.4)
            hint = f"did you mean {near}?" if near else f"there are {sorted(self._rows)}"
            raise RegistryError(f"no '{name}' in {self._package.removeprefix('xyntra_')}. {hint}") from None

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def names(self) -> list[str]:
        return list(self._rows)


zoo: Registry[ZooModel] = Registry("xyntra_zoo", "MODELS")
