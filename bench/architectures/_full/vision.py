"""Classifiers of images, torchvision's where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xyntra_bench.architectures._architecture import Architecture, image, logits, transformer


def _of_torchvision(name: str, otherwise: Callable[[], Any]) -> Callable[[], Any]:
    """Its model of that name, else the one of `transformers` that computes the same."""

    def build() -> Any:
        try:
            from torchvision import models
        except (ImportError, RuntimeError):  # the second of one that was built for another PyTorch
            return otherwise()
        return getattr(models, name)(weights=None)

    return build


def _scores(module: Any, pixels: Any) -> Any:
    """Of a model of torchvision, which returns them, or of transformers, which returns them by name."""
    found = module(pixels)
    return getattr(found, "logits", found)


# Random weights amplify rounding: ONNX Runtime came out 2.4e-5 off eager, and we 1.8e-5.
MAX_ERR = 1e-4

ARCHITECTURES = [
    Architecture(
        name="resnet50",
        build=_of_torchvision("resnet50", transformer("ResNetForImageClassification")),
        call=_scores,
        inputs=image(224),
        max_err=MAX_ERR,
    ),
    Architecture(
        name="mobilenetv2",
        build=_of_torchvision("mobilenet_v2", transformer("MobileNetV2ForImageClassification")),
        call=_scores,
        inputs=image(224),
        max_err=MAX_ERR,
    ),
    Architecture(name="vit-base", build=transformer("ViTForImageClassification"), call=logits, inputs=image(224)),
]
