from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
import pytest

from xyntra_zoo import ZooModel, model_path, zoo
from xyntra_zoo.graph_builder import GraphBuilder
from xyntra_zoo.model import Checkpoint
from xyntra_zoo.params import F32, Init, RandomParams
from xyntra_zoo.weights import CheckpointParams, WeightsError, download, load_safetensors

Tensors = dict[str, npt.NDArray[Any]]


def write_safetensors(path: Path, tensors: Tensors, codes: dict[str, str] | None = None) -> Path:
    names = {"float32": "F32", "float16": "F16", "uint16": "BF16", "int64": "I64"}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, tensor in tensors.items():
        code = (codes or {}).get(name, names[tensor.dtype.name])
        end = offset + tensor.nbytes
        header[name] = {"dtype": code, "shape": tensor.shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(t.tobytes() for t in tensors.values()))
    return path


class Recorder:
    """Random weights that remember what they were asked for: a checkpoint of the model, made by the test."""

    synthetic = False

    def __init__(self) -> None:
        self.tensors: Tensors = {}

    def __call__(self, name: str, shape: tuple[int, ...], init: Init, gain: float = 1.0) -> F32:
        return self.tensors.setdefault(name, RandomParams(11)(name, shape, init, gain))


def outputs(model: ZooModel, source: str | bytes) -> list[npt.NDArray[np.float32]]:
    session = ort.InferenceSession(source, providers=["CPUExecutionProvider"])
    values: list[npt.NDArray[np.float32]] = session.run(None, model.feeds(2, 9, 0))
    return values


@pytest.mark.parametrize("model", [pytest.param(m, id=m.name) for m in zoo if m.tiny])
def test_a_loaded_checkpoint_computes_what_its_tensors_say(model: ZooModel, tmp_path: Path) -> None:
    recorder = Recorder()
    expected = outputs(model, model.build(recorder).SerializeToString())
    file = write_safetensors(tmp_path / "model.safetensors", recorder.tensors)
    loaded = outputs(model, str(model_path(model, weights=file)))
    random = outputs(model, str(model_path(model)))
    for e, value, other in zip(expected, loaded, random, strict=True):
        np.testing.assert_array_equal(value, e)
        assert np.abs(other - e).max() > 1e-2


