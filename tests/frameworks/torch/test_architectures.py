"""torch.compile(backend="xyntra") on small models of many architectures, forward and backward, against eager PyTorch."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.native, pytest.mark.slow]

FORWARD, GRADIENT = 1e-4, 1e-3
# Which of the calls that PyTorch makes we take at least, in inference and backward.
LEAST = {
    "bert": (1.0, 0.95),
    "roberta": (1.0, 0.95),
    "distilbert": (1.0, 0.95),
    "electra": (1.0, 0.95),
    "gpt2": (0.95, 0.95),
    "llama": (0.95, 0.95),
    "qwen2": (0.95, 0.95),
    "gpt_neox": (0.95, 0.9),
    "t5": (0.9, 0.9),
    "whisper": (0.8, 0.9),
    "vit": (1.0, 1.0),
    "deit": (1.0, 1.0),
    "convnext": (1.0, 0.95),
    "resnet18": (1.0, 0.95),
    "mobilenet_v2": (1.0, 0.9),
    "mobilenet_v3": (1.0, 0.9),
    "squeezenet": (1.0, 0.9),
    "shufflenet": (1.0, 0.9),
    "densenet": (1.0, 0.9),
}


@pytest.mark.parametrize("name", LEAST)
def test_architecture(name: str) -> None:
    from tests.frameworks.torch.architectures import ARCHITECTURES
    from tests.frameworks.torch.compare import errors, fresh, share
    from xyntra_ep.frameworks.torch import explain
    from xyntra_ep.frameworks.torch.record import Direction

    [architecture] = [row for row in ARCHITECTURES if row.name == name]
    pytest.importorskip(architecture.needs)
    with fresh():
        found = errors(*architecture.build())
        claimed = share(Direction.INFERENCE), share(Direction.BACKWARD)
        print(
            f"{name}: {found}; {claimed[0]:.0%} of inference, {share(Direction.FORWARD):.0%} forward, {claimed[1]:.0%} backward"
        )
        assert max(found.inference, found.forward) <= FORWARD, str(found)
        assert found.gradient <= GRADIENT, str(found)
        assert claimed[0] >= LEAST[name][0] and claimed[1] >= LEAST[name][1], explain()


def test_each_architecture_is_tested() -> None:
    from tests.frameworks.torch.architectures import ARCHITECTURES

    assert {row.name for row in ARCHITECTURES} == set(LEAST)


def test_batch_normalisation_in_training() -> None:
    """Of a net without kinks, so that rounding decides nothing: the statistics of a batch amplify what a kink makes of it."""
    import torch

    from tests.frameworks.torch import architectures
    from tests.frameworks.torch.compare import errors, fresh

    pytest.importorskip("torchvision")
    with fresh():
        model = architectures.models.resnet18(num_classes=10)
        for module in model.modules():
            for name, child in module.named_children():
                if isinstance(child, torch.nn.ReLU):
                    setattr(module, name, torch.nn.SiLU())
        found = errors(model, {"x": torch.randn(4, 3, 64, 64)}, train=True)
        assert found.forward <= FORWARD and found.gradient <= GRADIENT, str(found)
