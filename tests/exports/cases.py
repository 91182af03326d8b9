"""The models that are exported: rows over transformers' classes, without PyTorch itself.

A class built from its configuration's defaults is the published size; ``small`` makes it one that a test can afford.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Tensors = dict[str, Any]
Dims = Mapping[str, int]  # sizes of the named dimensions
Axes = Mapping[str, Mapping[int, str]]  # input -> axis -> its name

BATCH = ({"batch": 1}, {"batch": 3})
LENGTH = tuple({"batch": b, "length": s} for b in (1, 3) for s in (7, 20))
PAST = tuple({"batch": b, "past": s} for b in (1, 3) for s in (5, 18))
PIXELS = tuple({"batch": b, "height": h, "width": w} for b, h, w in ((1, 64, 64), (3, 64, 64), (1, 96, 64), (2, 96, 128)))
IMAGE: Axes = {"pixel_values": {0: "batch"}}
ANY_IMAGE: Axes = {"pixel_values": {0: "batch", 2: "height", 3: "width"}}
TOKENS: Axes = {"input_ids": {0: "batch", 1: "length"}, "attention_mask": {0: "batch", 1: "length"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportCase:
    """``call(model, tensors)`` gives the outputs that are compared; ``feeds(config, sizes, rng)`` its tensors.

    ``sizes``: what one session is run with, the first of them twice. ``attention``: fused attention kernels that are due at
    ``small``, one for each layer.
    """

    name: str
    model: str
    config: str
    call: Callable[[Any, Tensors], Sequence[Any]]
    feeds: Callable[[Any, Dims, np.random.Generator], dict[str, Array]]
    axes: Axes
    sizes: Sequence[Dims]
    small: Mapping[str, Any] = field(default_factory=dict)
    kernels: str = ""  # how transformers computes attention: its own choice (mostly sdpa) or "eager"
    attention: int = 0
    exporters: tuple[str, ...] = ("traced", "dynamo")
    norms: int = 0  # row kernels that are due beside softmax: one for each normalisation


def tokens(config: Any, dims: Dims, rng: np.random.Generator) -> dict[str, Array]:
    """Token numbers; all rows but the first end in padding."""
    batch, length = dims["batch"], dims["length"]
    mask = np.ones((batch, length), np.int64)
    mask[1:, length - length // 3 :] = 0
    return {"input_ids": rng.integers(3, config.vocab_size, (batch, length)), "attention_mask": mask}


def image(config: Any, dims: Dims, rng: np.random.Generator) -> dict[str, Array]:
    side = getattr(config, "image_size", 64)
    shape = (dims["batch"], config.num_channels, dims.get("height", side), dims.get("width", side))
    return {"pixel_values": rng.standard_normal(shape, np.float32)}


def spectrum(config: Any, dims: Dims, rng: np.random.Generator) -> dict[str, Array]:
    shape = (dims["batch"], config.num_mel_bins, 2 * config.max_source_positions)
    return {"input_features": rng.standard_normal(shape, np.float32)}


def one_token(config: Any, dims: Dims, rng: np.random.Generator) -> dict[str, Array]:
    """The next token and what a decoder remembers of those before."""
    batch, past = dims["batch"], dims["past"]
    heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
    shape = (batch, heads, past, config.hidden_size // config.num_attention_heads)
    feeds: dict[str, Array] = {
        "input_ids": rng.integers(3, config.vocab_size, (batch, 1)),
        "attention_mask": np.ones((batch, past + 1), np.int64),
    }
    feeds["attention_mask"][1:, : past // 3] = 0  # padding on the left, as generation has it
    for layer in range(config.num_hidden_layers):
        for what in ("key", "value"):
            feeds[f"past_{what}_{layer}"] = rng.standard_normal(shape, np.float32)
    return feeds


def past_axes(layers: int) -> Axes:
    axes: dict[str, Mapping[int, str]] = {"input_ids": {0: "batch"}, "attention_mask": {0: "batch", 1: "past+1"}}
    for layer in range(layers):
        for what in ("key", "value"):
            axes[f"past_{what}_{layer}"] = {0: "batch", 2: "past"}
    return axes


def hidden(model: Any, x: Tensors) -> Sequence[Any]:
    return [model(**x).last_hidden_state]


def pooled(model: Any, x: Tensors) -> Sequence[Any]:
    out = model(**x)
    return [out.last_hidden_state, out.pooler_output]


def logits(model: Any, x: Tensors) -> Sequence[Any]:
    return [model(**x).logits]


def prefill(model: Any, x: Tensors) -> Sequence[Any]:
    """Logits, then keys and values of each layer."""
    out = model(**x, use_cache=True)
    return [out.logits, *(t for layer in out.past_key_values.layers for t in (layer.keys, layer.values))]


def decode(model: Any, x: Tensors) -> Sequence[Any]:
    from transformers import DynamicCache

    past = [(x[f"past_key_{i}"], x[f"past_value_{i}"]) for i in range(model.config.num_hidden_layers)]
    return prefill(_Bound(model, DynamicCache(past)), {n: x[n] for n in ("input_ids", "attention_mask")})


@dataclass(frozen=True, slots=True)
class _Bound:
    """A model with the cache that it continues."""

    model: Any
    cache: Any

    def __call__(self, **x: Any) -> Any:
        return self.model(**x, past_key_values=self.cache)


def whisper_encoder(model: Any, x: Tensors) -> Sequence[Any]:
    return [model.get_encoder()(x["input_features"]).last_hidden_state]


_BERT = {
    "vocab_size": 99, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
    "max_position_embeddings": 64,
}  # fmt: skip
_GPT2 = {"vocab_size": 99, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64}
_LLAMA = {
    "vocab_size": 99, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 128, "max_position_embeddings": 64,
}  # fmt: skip

CASES = [
    ExportCase(
        name="bert", model="BertModel", config="BertConfig", small=_BERT, attention=2, norms=5,
        call=pooled, feeds=tokens, axes=TOKENS, sizes=LENGTH,
    ),
    ExportCase(
        name="bert_eager", model="BertModel", config="BertConfig", small=_BERT, kernels="eager", attention=2, norms=5,
        exporters=("traced14", "traced", "dynamo"),
        call=pooled, feeds=tokens, axes=TOKENS, sizes=LENGTH,
    ),
    ExportCase(
        name="resnet", model="ResNetForImageClassification", config="ResNetConfig",
        small={"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 2], "layer_type": "bottleneck", "num_labels": 11},
        call=logits, feeds=image, axes=ANY_IMAGE, sizes=PIXELS,
    ),
    ExportCase(
        name="mobilenet_v2", model="MobileNetV2ForImageClassification", config="MobileNetV2Config",
        small={"depth_multiplier": 0.25, "image_size": 64, "num_labels": 11},
        call=logits, feeds=image, axes=IMAGE, sizes=BATCH,
    ),
    ExportCase(
        name="efficientnet", model="EfficientNetForImageClassification", config="EfficientNetConfig",
        small={"width_coefficient": 0.25, "depth_coefficient": 0.3, "image_size": 64, "hidden_dim": 320, "num_labels": 11},
        call=logits, feeds=image, axes=IMAGE, sizes=BATCH,
    ),
    ExportCase(
        name="convnext", model="ConvNextModel", config="ConvNextConfig", norms=9, exporters=("traced14", "traced", "dynamo"),
        small={"hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 2, 1]},
        call=pooled, feeds=image, axes=ANY_IMAGE, sizes=PIXELS,
    ),
    ExportCase(
        name="swin", model="SwinModel", config="SwinConfig", attention=4, norms=12, exporters=("traced14", "traced", "dynamo"),
        small={"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
        call=pooled, feeds=image, axes=IMAGE, sizes=BATCH,
    ),
    ExportCase(
        name="vit", model="ViTModel", config="ViTConfig", attention=2, norms=5,
        small={
            "image_size": 32, "patch_size": 8, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
            "intermediate_size": 128,
        },
        call=pooled, feeds=image, axes=IMAGE, sizes=BATCH,
    ),
    ExportCase(
        name="gpt2_prefill", model="GPT2LMHeadModel", config="GPT2Config", small=_GPT2, attention=2, norms=5,
        call=prefill, feeds=tokens, axes=TOKENS, sizes=LENGTH,
    ),
    ExportCase(
        name="gpt2_decode", model="GPT2LMHeadModel", config="GPT2Config", small=_GPT2, attention=2, norms=5,
        call=decode, feeds=one_token, axes=past_axes(2), sizes=PAST,
    ),
    ExportCase(
        name="llama_prefill", model="LlamaForCausalLM", config="LlamaConfig", small=_LLAMA, attention=2, norms=5,
        call=prefill, feeds=tokens, axes=TOKENS, sizes=LENGTH,
    ),
    ExportCase(
        name="llama_decode", model="LlamaForCausalLM", config="LlamaConfig", small=_LLAMA, attention=2, norms=5,
        call=decode, feeds=one_token, axes=past_axes(2), sizes=PAST,
    ),
    ExportCase(
        name="t5_encoder", model="T5EncoderModel", config="T5Config", attention=2, norms=5,
        small={"vocab_size": 99, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4},
        call=hidden, feeds=tokens, axes=TOKENS, sizes=LENGTH,
    ),
    ExportCase(
        name="whisper_encoder", model="WhisperModel", config="WhisperConfig", attention=2, norms=5,
        small={
            "vocab_size": 99, "d_model": 64, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 128,
            "decoder_layers": 1, "decoder_attention_heads": 4, "decoder_ffn_dim": 128, "num_mel_bins": 16,
            "max_source_positions": 24, "max_target_positions": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
            "decoder_start_token_id": 1,
        },
        call=whisper_encoder, feeds=spectrum, axes={"input_features": {0: "batch"}}, sizes=BATCH,
    ),
]  # fmt: skip
