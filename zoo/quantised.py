"""Quantised models, made from other rows by ONNX Runtime's quantisers: what people deploy on CPUs.

`max_err` bounds the distance of two runtimes that compute the same quantised file. A tie that is rounded the other way changes an
activation by a whole step, and the layers behind it carry that on. So ONNX Runtime differs from itself without its graph
optimisations, and OpenVINO from both; each bound is about twice the largest of these differences that was seen.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from xyntra_zoo import bert, gpt2_decode, gpt2_prefill, mobilenetv2, resnet50, vit
from xyntra_zoo.model import ZooModel
from xyntra_zoo.quantisers import Recipe, blocks_of_4_bits, dynamic_int8, quantised, static_qdq

FLOAT: dict[str, ZooModel] = {
    model.name: model
    for rows in (bert.MODELS, resnet50.MODELS, mobilenetv2.MODELS, vit.MODELS, gpt2_prefill.MODELS, gpt2_decode.MODELS)
    for model in rows
}


def row(name: str, suffix: str, recipe: Recipe, max_err: float) -> ZooModel:
    """The row of a float model again, with the suffix before its `-tiny`."""
    model = FLOAT[name]
    return replace(
        model,
        name=f"{name.removesuffix('-tiny')}-{suffix}{'-tiny' if model.tiny else ''}",
        build=partial(quantised, float_model=model, recipe=recipe),
        max_err=max_err,
        float_model=model,
        served=(),
    )


def both(name: str, suffix: str, recipe: Recipe, max_err: float) -> list[ZooModel]:
    """At full size and tiny."""
    return [row(n, suffix, recipe, max_err) for n in (name, f"{name}-tiny")]


MODELS = [
    *both("bert-base", "dq8", dynamic_int8, max_err=0.15),
    *both("resnet50", "qdq", static_qdq, max_err=0.1),
    *both("mobilenetv2", "qdq", static_qdq, max_err=0.2),
    *both("vit-tiny16", "qdq", static_qdq, max_err=0.5),
    *both("gpt2-prefill", "q4", blocks_of_4_bits, max_err=0.03),
    *both("gpt2-decode", "q4", blocks_of_4_bits, max_err=0.03),
]
