"""What can be measured: models, chains, scenarios, and the contenders that are installed."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence

from xyntra_bench.architectures import architectures
from xyntra_bench.architectures._modules import full_size
from xyntra_bench.chains import CHAINS
from xyntra_bench.contenders import BASELINE, OPENVINO, PLUGINS, TORCH, Contender
from xyntra_bench.nets import NETS
from xyntra_bench.plan import MEANING, Scenario
from xyntra_bench.run import probe
from xyntra_zoo import zoo


def inventory() -> list[tuple[str, Sequence[str]]]:
    """Titles with their rows."""
    return [
        ("models (bench run zoo -m NAME)", [_model(name) for name in zoo.names()]),
        ("nets with dynamic sizes (bench nets NAME)", [f"{net.name:20} {len(net.sizes)} sizes" for net in NETS]),
        ("architectures (bench architectures NAME)", architectures.names()),
        ("modules of full size (bench run torch -m NAME, and all architectures)", full_size.names()),
        ("chains (bench micro NAME)", [f"{chain.name:20} {len(list(chain.points()))} points" for chain in CHAINS]),
        ("scenarios (--scenario NAME)", [f"{scenario:20} {MEANING[scenario]}" for scenario in Scenario]),
        ("contenders (-e NAME:key=value)", [_contender(name) for name in _known()]),
    ]


def _model(name: str) -> str:
    model = zoo[name]
    lengths = ",".join(map(str, model.seqs)) or "-"
    return f"{model.name:24} {model.family:8} seq {lengths:8} {'tests only' if model.tiny else ''}".rstrip()


def _known() -> list[str]:
    """Those of the ONNX Runtime that is installed, and those that `bench` knows to come with packages of their own."""
    import onnxruntime

    return list(dict.fromkeys([BASELINE, *PLUGINS, OPENVINO, TORCH, *onnxruntime.get_available_providers()]))


def _contender(name: str) -> str:
    reason = probe(Contender(provider=name))
    return f"{name:28} {reason or 'installed' + _version(name)}"


def _version(name: str) -> str:
    plugins = {plugin: module.replace("_", "-") for plugin, module in PLUGINS.items()}
    package = {OPENVINO: "openvino", TORCH: "torch", **plugins}.get(name, "onnxruntime")
    try:
        return f", {package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return ""
