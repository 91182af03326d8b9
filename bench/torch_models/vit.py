"""The vision transformer with a class token."""

from __future__ import annotations

from functools import partial
from typing import Any

from xyntra_bench.torch_models._torch_model import TorchModel, Weights, linear, norm, parameter
from xyntra_zoo.vit import LN_EPS, TINY, VIT_TINY, VitConfig


def vit(weights: Weights, c: VitConfig) -> Any:
    import torch
    from torch.nn import functional

    class Block(torch.nn.Module):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.norm1, self.norm2 = (norm(weights, f"{name}.norm{i}", LN_EPS) for i in (1, 2))
            self.qkv, self.proj = linear(weights, f"{name}.attn.qkv"), linear(weights, f"{name}.attn.proj")
            self.fc1, self.fc2 = linear(weights, f"{name}.mlp.fc1"), linear(weights, f"{name}.mlp.fc2")

        def forward(self, x: Any) -> Any:
            q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, c.heads, -1)).permute(2, 0, 3, 1, 4)
            x = x + self.proj(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            return x + self.fc2(functional.gelu(self.fc1(self.norm2(x))))

    class Vit(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches, self.bias = (parameter(weights, f"patch_embed.proj.{part}") for part in ("weight", "bias"))
            self.token, self.places = parameter(weights, "cls_token"), parameter(weights, "pos_embed")
            self.blocks = torch.nn.ModuleList(Block(f"blocks.{i}") for i in range(c.layers))
            self.norm, self.head = norm(weights, "norm", LN_EPS), linear(weights, "head")

        def forward(self, pixel_values: Any) -> tuple[Any, ...]:
            x = functional.conv2d(pixel_values, self.patches, self.bias, stride=c.patch).flatten(2).transpose(1, 2)
            x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), dim=1) + self.places
            for block in self.blocks:
                x = block(x)
            return (self.head(self.norm(x)[:, 0]),)

    return Vit()


TORCH_MODELS = [
    TorchModel(name="vit-tiny16", make=partial(vit, c=VIT_TINY)),
    TorchModel(name="vit-tiny16-tiny", make=partial(vit, c=TINY)),
]
