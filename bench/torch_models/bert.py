"""BERT's encoder with pooler: one projection for q, k and v would be faster still, but checkpoints have three."""

from __future__ import annotations

from functools import partial
from typing import Any

from xyntra_bench.torch_models._torch_model import TorchModel, Weights, embedding, linear, norm
from xyntra_zoo.bert import BASE, LN_EPS, TINY, BertConfig


def bert(weights: Weights, c: BertConfig) -> Any:
    import torch
    from torch.nn import functional

    class Layer(torch.nn.Module):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.query, self.key, self.value = (linear(weights, f"{name}.attention.self.{p}") for p in ("query", "key", "value"))
            self.attended = linear(weights, f"{name}.attention.output.dense")
            self.norm1 = norm(weights, f"{name}.attention.output.LayerNorm", LN_EPS)
            self.inner = linear(weights, f"{name}.intermediate.dense")
            self.outer = linear(weights, f"{name}.output.dense")
            self.norm2 = norm(weights, f"{name}.output.LayerNorm", LN_EPS)

        def forward(self, x: Any, mask: Any) -> Any:
            q, k, v = (part(x).unflatten(-1, (c.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value))
            attended = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)
            x = self.norm1(self.attended(attended) + x)
            return self.norm2(self.outer(functional.gelu(self.inner(x))) + x)

    class Bert(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            tables = ("word_embeddings", "token_type_embeddings", "position_embeddings")
            self.words, self.types, self.positions = (embedding(weights, f"embeddings.{table}") for table in tables)
            self.norm = norm(weights, "embeddings.LayerNorm", LN_EPS)
            self.layers = torch.nn.ModuleList(Layer(f"encoder.layer.{i}") for i in range(c.layers))
            self.pooler = linear(weights, "pooler.dense")

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> tuple[Any, ...]:
            x = self.words(input_ids) + self.types(token_type_ids) + self.positions.weight[: input_ids.shape[1]]
            x = self.norm(x)
            # Added to scores, not chosen by: what fused attention takes as it is, in its own type.
            mask = (1 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
            for layer in self.layers:
                x = layer(x, mask)
            return x, torch.tanh(self.pooler(x[:, 0]))

    return Bert()


TORCH_MODELS = [
    TorchModel(name="bert-base", make=partial(bert, c=BASE)),
    TorchModel(name="bert-base-tiny", make=partial(bert, c=TINY)),
]
