"""GroupQueryAttention against ONNX Runtime's kernel: the cache, its lengths, rotary embedding, windows and biases."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto

from tests.support.models.graph_from_model import interpret_model
from tests.support.models.onnx_text import Array, assert_same, model_of, run_cpu
from tests.tolerances import difference
from xyntra_ep.errors import UnsupportedError

RNG = np.random.default_rng(0)
B, N, M, H = 2, 6, 2, 16  # the provider turns heads of whole 16s only


def _f32(*shape: int) -> NDArray[np.float32]:
    return RNG.standard_normal(shape).astype(np.float32)


def _model(
    attributes: str = "", *, batch: str = "B", past: bool = True, packed: bool = False, more: str = "", bias: str = ""
) -> ModelProto:
    """The total length is that of a mask, as exporters have it."""
    kv = "" if packed else f", float[{batch}, S, {M * H}] k, float[{batch}, S, {M * H}] v"
    cache = f", float[{batch}, {M}, P, {H}] pk, float[{batch}, {M}, P, {H}] pv" if past else ""
    width = (N + 2 * M) * H if packed else N * H
    settings = ", ".join(filter(None, [f"num_heads = {N}, kv_num_heads = {M}", attributes]))
    return model_of(
        f"""g (float[{batch}, S, {width}] q{kv}{cache}, int32[{batch}] ends, int64[{batch}, T] mask{bias})
            => (float[a, b, c] y, float[a, d, e, f] nk, float[a, d, e, f] nv) {{
            shape = Shape (mask)
            length = Gather (shape, one)
            total = Cast <to = 6> (length)
            y, nk, nv = com.microsoft.GroupQueryAttention <{settings}>
                (q, {"," if packed else "k, v"}, {"pk, pv" if past else ","}, ends, total{more})
        }}""",
        {"one": np.array(1), "cos": _f32(32, H // 2), "sin": _f32(32, H // 2)},
        contrib=True,
    )


def _feeds(batch: int, new: int, past: int | None, total: int, ends: list[int] | None = None) -> dict[str, Array]:
    feeds: dict[str, Array] = {"q": _f32(batch, new, N * H), "k": _f32(batch, new, M * H), "v": _f32(batch, new, M * H)}
    if past is not None:
        feeds |= {"pk": _f32(batch, M, past, H), "pv": _f32(batch, M, past, H)}
    last = np.array(ends or [total - 1] * batch, np.int32)
    return {**feeds, "ends": last, "mask": np.ones((batch, total), np.int64)}


ATTRIBUTES = ["", "scale = 0.3, softcap = 2.0", "local_window_size = 3", "do_rotary = 1", "do_rotary = 1, rotary_interleaved = 1"]


def _rotary(attributes: str) -> str:
    return ", cos, sin" if "rotary" in attributes else ""


@pytest.mark.parametrize("attributes", ATTRIBUTES)
@pytest.mark.parametrize("batch", ["1", "B"])
def test_a_prompt_and_the_next_token(attributes: str, batch: str) -> None:
    model = _model(attributes, batch=batch, more=_rotary(attributes))
    number = 1 if batch == "1" else B
    assert_same(model, _feeds(number, 7, 0, 7))
    assert_same(model, _feeds(number, 1, 7, 8))


def test_several_tokens_after_a_past() -> None:
    assert_same(_model(batch="1"), _feeds(1, 3, 5, 8))


def test_no_past_and_packed_operands() -> None:
    assert_same(_model(past=False), _feeds(B, 5, None, 5))
    feeds = _feeds(B, 5, None, 5)
    packed = {**feeds, "q": np.concatenate([feeds[name] for name in "qkv"], axis=2)}
    del packed["k"], packed["v"]
    assert_same(_model("do_rotary = 1", past=False, packed=True, more=", cos, sin"), packed)


@pytest.mark.parametrize("attributes", ["", "do_rotary = 1"])
def test_batches_of_different_lengths(attributes: str) -> None:
    """The new token of a shorter one lies in the middle of its cache, and zeros behind it."""
    assert_same(_model(attributes, more=_rotary(attributes)), _feeds(B, 1, 7, 8, ends=[7, 4]))


@pytest.mark.parametrize("batch", ["1", "B"])
def test_a_cache_with_room_to_spare(batch: str) -> None:
    number = 1 if batch == "1" else B
    assert_same(_model(batch=batch), _feeds(number, 1, 12, 8))


def test_padding_behind_a_prompt_is_left_alone() -> None:
    """What the padding's queries give is not said; what the others see is."""
    model, feeds = _model(), _feeds(B, 6, 0, 6, ends=[5, 3])
    with np.errstate(all="ignore"):
        found, wanted = interpret_model(model, feeds)[0], run_cpu(model, feeds)[0]
    assert not difference(found[0], wanted[0]) and not difference(found[1, :4], wanted[1, :4])


def test_positions_and_a_bias() -> None:
    positions = _model("do_rotary = 1", more=", cos, sin, at", bias=", int64[B, S] at")
    assert_same(positions, {**_feeds(B, 1, 7, 8), "at": np.array([[3], [9]])})
    biased = _model(more=", , , , bias", bias=f", float[1, {N}, S, T] bias")
    assert_same(biased, {**_feeds(B, 1, 7, 8), "bias": _f32(1, N, 1, 8)})
    assert_same(biased, {**_feeds(B, 1, 12, 8), "bias": _f32(1, N, 1, 8)})  # none for the cache's room to spare


def test_of_a_prompt_the_first_position_counts() -> None:
    model = _model("do_rotary = 1", past=False, more=", cos, sin, at", bias=", int64[B, S] at")
    assert_same(model, {**_feeds(B, 3, None, 3), "at": np.array([[5, 9, 2], [0, 1, 7]])})


def test_a_text_that_is_longer_than_the_rotary_table() -> None:
    """As ONNX Runtime: what turns by the last row again is no text any more."""
    model = _model("do_rotary = 1", more=", cos, sin")
    assert_same(model, _feeds(B, 1, 31, 32))
    with pytest.raises(Exception, match="cos_cache"):
        run_cpu(model, _feeds(B, 1, 32, 33))
    with pytest.raises(Exception, match="more keys than the rotary table has positions"):
        interpret_model(model, _feeds(B, 1, 32, 33))


def test_all_see_all() -> None:
    for past in (0, 4):
        assert_same(_model("causal = 0", batch="1"), _feeds(1, 3, past, past + 3))


def test_what_it_declines() -> None:
    for setting in ("smooth_softmax = 1", "local_window_size = 4, sliding_window_cache = 1", "an_attribute_of_tomorrow = 0"):
        with pytest.raises(UnsupportedError, match=setting.split(", ")[-1]):
            interpret_model(_model(setting), _feeds(B, 1, 7, 8))
