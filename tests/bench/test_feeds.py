from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from xyntra_bench.errors import BenchError
from xyntra_bench.feeds import dims_of, synthetic_feeds
from xyntra_bench.plan import parse_shape


def declared(name: str, type_: str, *shape: int | str | None) -> Any:
    return SimpleNamespace(name=name, type=type_, shape=list(shape))


IDS = declared("input_ids", "tensor(int64)", "batch", "seq")
MASK = declared("attention_mask", "tensor(int64)", "batch", "seq")
IMAGE = declared("pixels", "tensor(float)", "batch", 3, 8, 8)


def test_inputs_are_made_from_types_and_shapes() -> None:
    feeds = synthetic_feeds([IDS, MASK, IMAGE], {"input_ids": (2, 5), "attention_mask": (2, 5)}, seed=0)
    assert feeds["input_ids"].shape == (2, 5) and feeds["input_ids"].dtype == np.int64
    assert set(np.unique(feeds["input_ids"])) <= {0, 1}
    assert (feeds["attention_mask"] == 1).all()
    assert feeds["pixels"].shape == (2, 3, 8, 8), "their first dims have one name"
    assert synthetic_feeds([IMAGE], {}, seed=0)["pixels"].shape == (1, 3, 8, 8), "a free first dim is the batch"
    scalars = [declared("trips", "tensor(int64)"), declared("count", "tensor(int32)", 1), declared("on", "tensor(bool)")]
    assert [array.tolist() for array in synthetic_feeds(scalars, {}, seed=0).values()] == [3, [3], True]
    assert feeds["pixels"].dtype == np.float32 and feeds["pixels"].std() > 0.5


def test_a_batch_multiplies_dynamic_first_dims() -> None:
    table = declared("table", "tensor(float)", 5, 2)
    feeds = synthetic_feeds([IDS, IMAGE, table], {"input_ids": (2, 5)}, seed=0, batch=4)
    assert [array.shape for array in feeds.values()] == [(8, 5), (8, 3, 8, 8), (5, 2)]
    with pytest.raises(BenchError, match=r"a batch of 4: no input of the model has a dynamic first dim\. export it with one"):
        synthetic_feeds([table], {}, seed=0, batch=4)


def test_inputs_that_are_given_stay_and_need_no_known_type() -> None:
    words = declared("words", "tensor(string)", "batch")
    feeds = synthetic_feeds([words, IDS], {"words": (2,), "input_ids": (2, 5)}, 0, 3, {"words": np.array(["a", "b"])})
    assert feeds["words"].tolist() == ["a", "b"] * 3 and feeds["input_ids"].shape == (6, 5)
    with pytest.raises(
        BenchError, match=r"^input words: cannot make up tensor\(string\). `bench run model` takes --feed words=FILE$"
    ):
        synthetic_feeds([words], {}, seed=0)


def test_what_is_said_of_a_named_dim_counts_for_the_other_inputs() -> None:
    past = declared("past", "tensor(float)", "batch", 12, "past_seq", 64)
    assert dims_of([MASK, IDS, past], {"input_ids": (2, 5), "past": (2, 12, 7, 64)}) == {
        "attention_mask": (2, 5),
        "input_ids": (2, 5),
        "past": (2, 12, 7, 64),
    }
    assert dims_of([IDS, MASK], {"input_ids": (2, 5), "attention_mask": (2, 4)})["attention_mask"] == (2, 4), "unless given"
    nameless = declared("x", "tensor(float)", None, None)
    with pytest.raises(BenchError, match=r"dim None is dynamic. give --shape x=1x128$"):
        dims_of([IDS, nameless], {"input_ids": (2, 5)})


def test_the_advice_is_enough() -> None:
    past = declared("past", "tensor(float)", "batch", 12, "past_seq", 64)
    with pytest.raises(BenchError, match=r"--shape input_ids=1x128 --shape past=1x12x128x64$") as refused:
        dims_of([IDS, MASK, past], {})
    shapes = dict(parse_shape(part) for part in str(refused.value).partition("give ")[2].replace("--shape ", "").split())
    assert dims_of([IDS, MASK, past], shapes)["attention_mask"] == (1, 128)


def test_the_seed_decides() -> None:
    first, again, other = (synthetic_feeds([IMAGE], {}, seed=seed)["pixels"] for seed in (1, 1, 2))
    assert (first == again).all() and (first != other).any()


def test_mistakes_are_explained() -> None:
    with pytest.raises(BenchError, match=r"input input_ids: dim seq is dynamic. give --shape input_ids=1x128"):
        synthetic_feeds([IDS], {}, seed=0)
    with pytest.raises(BenchError, match=r"--shape ids: the model has no such input. it has input_ids"):
        synthetic_feeds([IDS], {"ids": (1, 2)}, seed=0)
    with pytest.raises(BenchError, match=r"\[1, 4, 8, 8\] does not fit the declared"):
        synthetic_feeds([IMAGE], {"pixels": (1, 4, 8, 8)}, seed=0)
    with pytest.raises(BenchError, match=r"cannot make up tensor\(string\)"):
        synthetic_feeds([declared("text", "tensor(string)", 1)], {}, seed=0)
