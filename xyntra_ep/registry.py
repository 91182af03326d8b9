"""A folder as a registry: each module in it and in its subfolders declares a list of named rows; the registry has them all.

    # zoo/mlp.py
    MODELS = [ZooModel(name="mlp.gelu_tiny", ...)]

    # zoo/__init__.py
    ZOO = Registry[ZooModel]("xyntra_zoo", "MODELS")

To add something, add a row or a file with rows; nothing else changes. Modules are imported when the registry is first used.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Generic, Protocol, TypeVar

from xyntra_ep.errors import ConfigError


class Named(Protocol):
    """All that a registry wants of a row."""

    @property
    def name(self) -> str: ...


Row = TypeVar("Row", bound=Named)


def _modules(package: str) -> Iterator[ModuleType]:
    """Those that are read, depth first."""
    folder = importlib.import_module(package)
    for info in sorted(pkgutil.iter_modules(folder.__path__), key=lambda info: info.name):
        path = f"{package}.{info.name}"
        if info.name.startswith("_"):
            continue
        if info.ispkg:
            yield from _modules(path)
        else:
            yield importlib.import_module(path)


class Registry(Generic[Row]):
    """The rows of all modules of `package` and of the packages in it, found in their list `attr`, in the order of module names.

    Modules and packages whose names start with `_` are not read; a module without the list is a helper, unless it declares
    a list of nearly that name. A module that fails to import fails the registry: a broken file must not look
    like an absent one.
    """

    def __init__(self, package: str, attr: str) -> None:
        self.package = package
        self.attr = attr
        self._rows: dict[str, Row] | None = None

    def _load(self) -> dict[str, Row]:
        if self._rows is not None:
            return self._rows
        rows: dict[str, Row] = {}
        origin: dict[str, str] = {}
        for module in _modules(self.package):
            path = module.__name__
            if not hasattr(module, self.attr):
                lists = [name for name, value in vars(module).items() if isinstance(value, list)]
                import difflib  # seldom needed, and this is part of the package's import

                if misspelt := difflib.get_close_matches(self.attr, lists, n=1, cutoff=0.8):
                    raise ConfigError(f"declares {misspelt[0]}", where=path, hint=f"the registry reads {self.attr}")
                continue
            for row in getattr(module, self.attr):
                if row.name in rows:
                    raise ConfigError(f"{row.name!r} is declared in {origin[row.name]} and in {path}", where=self.package)
                rows[row.name] = row
                origin[row.name] = path
        self._rows = rows  # one assignment: two threads may both load, neither sees half a registry
        return rows

    def names(self) -> tuple[str, ...]:
        return tuple(self._load())

    def __iter__(self) -> Iterator[Row]:
        return iter(self._load().values())

    def __len__(self) -> int:
        return len(self._load())

    def __contains__(self, name: object) -> bool:
        return name in self._load()

    def __getitem__(self, name: str) -> Row:
        rows = self._load()
        if name not in rows:
            import difflib

            near = difflib.get_close_matches(name, rows, n=3)
            hint = f"did you mean {near}?" if near else f"there are {sorted(rows)}"
            raise ConfigError(f"no {name!r} in {self.package}", hint=hint)
        return rows[name]

    def __repr__(self) -> str:
        return f"Registry({self.package!r}, {self.attr!r})"
