"""Modules as ONNX files, kept in the zoo's cache by what they are made from."""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from xyntra_bench.architectures._architecture import Architecture, Exporter
from xyntra_bench.architectures._modules import OUTPUT
from xyntra_bench.environment import version_of
from xyntra_bench.errors import BenchError
from xyntra_bench.feeds import synthetic_feeds
from xyntra_zoo.cache import cache_dir, meaning_of

OPSET = 17  # of the traced; the other exporter has its own
SEVERAL = 2  # of a batch that is exported: of one, the exporter takes it for a constant
LACKING = "bench needs PyTorch and transformers: pip install 'xyntra-ep[torch]'"


def exported(architecture: Architecture) -> Path:
    """The file, written first when it is not there."""
    path = cache_dir() / "architectures" / f"{architecture.name}-{_key()}.onnx"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".") as folder:
            made = Path(folder) / "model.onnx"
            _export(architecture, made)
            os.replace(made, path)
    return path


def _key() -> str:
    """Of the sources of all rows and the version of PyTorch: an edit makes all of them anew."""
    try:
        import torch
        import transformers
    except ImportError as error:
        raise BenchError(f"{LACKING} ({error})") from None
    versions = [torch.__version__, transformers.__version__, version_of("torchvision")]
    digest = hashlib.sha256(" ".join(filter(None, versions)).encode())
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(meaning_of(source))
    return digest.hexdigest()[:12]


def built(architecture: Architecture) -> Any:
    """The module with its call, alive and calibrated; the weights are the same each time."""
    import torch

    torch.manual_seed(0)
    module = architecture.build().eval()
    enliven(module)
    example = [torch.from_numpy(x) for x in _example(architecture).values()]
    calibrate(module, lambda: architecture.call(module, *example))
    return _wrapped(architecture, module)


def _export(architecture: Architecture, path: Path) -> None:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the exporters say of other people's code
        wrapped = built(architecture)
        example = [torch.from_numpy(x) for x in _example(architecture).values()]
        names: dict[str, Any] = {"input_names": list(architecture.inputs), "output_names": [OUTPUT]}
        free = {
            name: {i: dim for i, dim in enumerate(value.dims) if isinstance(dim, str)}
            for name, value in architecture.inputs.items()
        }
        with torch.no_grad():
            if architecture.exporter is Exporter.TRACED:
                torch.onnx.export(wrapped, tuple(example), path, dynamo=False, opset_version=OPSET, dynamic_axes=free, **names)
            else:
                shapes = (tuple({i: torch.export.Dim.DYNAMIC for i in axes} for axes in free.values()),)  # of *inputs
                torch.onnx.export(
                    wrapped, tuple(example), path, dynamo=True, dynamic_shapes=shapes, external_data=False, verbose=False, **names
                )  # fmt: skip
                _name_dims(path, free)


def _name_dims(path: Path, free: Mapping[str, Mapping[int, str]]) -> None:
    """Call each free size of a file as the row declares it: some exporters number them."""
    import onnx

    model = onnx.load(path)
    graph = model.graph
    named: dict[str, str] = {}
    for value in graph.input:
        sizes = value.type.tensor_type.shape.dim
        named |= {sizes[i].dim_param: dim for i, dim in free.get(value.name, {}).items() if sizes[i].dim_param}
    for value in (*graph.input, *graph.output, *graph.value_info):
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param in named:
                size.dim_param = named[size.dim_param]
    onnx.save(model, path)


def _wrapped(architecture: Architecture, module: Any) -> Any:
    import torch

    class Called(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *inputs: Any) -> Any:
            return architecture.call(self.module, *inputs)

    return Called().eval()


def _example(architecture: Architecture) -> dict[str, Any]:
    return synthetic_feeds(architecture.declared, architecture.shapes_of(SEVERAL), seed=0)


def enliven(module: Any) -> None:
    """Weights that keep every part alive: LayerScale of 1e-6 and zero biases would hide what they multiply."""
    import torch

    with torch.no_grad():
        for name, p in module.named_parameters():
            if p.dim() > 1 and not name.endswith("embeddings.weight"):
                p.normal_(0, 1 / math.sqrt(p[0].numel()))
            elif p.dim() > 1:
                p.normal_(0, 0.5)
            else:
                p.normal_(0 if "bias" in name else 1, 0.1)


def calibrate(module: Any, run: Callable[[], object]) -> None:
    """Let BatchNorm see what it will normalise: ``run`` calls the module with data."""
    import torch

    kinds = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d)
    norms = [m for m in module.modules() if isinstance(m, kinds)]
    for m in norms:
        m.momentum = 0.5
        m.train()
    with torch.no_grad():
        for _ in range(4 if norms else 0):
            run()
    module.eval()
