"""GPT-2 over a prompt, and a step against the keys and values of the past."""

from __future__ import annotations

from functools import partial
from typing import Any

from xyntra_bench.torch_models._torch_model import TorchModel, Weights, conv1d, norm, parameter
from xyntra_zoo._gpt2 import GPT2, LN_EPS, TINY, Gpt2Config


def gpt2(weights: Weights, c: Gpt2Config, *, past: bool) -> Any:
    import torch
    from torch.nn import functional

    class Block(torch.nn.Module):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.norm1, self.norm2 = (norm(weights, f"{name}.ln_{i}", LN_EPS) for i in (1, 2))
            self.qkv, self.proj = conv1d(weights, f"{name}.attn.c_attn"), conv1d(weights, f"{name}.attn.c_proj")
            self.fc1, self.fc2 = conv1d(weights, f"{name}.mlp.c_fc"), conv1d(weights, f"{name}.mlp.c_proj")

        def forward(self, x: Any, key: Any, value: Any) -> tuple[Any, Any, Any]:
            q, k, v = (part.unflatten(-1, (c.heads, -1)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, dim=-1))
            if past:
                k, v = torch.cat((key, k), dim=2), torch.cat((value, v), dim=2)
            # A step of one token sees all of the past; a prompt has none.
            attended = functional.scaled_dot_product_attention(q, k, v, is_causal=not past)
            x = x + self.proj(attended.transpose(1, 2).flatten(2))
            return x + self.fc2(functional.gelu(self.fc1(self.norm2(x)), approximate="tanh")), k, v

    class Gpt2(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = parameter(weights, "wte.weight"), parameter(weights, "wpe.weight")
            self.blocks = torch.nn.ModuleList(Block(f"h.{i}") for i in range(c.layers))
            self.norm = norm(weights, "ln_f", LN_EPS)

        def forward(self, input_ids: Any, **pasts: Any) -> tuple[Any, ...]:
            start = pasts["past_key_0"].shape[2] if past else 0
            x = functional.embedding(input_ids, self.words) + self.places[start : start + input_ids.shape[1]]
            presents = []
            for i, block in enumerate(self.blocks):
                x, *present = block(x, pasts.get(f"past_key_{i}"), pasts.get(f"past_value_{i}"))
                presents += present
            logits = functional.linear(self.norm(x), self.words)
            return (logits, *presents) if past else (logits,)

    return Gpt2()


TORCH_MODELS = [
    TorchModel(name="gpt2-prefill", make=partial(gpt2, c=GPT2, past=False)),
    TorchModel(name="gpt2-prefill-tiny", make=partial(gpt2, c=TINY, past=False)),
    TorchModel(name="gpt2-decode", make=partial(gpt2, c=GPT2, past=True)),
    TorchModel(name="gpt2-decode-tiny", make=partial(gpt2, c=TINY, past=True)),
]
