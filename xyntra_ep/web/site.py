"""`xyntra web`: the folder that a browser is shown (docs/web.md)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xyntra_ep import __version__
from xyntra_ep.errors import ConfigError, XyntraError
from xyntra_ep.fusion.graph import Graph
from xyntra_ep.options import Options, parse
from xyntra_ep.tracea.backends import DeviceTarget
from xyntra_ep.tracea.interface.devices import browser_target
from xyntra_ep.tracea.semantic_ir.capabilities import WASM
from xyntra_ep.web.plan_json import Weights, island_json, tensor_json
from xyntra_ep.web.wasm import find_wasm_compiler
from xyntra_ep.web.whole_plan import opened, plan_whole
from xyntra_ep.wording import counted

PAGES = Path(__file__).resolve().parent / "pages"
RUNTIME = ("xyntra-web.js", "xyntra-wasm.js", "parts.js", "style.css")
FORMAT = 1
_PLAN, _WEIGHTS, _MODULE, _KERNELS = "plan.json", "weights.bin", "island.wasm", "kernels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What was written. ``targets``: what the page can run on, the best first. ``missing``: why it cannot run on others."""

    folder: Path
    files: tuple[Path, ...]
    targets: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def sizes(self) -> Mapping[str, int]:
        """Bytes by file."""
        return {file.relative_to(self.folder).as_posix(): file.stat().st_size for file in self.files}

    def __str__(self) -> str:
        sizes = self.sizes
        lines = [
            f"{self.folder}: {counted(len(sizes), 'file')}, {sum(sizes.values()) / 1e6:.2f} MB, for {' and '.join(self.targets)}"
        ]
        lines += [f"  without {why}" for why in self.missing]
        lines.append(f"  look at it: python -m http.server -d {self.folder} 8000, then http://localhost:8000/")
        return "\n".join(lines)


def make_site(
    model: Path,
    output: Path,
    *,
    page: str = "model",
    options: Mapping[str, str] | None = None,
    sizes: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Site:
    """Write the folder ``output``. ``page``: the name of a page of ours, or a folder with one. Raises ConfigError for what cannot
    be read or written, XyntraError where a model cannot be taken as a whole."""
    template = _template(page)
    asked = parse({"claim": "all", **(options or {})})
    weights, files, missing = Weights(), dict[str, bytes](), list[str]()
    with opened(model, asked, sizes or {}, shapes or {}) as graph:
        targets: dict[str, Any] = {}
        device = browser_target()
        if device is not None:
            try:
                targets[device.backend] = _device_part(graph, asked, device, weights, files)
            except XyntraError as error:
                missing.append(f"{device.name}: {error}")
        try:
            targets["wasm"] = _processor_part(graph, asked, weights, files)
        except XyntraError as error:
            missing.append(f"WebAssembly: {error}")
        if not targets:
            raise XyntraError("; ".join(missing), where="web")
        described = _described(model.stem, graph, targets, weights)
    files[_PLAN] = json.dumps(described, separators=(",", ":"), ensure_ascii=False).encode()
    files[_WEIGHTS] = bytes(weights.data)
    written = _write(output, files, [*_files_of(template), *((name, PAGES / name) for name in RUNTIME)])
    return Site(folder=output, files=tuple(written), targets=tuple(targets), missing=tuple(missing))


def _described(name: str, graph: Graph, targets: Mapping[str, Any], weights: Weights) -> Mapping[str, Any]:
    values = graph.values.values()
    return {
        "format": FORMAT,
        "release": __version__,
        "model": name,
        "inputs": [tensor_json(value) for value in values if value.is_input and not value.is_constant],
        "outputs": [tensor_json(value) for value in values if value.is_output],
        "weights": weights.json(_WEIGHTS),
        "targets": targets,
    }


def _device_part(
    graph: Graph, options: Options, device: DeviceTarget, weights: Weights, files: dict[str, bytes]
) -> Mapping[str, Any]:
    plan = plan_whole(graph, options, device=device)
    kernels = []
    for kernel in plan.kernels:
        name = f"{_KERNELS}/{kernel.symbol}{device.compiler.suffix}"
        files[name] = kernel.text.encode()
        kernels.append(name)
    return {"kernels": kernels, **island_json(plan, graph, weights)}


def _processor_part(graph: Graph, options: Options, weights: Weights, files: dict[str, bytes]) -> Mapping[str, Any]:
    compiler = find_wasm_compiler()
    plan = plan_whole(graph, options, caps=WASM)
    files[_MODULE] = compiler.module(plan.kernels)
    return {"module": _MODULE, "kernels": [kernel.symbol for kernel in plan.kernels], **island_json(plan, graph, weights)}


def _template(page: str) -> Path:
    known = sorted(folder.name for folder in PAGES.iterdir() if folder.is_dir())
    folder = PAGES / page if page in known else Path(page)
    if not (folder / "index.html").is_file():
        raise ConfigError(
            f"--page {page!r} is no page", where="web", hint=f"name a folder with an index.html, or {', '.join(known)}"
        )
    return folder


def _files_of(template: Path) -> list[tuple[str, Path]]:
    return [(file.relative_to(template).as_posix(), file) for file in sorted(template.rglob("*")) if file.is_file()]


def _write(output: Path, made: Mapping[str, bytes], copied: Iterable[tuple[str, Path]]) -> list[Path]:
    written = []
    try:
        output.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(output / _KERNELS, ignore_errors=True)  # of another model
        for name, data in made.items():
            (output / name).parent.mkdir(parents=True, exist_ok=True)
            (output / name).write_bytes(data)
            written.append(output / name)
        for name, source in copied:
            (output / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, output / name)
            written.append(output / name)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror or error}", where=str(output)) from error
    return written
