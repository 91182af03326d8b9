"""What models are run with: from files, and made up."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from xyntra_ep.diagnostics.feeds import made_up, read_feeds
from xyntra_ep.diagnostics.sizes import Sizes
from xyntra_ep.errors import ConfigError


@dataclass(frozen=True)
class Entry:
    name: str
    shape: list[int | str | None]
    type: str = "tensor(float)"


@dataclass(frozen=True)
class Inputs:
    """What is asked of a session."""

    entries: list[Entry]
    initializers: list[Entry] = field(default_factory=list)

    def get_inputs(self) -> list[Entry]:
        return self.entries

    def get_overridable_initializers(self) -> list[Entry]:
        return self.initializers


def shapes(*entries: Entry, **given: int) -> dict[str, tuple[int, ...]]:
    inputs = Inputs(list(entries))
    feeds = made_up(inputs, Sizes.of(inputs, given, {}), seed=0, besides={})
    return {name: array.shape for name, array in feeds.items()}


@pytest.mark.parametrize(
    ("declared", "shape"),
    [
        (["N", 3, "H", "W"], (1, 3, 224, 224)),
        ([None, 3, None, None], (1, 3, 224, 224)),
        (["b", "c", "y", "x"], (1, 3, 224, 224)),
        ([None, None, None, 3], (1, 224, 224, 3)),
        (["batch_size", "sequence_length"], (1, 128)),
        (["batch_size", 12, "past_sequence_length", 64], (1, 12, 128, 64)),
        (["batch_size", "past_sequence_length + 1"], (1, 129)),
        (["tokens"], (128,)),
        (["height", "width"], (224, 224)),
        ([2, 5], (2, 5)),
        ([], ()),
    ],
)
def test_sizes_that_models_have(declared: list[int | str | None], shape: tuple[int, ...]) -> None:
    assert shapes(Entry("x", declared))["x"] == shape


def test_a_size_counts_wherever_its_name_stands() -> None:
    found = shapes(Entry("ids", ["b", "s"]), Entry("past", ["b", 2, "p", 8]), Entry("mask", ["b", "p + s"]), b=2, p=5)
    assert found == {"ids": (2, 128), "past": (2, 2, 5, 8), "mask": (2, 133)}


def test_sizes_are_those_of_feeds_that_are_given() -> None:
    inputs = Inputs([Entry("x", ["n", "m"]), Entry("y", ["m"])])
    sizes = Sizes.of(inputs, {}, {"y": np.zeros(7, np.float32)})
    assert (sizes.given, sizes.made_up, str(sizes)) == ({"m": 7}, {"n": 1}, "n=1 (made up), m=7")


def test_dims_without_a_name_are_told_by_shape() -> None:
    inputs = Inputs([Entry("x", [None, 3, None, None]), Entry("y", ["n", -1])])
    assert str(Sizes.of(inputs, {}, {})) == "n=1 (made up), x: [1, 3, 224, 224] (made up), y: [1, 128] (made up)"
    assert str(Sizes.of(inputs, {}, {"x": np.zeros((1, 3, 8, 8)), "y": np.zeros((1, 1))})) == "n=1"


def test_what_is_made_up_is_seeded_and_of_the_type() -> None:
    entries = [
        Entry("x", [3]),
        Entry("ids", [50], "tensor(int64)"),
        Entry("attention_mask", [9], "tensor(int64)"),
        Entry("on", [2], "tensor(bool)"),
        Entry("trips", [], "tensor(int64)"),
        Entry("count", [1], "tensor(int32)"),
        Entry("labels", ["batch"], "tensor(int64)"),
    ]
    inputs = Inputs(entries)
    a, b = (made_up(inputs, Sizes.of(inputs, {}, {}), seed=3, besides={}) for _ in range(2))
    assert all(a[name].tobytes() == b[name].tobytes() for name in a)
    assert (a["trips"].item(), a["count"].tolist()) == (3, [3]) and a["labels"].max() < 2
    assert set(a["ids"]) == {0, 1} and a["attention_mask"].all() and a["on"].all() and a["x"].dtype == np.float32
    with pytest.raises(ConfigError, match=r"^input 's': cannot make up a tensor\(string\). give it: feeds=\{'s': ...\}$"):
        shapes(Entry("s", [1], "tensor(string)"))


def test_what_is_too_large_to_be_made_up() -> None:
    with pytest.raises(ConfigError, match=r"^input 'x': \[2147483647, 2147483647\] is too large. give less$"):
        shapes(Entry("x", ["n", "n"]), n=2**31 - 1)


INPUTS = Inputs([Entry("x", ["n", 2]), Entry("i", [2], "tensor(int64)")], [Entry("w", [1])])
FLOATS, INTEGERS = np.ones((3, 2), np.float32), np.array([4, 5])


def test_every_kind_of_file(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", FLOATS)
    (tmp_path / "i.pb").write_bytes(numpy_helper.from_array(INTEGERS).SerializeToString())
    for number, array in enumerate((FLOATS, INTEGERS)):
        (tmp_path / f"input_{number}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    np.savez(tmp_path / "both.npz", x=FLOATS, i=INTEGERS)
    single: dict[str, Any] = {"x": tmp_path / "x.npy", "i": tmp_path / "i.pb", "w": np.zeros(1, np.float32)}
    for given in (single, tmp_path, tmp_path / "both.npz"):
        found = read_feeds(INPUTS, given)
        assert np.array_equal(found["x"], FLOATS) and np.array_equal(found["i"], INTEGERS)
    onnx.save_tensor(numpy_helper.from_array(INTEGERS), str(tmp_path / "x.pb"))
    with pytest.raises(ConfigError, match=r"^feed 'x': is int64, the model wants float32$"):
        read_feeds(INPUTS, {"x": tmp_path / "x.pb"})


def test_files_that_cannot_be_fed(tmp_path: Path) -> None:
    def refused(message: str, feeds: Any) -> None:
        with pytest.raises(ConfigError, match=message):
            read_feeds(INPUTS, feeds)

    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    np.savez(tmp_path / "objects.npz", x=np.array([{}]))
    for name in ("junk.npy", "junk.npz", "junk.pb", "junk.txt"):
        (tmp_path / name).write_text("junk")
    (tmp_path / "empty.npy").touch()
    (tmp_path / "folder").mkdir()
    refused(
        r"objects.npy: is an array of Python objects, which are not read. store strings with .astype\(str\)$",
        {"x": tmp_path / "objects.npy"},
    )
    refused(
        r"objects.npz: 'x' is an array of Python objects, which are not read. store strings with .astype\(str\)$",
        tmp_path / "objects.npz",
    )
    (tmp_path / "short.npy").write_bytes((tmp_path / "objects.npy").read_bytes()[:5])
    no_array = r" is no array of numbers or strings, or not the whole of one. write it with numpy.save or numpy.savez$"
    refused(rf"short.npy:{no_array}", {"x": tmp_path / "short.npy"})
    refused(rf"junk.npy:{no_array}", {"x": tmp_path / "junk.npy"})
    refused(r"empty.npy: is no array of numbers", {"x": tmp_path / "empty.npy"})
    refused(r"junk.npz: is no array of numbers", tmp_path / "junk.npz")
    refused(r"junk.pb: is no ONNX tensor$", {"x": tmp_path / "junk.pb"})
    refused(r"junk.txt: .txt is no kind of array that can be read. give .npy or .pb$", {"x": tmp_path / "junk.txt"})
    refused(r"junk.txt: is neither a .npz nor a folder. give single arrays by feeds=", tmp_path / "junk.txt")
    refused(r"folder: has no input_0.pb. give a .npz, or the folder of a test data set$", tmp_path / "folder")
    refused(r"absent.npy: cannot be read: No such file or directory$", {"x": tmp_path / "absent.npy"})
    refused(r"^feeds: the model has no input 'z'. it has x, i, w$", {"z": FLOATS})
    refused(r"^feed 'x': is of shape \[2\], the model wants \[n, 2\]$", {"x": FLOATS[0, :2]})


def test_strings(tmp_path: Path) -> None:
    inputs = Inputs([Entry("s", ["n"], "tensor(string)")])
    words = np.array(["a", "bé"])
    np.savez(tmp_path / "words.npz", s=words)
    assert read_feeds(inputs, tmp_path / "words.npz")["s"].tolist() == ["a", "bé"]
    assert read_feeds(inputs, {"s": words.astype(object)})["s"].tolist() == ["a", "bé"]
    with pytest.raises(ConfigError, match=r"^feed 's': is float32, the model wants strings. store strings with .astype\(str\)$"):
        read_feeds(inputs, {"s": FLOATS[:, 0]})
