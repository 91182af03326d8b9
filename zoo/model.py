"""What a zoo file declares: one `ZooModel` row per model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import onnx

from xyntra_zoo.params import Params

Feeds = dict[str, npt.NDArray[np.generic]]


class Family(StrEnum):
    BERT = "bert"
    RESNET = "resnet"
    MOBILENET = "mobilenet"
    VIT = "vit"
    GPT2 = "gpt2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Where the real weights of a model live, and how their tensor names differ from the builder's."""

    hub_id: str
    file: str = "model.safetensors"
    prefixes: tuple[str, ...] = ()  # optional prefixes in the file, tried when the plain name is absent
    suffixes: Mapping[str, str] | None = None  # builder suffix -> older spelling, e.g. ".weight" -> ".gamma"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    batch: int = 1
    seq: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooModel:
    """A model that can be built, fed and checked.

    `build` turns a source of weights into a model. `feeds(batch, seq, seed)` makes sensible inputs; vision
    models ignore `seq` (their `seqs` is empty); for a decode step `seq` is the length of the past. One that `generates` takes
    `input_ids` and `past_*`, of any length, and gives `logits` and a `present_*` for each past: its own next inputs.
    `max_err` bounds max|a-b| / max|b| of an fp32 run against the CPU provider. A quantised one names the `float_model` that it
    was made from: its outputs are held against that one's, too.
    """

    name: str
    family: Family
    build: Callable[[Params], onnx.ModelProto]
    feeds: Callable[[int, int, int], Feeds]
    seqs: tuple[int, ...] = ()
    served: tuple[Size, ...] = ()  # sizes that people serve it at, for `bench run zoo --wide`
    max_err: float = 2e-5  # fp32 sums of up to 3072 terms in another order differ by a few 1e-6
    seed: int = 0
    generates: bool = False
    tiny: bool = False  # small enough for unit tests; left out of `bench run zoo`
    checkpoint: Checkpoint | None = None
    float_model: ZooModel | None = None