def test_full_size_models_ask_for_the_names_of_their_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few names and shapes of each public checkpoint, so that a renamed layer is noticed."""
    known = {
        "bert-base": {
            "bert.embeddings.word_embeddings.weight": (30522, 768),
            "bert.embeddings.LayerNorm.gamma": (768,),
            "bert.encoder.layer.11.attention.self.query.weight": (768, 768),
            "bert.encoder.layer.0.attention.output.LayerNorm.beta": (768,),
            "bert.encoder.layer.0.intermediate.dense.weight": (3072, 768),
            "bert.pooler.dense.bias": (768,),
        },
        "resnet50": {
            "conv1.weight": (64, 3, 7, 7),
            "bn1.running_var": (64,),
            "layer1.0.downsample.0.weight": (256, 64, 1, 1),
            "layer4.2.bn3.running_mean": (2048,),
            "fc.weight": (1000, 2048),
        },
        "mobilenetv2": {
            "conv_stem.weight": (32, 3, 3, 3),
            "blocks.0.0.conv_dw.weight": (32, 1, 3, 3),
            "blocks.0.0.conv_pw.weight": (16, 32, 1, 1),
            "blocks.1.0.conv_pw.weight": (96, 16, 1, 1),
            "blocks.6.0.conv_pwl.weight": (320, 960, 1, 1),
            "blocks.6.0.bn3.running_var": (320,),
            "conv_head.weight": (1280, 320, 1, 1),
            "classifier.bias": (1000,),
        },
        "vit-tiny16": {
            "cls_token": (1, 1, 192),
            "pos_embed": (1, 197, 192),
            "patch_embed.proj.weight": (192, 3, 16, 16),
            "blocks.11.attn.qkv.weight": (576, 192),
            "blocks.0.mlp.fc2.bias": (192,),
            "head.weight": (1000, 192),
        },
        "gpt2-prefill": {
            "wte.weight": (50257, 768),
            "wpe.weight": (1024, 768),
            "h.11.attn.c_attn.weight": (768, 2304),
            "h.0.mlp.c_proj.weight": (3072, 768),
            "ln_f.bias": (768,),
        },
    }
    for name, expected in known.items():
        asked = names_asked(zoo[name], monkeypatch)
        for tensor, shape in expected.items():
            assert asked.get(tensor) == shape, (name, tensor)


def names_asked(model: ZooModel, monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, ...]]:
    """Every spelling under which the model would find a tensor, without storing any."""
    asked: dict[str, tuple[int, ...]] = {}

    class Zeros:
        synthetic = False

        def __call__(self, name: str, shape: tuple[int, ...], init: Init, gain: float = 1.0) -> F32:
            lookup = CheckpointParams({}, model.checkpoint, source="test")
            asked.update(dict.fromkeys(lookup._spellings(name), shape))
            return np.broadcast_to(np.float32(0), shape)

    monkeypatch.setattr(GraphBuilder, "weight", lambda self, name, array: name)
    monkeypatch.setattr(GraphBuilder, "model", lambda self: None)
    model.build(Zeros())
    return asked


def test_half_precisions_are_widened(tmp_path: Path) -> None:
    values = np.array([[1.0, -2.5], [0.15625, 3e5]], np.float32)
    bf16 = (values.view(np.uint32) >> 16).astype(np.uint16)
    f16 = np.array([1.5, -2.0], np.float16)
    tensors = load_safetensors(write_safetensors(tmp_path / "t.safetensors", {"b": bf16, "h": f16}))
    np.testing.assert_array_equal(tensors["b"], np.array([[1.0, -2.5], [0.15625, 299008.0]], np.float32))
    params = CheckpointParams(tensors, None, source="t")
    assert params("h", (2,), Init.BIAS).dtype == np.float32
    assert sorted(tensors) == ["b", "h"] and len(tensors) == 2


def test_prefixes_and_older_names_are_found() -> None:
    checkpoint = Checkpoint(hub_id="x", prefixes=("bert.",), suffixes={".LayerNorm.weight": ".LayerNorm.gamma"})
    tensors = {"bert.a.LayerNorm.gamma": np.ones(3, np.float32)}
    params = CheckpointParams(tensors, checkpoint, source="x")
    assert params("a.LayerNorm.weight", (3,), Init.GAIN).tolist() == [1, 1, 1]


def test_wrong_checkpoints_are_refused_with_a_reason(tmp_path: Path) -> None:
    params = CheckpointParams({"fc.weight": np.ones((2, 3), np.float32)}, None, source="some.safetensors")
    with pytest.raises(WeightsError, match=r"some\.safetensors: no tensor 'fc\.weigth'\. did you mean \['fc\.weight'\]"):
        params("fc.weigth", (2, 3), Init.LINEAR)
    with pytest.raises(WeightsError, match=r"fc\.weight has shape \(2, 3\), the model needs \(3, 2\)"):
        params("fc.weight", (3, 2), Init.LINEAR)
    with pytest.raises(WeightsError, match="no such file"):
        load_safetensors(tmp_path / "absent")


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "damaged.safetensors"
    file.touch()
    with pytest.raises(WeightsError, match="the file is empty"):
        load_safetensors(file)
    file.write_bytes(b"\xff" * 64)
    with pytest.raises(WeightsError, match="not a safetensors file"):
        load_safetensors(file)
    file.write_bytes((4).to_bytes(8, "little") + b"oops")
    with pytest.raises(WeightsError, match="header is not JSON"):
        load_safetensors(file)
    write_safetensors(file, {"a": np.ones(4, np.float32)})
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(WeightsError, match="a lies outside the file"):
        load_safetensors(file)["a"]
    write_safetensors(file, {"a": np.ones(4, np.float32)}, codes={"a": "F8_E4M3"})
    with pytest.raises(WeightsError, match="a has dtype F8_E4M3"):
        load_safetensors(file)["a"]


def test_download_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(WeightsError, match=r"huggingface_hub is not installed\. pip install"):
        download(Checkpoint(hub_id="org/model"))
