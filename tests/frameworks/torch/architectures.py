"""Small models of the architectures that people compile, with random weights: what is compared with eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import transformers

try:
    from torchvision import models
except ModuleNotFoundError:
    models = None
except RuntimeError:  # built for another PyTorch: it imports once these are declared, which no model here calls
    _LIBRARY = torch.library.Library("torchvision", "DEF")
    for _name in ("nms", "qnms"):
        _LIBRARY.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    from torchvision import models

__all__ = ["ARCHITECTURES", "Architecture", "models"]

Built = tuple[torch.nn.Module, Mapping[str, torch.Tensor]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """``build`` gives a model and the arguments of its call. ``needs``: the package that has it."""

    name: str
    build: Callable[[], Built]
    needs: str = "transformers"


def _tokens(*shape: int) -> torch.Tensor:
    return torch.randint(1, 90, shape)


def _image(size: int, batch: int = 2) -> torch.Tensor:
    return torch.randn(batch, 3, size, size)


def _without_dropout(config: Any) -> Any:
    for name in list(vars(config)):
        if "drop" in name and isinstance(getattr(config, name), int | float):
            setattr(config, name, 0.0)
    return config


_SMALL = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def _encoder(kind: str, **more: Any) -> Callable[[], Built]:
    def build() -> Built:
        config = getattr(transformers, f"{kind}Config")(**_SMALL | {"max_position_embeddings": 40} | more)
        return getattr(transformers, f"{kind}Model")(_without_dropout(config)), {"input_ids": _tokens(2, 17)}

    return build


def _causal(kind: str, **more: Any) -> Callable[[], Built]:
    def build() -> Built:
        config = getattr(transformers, f"{kind}Config")(**_SMALL | {"max_position_embeddings": 40} | more)
        model = getattr(transformers, f"{kind}ForCausalLM")(_without_dropout(config))
        tokens = _tokens(2, 17)
        return model, {"input_ids": tokens, "labels": tokens, "use_cache": False}

    return build


def _distilbert() -> Built:
    config = transformers.DistilBertConfig(
        vocab_size=100, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=40
    )
    return transformers.DistilBertModel(_without_dropout(config)), {"input_ids": _tokens(2, 17)}


def _gpt2() -> Built:
    config = transformers.GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=40)
    tokens = _tokens(2, 17)
    model = transformers.GPT2LMHeadModel(_without_dropout(config))
    return model, {"input_ids": tokens, "labels": tokens, "use_cache": False}


def _t5() -> Built:
    config = transformers.T5Config(
        vocab_size=100, d_model=32, d_ff=64, num_layers=2, num_heads=4, d_kv=8, decoder_start_token_id=0
    )
    model = transformers.T5ForConditionalGeneration(_without_dropout(config))
    return model, {"input_ids": _tokens(2, 13), "labels": _tokens(2, 9), "use_cache": False}


def _whisper() -> Built:
    config = transformers.WhisperConfig(
        vocab_size=100, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=16, max_source_positions=20, max_target_positions=20,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    model = transformers.WhisperModel(_without_dropout(config))
    return model, {"input_features": torch.randn(2, 16, 40), "decoder_input_ids": _tokens(2, 7), "use_cache": False}


def _vision(kind: str, size: int = 32, **more: Any) -> Callable[[], Built]:
    def build() -> Built:
        config = getattr(transformers, f"{kind}Config")(image_size=size, **more)
        return getattr(transformers, f"{kind}Model")(_without_dropout(config)), {"pixel_values": _image(size)}

    return build


def _calibrated(model: torch.nn.Module, size: int) -> torch.nn.Module:
    """With the running statistics of one batch: with those of a new model, what comes out of many layers is nothing."""
    layers = [module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    for layer in layers:
        layer.momentum = 1.0
    with torch.no_grad():
        model.train()(_image(size, 8))
    for layer in layers:
        layer.momentum = 0.1
    return model


def _torchvision(name: str, size: int = 64, **more: Any) -> Callable[[], Built]:
    def build() -> Built:
        model = getattr(models, name)(weights=None, num_classes=10, **more)
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
            if type(module).__name__ == "StochasticDepth":
                module.p = 0.0
        return _calibrated(model, size), {"x": _image(size)}

    return build


def _densenet() -> Built:
    model = models.DenseNet(growth_rate=8, block_config=(2, 2, 2), num_init_features=16, num_classes=10)
    return _calibrated(model, 64), {"x": _image(64)}


_VIT = {"patch_size": 8, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}

ARCHITECTURES = [
    Architecture(name="bert", build=_encoder("Bert")),
    Architecture(name="roberta", build=_encoder("Roberta", max_position_embeddings=60)),
    Architecture(name="distilbert", build=_distilbert),
    Architecture(name="electra", build=_encoder("Electra", embedding_size=32)),
    Architecture(name="gpt2", build=_gpt2),
    Architecture(name="llama", build=_causal("Llama")),
    Architecture(name="qwen2", build=_causal("Qwen2", num_key_value_heads=2)),
    Architecture(name="gpt_neox", build=_causal("GPTNeoX")),
    Architecture(name="t5", build=_t5),
    Architecture(name="whisper", build=_whisper),
    Architecture(name="vit", build=_vision("ViT", **_VIT)),
    Architecture(name="deit", build=_vision("DeiT", **_VIT)),
    Architecture(name="convnext", build=_vision("ConvNext", 64, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1])),
    Architecture(name="resnet18", build=_torchvision("resnet18"), needs="torchvision"),
    Architecture(name="mobilenet_v2", build=_torchvision("mobilenet_v2"), needs="torchvision"),
    Architecture(name="mobilenet_v3", build=_torchvision("mobilenet_v3_small"), needs="torchvision"),
    Architecture(name="squeezenet", build=_torchvision("squeezenet1_1"), needs="torchvision"),
    Architecture(name="shufflenet", build=_torchvision("shufflenet_v2_x0_5"), needs="torchvision"),
    Architecture(name="densenet", build=_densenet, needs="torchvision"),
]
