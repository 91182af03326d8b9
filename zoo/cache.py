"""Built models on disk, outside the repository: found by name, source and seed, replaced atomically."""

from __future__ import annotations

import ast
import hashlib
import os
import tempfile
from pathlib import Path

import onnx

from xyntra_zoo.model import ZooModel
from xyntra_zoo.params import Params, RandomParams

SHARED = ("graph_builder.py", "layers.py", "params.py")


def cache_dir() -> Path:
    """`$XYNTRA_ZOO_DIR`, else `xyntra-zoo` below the user's cache directory."""
    if chosen := os.environ.get("XYNTRA_ZOO_DIR"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "xyntra-zoo"


def model_path(model: ZooModel, *, weights: Path | None = None) -> Path:
    """The file of `model`, built first when it is not there. With `weights`, filled from that checkpoint."""
    path = cache_dir() / f"{model.name}-{_key(model, weights)}.onnx"
    if not path.exists():
        _write(model.build(_params(model, weights)), path)
    return path


def prune() -> list[Path]:
    """Delete the files no present model would be read from. Models filled from checkpoints are kept."""
    from xyntra_zoo.registry import zoo  # the registry imports every model file; not needed to read one model

    keep = {f"{model.name}-{_key(model, None)}.onnx" for model in zoo}
    stale = [path for path in sorted(cache_dir().glob("*.onnx")) if path.name not in keep and "-w" not in path.stem]
    for path in stale:
        path.unlink(missing_ok=True)
    return stale


def _params(model: ZooModel, weights: Path | None) -> Params:
    if weights is None:
        return RandomParams(model.seed)
    from xyntra_zoo.weights import CheckpointParams, load_safetensors

    return CheckpointParams(load_safetensors(weights), model.checkpoint, source=weights.name)


def _key(model: ZooModel, weights: Path | None) -> str:
    """Source of the builder and of what it shares, plus the seed or the checkpoint's content. Of a quantised model also the
    float model's builder, and the version of the runtime whose quantisers make it."""
    here = Path(__file__).parent
    digest = hashlib.sha256(f"{model.name} {model.seed}".encode())
    sources = {_builder(model), *(here / name for name in SHARED), *here.glob("_*.py")}
    if model.float_model:
        sources.add(_builder(model.float_model))
        digest.update(_quantisers().encode())
    for source in sorted(sources):
        digest.update(meaning_of(source))
    if weights is None:
        return digest.hexdigest()[:16]
    with weights.open("rb") as file:
        digest.update(hashlib.file_digest(file, "sha256").digest())
    return f"w{digest.hexdigest()[:16]}"


def _builder(model: ZooModel) -> Path:
    return Path(getattr(model.build, "func", model.build).__code__.co_filename)


def _quantisers() -> str:
    """Empty without a runtime, which no other model needs."""
    try:
        import onnxruntime
    except ImportError:
        return ""
    return str(onnxruntime.__version__)


def meaning_of(source: Path) -> bytes:
    """Of a file of Python: its layout and comments do not count."""
    return ast.dump(ast.parse(source.read_bytes())).encode()


def _write(model: onnx.ModelProto, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".partial")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(model.SerializeToString())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
