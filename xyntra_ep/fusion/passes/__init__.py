"""What happens to an island between tracing and planning: one list, in the order in which it happens.

    traced tensors -> settle_repeats -> merge_low_rank -> join_projections -> find_softmax -> fuse_attention -> fuse_rows
                   -> lower_to_ops -> name_sizes -> choose_precision -> limit_elements -> Program

A pass is a file here with a row `PASS`: what it requires, what it establishes, what it does to a `Draft`. It is named in
`PASSES`, at its place; the list is not made if something is required before it holds. `dump_dir` writes the graph after each.
"""

from __future__ import annotations

from xyntra_ep.fusion.passes import (
    choose_precision,
    find_softmax,
    fuse_attention,
    fuse_rows,
    join_projections,
    limit_elements,
    lower_to_ops,
    merge_low_rank,
    name_sizes,
    settle_repeats,
)
from xyntra_ep.fusion.passes._pass import Draft as Draft
from xyntra_ep.fusion.passes._pass import Fact as Fact
from xyntra_ep.fusion.passes._pass import Pass as Pass
from xyntra_ep.fusion.passes._pass import Target as Target
from xyntra_ep.fusion.passes._pass import in_order as in_order

PASSES = in_order(
    settle_repeats.PASS,
    merge_low_rank.PASS,
    join_projections.PASS,
    find_softmax.PASS,
    fuse_attention.PASS,
    fuse_rows.PASS,
    lower_to_ops.PASS,
    name_sizes.PASS,
    choose_precision.PASS,
    limit_elements.PASS,
)
