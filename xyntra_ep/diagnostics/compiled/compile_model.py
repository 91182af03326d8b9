"""`xyntra compile`: a model that runs where there is neither Python nor a compiler (docs/compiled-models.md)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xyntra_ep.diagnostics.sessions import PROVIDER, check_file
from xyntra_ep.errors import ConfigError, XyntraError
from xyntra_ep.options import InstructionSets, Precision
from xyntra_ep.provider import registration
from xyntra_ep.provider.ahead import Made, collected
from xyntra_ep.tracea.runtime.hashing import hash128_of
from xyntra_ep.wording import counted

# What servers and laptops have; products in bfloat16 want AMD's instructions for them, too.
PORTABLE = ("amx", "avx512", "avx2")
_MOST_INLINE_BYTES = 1_500_000_000  # of weights: a protobuf file has 2 GB at most
_MANY_BYTES = 1024  # smaller weights stay in the model, where sizes are looked up


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledFile:
    """What was written. ``isas``: the best first. ``claimed`` of ``nodes`` are in ``islands`` now."""

    path: Path
    files: tuple[Path, ...]
    isas: tuple[str, ...]
    claimed: int
    nodes: int
    islands: int
    kernel_bytes: int
    digests: tuple[str, ...]

    def __str__(self) -> str:
        total = sum(file.stat().st_size for file in self.files)
        beside = f" ({', '.join(file.name for file in self.files[1:])} beside it)" if len(self.files) > 1 else ""
        return (
            f"{self.path}: {self.claimed} of {counted(self.nodes, 'node')} in {counted(self.islands, 'island')}, for"
            f" {', '.join(self.isas)}; {total / 1e6:.1f} MB, {self.kernel_bytes / 1e6:.1f} MB of them kernels and plans{beside}"
        )


def compile_model(
    model: Path,
    output: Path,
    *,
    isas: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    embed: bool = True,
    digest: Path | None = None,
    force: bool = False,
) -> CompiledFile:
    """Write ``output``: ``model`` with plans and kernels for ``isas`` (of the option compile_for; by default what servers and
    laptops have) in place of the nodes that XyntraEP takes. ``embed``: else these are in a file beside it. ``digest``: a file to
    write for the option compiled_digest.

    Raises ConfigError where the model cannot be opened or the file is there already, XyntraError where nothing can be compiled.
    """
    import onnxruntime as ort

    check_file(model)
    _check_output(model, output, force)
    registration.register()
    given = dict(options or {})
    if isas or "compile_for" not in given:
        given["compile_for"] = ",".join(InstructionSets.parse(",".join(isas)) if isas else _portable(given))
    settings = ort.SessionOptions()
    settings.log_severity_level = 4  # what goes wrong is raised
    settings.add_provider(PROVIDER, given)
    weights = output.with_name(f"{output.name}.data") if _weight_bytes(model) > _MOST_INLINE_BYTES else None
    compiler = ort.ModelCompiler(
        settings,
        str(model),
        embed_compiled_data_into_model=embed,
        external_initializers_file_path=str(weights) if weights is not None else None,
        external_initializers_size_threshold=_MANY_BYTES,
        graph_optimization_level=ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    )
    with collected() as made:
        try:
            compiler.compile_to_file(str(output))
        except Exception as error:  # ONNX Runtime's own classes have no common base of their own
            with suppress(OSError):
                output.unlink()
            raise XyntraError(_without_code(str(error)), where=str(model)) from error
    if not made:
        with suppress(OSError):
            output.unlink()
        hint = f"xyntra explain {model} says why"
        raise XyntraError("nothing of the model can be compiled, or it would lose to ONNX Runtime", where=str(model), hint=hint)
    digests = tuple(hashlib.sha256(one.data).hexdigest() for one in made)
    if digest is not None:
        digest.write_text("".join(f"{line}  {output.name}\n" for line in digests), encoding="utf-8")
    return _told(output, made, digests, embed, weights)


def _told(output: Path, made: Sequence[Made], digests: tuple[str, ...], embed: bool, weights: Path | None) -> CompiledFile:
    files = [output, *([weights] if weights is not None and weights.exists() else [])]
    if not embed:  # as native/compiled/context_nodes.cc names them
        hash128 = hash128_of(registration.library())
        files += [output.with_name(f"{output.stem}_{hash128(one.data).hex()[:16]}.xyntra") for one in made]
    reports = [json.loads(one.report) for one in made]
    return CompiledFile(
        path=output,
        files=tuple(files),
        isas=tuple(target.isa for target in made[0].model.targets),
        claimed=sum(_claimed(report) for report in reports),
        nodes=sum(len(report["nodes"]) for report in reports),
        islands=sum(len(report["islands"]) for report in reports),
        kernel_bytes=sum(len(one.data) for one in made),
        digests=digests,
    )


def _claimed(report: Mapping[str, Any]) -> int:
    return sum(len(island["nodes"]) for island in report["islands"])


def _check_output(model: Path, output: Path, force: bool) -> None:
    if output.exists() and output.samefile(model):
        raise ConfigError("is the model itself", where=str(output), hint="give -o another name")
    if output.exists() and not force:
        raise ConfigError("exists already", where=str(output), hint="give -o another name, or --force")
    if not output.parent.is_dir():
        raise ConfigError("its folder does not exist", where=str(output), hint=f"make {output.parent}")
    with suppress(OSError):
        output.unlink()


def _portable(options: Mapping[str, str]) -> tuple[str, ...]:
    if options.get("precision", "").strip().lower() == Precision.BF16:
        return (PORTABLE[0], "avx512_bf16", *PORTABLE[1:])
    return PORTABLE


def _weight_bytes(model: Path) -> int:
    """What its weights come to at most: the model's own size, and that of other files in its folder that look like its data."""
    beside = (file for file in model.parent.iterdir() if file.is_file() and file.suffix in (".data", ".bin", ".weight", ".pb"))
    return model.stat().st_size + sum(file.stat().st_size for file in beside)


def _without_code(text: str) -> str:
    """ONNX Runtime's words without what stands before them: `[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : `."""
    parts = text.split(" : ", 3)
    return parts[3] if len(parts) == 4 and parts[0].startswith("[ONNXRuntimeError]") else text
