"""Imports point one way. The arrows are below; an import against them is named with file and line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("xyntra_ep", "xyntra_custom_ops", "xyntra_zoo", "xyntra_bench", "xyntra_reports")

# The side of bench that holds results and measures nothing: all that reports may see of it.
STORED = tuple(
    f"xyntra_bench.{name}"
    for name in (
        "results",
        "store",
        "codec",
        "errors",
        "show",
        "torch_compile.beside",
        "verdicts",
        "plan",
        "environment",
        "contenders",
        "publish",
        "device_results",
        "tuning.search_results",
        "tuning.learned_results",
        "text_table",
    )
)

# Who imports whom. What a layer may import is everything that its arrows lead to.
ARROWS: dict[str, tuple[str, ...]] = {
    "xyntra_ep": ("xyntra_ep.diagnostics", "xyntra_ep.frameworks", "xyntra_ep.provider"),  # the lazy face
    "xyntra_ep.cli": ("xyntra_ep", "xyntra_ep.diagnostics", "xyntra_ep.frameworks", "xyntra_ep.web"),
    "xyntra_ep.web": ("xyntra_ep.diagnostics",),
    "xyntra_ep.diagnostics": ("xyntra_ep.provider", "xyntra_custom_ops"),
    "xyntra_ep.frameworks": ("xyntra_ep.provider",),
    "xyntra_ep.provider": ("xyntra_ep.fusion",),
    "xyntra_ep.fusion": ("xyntra_ep.tracea.interface", "xyntra_ep.tracea.core_ir"),
    "xyntra_ep.tracea": (),
    "xyntra_ep.tracea.interface": ("xyntra_ep.tracea.planning", "xyntra_ep.tracea.backends", "xyntra_ep.tracea.prebuilt"),
    "xyntra_ep.tracea.prebuilt": ("xyntra_ep.tracea.planning",),
    "xyntra_ep.tracea.planning": (
        "xyntra_ep.tracea.doctor",
        "xyntra_ep.tracea.optimizer",
        "xyntra_ep.tracea.emitters",
        "xyntra_ep.tracea.runtime",
    ),
    "xyntra_ep.tracea.backends": (
        "xyntra_ep.tracea.doctor",
        "xyntra_ep.tracea.emitters",
        "xyntra_ep.tracea.runtime",
    ),
    "xyntra_ep.tracea.doctor": ("xyntra_ep.tracea.kernels",),
    "xyntra_ep.tracea.kernels": ("xyntra_ep.tracea.semantic_ir",),
    "xyntra_ep.tracea.emitters": ("xyntra_ep.tracea.semantic_ir", "xyntra_ep.tracea.runtime"),  # what a compiler is given
    "xyntra_ep.tracea.optimizer": ("xyntra_ep.tracea.semantic_ir",),
    "xyntra_ep.tracea.semantic_ir": ("xyntra_ep.tracea.core_ir",),
    "xyntra_ep.tracea.core_ir": (),
    "xyntra_ep.tracea.runtime": (),
    "xyntra_custom_ops": (),
    "xyntra_zoo": (),
    **{module: (*STORED, "xyntra_zoo") for module in STORED},
    "xyntra_bench": (*STORED, "xyntra_zoo", "xyntra_reports"),
    "xyntra_reports": STORED,
}
# The graph side sees of Tracea its interface and its core IR, not what these lead to.
STRICT = {"xyntra_ep.fusion"}
# Loose leaves: importable from everywhere, importing only each other.
COMMON = tuple(
    f"xyntra_ep.{name}"
    for name in (
        "errors",
        "knobs",
        "registry",
        "options",
        "options_file",
        "options_table",
        "trusted_file",
        "ending",
        "guard",
        "system",
        "spans",
        "wording",
    )
)
ALONE = "xyntra_custom_ops"  # imports nothing else of the project
# Measuring needs the provider when it runs, not when it is imported.
INSIDE_FUNCTIONS = {
    "xyntra_bench": ("xyntra_ep",),
    "xyntra_ep.options": ("xyntra_ep.tracea.backends",),  # each is a value of an option, and says what it is
}


def layer_of(module: str) -> str:
    """The layer a module belongs to: the longest declared prefix."""
    layers = [name for name in (*ARROWS, *COMMON) if module == name or module.startswith(f"{name}.")]
    return max(layers, key=len, default="")


def allowed(layer: str) -> set[str]:
    """All that the arrows of a layer lead to, and itself."""
    if layer in STRICT:
        return {layer, *ARROWS[layer]}
    reached: set[str] = set()
    waiting = [layer]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(ARROWS[name])
    return reached


def imports(tree: ast.AST, module: str, root: Path) -> Iterator[tuple[int, str, bool]]:
    """(line, imported module, inside a function?) of every import, those for type checkers included."""
    inner = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, id(node) in inner
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*module.split(".")[: -node.level], *filter(None, [base])])
            for alias in node.names:
                if (base, alias.name) == ("xyntra_ep", "__version__"):
                    continue  # a constant, there before any layer is
                longer = f"{base}.{alias.name}"
                yield node.lineno, longer if _exists(longer, root) else base, id(node) in inner


def _exists(module: str, root: Path) -> bool:
    path = root.joinpath(*module.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def violations(root: Path) -> list[str]:
    found = []
    for path in sorted(file for package in PACKAGES for file in (root / package).rglob("*.py")):
        # `__init__` keeps its name here, so that one level of a relative import is the package itself
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        here = layer_of(module)
        for line, target, in_function in imports(ast.parse(path.read_text(encoding="utf-8")), module, root):
            there = layer_of(target)
            if target.split(".")[0] not in PACKAGES or there == here or module == "xyntra_ep.tracea.__init__":
                continue
            fine = there in COMMON if here in COMMON else there in allowed(here) or (there in COMMON and here != ALONE)
            fine = fine or (in_function and target.startswith(INSIDE_FUNCTIONS.get(here, ("-",))))
            if not fine:
                found.append(f"{path.relative_to(root)}:{line}: {here} may not import {target}")
    return found


def test_imports_point_one_way() -> None:
    assert violations(ROOT) == []


def test_every_folder_has_its_arrows() -> None:
    folders = [
        ".".join(path.relative_to(ROOT).parts)
        for base in ("xyntra_ep", "xyntra_ep/tracea")
        for path in (ROOT / base).glob("*")
        if path.is_dir() and any(path.rglob("*.py"))
    ]
    assert [name for name in folders if name not in ARROWS] == []


def test_an_import_that_points_back_is_named(tmp_path: Path) -> None:
    def write(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")

    write("xyntra_ep/tracea/core_ir/ops.py", "import numpy\nfrom xyntra_ep.fusion.graph import Graph\n")
    write("xyntra_ep/fusion/graph.py", "from xyntra_ep.tracea import planning\nfrom xyntra_ep import errors\n")
    write("xyntra_ep/tracea/planning/plan.py", "from ..runtime import cache\nfrom ... import fusion\n")
    write("xyntra_ep/tracea/runtime/cache.py", "from xyntra_ep.knobs import current\n")
    write("xyntra_ep/errors.py", "")
    write("xyntra_custom_ops/silu.py", "from xyntra_ep.errors import XyntraError\n")
    write("xyntra_reports/zoo.py", "from xyntra_bench.results import Run\nfrom xyntra_bench.run import measure\n")
    write("xyntra_bench/run.py", "import xyntra_zoo\nimport xyntra_ep\ndef go(): import xyntra_ep.provider\n")

    assert violations(tmp_path) == [
        "xyntra_bench/run.py:2: xyntra_bench may not import xyntra_ep",
        "xyntra_custom_ops/silu.py:1: xyntra_custom_ops may not import xyntra_ep.errors",
        "xyntra_ep/fusion/graph.py:1: xyntra_ep.fusion may not import xyntra_ep.tracea.planning",
        "xyntra_ep/tracea/core_ir/ops.py:2: xyntra_ep.tracea.core_ir may not import xyntra_ep.fusion.graph",
        "xyntra_ep/tracea/planning/plan.py:2: xyntra_ep.tracea.planning may not import xyntra_ep.fusion",
        "xyntra_reports/zoo.py:2: xyntra_reports may not import xyntra_bench.run",
    ]
