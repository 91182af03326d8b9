"""What is damaged, forged, or for something else is refused with a reason, before any of its code runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.provider.compiled.support import (
    attribute,
    chain,
    compiled,
    content,
    context_nodes,
    divided,
    edited,
    folded,
    initializer,
    input_shape,
    sealed,
    session,
    u32,
    with_content,
)
from xyntra_ep.tracea.planning.compiled_model import CompiledModel

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]
Change = Callable[[onnx.ModelProto], onnx.ModelProto]
_CHECKSUM = 16


def bytewise(change: Callable[[bytes], bytes]) -> Change:
    return lambda model: with_content(model, change(content(model)))


def inside(change: Callable[[CompiledModel], CompiledModel]) -> Change:
    return lambda model: edited(model, change)


def in_place(change: Callable[[onnx.ModelProto], object]) -> Change:
    def changed(model: onnx.ModelProto) -> onnx.ModelProto:
        change(model)
        del model.metadata_props[:]
        return model

    return changed


def node_attribute(name: str, value: object) -> Change:
    def change(model: onnx.ModelProto) -> None:
        found = attribute(context_nodes(model)[-1], name)
        if isinstance(value, bytes):
            found.s = value
        else:
            found.i = int(str(value))

    return in_place(change)


def _flip(data: bytes) -> bytes:
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def _unsealed(data: bytes) -> bytes:
    return data[:-_CHECKSUM]


def _plan_version(data: bytes) -> bytes:
    at = 12 + int.from_bytes(data[8:12], "little")
    return sealed(u32(_unsealed(data), at, 7))


def _longer(model: CompiledModel) -> dict[bytes, bytes]:
    return {name: kernel + b"x" for name, kernel in model.kernels.items()}


CHAIN: dict[str, tuple[Change, str]] = {
    "empty": (bytewise(lambda data: b"x"), "cut short"),
    "cut": (bytewise(lambda data: data[: len(data) // 2]), "damaged or cut short"),
    "flipped": (bytewise(_flip), "checksum does not match"),
    "no model": (bytewise(lambda data: sealed(b"ELF!" + _unsealed(data)[4:])), "no compiled model of XyntraEP"),
    "another version": (bytewise(lambda data: sealed(u32(_unsealed(data), 4, 2))), "format has version 2, and this release"),
    "other plans": (bytewise(_plan_version), "plans has version 7, and this release"),
    "too long": (bytewise(lambda data: sealed(_unsealed(data) + b"more")), "bytes too many"),
    "no targets": (inside(lambda model: replace(model, targets=())), "no instruction set"),
    "no kernels": (inside(lambda model: replace(model, kernels={})), "lacks a kernel"),
    "other kernel": (inside(lambda model: replace(model, kernels=_longer(model))), "kernel is damaged"),
    "no plan": (inside(lambda model: replace(model, targets=(replace(model.targets[0], plan=b""),))), "plan cannot be used"),
    "for another": (
        inside(lambda model: replace(model, targets=(replace(model.targets[0], features=("avx1024",)),))),
        r"does not have: \S+ \(avx1024 is missing\)",
    ),
    "smaller weight": (in_place(lambda m: initializer(m, "w", np.zeros((64, 4), np.float32))), "'w' has another shape"),
    "other type": (in_place(lambda m: initializer(m, "bias", np.zeros(5, np.float64))), "'bias' has another type"),
    "other width": (in_place(lambda m: input_shape(m, ["n", 63])), "'x' has another shape"),
    "width left open": (in_place(lambda m: input_shape(m, ["n", "k"])), "'x' has another shape"),
    "other rank": (in_place(lambda m: input_shape(m, ["n", 64, 1])), "'x' has another shape"),
    "names nothing": (node_attribute("partition_name", b""), "names a compiled model that is not there"),
    "names no island": (node_attribute("partition_name", b"0/0"), "names a compiled model that is not there"),
    "main elsewhere": (node_attribute("main_context", 0), "names a compiled model that is not there"),
    "a path": (node_attribute("embed_mode", 0), "not one beside the model"),
}


@pytest.mark.parametrize("name", CHAIN)
def test_is_refused(name: str, tmp_path: Path) -> None:
    change, why = CHAIN[name]
    _refused(change(onnx.load(compiled(chain(), tmp_path).path)), tmp_path, why)


def _refused(model: onnx.ModelProto, folder: Path, why: str) -> None:
    onnx.save(model, folder / "hostile.onnx")
    with pytest.raises(Exception, match=f"XyntraEP does not execute this compiled model: .*{why}"):
        session(folder / "hostile.onnx")


@pytest.mark.parametrize(
    ("partition", "why"),
    [(b"/0", "two nodes name the same island"), (b"/2", "an island that is not there"), (b"/x", "an island that is not there")],
)
def test_islands_are_those_of_their_nodes(partition: bytes, why: str, tmp_path: Path) -> None:
    model = onnx.load(compiled(divided(), tmp_path).path)
    last = attribute(context_nodes(model)[1], "partition_name")
    last.s = last.s.split(b"/")[0] + partition
    _refused(model, tmp_path, why)


def test_islands_do_not_change_places(tmp_path: Path) -> None:
    model = onnx.load(compiled(divided(), tmp_path).path)
    first, last = (attribute(node, "partition_name") for node in context_nodes(model))
    first.s, last.s = last.s, first.s
    _refused(model, tmp_path, "'x' has another shape")


def test_a_constant_that_the_plan_was_made_from_stays(tmp_path: Path) -> None:
    model = onnx.load(compiled(folded(), tmp_path).path)
    initializer(model, "starts", np.array([3], np.int64))
    _refused(model, tmp_path, "'starts' is another one")


def test_other_weights_of_the_same_shape_are_what_they_are(tmp_path: Path) -> None:
    """They are data, and packed when the model is opened."""
    model = onnx.load(compiled(chain(), tmp_path).path)
    initializer(model, "w", np.zeros((64, 5), np.float32))
    onnx.save(model, tmp_path / "tuned.onnx")
    x = np.ones((2, 64), np.float32)
    bias = np.maximum(onnx.numpy_helper.to_array(next(t for t in model.graph.initializer if t.name == "bias")), 0)
    want = np.exp(bias) / np.exp(bias).sum()
    np.testing.assert_allclose(session(tmp_path / "tuned.onnx").run(None, {"x": x})[0], np.stack([want, want]), rtol=1e-5)


def test_a_file_that_others_may_write_to(tmp_path: Path) -> None:
    found = compiled(chain(), tmp_path, embed=False)
    found.files[1].chmod(0o666)
    with pytest.raises(Exception, match="others may write to it"):
        session(found.path)


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    found = compiled(chain(), tmp_path, embed=False)
    found.files[1].unlink()
    with pytest.raises(Exception, match="No such file"):
        session(found.path)
    with pytest.raises(Exception, match="given from memory"):
        session(found.path.read_bytes())


@pytest.mark.parametrize("path", ["../compiled.xyntra", "/etc/passwd", "..", ""])
def test_a_file_elsewhere(path: str, tmp_path: Path) -> None:
    model = onnx.load(compiled(chain(), tmp_path, embed=False).path)
    attribute(context_nodes(model)[0], "ep_cache_context").s = path.encode()
    _refused(model, tmp_path, "not one beside the model")


def test_a_fifo_is_no_file(tmp_path: Path) -> None:
    found = compiled(chain(), tmp_path, embed=False)
    found.files[1].unlink()
    os.mkfifo(found.files[1], 0o600)
    with pytest.raises(Exception, match="is not a regular file"):
        session(found.path)


def test_digests_are_checked_where_they_are_given(tmp_path: Path) -> None:
    listed = tmp_path / "digests"
    found = compiled(chain(), tmp_path, digest=listed)
    listed.chmod(0o600)
    assert listed.read_text().split() == [found.digests[0], "compiled.onnx"]
    session(found.path, {"compiled_digest": str(listed)})
    model = onnx.load(found.path)
    forged = edited(model, lambda made: replace(made, release="forged"))  # intact in all but who made it
    onnx.save(forged, tmp_path / "forged.onnx")
    session(tmp_path / "forged.onnx")
    with pytest.raises(Exception, match=r"its SHA-256 is .*, which .* does not list"):
        session(tmp_path / "forged.onnx", {"compiled_digest": str(listed)})
    listed.chmod(0o666)
    with pytest.raises(Exception, match=r"compiled_digest: .*others may write to it"):
        session(found.path, {"compiled_digest": str(listed)})


def test_a_digest_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = compiled(chain(), tmp_path)
    monkeypatch.setenv("XYNTRA_COMPILED_DIGEST", str(tmp_path / "none"))
    with pytest.raises(Exception, match=r"compiled_digest: .*No such file"):
        session(found.path)
