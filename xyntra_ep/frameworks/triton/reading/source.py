"""The source of a kernel: its syntax tree, where it stands, and what its names mean there."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xyntra_ep.errors import UnsupportedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """``first``: the line of the file that the text begins at; ``scope``: names from around the function."""

    function: ast.FunctionDef
    file: str
    first: int
    scope: Mapping[str, Any]
    parameters: tuple[str, ...]
    defaults: Mapping[str, Any]


def function_of(kernel: Any) -> Callable[..., Any]:
    """The Python function that `triton.jit` was applied to, or that an autotuner or heuristics stand around."""
    found = kernel
    while not inspect.isfunction(found):
        inner = getattr(found, "fn", None)
        if inner is None:
            raise UnsupportedError(f"{type(kernel).__name__} is no Triton kernel", where="on_cpu")
        found = inner
    return found


def source_of(kernel: Any) -> Source:
    function = function_of(kernel)
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise UnsupportedError(f"the source of {function.__name__} is not there: {error}", where="on_cpu") from error
    [tree] = ast.parse(textwrap.dedent("".join(lines))).body
    assert isinstance(tree, ast.FunctionDef)
    closure = inspect.getclosurevars(function)
    signature = inspect.signature(function)
    return Source(
        function=tree,
        file=Path(inspect.getsourcefile(function) or function.__name__).name,
        first=first,
        scope={**function.__globals__, **closure.nonlocals},
        parameters=tuple(signature.parameters),
        defaults={n: p.default for n, p in signature.parameters.items() if p.default is not inspect.Parameter.empty},
    )


def is_jitted(value: Any) -> bool:
    """Whether it is a function of Triton's, to be read where it is called."""
    return type(value).__module__.startswith("triton.runtime") and hasattr(value, "fn")


@dataclass(frozen=True, slots=True)
class LibraryName:
    """A function, type or constant of `triton.language` or libdevice."""

    name: str


def library_name(value: Any, name: str) -> Any:
    """What ``name`` stands for, where it is Triton's a `LibraryName`; modules and everything else as they are."""
    module = getattr(value, "__module__", None) or type(value).__module__
    is_theirs = module.startswith(("triton.language", "triton.")) and not is_own(value)
    return LibraryName(name) if is_theirs and not inspect.ismodule(value) else value


def is_own(value: Any) -> bool:
    """Whether it is a function of Triton's that the kernel's author has written."""
    return is_jitted(value) and not function_of(value).__module__.startswith("triton.")
