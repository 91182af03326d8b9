"""Where we refuse on purpose what ONNX Runtime answers: by what we say, and why. docs/hunting.md lists them for users."""

from __future__ import annotations

import re

REFUSED = {
    r"Concat.*: shapes differ": "an input without elements that is long along the axis: ORT leaves that many elements unwritten",
    r"MultiHeadAttention.*: the hidden size is no multiple": "heads that do not divide the width: ORT leaves elements unwritten",
    r"Skip(Simplified)?LayerNormalization.*: axis 0 can be repeated": "a skip of another batch: ORT reads it repeatedly",
    # From opset 25 on ORT has no kernel for Attention, and computes the body of the function, whose steps broadcast.
    r"Attention#\d+: the mask does not broadcast: (?!1 )\d+ and 1 ": "a longer mask where there is one score: ORT repeats it",
    r"Attention#\d+: queries.* have different (batch|head) sizes": "queries and keys that do not fit: ORT repeats a batch of one",
    r"Attention#\d+: a number of keys is more than": "`nonpad_kv_seqlen` out of range: ORT compares with it, and that is all",
    r"RmsNorm.*: the scale is longer": "a scale for each element of rows of one: ORT repeats the element, as the body says",
    r"GatherND.*: the batch dimensions": "different batches of data and indices: ORT distributes the indices",
}


def refused_on_purpose(text: str) -> bool:
    """Whether an error of ours is one that is meant to be more than ONNX Runtime's."""
    return any(re.search(pattern, text) for pattern in REFUSED)
